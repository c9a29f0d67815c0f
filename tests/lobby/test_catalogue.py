"""The catalogue: what follows from the tables' events, and how it is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import grpc
import pytest
import pytest_asyncio
from nats.aio.client import Client
from pydantic import SecretStr

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.eventlog.publish import SUBJECT, TYPES, VERSION
from relance.lobby.tables import TableProcesses
from relance.room.embedded import Nats
from relance.room.ports import free_port
from relance.runtime import errors
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import SystemClock

from .conftest import Keys, Lobby, LobbyFactory, Story, TableProcess

MINUTE = 60_000_000


def now_us() -> int:
    return time.time_ns() // 1000


async def refusal(call: Awaitable[object]) -> tuple[str, dict[str, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = errors.from_call(caught.value)
    assert refused is not None, caught.value
    return errors.reason_name(refused.reason), refused.metadata


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - the condition is on the other side of gRPC
            await asyncio.sleep(0.02)


@pytest_asyncio.fixture
async def room(start: LobbyFactory, table_process: TableProcess, nats_server: Nats) -> AsyncIterator[Room]:
    client = Client()
    await client.connect(nats_server.url)
    lobby = await start(table_addresses=(table_process.address,), nats_url=SecretStr(nats_server.url))
    yield Room(lobby, table_process, client)
    await client.close()


class Room:
    """A lobby that follows a table process."""

    def __init__(self, lobby: Lobby, process: TableProcess, nats: Client) -> None:
        self.lobby, self.process, self.nats = lobby, process, nats

    async def tell(self, *stories: Story) -> None:
        """Append what the stories tell, wake the lobby, and return once it has taken it in."""
        for story in stories:
            events = story.take()
            if events[0].version == 1:
                await self.process.log.create(story.table, events)
            else:
                await self.process.log.append(story.table, events[0].version - 1, 1, events)
        await self.shows(*stories)

    async def shows(self, *stories: Story) -> None:
        async def shown() -> bool:
            for story in stories:
                headers = {VERSION: str(story.version), TYPES: "hand_ended"}
                await self.nats.publish(SUBJECT + story.table, b"", headers=headers)
            answer = await self.lobby.tables(filter="closed = true OR closed = false", page_size=500)
            versions = {table.name: table.version for table in answer.tables}
            return all(versions.get(f"tables/{story.table}") == story.version for story in stories)

        await until(shown)

    async def get(self, table: str) -> lobby_pb2.Table:
        return await self.lobby.stub.GetTable(
            lobby_pb2.GetTableRequest(table=f"tables/{table}"), metadata=self.lobby.keys.player()
        )


async def test_a_table_shows_its_configuration_seats_hands_and_address(room: Room) -> None:
    story = Story("t1", now_us() - 30 * MINUTE).sit(1, 2, 5)
    story.add(seat_reserved=events_pb2.SeatReserved(seat=3, player="p3", amount=200))
    story.at = now_us() - 5 * MINUTE
    story.play(100, flop=3).play(201, flop=2).play(30)
    await room.tell(story)
    table = await room.get("t1")
    assert (table.players, table.seats_free, table.last_hand, table.closed) == (3, 2, 3, False)
    assert (table.average_pot, table.players_per_flop) == (110, 2.5)
    assert table.hands_per_hour == pytest.approx(6, rel=0.01)
    assert table.config.house == "boulevard"
    assert table.create_time_us == story.at - 25 * MINUTE or table.create_time_us < story.at
    assert table.address == room.process.address


async def test_statistics_forget_what_is_older_than_an_hour(room: Room) -> None:
    story = Story("t1", now_us() - 300 * MINUTE)
    story.at = now_us() - 90 * MINUTE
    story.play(1000, flop=6)
    story.at = now_us() - MINUTE
    story.play(100, flop=2)
    await room.tell(story)
    table = await room.get("t1")
    assert (table.average_pot, table.players_per_flop, table.hands_per_hour) == (100, 2, 1)


async def test_seats_come_and_go_with_the_events_that_follow(room: Room) -> None:
    story = Story("t1", now_us()).sit(1, 2)
    await room.tell(story)
    story.add(player_left=events_pb2.PlayerLeft(seat=1, player="p1", amount=200))
    story.add(seat_reserved=events_pb2.SeatReserved(seat=4, player="p4", amount=200))
    story.add(seat_released=events_pb2.SeatReleased(seat=4, player="p4", reason="EXPIRED"))
    await room.tell(story)
    table = await room.get("t1")
    assert (table.players, table.seats_free) == (1, 5)


async def test_two_replicas_that_follow_together_count_every_hand_once(
    room: Room, start: LobbyFactory, nats_server: Nats
) -> None:
    await start(table_addresses=(room.process.address,), nats_url=SecretStr(nats_server.url))
    story = Story("t1", now_us() - 10 * MINUTE)
    story.at = now_us() - MINUTE
    for _ in range(20):
        await room.tell(story.play(100))
    table = await room.get("t1")
    assert (table.average_pot, round(table.hands_per_hour)) == (100, 120)


async def test_tables_are_filtered_ordered_and_paged(room: Room) -> None:
    at = now_us()
    stories = [
        Story(
            f"t{i}", at + i, turbo=i % 2 == 0, display_name=f"Table {i}",
            limit=game_pb2.LIMIT_POT if i % 3 == 0 else game_pb2.LIMIT_NO_LIMIT,
            stakes=game_pb2.Stakes(blinds=[i]),
        ).sit(*range(1, 1 + i % 4))
        for i in range(1, 13)
    ]  # fmt: skip
    await room.tell(*stories)
    names = [f"tables/t{i}" for i in range(1, 13)]

    async def found(**request: object) -> list[str]:
        return [table.name for table in (await room.lobby.tables(**request)).tables]

    assert await found() == names
    assert await found(order_by="create_time desc") == names[::-1]
    assert await found(filter="turbo = true AND limit = pot") == ["tables/t6", "tables/t12"]
    assert await found(filter='game = "holdem" AND seats_free < 4 OR players = 0') == [
        f"tables/t{i}" for i in (3, 4, 7, 8, 11, 12)
    ]
    assert await found(filter="players = 0.5 OR big_blind = 3000000000 OR seats < -3000000000") == []
    assert await found(filter="big_blind > 10.5") == ["tables/t11", "tables/t12"]
    assert await found(order_by="players desc, create_time", page_size=4) == [f"tables/t{i}" for i in (3, 7, 11, 2)]
    pages, token = [], ""
    while True:
        answer = await room.lobby.tables(order_by="players", page_size=5, page_token=token)
        pages.append(len(answer.tables))
        token = answer.next_page_token
        if not token:
            break
    assert pages == [5, 5, 2]


async def test_closed_tables_are_listed_only_by_a_filter_that_names_them(room: Room) -> None:
    story = Story("t1", now_us()).add(table_closed=events_pb2.TableClosed(operator="o"))
    await room.tell(story, Story("t2", now_us()))
    assert [table.name for table in (await room.lobby.tables()).tables] == ["tables/t2"]
    (closed,) = (await room.lobby.tables(filter="closed = true")).tables
    assert (closed.name, closed.seats_free, closed.address) == ("tables/t1", 0, "")


async def test_what_cannot_be_listed_is_refused_with_what_could_be(room: Room) -> None:
    reason, metadata = await refusal(room.lobby.tables(filter="colour = red"))
    assert (reason, metadata["position"]) == ("INVALID_FILTER", "0")
    assert "big_blind" in metadata["fields"]
    assert (await refusal(room.lobby.tables(filter='display_name = "\0"')))[0] == "INVALID_FILTER"
    assert (await refusal(room.lobby.tables(order_by="colour")))[0] == "FIELD_INVALID"
    assert (await refusal(room.lobby.tables(page_token="mine")))[0] == "INVALID_PAGE_TOKEN"
    assert (await refusal(room.lobby.tables(page_size=-1)))[0] == "FIELD_INVALID"
    assert await refusal(room.get("nothing")) == ("TABLE_NOT_FOUND", {"table": "tables/nothing"})
    assert (await refusal(room.get("No Name")))[0] == "INVALID_NAME"


async def test_the_room_is_found_through_the_lobby_without_a_token(room: Room) -> None:
    answer = await room.lobby.stub.GetRoom(lobby_pb2.GetRoomRequest())
    assert list(answer.table_addresses) == [room.process.address]
    assert answer.server_version


async def test_clients_are_told_the_one_address_before_all_table_processes(
    start: LobbyFactory, table_process: TableProcess
) -> None:
    outside = "tables.example:443"
    await table_process.log.create("t-1", Story("t-1", now_us()).take())
    lobby = await start(table_addresses=(table_process.address,), public_table_address=outside)

    async def listed() -> bool:
        return [table.address for table in (await lobby.tables()).tables] == [outside]

    await until(listed)
    room = await lobby.stub.GetRoom(lobby_pb2.GetRoomRequest())
    assert list(room.table_addresses) == [outside]


async def test_a_process_that_was_only_heard_of_is_forgotten_when_it_does_not_answer(
    keys: Keys, table_process: TableProcess
) -> None:
    tables = TableProcesses(
        [table_process.address], grpc.aio.insecure_channel, ServiceToken(keys.service, "lobby"), SystemClock()
    )
    alive, table_process.address = table_process.address, f"127.0.0.1:{free_port()}"
    assert await tables.locate(["t1"]) == {"t1": table_process.address}
    assert tables.answering() == sorted([alive, table_process.address])
    await tables.probe()
    assert tables.answering() == [alive]
    assert await tables.heads() == {}
    await tables.close()


async def test_without_nats_the_catalogue_follows_all_the_same(
    start: LobbyFactory, table_process: TableProcess
) -> None:
    story = Story("t1", now_us()).sit(1)
    await table_process.log.create("t1", story.take())
    lobby = await start(table_addresses=(table_process.address,))

    async def shown() -> bool:
        return bool((await lobby.tables()).tables)

    await until(shown)


async def test_a_table_whose_events_make_no_sense_holds_up_no_other(room: Room, database_url: str) -> None:
    first, second = Story("t1", now_us()), Story("t2", now_us())
    await room.tell(first)
    owner = await asyncpg.connect(database_url)
    await owner.execute("UPDATE lobby.game_table SET version = 77 WHERE id = 't1'")
    await owner.close()
    events = first.play(100).take()
    await room.process.log.append("t1", 1, 1, events)
    await room.tell(second)
    assert (await room.get("t1")).version == 77
