"""The gRPC server of a service: what happens around every RPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import REGISTRY
from pydantic import SecretStr

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.runtime import errors
from relance.runtime.auth import Context, KeyRing, TokenSigner, identity, require
from relance.runtime.errors import Refused
from relance.runtime.pipeline import shielded
from relance.runtime.server import Server
from relance.runtime.settings import ServiceSettings

SERVICE = "relance.api.lobby.v1.LobbyService"


class Ruling(Exception):
    """A refusal as the rules raise it: no kin of Refused, only its shape."""

    def __init__(self) -> None:
        super().__init__("Not your turn.")
        self.reason = reason_pb2.REASON_NOT_YOUR_TURN
        self.message = "Not your turn."
        self.metadata = {"seat": "3"}


class Lobby(lobby_pb2_grpc.LobbyServiceServicer):
    """Handlers that behave in every way that the pipeline must know."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()
        self.entered = asyncio.Event()
        self.release = asyncio.Event()

    async def Register(self, request: lobby_pb2.RegisterRequest, context: Context) -> lobby_pb2.Player:
        return lobby_pb2.Player(display_name=request.display_name)

    async def SignIn(self, request: lobby_pb2.SignInRequest, context: Context) -> lobby_pb2.SignInResponse:
        raise ValueError("password hunter2 was in the way")

    async def RefreshToken(self, request: lobby_pb2.RefreshTokenRequest, context: Context) -> lobby_pb2.SignInResponse:
        caller = identity(context)
        return lobby_pb2.SignInResponse(player=caller.subject, expire_time_us=caller.expires_at)

    async def ListTables(self, request: lobby_pb2.ListTablesRequest, context: Context) -> lobby_pb2.ListTablesResponse:
        require(context, "floor", "service")
        return lobby_pb2.ListTablesResponse()

    async def GetTable(self, request: lobby_pb2.GetTableRequest, context: Context) -> lobby_pb2.Table:
        if request.table == "ruling":
            raise Ruling
        raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, "No such table.", table=request.table)

    async def GetRoom(self, request: lobby_pb2.GetRoomRequest, context: Context) -> lobby_pb2.Room:
        self.entered.set()
        await self.release.wait()
        return lobby_pb2.Room()

    async def WatchTables(
        self, request: lobby_pb2.WatchTablesRequest, context: Context
    ) -> AsyncIterator[lobby_pb2.WatchTablesResponse]:
        yield lobby_pb2.WatchTablesResponse()

    async def BatchGetPlayers(
        self, request: lobby_pb2.BatchGetPlayersRequest, context: Context
    ) -> lobby_pb2.BatchGetPlayersResponse:
        async def work() -> None:
            self.entered.set()
            await self.release.wait()
            self.finished.set()

        await shielded(work())
        return lobby_pb2.BatchGetPlayersResponse()


class Room:
    """A running server with a channel to it and tokens for it."""

    def __init__(self, server: Server, lobby: Lobby, channel: grpc.aio.Channel, signer: TokenSigner) -> None:
        self.server, self.lobby, self.channel, self.signer = server, lobby, channel, signer
        self.stub = lobby_pb2_grpc.LobbyServiceStub(channel)

    def token(self, *roles: str, seconds: int = 60) -> tuple[tuple[str, str], ...]:
        token, _ = self.signer.sign("alice", roles, seconds=seconds)
        return (("authorization", f"Bearer {token}"),)


@asynccontextmanager
async def room(folder: Path, *, deadline: float = 10, ready: bool = True, health: str = "") -> AsyncIterator[Room]:
    signer = TokenSigner.generate("test-1")
    ring = folder / "keyring.json"
    ring.write_text(json.dumps({"keys": {"test-1": signer.entry("player", "floor")}}))
    settings = ServiceSettings(
        database_url=SecretStr("postgresql://nobody"), keyring=ring, address_file=folder / "address", health=health
    )
    lobby = Lobby()  # type: ignore[abstract]

    async def check() -> bool:
        return ready

    public = {f"/{SERVICE}/Register", f"/{SERVICE}/SignIn", f"/{SERVICE}/GetRoom"}
    async with Server(
        settings, keyring=KeyRing(ring), public=public, deadline=deadline, checks={"database": check}
    ) as server:
        server.add(lobby_pb2_grpc.add_LobbyServiceServicer_to_server, lobby)
        address = await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            yield Room(server, lobby, channel, signer)


async def refusal(call: object) -> tuple[grpc.StatusCode, Refused | None]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code(), errors.from_call(caught.value)


async def test_a_public_method_needs_no_token_and_others_do(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        assert (await r.stub.Register(lobby_pb2.RegisterRequest(display_name="Ann"))).display_name == "Ann"
        code, refused = await refusal(r.stub.RefreshToken(lobby_pb2.RefreshTokenRequest()))
        assert code == grpc.StatusCode.UNAUTHENTICATED
        assert refused is not None
        assert refused.reason == reason_pb2.REASON_TOKEN_MISSING


async def test_a_handler_knows_its_caller(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        answer = await r.stub.RefreshToken(lobby_pb2.RefreshTokenRequest(), metadata=r.token("player"))
        assert answer.player == "alice"


async def test_a_caller_without_the_role_is_refused_with_the_roles_that_would_do(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        code, refused = await refusal(r.stub.ListTables(lobby_pb2.ListTablesRequest(), metadata=r.token("player")))
        assert code == grpc.StatusCode.PERMISSION_DENIED
        assert refused is not None
        assert refused.metadata == {"roles": "floor,service"}
        await r.stub.ListTables(lobby_pb2.ListTablesRequest(), metadata=r.token("floor"))


@pytest.mark.parametrize(
    ("table", "code", "reason", "metadata"),
    [
        ("t1", grpc.StatusCode.NOT_FOUND, reason_pb2.REASON_TABLE_NOT_FOUND, {"table": "t1"}),
        ("ruling", grpc.StatusCode.FAILED_PRECONDITION, reason_pb2.REASON_NOT_YOUR_TURN, {"seat": "3"}),
    ],
)
async def test_a_refusal_of_services_and_of_the_rules_arrives_as_a_status_with_its_reason(
    tmp_path: Path, table: str, code: grpc.StatusCode, reason: int, metadata: dict[str, str]
) -> None:
    async with room(tmp_path) as r:
        got, refused = await refusal(
            r.stub.GetTable(lobby_pb2.GetTableRequest(table=table), metadata=r.token("player"))
        )
        assert refused is not None
        assert (got, refused.reason, refused.metadata) == (code, reason, metadata)


async def test_a_fault_tells_the_client_its_request_id_and_nothing_else(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await r.stub.SignIn(lobby_pb2.SignInRequest(), metadata=(("x-request-id", "call-7"),))
        assert caught.value.code() == grpc.StatusCode.INTERNAL
        assert "hunter2" not in str(caught.value)
        refused = errors.from_call(caught.value)
        assert refused is not None
        assert refused.metadata == {"request": "call-7"}


async def test_bytes_that_are_no_message_are_an_invalid_argument(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = r.channel.unary_unary(f"/{SERVICE}/Register")
        code, refused = await refusal(call(b"\x0a\xff\xff"))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert refused is not None
        assert refused.reason == reason_pb2.REASON_FIELD_INVALID


async def test_bytes_that_are_no_message_are_an_invalid_argument_where_the_answer_is_a_stream(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = r.channel.unary_stream(f"/{SERVICE}/WatchTables")
        reflect: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = r.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        for call in (watch(b"\x0a\xff\xff", metadata=r.token("player")), reflect(iter([b"\x0a\xff\xff"]))):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            refused = errors.from_call(caught.value)
            assert refused is not None
            assert refused.reason == reason_pb2.REASON_FIELD_INVALID


async def test_a_message_over_64_kib_is_refused_by_the_library(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        name = "x" * (64 * 1024 - 100)
        assert (await r.stub.Register(lobby_pb2.RegisterRequest(display_name=name))).display_name == name
        code, _ = await refusal(r.stub.Register(lobby_pb2.RegisterRequest(display_name="x" * 64 * 1024)))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_unary_call_without_a_deadline_gets_one(tmp_path: Path) -> None:
    async with room(tmp_path, deadline=0.05) as r:
        code, refused = await refusal(r.stub.GetRoom(lobby_pb2.GetRoomRequest()))
        assert code == grpc.StatusCode.DEADLINE_EXCEEDED
        assert refused is not None
        assert refused.reason == reason_pb2.REASON_DEADLINE


async def test_shielded_work_ends_though_its_client_is_gone(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        call = r.stub.BatchGetPlayers(lobby_pb2.BatchGetPlayersRequest(), metadata=r.token("player"))
        waiting = asyncio.ensure_future(refusal(call))
        await r.lobby.entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        r.lobby.release.set()
        await asyncio.wait_for(r.lobby.finished.wait(), 5)


async def test_liveness_serves_whatever_the_checks_say_and_readiness_does_not(tmp_path: Path) -> None:
    async with room(tmp_path, ready=False) as r:
        health = health_pb2_grpc.HealthStub(r.channel)
        states = {
            service: (await health.Check(health_pb2.HealthCheckRequest(service=service))).status
            for service in ("", "liveness", "readiness", SERVICE)
        }
        assert states == {"": 1, "liveness": 1, "readiness": 2, SERVICE: 2}


async def test_health_has_a_port_of_its_own_on_which_a_drain_is_seen_and_liveness_stays(tmp_path: Path) -> None:
    async with room(tmp_path, health="127.0.0.1:0") as r:

        async def state(service: str) -> int:
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
            return int(answer.status)

        async with grpc.aio.insecure_channel(f"127.0.0.1:{r.server.health_port}") as channel:
            health = health_pb2_grpc.HealthStub(channel)
            assert [await state("liveness"), await state("readiness")] == [1, 1]
            await r.server.drain(1)
            assert [await state("liveness"), await state("readiness")] == [1, 2]
            stub = lobby_pb2_grpc.LobbyServiceStub(channel)
            code, _ = await refusal(stub.GetRoom(lobby_pb2.GetRoomRequest()))
            assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_reflection_lists_every_service(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        call = reflection_pb2_grpc.ServerReflectionStub(r.channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        answer = await call.read()
        call.cancel()
        names = {service.name for service in answer.list_services_response.service}
        assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_the_address_stands_in_its_file_once_the_server_serves(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        assert (tmp_path / "address").read_text() == r.server.address


async def test_a_drain_lets_running_calls_end_and_takes_no_new_ones(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        running = asyncio.ensure_future(r.stub.GetRoom(lobby_pb2.GetRoomRequest()))
        await r.lobby.entered.wait()
        draining = asyncio.create_task(r.server.drain(30))
        await asyncio.sleep(0)
        code, refused = await refusal(r.stub.Register(lobby_pb2.RegisterRequest()))
        assert code == grpc.StatusCode.UNAVAILABLE
        assert refused is not None
        assert refused.reason == reason_pb2.REASON_UNAVAILABLE
        r.lobby.release.set()
        await running
        await asyncio.wait_for(draining, 5)


async def test_a_drain_ends_health_watchers_and_what_outlasts_its_grace(tmp_path: Path) -> None:
    async with room(tmp_path) as r:
        watch = health_pb2_grpc.HealthStub(r.channel).Watch(health_pb2.HealthCheckRequest(service="readiness"))
        assert (await watch.read()).status == 1
        running = asyncio.ensure_future(refusal(r.stub.GetRoom(lobby_pb2.GetRoomRequest())))
        await r.lobby.entered.wait()
        await asyncio.wait_for(r.server.drain(0.1), 5)
        await running


async def test_a_generic_handler_gets_and_gives_raw_bytes_behind_the_pipeline(tmp_path: Path) -> None:
    ring = tmp_path / "keyring.json"
    signer = TokenSigner.generate("test-1")
    ring.write_text(json.dumps({"keys": {"test-1": signer.entry("player")}}))
    settings = ServiceSettings(database_url=SecretStr("postgresql://nobody"), keyring=ring)

    async def leave(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.abort(grpc.StatusCode.ABORTED, "too slow")

    async def echo(requests: AsyncIterator[bytes], context: Context) -> None:
        async for request in requests:
            await context.write(identity(context).player.encode() + b":" + request)

    async with Server(settings, keyring=KeyRing(ring)) as server:
        stream = grpc.stream_stream_rpc_method_handler
        server.add_handlers("relance.Test", {"Echo": stream(echo), "Leave": stream(leave)})
        async with grpc.aio.insecure_channel(await server.start()) as channel:
            token, _ = signer.sign("alice", ("player",), seconds=60)
            method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream("/relance.Test/Echo")
            call = method(metadata=(("authorization", f"Bearer {token}"),))
            await call.write(b"one")
            assert await call.read() == b"alice:one"
            await call.done_writing()
            assert await call.code() == grpc.StatusCode.OK
            leaving: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream("/relance.Test/Leave")
            assert await leaving(metadata=(("authorization", f"Bearer {token}"),)).code() == grpc.StatusCode.ABORTED
            labels = {"method": "/relance.Test/Leave", "code": "ABORTED"}
            async with asyncio.timeout(5):
                while REGISTRY.get_sample_value("relance_grpc_handled_total", labels) != 1:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            code, refused = await refusal(method().read())
            assert code == grpc.StatusCode.UNAUTHENTICATED
            assert refused is not None
