"""A table process whose tables run: the rules decide, on a log in memory; whatever is appended wakes the lobby up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import pytest
from nats.aio.client import Client
from pydantic import SecretStr

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc, waiting_pb2, waiting_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.eventlog.publish import SUBJECT, TYPES, VERSION
from relance.poker import Context as Deciding
from relance.poker import Request, Table, apply, decide, initial, known_request
from relance.poker import commands as cmd
from relance.poker.config import table_config
from relance.runtime import errors
from relance.runtime.auth import SERVICE, Context, KeyRing, require
from relance.runtime.errors import Refused
from relance.runtime.server import Server
from relance.runtime.settings import ServiceSettings

from .conftest import Keys, Lobby, LobbyFactory, Metadata, TableProcess

TICK = 0.02
"""Seconds between two looks of a lobby under test."""


def now_us() -> int:
    return time.time_ns() // 1000


async def refusal(call: Awaitable[object]) -> tuple[str, dict[str, str]]:
    """Reason and metadata of the refusal that a call must end with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = errors.from_call(caught.value)
    assert refused is not None, caught.value
    return errors.reason_name(refused.reason), refused.metadata


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds. Fails after a long while."""
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - the condition is on the other side of gRPC
            await asyncio.sleep(0.01)


class RunningTables(TableProcess):
    """Its commands, by the rules. `refuses`: what a command of a name is refused with; `asked`: the ids of requests."""

    def __init__(self, nats: Client) -> None:
        super().__init__()
        self._nats = nats
        self.states: dict[str, Table] = {}
        self.refuses: dict[str, Refused] = {}
        self.asked: list[str] = []

    def register(self, server: Server) -> None:
        super().register(server)
        handlers = {}
        for name, request, answer in (
            ("OpenTable", table_pb2.OpenTableRequest, table_pb2.OpenTableResponse),
            ("CloseTable", table_pb2.CloseTableRequest, table_pb2.CommandResponse),
            ("PauseTable", table_pb2.PauseTableRequest, table_pb2.CommandResponse),
            ("ResumeTable", table_pb2.ResumeTableRequest, table_pb2.CommandResponse),
            ("HoldSeat", table_pb2.HoldSeatRequest, table_pb2.HoldSeatResponse),
            ("ReleaseSeat", table_pb2.ReleaseSeatRequest, table_pb2.CommandResponse),
        ):
            handlers[name] = grpc.unary_unary_rpc_method_handler(
                getattr(self, name), request.FromString, answer.SerializeToString
            )
        server.add_handlers("relance.api.table.v1.TableAdminService", handlers)

    # What tests do at the tables

    async def open(self, table: str, **changes: object) -> Table:
        """A table, six seats of no-limit hold'em 1/2 unless `changes` (of OpenTableRequest) say otherwise."""
        request = table_pb2.OpenTableRequest(
            house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, currency=game_pb2.CURRENCY_EUR, seats=6
        )
        changes.setdefault("stakes", game_pb2.Stakes(blinds=[1, 2]))
        request.MergeFrom(table_pb2.OpenTableRequest(**changes))  # type: ignore[arg-type]
        setup = table_config(request)
        await self.do(table, cmd.OpenTable(setup.config, setup.rake, "test"))
        return self.states[table]

    async def sit(self, table: str, *players: str) -> None:
        """Players sit down, wherever a seat is free or held for them."""
        for player in players:
            await self.do(table, cmd.TakeSeat(player, 0, 100))
            for transfer in list(self.states[table].transfers):
                await self.do(table, cmd.TransferAnswered(transfer, settled=True))

    async def leave(self, table: str, player: str) -> None:
        """A player leaves."""
        await self.do(table, cmd.LeaveSeat(player))

    async def pause(self, table: str) -> None:
        """An operator pauses it."""
        await self.do(table, cmd.PauseTable("operators/bob"))

    async def do(self, table: str, command: cmd.Command, request: Request | None = None) -> int:
        """A command to a table; version of its first event."""
        state = self.states.get(table) or initial(table)
        if request is not None and (known := known_request(state, request)) is not None:
            return known
        events = decide(state, command, Deciding(at=now_us(), request=request))
        if not events:
            return 0
        if state.version:
            await self.log.append(table, state.version, 1, events)
        else:
            await self.log.create(table, events)
            self.states[table] = state
        for event in events:
            apply(state, event)
        await self.wake(table)
        return events[0].version

    async def wake(self, table: str) -> None:
        """Tell whoever follows that there is something new."""
        headers = {VERSION: str(self.states[table].version), TYPES: "hand_ended"}
        await self._nats.publish(SUBJECT + table, b"", headers=headers)

    def players(self, table: str) -> list[str]:
        """Who sits there."""
        return [seat.player for seat in self.states[table].seats.values() if not seat.reserved]

    def events(self, table: str, kind: str) -> list[TableEvent]:
        """Events of one kind in a table's log."""
        bodies = self.log._store.streams[table].bodies
        return [event for event in map(TableEvent.FromString, bodies) if event.WhichOneof("payload") == kind]

    # RPCs

    async def OpenTable(self, request: table_pb2.OpenTableRequest, context: Context) -> table_pb2.OpenTableResponse:
        self._ask("OpenTable", request.request_id, context)
        table = f"t-{request.request_id.replace('_', '-')}"[:40]
        if table not in self.states:
            setup = table_config(request)
            await self.do(table, cmd.OpenTable(setup.config, setup.rake, "services/lobby"))
        return table_pb2.OpenTableResponse(table=f"tables/{table}", address=self.address)

    async def CloseTable(self, request: table_pb2.CloseTableRequest, context: Context) -> table_pb2.CommandResponse:
        return await self._command("CloseTable", request, cmd.CloseTable("services/lobby", request.reason), context)

    async def PauseTable(self, request: table_pb2.PauseTableRequest, context: Context) -> table_pb2.CommandResponse:
        return await self._command("PauseTable", request, cmd.PauseTable("services/lobby", request.reason), context)

    async def ResumeTable(self, request: table_pb2.ResumeTableRequest, context: Context) -> table_pb2.CommandResponse:
        return await self._command("ResumeTable", request, cmd.ResumeTable("services/lobby"), context)

    async def HoldSeat(self, request: table_pb2.HoldSeatRequest, context: Context) -> table_pb2.HoldSeatResponse:
        asked = self._ask("HoldSeat", request.request_id, context)
        table, player = request.table.removeprefix("tables/"), request.player.removeprefix("players/")
        version = await self.do(table, cmd.HoldSeat(player, now_us() + request.duration_ms * 1000), asked)
        return table_pb2.HoldSeatResponse(seat=self.states[table].held_for(player), version=version)

    async def ReleaseSeat(self, request: table_pb2.ReleaseSeatRequest, context: Context) -> table_pb2.CommandResponse:
        asked = self._ask("ReleaseSeat", request.request_id, context)
        command = cmd.ReleaseSeat(request.player.removeprefix("players/"))
        version = await self.do(request.table.removeprefix("tables/"), command, asked)
        return table_pb2.CommandResponse(request_id=request.request_id, version=version)

    async def _command(
        self,
        name: str,
        request: table_pb2.CloseTableRequest | table_pb2.PauseTableRequest | table_pb2.ResumeTableRequest,
        command: cmd.Command,
        context: Context,
    ) -> table_pb2.CommandResponse:
        asked = self._ask(name, request.request_id, context)
        version = await self.do(request.table.removeprefix("tables/"), command, asked)
        return table_pb2.CommandResponse(request_id=request.request_id, version=version)

    def _ask(self, name: str, request_id: str, context: Context) -> Request:
        caller = require(context, SERVICE)
        self.asked.append(request_id)
        if name in self.refuses:
            raise self.refuses[name]
        return Request(request_id, b"", caller.subject)


class Room:
    """A lobby under test, its tables, and more replicas where a test wants them."""

    def __init__(self, start: LobbyFactory, tables: RunningTables, nats_url: str, keys: Keys) -> None:
        self._start, self.tables, self._nats_url, self.keys = start, tables, nats_url, keys
        self.lobby: Lobby

    async def replica(self, **settings: object) -> Lobby:
        """One lobby more."""
        values = {"nats_url": SecretStr(self._nats_url), "tick_seconds": TICK, **settings}
        self.lobby = await self._start(table_addresses=(self.tables.address,), **values)
        return self.lobby

    @property
    def lobbies(self) -> lobby_pb2_grpc.LobbyServiceAsyncStub:
        return lobby_pb2_grpc.LobbyServiceStub(self.lobby.channel)

    @property
    def waiting(self) -> waiting_pb2_grpc.WaitingServiceAsyncStub:
        return waiting_pb2_grpc.WaitingServiceStub(self.lobby.channel)

    def player(self, player: str) -> Metadata:
        return self.keys.player(player)

    async def get(self, table: str) -> lobby_pb2.Table:
        return await self.lobbies.GetTable(
            lobby_pb2.GetTableRequest(table=f"tables/{table}"), metadata=self.player("anybody")
        )

    async def followed(self, *tables: str) -> None:
        """Return once the lobby shows the tables as they are."""

        async def shown() -> bool:
            answer = await self.lobby.tables(filter="closed = true OR closed = false", page_size=500)
            versions = {table.name: table.version for table in answer.tables}
            behind = [table for table in tables if versions.get(f"tables/{table}") != self.tables.states[table].version]
            for table in behind:
                await self.tables.wake(table)
            return not behind

        await until(shown)

    async def offers(self, player: str) -> list[waiting_pb2.Offer]:
        return list(
            (await self.waiting.ListOffers(waiting_pb2.ListOffersRequest(), metadata=self.player(player))).offers
        )

    async def offered(self, player: str) -> waiting_pb2.Offer:
        """The player's offer, once there is one."""
        found: list[waiting_pb2.Offer] = []

        async def there() -> bool:
            found[:] = await self.offers(player)
            return bool(found)

        await until(there)
        return found[0]


@asynccontextmanager
async def running_tables(keys: Keys, nats_url: str) -> AsyncIterator[RunningTables]:
    """A process of running tables."""
    client = Client()
    await client.connect(nats_url)
    settings = ServiceSettings(database_url=SecretStr("postgresql://nobody"), keyring=keys.ring)
    process = RunningTables(client)
    async with Server(settings, keyring=KeyRing(keys.ring)) as server:
        process.register(server)
        process.address = await server.start()
        yield process
    await client.close()
