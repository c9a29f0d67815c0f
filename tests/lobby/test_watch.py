"""WatchTables: the list first, then what changes, whoever followed it; streams that end say why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.lobby.watching import Watcher
from relance.poker import commands as cmd
from relance.room.embedded import Nats
from relance.runtime import errors

from .conftest import Keys, LobbyFactory, Metadata
from .running import Room, refusal, running_tables

Call = grpc.aio.UnaryStreamCall[lobby_pb2.WatchTablesRequest, lobby_pb2.WatchTablesResponse]


@pytest_asyncio.fixture
async def room(start: LobbyFactory, keys: Keys, nats_server: Nats) -> AsyncIterator[Room]:
    """A lobby, a table t with ann, and an empty turbo table u."""
    async with running_tables(keys, nats_server.url) as tables:
        made = Room(start, tables, nats_server.url, keys)
        await made.replica()
        await tables.open("t")
        await tables.sit("t", "ann")
        await tables.open("u", turbo=True, stakes=game_pb2.Stakes(blinds=[5, 10]))
        await made.followed("t", "u")
        yield made


class Watch:
    """What a watcher knows."""

    def __init__(self, room: Room, filter: str = "", metadata: Metadata | None = None) -> None:
        request = lobby_pb2.WatchTablesRequest(filter=filter)
        self.call: Call = room.lobbies.WatchTables(request, metadata=metadata or room.player("eve"))
        self.tables: dict[str, lobby_pb2.Table] = {}

    async def read(self) -> lobby_pb2.WatchTablesResponse:
        message = await self.call.read()
        assert isinstance(message, lobby_pb2.WatchTablesResponse), message
        self.tables.update((table.name.removeprefix("tables/"), table) for table in message.tables)
        for name in message.removed:
            del self.tables[name.removeprefix("tables/")]
        return message

    async def players(self, table: str, count: int) -> None:
        """Return once so many players are seen at a table."""
        async with asyncio.timeout(10):
            while self.tables[table].players != count:
                await self.read()


async def test_the_list_comes_first_and_then_what_changes(room: Room) -> None:
    watch = Watch(room)
    assert (await watch.read()).complete
    assert {name: table.players for name, table in watch.tables.items()} == {"t": 1, "u": 0}
    await room.tables.sit("t", "bob")
    await watch.players("t", 2)
    await room.tables.open("v")
    while "v" not in watch.tables:
        await watch.read()
    await room.tables.do("u", cmd.CloseTable("o"))
    while "u" in watch.tables:
        await watch.read()
    watch.call.cancel()


async def test_a_filter_lets_tables_in_and_out(room: Room) -> None:
    watch = Watch(room, "players > 1 AND turbo = false")
    assert (await watch.read()).complete
    assert watch.tables == {}
    await room.tables.sit("t", "bob")
    await watch.read()
    assert watch.tables.keys() == {"t"}
    await room.tables.leave("t", "ann")
    assert (await watch.read()).removed == ["tables/t"]
    watch.call.cancel()
    call = room.lobbies.WatchTables(lobby_pb2.WatchTablesRequest(filter="colour = red"), metadata=room.player("eve"))
    assert (await refusal(call.read()))[0] == "INVALID_FILTER"


async def test_a_change_is_seen_at_every_replica(room: Room) -> None:
    first = Watch(room)
    await first.read()
    await room.replica()
    second = Watch(room)
    await second.read()
    for count, player in enumerate(("bob", "cid", "dan"), 2):
        await room.tables.sit("t", player)
        await first.players("t", count)
        await second.players("t", count)
    first.call.cancel()
    second.call.cancel()


async def test_a_long_list_comes_in_pages(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relance.lobby.board.PAGE", 1)
    watch = Watch(room)
    assert [(await watch.read()).complete for _ in range(2)] == [False, True]
    assert watch.tables.keys() == {"t", "u"}
    watch.call.cancel()


async def test_a_stream_ends_with_its_token(room: Room) -> None:
    watch = Watch(room, metadata=room.keys.player("eve", seconds=1))
    assert (await refusal(_to_the_end(watch)))[0] == "TOKEN_EXPIRED"


async def test_a_lobby_that_stops_ends_its_streams(room: Room) -> None:
    watch = Watch(room)
    await watch.read()
    room.lobby.streams.end()
    assert (await refusal(_to_the_end(watch)))[0] == "UNAVAILABLE"


async def test_a_watcher_that_does_not_read_is_dropped_and_told_why() -> None:
    watcher: Watcher[lobby_pb2.WatchTablesResponse] = Watcher(limit=3)
    for _ in range(3):
        watcher.push(lobby_pb2.WatchTablesResponse())
    assert not watcher.ended.done()
    watcher.push(lobby_pb2.WatchTablesResponse())
    why = await watcher.ended
    assert why is not None
    assert (why.reason, why.metadata) == (reason_pb2.REASON_SLOW_WATCHER, {"limit": "3"})
    assert errors.code_of(why.reason) is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_stream_that_nobody_reads_is_cut_off_and_holds_up_nothing(room: Room) -> None:
    watch = Watch(room)
    await watch.read()
    (watcher,) = room.lobby.streams._open
    other = Watch(room)
    big = lobby_pb2.Table(name="tables/t", config=game_pb2.TableConfig(display_name="x" * 60_000))
    while not watcher.ended.done():
        watcher.push(lobby_pb2.WatchTablesResponse(tables=[big]))
        await asyncio.sleep(0)
    await other.read()
    await room.tables.sit("t", "bob")
    await other.players("t", 2)
    assert (await refusal(_to_the_end(watch)))[0] == "SLOW_WATCHER"
    other.call.cancel()


async def test_tables_are_found_by_everything_that_sets_them_apart(room: Room) -> None:
    await room.tables.open("h", seats=2)
    await room.tables.open("p", private=True, stakes=game_pb2.Stakes(blinds=[50, 100]))
    await room.tables.do("p", cmd.PauseTable("o"))
    await room.followed("h", "p")

    async def found(filter: str) -> set[str]:
        return {table.name.removeprefix("tables/") for table in (await room.lobby.tables(filter=filter)).tables}

    assert await found("heads_up = true") == {"h"}
    assert await found("private = true AND paused = true") == {"p"}
    assert await found("micro = false") == {"p"}
    assert await found("turbo = true OR low_limit >= 100") == {"u", "p"}
    assert await found('min_buy_in <= 40 AND limit = no_limit AND currency = eur AND house = "boulevard"') == {"t", "h"}
    assert await found("seats = 6 AND players = 1 AND maintenance = false") == {"t"}
    orders = ("low_limit desc", "min_buy_in desc, seats", "limit, currency, waiting, players_per_flop, big_blind desc")
    first = [(await room.lobby.tables(order_by=order)).tables[0].name for order in orders]
    assert first == ["tables/p"] * 3


async def _to_the_end(watch: Watch) -> None:
    while True:
        await watch.read()
