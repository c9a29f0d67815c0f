"""Waiting lists: who came first is offered the seat that is free, it is held for them, and in time it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest_asyncio

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.lobby.v1 import lobby_pb2, waiting_pb2, waiting_pb2_grpc
from relance.poker import commands as cmd
from relance.room.embedded import Nats
from relance.runtime.errors import Refused

from .conftest import Keys, LobbyFactory
from .running import Room, refusal, running_tables, until

OPEN, ACCEPTED = waiting_pb2.OFFER_STATE_OPEN, waiting_pb2.OFFER_STATE_ACCEPTED


@pytest_asyncio.fixture
async def room(start: LobbyFactory, keys: Keys, nats_server: Nats) -> AsyncIterator[Room]:
    """A lobby and one heads-up table t, with ann and bob at it."""
    async with running_tables(keys, nats_server.url) as tables:
        made = Room(start, tables, nats_server.url, keys)
        await made.replica()
        await tables.open("t", seats=2)
        await tables.sit("t", "ann", "bob")
        await made.followed("t")
        yield made


async def join(room: Room, *players: str, table: str = "t", kind: waiting_pb2.TableKind | None = None) -> list[str]:
    """Players get on a list, one after another; the names of their places."""
    request = waiting_pb2.JoinWaitlistRequest(kind=kind)
    if kind is None:
        request.table = f"tables/{table}"
    return [(await room.waiting.JoinWaitlist(request, metadata=room.player(player))).name for player in players]


def nl2(seats: int = 0, turbo: bool = False) -> waiting_pb2.TableKind:
    return waiting_pb2.TableKind(
        house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, currency=game_pb2.CURRENCY_EUR, low_limit=2,
        seats=seats, turbo=turbo,
    )  # fmt: skip


async def waits(room: Room, player: str) -> list[waiting_pb2.Wait]:
    answer = await room.waiting.ListWaitlist(waiting_pb2.ListWaitlistRequest(), metadata=room.player(player))
    return list(answer.waits)


async def accept(room: Room, player: str, offer: str) -> waiting_pb2.Offer:
    request = waiting_pb2.AcceptOfferRequest(offer=offer)
    return await room.waiting.AcceptOffer(request, metadata=room.player(player))


async def decline(room: Room, player: str, offer: str) -> waiting_pb2.Offer:
    request = waiting_pb2.DeclineOfferRequest(offer=offer)
    return await room.waiting.DeclineOffer(request, metadata=room.player(player))


async def test_who_came_first_is_offered_the_free_seat_accepts_and_sits_down(room: Room) -> None:
    await join(room, "cid", "dan")
    assert [(wait.position, wait.table) for wait in await waits(room, "dan")] == [(2, "tables/t")]
    assert (await room.get("t")).waiting == 2
    assert await room.offers("cid") == []
    await room.tables.leave("t", "ann")
    offer = await room.offered("cid")
    assert (offer.table, offer.seat, offer.state, offer.player) == ("tables/t", 1, OPEN, "players/cid")
    assert 0 < offer.remaining_ms <= 30_000
    assert (await waits(room, "cid"))[0].offer == offer.name
    await room.followed("t")
    assert (await room.get("t")).seats_free == 0  # it is held
    taken = await accept(room, "cid", offer.name)
    assert (taken.state, taken.seat) == (ACCEPTED, 1)
    assert taken.expire_time_us > offer.expire_time_us
    assert (await accept(room, "cid", offer.name)).expire_time_us == taken.expire_time_us
    assert await waits(room, "cid") == []
    await room.tables.sit("t", "cid")

    async def over() -> bool:
        return await room.offers("cid") == []

    await until(over)
    assert await room.offers("dan") == []
    assert [wait.position for wait in await waits(room, "dan")] == [1]


async def test_an_offer_that_nobody_answers_goes_to_the_next(room: Room, database_url: str) -> None:
    await join(room, "cid", "dan")
    await room.tables.leave("t", "bob")
    first = await room.offered("cid")
    owner = await asyncpg.connect(database_url)
    await owner.execute("UPDATE lobby.offer SET due_at = 1, expires_at = 1")
    await owner.close()
    second = await room.offered("dan")
    assert (second.table, second.seat) == (first.table, first.seat)
    assert await waits(room, "cid") == []
    assert (await refusal(accept(room, "cid", first.name)))[0] == "OFFER_OVER"


async def test_an_offer_that_is_refused_or_given_up_goes_to_the_next(room: Room) -> None:
    names = await join(room, "cid", "dan", "eve")
    await room.tables.leave("t", "bob")
    offer = await room.offered("cid")
    declined = await decline(room, "cid", offer.name)
    assert declined.state == waiting_pb2.OFFER_STATE_DECLINED
    assert (await decline(room, "cid", offer.name)).state == declined.state
    assert (await refusal(accept(room, "cid", offer.name))) == ("OFFER_OVER", {"state": "DECLINED"})
    await room.offered("dan")
    leave = waiting_pb2.LeaveWaitlistRequest(wait=names[1])
    await room.waiting.LeaveWaitlist(leave, metadata=room.player("dan"))
    offer = await room.offered("eve")
    assert (await accept(room, "eve", offer.name)).state == ACCEPTED
    assert (await decline(room, "eve", offer.name)).state == waiting_pb2.OFFER_STATE_DECLINED


async def test_a_place_for_any_table_of_a_kind_is_served_by_the_first_that_has_a_seat(room: Room) -> None:
    await join(room, "cid", kind=nl2())
    await join(room, "dan", kind=nl2(seats=2))
    await room.tables.open("six", seats=6)
    offer = await room.offered("cid")
    assert offer.table == "tables/six"
    assert await room.offers("dan") == []  # a heads-up table is another thing
    await room.tables.leave("t", "ann")
    assert (await room.offered("dan")).table == "tables/t"
    await room.tables.sit("six", "cid")

    async def over() -> bool:
        return await waits(room, "cid") == [] and await room.offers("cid") == []

    await until(over)


async def test_waiting_for_the_same_again_is_the_same_place_and_there_are_not_too_many(room: Room) -> None:
    kinds = [nl2(seats=seats, turbo=turbo) for seats in range(3, 11) for turbo in (False, True)]
    first = await join(room, "cid")
    for kind in [*kinds, nl2(), nl2(2), nl2(2, turbo=True)]:
        await join(room, "cid", kind=kind)
    assert await join(room, "cid") == first
    reason = await refusal(join(room, "cid", kind=nl2(turbo=True)))
    assert reason == ("LIMIT_REACHED", {"limit": "20"})
    assert (await refusal(join(room, "ann")))[0] == "ALREADY_SEATED"
    assert (await refusal(join(room, "cid", table="none")))[0] == "TABLE_NOT_FOUND"
    bad = nl2()
    bad.game = "snap"
    assert (await refusal(join(room, "cid", kind=bad)))[0] == "FIELD_INVALID"
    leave = waiting_pb2.LeaveWaitlistRequest(wait=first[0])
    assert (await refusal(room.waiting.LeaveWaitlist(leave, metadata=room.player("dan"))))[0] == "WAIT_NOT_FOUND"


async def test_operators_see_a_tables_list_and_players_do_not(room: Room) -> None:
    await join(room, "cid", "dan")
    request = waiting_pb2.ListWaitlistRequest(table="tables/t")
    answer = await room.waiting.ListWaitlist(request, metadata=room.keys.operator("viewer"))
    assert [wait.player for wait in answer.waits] == ["players/cid", "players/dan"]
    call = room.waiting.ListWaitlist(request, metadata=room.player("cid"))
    assert (await refusal(call))[0] == "ROLE_REQUIRED"


async def test_replicas_together_offer_each_seat_once_and_in_order(room: Room) -> None:
    await room.replica()
    await room.replica()
    players = [f"w{i}" for i in range(8)]
    await room.tables.open("six", seats=6)
    await room.tables.sit("six", *(f"p{i}" for i in range(6)))
    await room.followed("six")
    await join(room, *players, table="six")
    for i in range(6):
        await room.tables.leave("six", f"p{i}")
    offers = await asyncio.gather(*(room.offered(player) for player in players[:6]))
    assert sorted(offer.seat for offer in offers) == [1, 2, 3, 4, 5, 6]
    assert [await room.offers(player) for player in players[6:]] == [[], []]
    held = room.tables.events("six", "seat_held")
    assert [event.seat_held.player for event in held] == players[:6]


async def test_what_a_dead_replica_left_half_done_is_taken_up_by_another(room: Room, database_url: str) -> None:
    """It had asked the table and died; the table is asked again by the same id and the player gets the offer."""
    names = await join(room, "cid")
    owner = await asyncpg.connect(database_url)
    await owner.execute(
        'INSERT INTO lobby.offer (id, wait, player, "table", seat, state, created_at, changed_at, expires_at, due_at)'
        " VALUES ('abc', $1, 'cid', 't', 0, 0, 1, 1, 0, 9e18)",
        names[0].removeprefix("waits/"),
    )
    await room.tables.leave("t", "ann")
    await room.followed("t")
    assert await room.offers("cid") == []
    await owner.execute("UPDATE lobby.offer SET due_at = 1")
    offer = await room.offered("cid")
    assert offer.name == "offers/abc"
    assert "offer-abc" in room.tables.asked
    # And it dies again, after the offer: the time is up, the seat comes back.
    await owner.execute("UPDATE lobby.offer SET due_at = 1, expires_at = 1")

    async def back() -> bool:
        state = await owner.fetchval("SELECT state FROM lobby.offer WHERE due_at IS NULL")
        return bool(state == waiting_pb2.OFFER_STATE_EXPIRED)

    await until(back)
    assert room.tables.states["t"].held_for("cid") == 0
    await owner.close()


async def test_a_table_that_gives_no_seat_costs_nobody_their_place_unless_it_never_will(
    room: Room, database_url: str
) -> None:
    room.tables.refuses["HoldSeat"] = Refused(reason_pb2.REASON_SEAT_TAKEN, "taken")
    await join(room, "cid")
    await room.tables.leave("t", "ann")
    owner = await asyncpg.connect(database_url)

    async def asked() -> bool:
        return bool(await owner.fetchval("SELECT count(*) FROM lobby.offer WHERE state = 7"))

    await until(asked)
    assert len(await waits(room, "cid")) == 1
    assert await room.offers("cid") == []
    room.tables.refuses["HoldSeat"] = Refused(reason_pb2.REASON_PLAYER_BANNED, "banned")
    await owner.execute("UPDATE lobby.offer SET changed_at = 1")

    async def dropped() -> bool:
        return not await waits(room, "cid")

    await until(dropped)
    await owner.close()


async def test_no_seat_is_offered_at_a_table_that_is_paused_or_closed(room: Room) -> None:
    await join(room, "cid")
    await room.tables.do("t", cmd.PauseTable("o"))
    await room.tables.leave("t", "ann")
    await room.followed("t")
    assert (await room.get("t")).paused
    assert await room.offers("cid") == []
    await room.tables.do("t", cmd.CloseTable("o"))
    await room.followed("t")
    assert await waits(room, "cid") == []
    assert (await refusal(join(room, "cid")))[0] == "TABLE_CLOSED"


async def test_offers_are_watched_at_any_replica(room: Room) -> None:
    other = await room.replica()
    stub = waiting_pb2_grpc.WaitingServiceStub(other.channel)
    call = stub.WatchOffers(waiting_pb2.WatchOffersRequest(), metadata=room.player("cid"))
    await join(room, "cid")
    await room.tables.leave("t", "ann")
    first = await call.read()
    assert isinstance(first, waiting_pb2.WatchOffersResponse)
    assert (first.offer.state, first.offer.seat) == (OPEN, 1)
    await accept(room, "cid", first.offer.name)
    second = await call.read()
    assert isinstance(second, waiting_pb2.WatchOffersResponse)
    assert second.offer.state == ACCEPTED
    late = stub.WatchOffers(waiting_pb2.WatchOffersRequest(), metadata=room.player("cid"))
    again = await late.read()
    assert isinstance(again, waiting_pb2.WatchOffersResponse)
    assert again.offer.state == ACCEPTED
    await room.tables.sit("t", "cid")
    third = await call.read()
    assert isinstance(third, waiting_pb2.WatchOffersResponse)
    assert third.offer.state == waiting_pb2.OFFER_STATE_TAKEN
    call.cancel()
    late.cancel()


async def test_tables_are_found_by_who_waits_for_them(room: Room) -> None:
    await room.tables.open("six", seats=6)
    await room.tables.sit("six", *(f"p{i}" for i in range(6)))
    await room.followed("six")
    await join(room, "cid", table="six")
    await join(room, "dan", kind=nl2())
    answer = await room.lobbies.ListTables(
        lobby_pb2.ListTablesRequest(filter="waiting > 0", order_by="waiting desc"), metadata=room.player("cid")
    )
    assert [(table.name, table.waiting) for table in answer.tables] == [("tables/six", 2)]
