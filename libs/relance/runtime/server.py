"""The gRPC server of a service: its handlers behind the pipeline, health, reflection, limits, drain.

    async with Server(settings, keyring=keyring, checks={"database": lambda: database.answers(pool)}) as server:
        server.add(lobby_pb2_grpc.add_LobbyServiceServicer_to_server, lobby)
        await server.start()
        await stop.wait()
        await server.drain(10)

Health (grpc.health.v1): the empty service and `liveness` serve as long as the process does; `readiness`, and each
service by its full name, serve while every check answers true and no drain has begun. With RELANCE_HEALTH it is also
answered on a port of its own, in plaintext.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from grpc_reflection.v1alpha.reflection import aio as reflection_aio

from relance.runtime import metrics, plaintext
from relance.runtime.auth import KeyRing
from relance.runtime.pipeline import Pipeline
from relance.runtime.probes import Unlistenable, answer_probes
from relance.runtime.settings import ServiceSettings

log = structlog.get_logger(__name__)

Servicer = TypeVar("Servicer")
Check = Callable[[], Awaitable[bool]]

MAX_REQUEST_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 4 * 1024 * 1024

LIVENESS, READINESS = "liveness", "readiness"

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    # Two processes must never share a port by accident.
    ("grpc.so_reuseport", 0),
    # A vanished client is noticed within 30 s; clients may ping as often as every 10 s, streams open or not.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 9_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 9_000),
    # What nobody here reads costs CPU all the same.
    ("grpc.enable_channelz", 0),
)


class ListenError(Exception):
    """The address cannot be listened on."""


class Server:
    """A grpc.aio server. Handlers are added before `start`; an async context manager that stops it in any case."""

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        keyring: KeyRing,
        checks: Mapping[str, Check] | None = None,
        public: Iterable[str] = (),
        deadline: float = 10.0,
        options: Iterable[tuple[str, int]] = (),
    ) -> None:
        """`checks`: what readiness depends on, by name; `public`: methods without a token (/package.Service/Method);
        `deadline`: longest time of a unary call, seconds; `options`: gRPC options that differ from the usual ones.
        """
        self._settings = settings
        self._checks = dict(checks or {})
        self._server = grpc.aio.server(options=list({**dict(_OPTIONS), **dict(options)}.items()))
        self._health = health_aio.HealthServicer()
        self._names: list[str] = []
        self._dependent: tuple[str, ...] = ()
        health_methods = {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}
        reflection_methods = {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}
        self._pipeline = Pipeline(keyring, frozenset({*public, *health_methods, *reflection_methods}), deadline)
        self._watch: asyncio.Task[None] | None = None
        self._probed: grpc.aio.Server | None = None
        self._ready = self._draining = False
        self.health_port = 0
        """Port of RELANCE_HEALTH, once started; 0: there is none."""
        self.address = ""
        """host:port as others reach it, once started."""

    def add(self, register: Callable[[Servicer, Any], None], servicer: Servicer) -> None:
        """Serve `servicer`: `register` is the generated add_…Servicer_to_server."""
        register(servicer, cast(grpc.aio.Server, _Registrar(self.add_handlers)))

    def add_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        """Serve methods of `service` (full name) by handlers, which may take and give raw bytes.

        They stand behind the pipeline like all others and take precedence over methods added before. A handler that
        answers in a stream is a coroutine function that writes to its context, or an async generator function.
        """
        self._names.append(service)
        wrapped = {
            name: self._pipeline.wrap(f"/{service}/{name}", handler)
            for name, handler in handlers.items()
            if not _is_unimplemented(handler)
        }
        self._server.add_registered_method_handlers(service, wrapped)

    def wrap(self, method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler behind the pipeline of this server, for calls of `method` (/package.Service/Method) that come to
        the process by another way.
        """
        return self._pipeline.wrap(method, handler)

    async def start(self) -> str:
        """Listen and serve; returns the address as others reach it. Raises ListenError."""
        self._dependent = (READINESS, *sorted(set(self._names)))
        for service in ("", LIVENESS):
            await self._health.set(service, _SERVING)
        for service in self._dependent:
            await self._health.set(service, _NOT_SERVING)
        self.add(health_pb2_grpc.add_HealthServicer_to_server, self._health)
        seen = [*self._dependent[1:], "grpc.health.v1.Health", reflection.SERVICE_NAME]
        self.add(reflection_pb2_grpc.add_ServerReflectionServicer_to_server, reflection_aio.ReflectionServicer(seen))
        host, _, _ = self._settings.listen.rpartition(":")
        port = self._listen()
        await self._server.start()
        reachable = socket.gethostname() if host in {"0.0.0.0", "[::]"} else host
        self.address = self._settings.advertise or f"{reachable}:{port}"
        await self.check()
        if self._settings.health:
            try:
                self._probed, self.health_port = await answer_probes(self._settings.health, self._health)
            except Unlistenable as error:
                raise ListenError(str(error)) from error
        self._watch = asyncio.create_task(self._keep_checking())
        if self._settings.address_file is not None:
            _write(self._settings.address_file, self.address)
        log.info("serving", address=self.address, ready=self._ready)
        return self.address

    def _listen(self) -> int:
        settings = self._settings
        if settings.tls is None:
            open_ = plaintext.listening("LISTEN", settings.listen)
            if open_ and settings.plaintext != "allow":
                raise ListenError(f"{open_[0]}; or set RELANCE_PLAINTEXT=allow")
            return _bound(settings.listen, self._server.add_insecure_port)
        metrics.watch_certificate("grpc", settings.tls)
        credentials = settings.tls.server_credentials(ask_clients=settings.asks_clients)
        return _bound(settings.listen, lambda address: self._server.add_secure_port(address, credentials))

    async def check(self) -> bool:
        """Ask every check now and set readiness by the answers."""
        answers = await asyncio.gather(*(_asked(name, check) for name, check in self._checks.items()))
        ready = all(answers) and not self._draining
        if ready != self._ready:
            away = [name for name, answer in zip(self._checks, answers, strict=True) if not answer]
            log.info("ready" if ready else "not ready", away=away)
            self._ready = ready
        for service in self._dependent:
            await self._health.set(service, _SERVING if ready else _NOT_SERVING)
        return ready

    async def _keep_checking(self) -> None:
        while True:
            await asyncio.sleep(1.0 if self._ready else 0.25)
            await self.check()

    async def unready(self) -> None:
        """Tell whoever asks that no new work should come: the first step of a drain."""
        self._stop_checking()
        self._draining = True
        for service in self._dependent:
            await self._health.set(service, _NOT_SERVING)

    async def drain(self, grace: float) -> None:
        """Refuse new RPCs, let those that run end within `grace` seconds, cancel the rest, stop listening."""
        await self.unready()
        await self._pipeline.close(grace)
        await self._server.stop(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_checking()
        await self._server.stop(0)
        if self._probed is not None:
            await self._probed.stop(0)

    def _stop_checking(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


class _Registrar:
    """What generated code takes for the server."""

    def __init__(self, add: Callable[[str, Mapping[str, grpc.RpcMethodHandler[Any, Any]]], None]) -> None:
        self._add = add

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        self._add(service, handlers)

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """The same handlers in their older form."""


def _bound(address: str, add: Callable[[str], int]) -> int:
    try:
        return add(address)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address}: the port is taken or not allowed") from error


def _is_unimplemented(handler: grpc.RpcMethodHandler[Any, Any]) -> bool:
    """Whether the servicer left the method to the generated base class: gRPC answers UNIMPLEMENTED by itself."""
    behavior = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    return getattr(behavior, "__module__", "").endswith("_pb2_grpc")


async def _asked(name: str, check: Check) -> bool:
    try:
        async with asyncio.timeout(3):
            return await check()
    except Exception as error:  # noqa: BLE001  a check that fails in any way means: not ready
        log.warning("check failed", check=name, error=type(error).__name__, text=str(error))
        return False


def _write(path: Path, address: str) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_text(address)
    beside.replace(path)
