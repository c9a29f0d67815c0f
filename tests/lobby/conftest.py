"""A lobby on a real database and NATS, and a table process that is nothing but its log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import grpc
import pytest
import pytest_asyncio
from argon2 import PasswordHasher
from pydantic import SecretStr

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.eventlog import MemoryLog
from relance.lobby.serve import started
from relance.lobby.settings import LobbySettings
from relance.lobby.watching import Streams
from relance.room.embedded import Postgres
from relance.runtime.auth import SERVICE, Context, KeyRing, TokenSigner, require
from relance.runtime.clock import SystemClock
from relance.runtime.migrations import migrate
from relance.runtime.server import Server
from relance.runtime.settings import ServiceSettings

PASSWORD = "correct horse"

Metadata = tuple[tuple[str, str], ...]


class Keys:
    """The room's keys in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lobby, self.service = TokenSigner.generate("lobby-1"), TokenSigner.generate("service-1")
        self._operator = TokenSigner.generate("operator-1")
        self.ring = folder / "keyring.json"
        entries = {
            "lobby-1": self.lobby.entry("player"),
            "service-1": self.service.entry("service"),
            "operator-1": self._operator.entry("floor", "viewer"),
        }
        self.ring.write_text(json.dumps({"keys": entries}))
        for signer in (self.lobby, self.service):
            (folder / f"{signer.kid}.pem").write_bytes(signer.pem())

    def player(self, player: str = "alice", seconds: int = 60) -> Metadata:
        token, _ = self.lobby.sign(player, ("player",), seconds=seconds)
        return (("authorization", f"Bearer {token}"),)

    def operator(self, *roles: str) -> Metadata:
        token, _ = self._operator.sign("operators/ada", roles, seconds=60)
        return (("authorization", f"Bearer {token}"),)

    def table(self) -> Metadata:
        token, _ = self.service.sign("services/table", ("service",), seconds=60, service="table")
        return (("authorization", f"Bearer {token}"),)


class Lobby:
    """A running lobby and stubs for it."""

    def __init__(self, server: Server, channel: grpc.aio.Channel, keys: Keys, streams: Streams) -> None:
        self.server, self.channel, self.keys, self.streams = server, channel, keys, streams
        self.stub = lobby_pb2_grpc.LobbyServiceStub(channel)
        self.protections = lobby_pb2_grpc.ProtectionServiceStub(channel)

    async def register(self, name: str, request_id: str | None = None, password: str = PASSWORD) -> lobby_pb2.Player:
        request = lobby_pb2.RegisterRequest(
            request_id=f"r-{abs(hash(name))}" if request_id is None else request_id,
            display_name=name,
            password=password,
        )
        return await self.stub.Register(request)

    async def sign_in(self, name: str, password: str = PASSWORD) -> lobby_pb2.SignInResponse:
        return await self.stub.SignIn(lobby_pb2.SignInRequest(display_name=name, password=password))

    async def tables(self, **request: object) -> lobby_pb2.ListTablesResponse:
        return await self.stub.ListTables(
            lobby_pb2.ListTablesRequest(**request),  # type: ignore[arg-type]
            metadata=self.keys.player(),
        )


LobbyFactory = Callable[..., Awaitable[Lobby]]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture(scope="session")
def migrated_url(postgres: Postgres) -> str:
    """Owner's URL of a database with the lobby's schema, made once: making databases is what takes time."""
    url = urlunsplit(urlsplit(postgres.url)._replace(path="/lobby_tests"))

    async def make() -> None:
        admin = await asyncpg.connect(postgres.url)
        await admin.execute("DROP DATABASE IF EXISTS lobby_tests WITH (FORCE)")
        await admin.execute("CREATE DATABASE lobby_tests")
        await admin.close()
        await migrate(url, "relance.lobby")
        owner = await asyncpg.connect(url)
        await owner.execute("ALTER ROLE relance_lobby LOGIN PASSWORD 'lobby'")
        await owner.close()

    asyncio.run(make())
    return url


@pytest_asyncio.fixture
async def database_url(migrated_url: str) -> str:
    """Owner's URL of the lobby's database, empty."""
    owner = await asyncpg.connect(migrated_url)
    tables = await owner.fetchval(
        "SELECT string_agg(format('lobby.%I', tablename), ', ') FROM pg_tables WHERE schemaname = 'lobby'"
    )
    await owner.execute(f"TRUNCATE {tables}")
    await owner.close()
    return migrated_url


@pytest.fixture
def lobby_url(database_url: str) -> str:
    """URL of the database for the lobby's own role."""
    parts = urlsplit(database_url)
    return urlunsplit(parts._replace(netloc=f"relance_lobby:lobby@{parts.netloc.rpartition('@')[2]}"))


@pytest_asyncio.fixture
async def start(lobby_url: str, keys: Keys) -> AsyncIterator[LobbyFactory]:
    """Starts lobbies; a replica more with each call."""
    async with AsyncExitStack() as stack:

        async def make(*, hasher: PasswordHasher | None = None, **settings: object) -> Lobby:
            values = {
                "database_url": SecretStr(lobby_url),
                "nats_url": SecretStr("nats://127.0.0.1:1"),  # nobody is there: the lobby does without
                "keyring": keys.ring,
                "signing_key": keys.folder / "service-1.pem",
                "player_signing_key": keys.folder / "lobby-1.pem",
                **settings,
            }
            streams = Streams()
            made = started(LobbySettings(**values), SystemClock(), streams=streams, hasher=hasher)  # type: ignore[arg-type]
            server = await stack.enter_async_context(made)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.address))
            return Lobby(server, channel, keys, streams)

        yield make


@pytest_asyncio.fixture
async def lobby(start: LobbyFactory) -> Lobby:
    """One lobby, without tables."""
    return await start()


class TableProcess:
    """The RPCs of a table process that a lobby asks, on a log in memory."""

    def __init__(self) -> None:
        self.log = MemoryLog("process-1")
        self.address = ""

    def register(self, server: Server) -> None:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        pb = table_pb2
        server.add_handlers(
            "relance.api.table.v1.TableService",
            {"Locate": unary(self.Locate, pb.LocateRequest.FromString, pb.LocateResponse.SerializeToString)},
        )
        server.add_handlers(
            "relance.api.table.v1.TableAdminService",
            {
                "ListHeads": unary(
                    self.ListHeads, pb.ListHeadsRequest.FromString, pb.ListHeadsResponse.SerializeToString
                ),
                "ReadStream": stream(
                    self.ReadStream, pb.ReadStreamRequest.FromString, pb.ReadStreamResponse.SerializeToString
                ),
            },
        )

    async def Locate(self, request: table_pb2.LocateRequest, context: Context) -> table_pb2.LocateResponse:
        return table_pb2.LocateResponse(address=self.address, fence=1)

    async def ListHeads(self, request: table_pb2.ListHeadsRequest, context: Context) -> table_pb2.ListHeadsResponse:
        require(context, SERVICE)
        heads = await self.log.heads()
        return table_pb2.ListHeadsResponse(
            heads=[table_pb2.Head(table=f"tables/{table}", version=head) for table, head in heads.items()]
        )

    async def ReadStream(self, request: table_pb2.ReadStreamRequest, context: Context) -> None:
        require(context, SERVICE)
        table = request.table.removeprefix("tables/")
        events = await self.log.read(table, request.after, request.limit)
        for first in range(0, len(events), 3):
            await context.write(table_pb2.ReadStreamResponse(events=events[first : first + 3]))


@pytest_asyncio.fixture
async def table_process(keys: Keys) -> AsyncIterator[TableProcess]:
    settings = ServiceSettings(database_url=SecretStr("postgresql://nobody"), keyring=keys.ring)
    process = TableProcess()
    async with Server(settings, keyring=KeyRing(keys.ring)) as server:
        process.register(server)
        process.address = await server.start()
        yield process


def config(**fields: object) -> game_pb2.TableConfig:
    """A table's configuration, six seats of no-limit hold'em unless `fields` say otherwise."""
    made = game_pb2.TableConfig(
        house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, seats=6, currency=game_pb2.CURRENCY_EUR,
        stakes=game_pb2.Stakes(blinds=[1, 2], low_limit=2), display_name="Table",
    )  # fmt: skip
    made.MergeFrom(game_pb2.TableConfig(**fields))  # type: ignore[arg-type]
    return made


class Story:
    """Builds a table's events, one after another."""

    def __init__(self, table: str, at: int, **fields: object) -> None:
        self.table, self.at, self.hand = table, at, 0
        self.version = 0
        self.made: list[TableEvent] = []
        self.add(table_opened=events_pb2.TableOpened(config=config(**fields), opened_by="operators/o"))

    def add(self, **payload: object) -> Story:
        self.version += 1
        event = TableEvent(table=self.table, version=self.version, hand=self.hand, time_us=self.at, **payload)  # type: ignore[arg-type]
        self.made.append(event)
        return self

    def sit(self, *seats: int) -> Story:
        for seat in seats:
            player = f"p{seat}"
            self.add(seat_reserved=events_pb2.SeatReserved(seat=seat, player=player, amount=200))
            self.add(player_sat=events_pb2.PlayerSat(seat=seat, player=player, stack=200))
        return self

    def play(self, pot: int, flop: int = 0, ended: bool = True) -> Story:
        self.hand += 1
        self.add(hand_started=events_pb2.HandStarted(button=1))
        if ended:
            self.add(hand_ended=events_pb2.HandEnded(pot=pot, players_flop=flop))
        return self

    def take(self) -> Sequence[TableEvent]:
        """What was built since the last take."""
        made, self.made = self.made, []
        return made
