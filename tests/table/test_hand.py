"""Hands over Play: what players see, what they must not see, what a repeat does (PROTO cases)."""

from __future__ import annotations

import asyncio

import pytest
from tests.table.support import Client, Room, bearer, refusal, until

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.runtime.errors import reason_name

FOLD, CHECK, CALL = table_pb2.ACTION_KIND_FOLD, table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL
BET, RAISE, ALL_IN = table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_ALL_IN


def reason(answer: table_pb2.PlayResponse) -> str:
    """Why a command was refused; empty: it was not."""
    return answer.refusal.reason


async def test_PROTO_01_one_payout_whatever_is_sent_after_the_fold(room: Room) -> None:
    process = await room.start()
    table = await room.open(process, timers_between_ms=60_000)
    players = await room.seated(process, table, {"ann": 15_000, "bob": 15_000})
    button, other = await heads_up(players)
    seat = (await button.saw("hand_started")).hand_started.button
    prompt = await button.asked(seat)
    assert reason(await other.act(FOLD)) == "NOT_YOUR_TURN"
    assert (await button.act(RAISE, 15_000, prompt.turn)).result.version
    assert (await other.act(FOLD)).result.version
    assert reason(await other.act(FOLD)) == "NO_ACTIVE_HAND"
    assert reason(await other.act(FOLD)) == "NO_ACTIVE_HAND"
    ended = await other.saw("hand_ended")
    assert sorted(result.stack for result in ended.hand_ended.results) == [14_900, 15_100]
    assert [event.WhichOneof("payload") for event in other.events].count("pot_awarded") == 1
    assert (await other.saw("uncalled_returned")).uncalled_returned.amount == 14_900


async def test_PROTO_02_the_same_request_id_is_applied_once_and_other_content_is_refused(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000, "cyd": 2000})
    first = await to_act(players)

    def act(amount: int) -> table_pb2.ActRequest:
        action = table_pb2.Action(kind=RAISE, amount=amount)
        return table_pb2.ActRequest(table=f"tables/{table}", request_id="r1", action=action)

    stub, me = room.tables(process), bearer(room.keys.player(first.player))
    once = await stub.Act(act(300), metadata=me)
    again = await stub.Act(act(300), metadata=me)
    by_stream = await first.ask(table_pb2.PlayRequest(act=act(300)))
    assert once == again == by_stream.result
    refused = await refusal(stub.Act(act(500), metadata=me))
    assert refused.reason == reason_pb2.REASON_REQUEST_ID_REUSED
    seen = await stub.GetTable(table_pb2.GetTableRequest(table=f"tables/{table}"), metadata=me)
    assert seen.seats[seen.your_seat - 1].stack == 1700
    assert seen.pot == 450
    assert seen.prompt.seat != seen.your_seat
    assert [event.WhichOneof("payload") for event in first.events].count("raised") == 1


async def test_PROTO_05_a_player_who_asks_for_many_seats_at_once_has_one_and_pays_once(room: Room) -> None:
    process = await room.start()
    table = await room.open(process, seats=9)
    await room.deposit("u1", 10_000)
    stub, me = room.tables(process), bearer(room.keys.player("u1"))

    async def sit(number: int, seat: int) -> str:
        request = table_pb2.TakeSeatRequest(table=f"tables/{table}", request_id=f"sit-{number}", seat=seat, buy_in=4000)
        call = stub.TakeSeat(request, metadata=me)
        return "OK" if number == 1 and await call else reason_name((await refusal(call)).reason)

    results = [await sit(1, 1), await sit(2, 2)]
    results += await asyncio.gather(*(sit(number, number % 7 + 3) for number in range(3, 53)))
    assert results == ["OK", *["ALREADY_SEATED"] * 51]
    state = process.tables.actors[table].table
    await until(lambda: not state.seats[1].reserved)
    assert list(state.seats) == [1]
    assert state.seats[1].stack == 4000
    assert await room.balance("u1") == 6000


async def test_PROTO_10_a_hand_that_ends_by_folds_leaks_no_hole_card_in_any_byte(room: Room) -> None:
    process = await room.start()
    table = await room.open(process, timers_between_ms=60_000, house="salon", choices={"burn_cards": "off"})
    room.holes, room.board = {"ann": "AsAh", "bob": "QdQh"}, "2c7d9hJs3c"
    watcher = await room.watch(process, table)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    await play(button, RAISE, 300)
    await play(other, CALL)
    for _ in range(2):
        await play(other, CHECK)
        await play(button, CHECK)
    await play(other, CHECK)
    await play(button, BET, 400)
    await play(other, FOLD)
    ended = await watcher.saw("hand_ended")
    net = {result.player: result.stack for result in ended.hand_ended.results}
    assert net == {button.player: 2300, other.player: 1700}
    for player, own, foreign in (("ann", "AsAh", "QdQh"), ("bob", "QdQh", "AsAh")):
        stream = players[player]
        await stream.saw("hand_ended")
        assert stream.contains(own)
        assert not stream.contains(foreign)
        hand = await room.tables(process).GetHand(
            table_pb2.GetHandRequest(table=f"tables/{table}", hand=1), metadata=bearer(room.keys.player(player))
        )
        assert (
            own.encode() in hand.SerializeToString() or own[2:].encode() + own[:2].encode() in hand.SerializeToString()
        )
        assert foreign.encode() not in hand.SerializeToString()
    for cards in ("AsAh", "QdQh"):
        assert not watcher.contains(cards)
    names = {event.WhichOneof("payload") for event in watcher.events}
    assert "hand_shown" not in names


async def test_PROTO_11_who_reconnects_in_a_hand_has_their_cards_and_the_whole_state_again(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    room.holes, room.board = {"ann": "AsAh", "bob": "QdQh", "cyd": "8s8h"}, "2c7d9h"
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000, "cyd": 2000})
    first = await to_act(players)
    order = in_turn(players, first)
    await play(order[0], RAISE, 300)
    await play(order[1], CALL)
    await play(order[2], CALL)
    # After the flop the first left of the button is asked, so the raiser, on the button, is asked last.
    await play(order[1], CHECK)
    await play(order[2], BET, 200)
    await play(order[0], CALL)
    back = order[1]
    seen = back.welcome.view.version
    back.vanish()
    again = await room.join(process, table, back.player)
    view = again.welcome.view
    me = view.seats[view.your_seat - 1]
    assert me.down == room.holes[back.player] or me.down == room.holes[back.player][2:] + room.holes[back.player][:2]
    assert (view.hand, view.board, view.pot) == (1, "2c7d9h", 1300)
    assert sorted(seat.stack for seat in view.seats if seat.player) == [1500, 1500, 1700]
    assert (view.prompt.seat, view.prompt.call) == (view.your_seat, 200)
    assert (view.prompt.min_raise_to, view.prompt.max_raise_to) == (400, 1700)
    assert 0 < view.prompt.remaining_ms <= 20_000
    resumed = await room.join(process, table, back.player, resume=seen)
    versions = [event.version for event in resumed.events]
    await until(lambda: bool(resumed.events) and resumed.events[-1].version >= resumed.welcome.view.version)
    versions = [event.version for event in resumed.events]
    assert versions == list(range(seen + 1, versions[-1] + 1))
    assert resumed.contains(room.holes[back.player])
    for client in (again, resumed):
        for other in players:
            assert other == back.player or not client.contains(room.holes[other])
    assert [event.WhichOneof("payload") for event in resumed.events].count("hand_started") == 1


async def test_seats_of_an_earlier_hand_stay_their_players_when_a_stream_resumes(room: Room) -> None:
    """A seat's cards are the cards of whom it belonged to then: who sits there now must not see them."""
    process = await room.start()
    table = await room.open(process)
    room.holes = {"ann": "AsAh", "bob": "QdQh"}
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    seen = players["ann"].welcome.view.version
    await players["ann"].ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
    await players["ann"].saw("player_left")
    room.holes = {}
    await room.deposit("eve", 2000)
    eve = await room.join(process, table, "eve")
    await eve.take_seat(1, 2000)
    back = await room.join(process, table, "eve", resume=seen)
    await until(lambda: bool(back.events) and back.events[-1].version >= back.welcome.view.version)
    assert not back.contains("AsAh")
    ann = await room.join(process, table, "ann", resume=seen)
    await until(lambda: bool(ann.events) and ann.events[-1].version >= ann.welcome.view.version)
    assert ann.contains("AsAh")
    assert not ann.contains("QdQh")


@pytest.mark.parametrize("role", ["viewer", "auditor"])
async def test_an_operator_reads_the_log_and_only_an_auditor_sees_the_cards_of_a_hand_that_is_over(
    room: Room, role: str
) -> None:
    process = await room.start()
    table = await room.open(process, timers_between_ms=60_000)
    room.holes = {"ann": "AsAh", "bob": "QdQh"}
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)

    async def log() -> bytes:
        call = room.admin(process).ReadStream(
            table_pb2.ReadStreamRequest(table=f"tables/{table}"), metadata=bearer(room.keys.operator(role))
        )
        return b"".join([message.SerializeToString() async for message in call])

    running = await log()
    assert not any(form in running for form in (b"AsAh", b"AhAs", b"QdQh", b"QhQd"))
    await play(button, FOLD)
    await button.saw("hand_ended")
    over = await log()
    assert any(form in over for form in (b"AsAh", b"AhAs")) == (role == "auditor")


async def heads_up(players: dict[str, Client]) -> tuple[Client, Client]:
    """The player on the button and the other one."""
    ann, bob = players["ann"], players["bob"]
    started = await ann.saw("hand_started")
    return (ann, bob) if started.hand_started.button == 1 else (bob, ann)


async def to_act(players: dict[str, Client]) -> Client:
    """Who is asked now; seats are numbered as the players come."""
    clients = list(players.values())
    await until(lambda: clients[0].prompt is not None)
    prompt = clients[0].prompt
    assert prompt is not None
    return clients[prompt.seat - 1]


def in_turn(players: dict[str, Client], first: Client) -> list[Client]:
    """The players clockwise from one."""
    clients = list(players.values())
    at = clients.index(first)
    return clients[at:] + clients[:at]


async def play(client: Client, kind: table_pb2.ActionKind.ValueType, amount: int = 0) -> None:
    """Act when asked; the action must be accepted."""
    seat = client.seat
    await client.asked(seat, client.acted)
    assert client.prompt is not None
    client.acted = client.prompt.turn
    answer = await client.act(kind, amount, client.prompt.turn)
    assert answer.WhichOneof("message") == "result", answer
