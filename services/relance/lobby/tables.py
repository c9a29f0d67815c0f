"""The table processes as the lobby sees them: which answer, where a table lives, what its events are.

Nothing here is needed to play: a table is found at any table process, whether there is a lobby or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import Unavailable
from relance.eventlog.remote import read_all
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock
from relance.runtime.server import MAX_ANSWER_BYTES, READINESS
from relance.transport import Open

log = structlog.get_logger(__name__)

T = TypeVar("T")

_PROBE_SECONDS = 2.0
_PROBE_TIMEOUT = 1.0
_LOCATE_TIMEOUT = 0.5
_LOCATE_TTL = 5.0
_LOCATE_AT_ONCE = 16
_READ_TIMEOUT = 30.0
_MOST_LOCATED = 20_000

_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


class TableProcesses:
    """Connections to the table processes: those of the settings, and those that Locate names."""

    def __init__(self, addresses: Iterable[str], open_channel: Open, token: ServiceToken, clock: Clock) -> None:
        self._open = open_channel
        self._token, self._clock = token, clock
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._answering: set[str] = set()
        self._located: dict[str, tuple[str, float]] = {}
        self._limit = asyncio.Semaphore(_LOCATE_AT_ONCE)
        self._known = frozenset(addresses)
        for address in self._known:
            self.channel(address)

    def answering(self) -> list[str]:
        """Addresses of those that were ready when they were last asked; all, where none was."""
        return sorted(self._answering or self._channels)

    async def probe(self) -> None:
        """Ask each whether it is ready. One that was only heard of and does not answer is forgotten."""
        addresses = list(self._channels)
        states = await asyncio.gather(*(self._is_ready(address) for address in addresses))
        answering = {address for address, ready in zip(addresses, states, strict=True) if ready}
        for address in set(addresses) - answering - self._known:
            del self._channels[address]  # calls under way hold it until they have failed
        if answering != self._answering:
            log.info("table processes", answering=sorted(answering))
            self._answering = answering

    async def keep_probing(self) -> None:
        """Probe for ever."""
        while True:
            await self.probe()
            await self._clock.sleep(_PROBE_SECONDS)

    async def locate(self, tables: Sequence[str]) -> dict[str, str]:
        """Address of the process that runs each table, as of a few seconds ago; '' where nobody knows."""
        now = self._clock.monotonic()
        stale = [table for table in tables if self._located.get(table, ("", 0.0))[1] <= now]
        await asyncio.gather(*(self._ask(table) for table in stale))
        return {table: self._located.get(table, ("", 0.0))[0] for table in tables}

    def forget(self, table: str) -> None:
        """The table is not where it was."""
        self._located.pop(table, None)

    async def heads(self) -> dict[str, int]:
        """Version of each table's last event. Raises Unavailable."""

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> dict[str, int]:
            answer = await admin.ListHeads(
                table_pb2.ListHeadsRequest(), timeout=_READ_TIMEOUT, metadata=self._token.metadata()
            )
            return {head.table.removeprefix("tables/"): head.version for head in answer.heads}

        return await self._first(ask)

    async def read(self, stream: str, after: int, limit: int) -> list[TableEvent]:
        """At most `limit` events of a table after version `after`; none of a table that is not there.

        Raises Unavailable.
        """

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> list[TableEvent]:
            request = table_pb2.ReadStreamRequest(table=f"tables/{stream}", after=after, limit=limit)
            return await read_all(admin.ReadStream(request, timeout=_READ_TIMEOUT, metadata=self._token.metadata()))

        return await self._first(ask)

    def channel(self, address: str) -> grpc.aio.Channel:
        """The connection to host:port, made once."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = self._open(address, _OPTIONS)
        return channel

    async def close(self) -> None:
        """Close every connection."""
        for channel in self._channels.values():
            await channel.close()

    async def _first(self, ask: Callable[[table_pb2_grpc.TableAdminServiceAsyncStub], Awaitable[T]]) -> T:
        """The answer of the first process that has one."""
        for address in self.answering():
            try:
                return await ask(table_pb2_grpc.TableAdminServiceStub(self.channel(address)))
            except grpc.aio.AioRpcError as error:
                log.info("table process does not answer", address=address, code=error.code().name)
        raise Unavailable("no table process answers")

    async def _ask(self, table: str) -> None:
        """Learn where a table lives, from the first process that says so."""
        request = table_pb2.LocateRequest(table=f"tables/{table}")
        async with self._limit:
            for address in self.answering():
                try:
                    answer = await table_pb2_grpc.TableServiceStub(self.channel(address)).Locate(
                        request, timeout=_LOCATE_TIMEOUT, metadata=self._token.metadata()
                    )
                except grpc.aio.AioRpcError as error:
                    log.debug("locate failed", address=address, table=table, code=error.code().name)
                    continue
                if len(self._located) >= _MOST_LOCATED:
                    self._located.clear()
                self._located[table] = (answer.address, self._clock.monotonic() + _LOCATE_TTL)
                if answer.address:
                    self.channel(answer.address)
                return

    async def _is_ready(self, address: str) -> bool:
        stub = health_pb2_grpc.HealthStub(self.channel(address))
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=READINESS), timeout=_PROBE_TIMEOUT)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
