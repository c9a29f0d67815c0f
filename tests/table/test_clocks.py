"""Clocks: the deadline of a prompt, the database away, disconnection (C1, C2)."""

from __future__ import annotations

import pytest
from tests.table.support import Room, bearer, until
from tests.table.test_hand import CALL, RAISE, heads_up, play

from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.poker.commands import Act
from relance.room.embedded import Postgres
from relance.runtime.clock import SimulatedClock
from relance.table.mail import Mail, Outcome


async def test_C1_at_the_deadline_the_clock_wins(room: Room) -> None:
    clock = SimulatedClock()
    process = await room.start(clock=clock, lease=500)
    table = await room.open(process, timers_between_ms=60_000)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    prompt = await button.asked(button.seat)
    assert prompt.remaining_ms == 20_000
    assert prompt.deadline_us == clock.now_us() + 20_000_000
    await clock.advance(19.999)
    assert process.tables.actors[table].table.last_over == 0
    await clock.advance(0.001)
    assert (await other.saw("timed_out")).timed_out.player == button.player
    assert (await other.saw("folded")).folded.reason == events_pb2.FOLD_REASON_TIMED_OUT
    await other.saw("hand_ended")


async def test_C1_an_action_received_before_the_deadline_counts_though_it_is_taken_up_after_it(room: Room) -> None:
    clock = SimulatedClock()
    process = await room.start(clock=clock, lease=500)
    table = await room.open(process)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    await button.asked(button.seat)
    actor = process.tables.actors[table]
    received = clock.monotonic()
    await clock.advance(19.0)
    outcomes: dict[str, Outcome] = {}

    def letter(name: str, at: float) -> Mail:
        return Mail(Act(button.player, 0, CALL), None, at, lambda outcome: outcomes.update({name: outcome}))

    actor.pause()  # the deadline passes while both letters wait
    actor.why = None
    actor.post(letter("in time", received))
    actor.post(letter("late", received + 21))
    actor.resume()
    await until(lambda: len(outcomes) == 2)
    assert isinstance(outcomes["in time"], int)
    assert not isinstance(outcomes["late"], int)


@pytest.mark.parametrize(
    ("lobby", "used", "what"),
    [
        ("none", 0, "protection_used"),
        ("away", 0, "protection_used"),
        ("there", 0, "protection_used"),
        ("there", 1, "folded"),
    ],
)
async def test_C2_a_disconnected_player_is_all_in_while_the_lobby_has_a_protection_left(
    room: Room, lobby: str, used: int, what: str
) -> None:
    """No answer of the lobby is a grant; it books what was used from the log."""
    clock = SimulatedClock()
    address = {"none": "", "away": "127.0.0.1:1"}.get(lobby)
    address = await room.lobby() if address is None else address
    process = await room.start(clock=clock, lease=500, lobby=address)
    table = await room.open(process, timers_between_ms=60_000, choices={"protections_per_24h": "1"})
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    await play(button, RAISE, 300)
    if used:
        elsewhere = lobby_pb2.UseProtectionRequest(
            table="tables/other", hand=1, seat=1, player=f"players/{other.player}", limit=1
        )
        stub = lobby_pb2_grpc.ProtectionServiceStub(room.channel(address))
        assert (await stub.UseProtection(elsewhere, metadata=bearer(room.keys.service()))).granted
    other.vanish()
    await button.saw("connection_lost")
    await clock.advance(20)
    event = await button.saw(what)
    assert getattr(event, what).seat == other.seat


async def test_while_the_database_is_away_commands_are_refused_and_the_clock_stands_still(
    room: Room, postgres: Postgres
) -> None:
    clock = SimulatedClock()
    process = await room.start(clock=clock, lease=500)
    table = await room.open(process, timers_between_ms=60_000)
    room.holes = {"ann": "AsAh", "bob": "QdQh"}
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    await play(button, RAISE, 300)
    prompt = await other.asked(other.seat)
    await clock.advance(5)
    actor = process.tables.actors[table]
    postgres.stop()
    await until(lambda: actor.why is not None)
    answer = await other.act(CALL)
    assert answer.refusal.reason == "TABLE_UNAVAILABLE"
    assert [message.notice.kind for message in other.messages if message.HasField("notice")] == ["PAUSED"]
    await clock.advance(3600)
    postgres.start()
    await until(lambda: actor.why is None)
    await until(lambda: other.prompt is not None and other.prompt.remaining_ms == 15_000)
    assert other.prompt is not None
    assert (other.prompt.turn, other.prompt.deadline_us) == (prompt.turn, clock.now_us() + 15_000_000)
    await play(other, CALL)
    assert (await other.saw("board_dealt")).hand == 1
    assert "hand_voided" not in {event.WhichOneof("payload") for event in other.events}


async def test_an_append_under_way_when_the_database_goes_is_done_once_when_it_is_back(
    room: Room, postgres: Postgres
) -> None:
    process = await room.start(lease=500)
    table = await room.open(process, timers_between_ms=60_000)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    await button.asked(button.seat)
    postgres.stop(fast=False)
    action = table_pb2.Action(kind=RAISE, amount=300)
    await button.send(table_pb2.PlayRequest(act=table_pb2.ActRequest(request_id="r1", action=action)))
    actor = process.tables.actors[table]
    await until(lambda: actor.why is not None)
    postgres.start()
    await until(lambda: actor.why is None)
    answer = await button.ask(table_pb2.PlayRequest(act=table_pb2.ActRequest(request_id="r1", action=action)))
    assert answer.result.version
    await button.saw("raised")
    log = await room.log()
    assert [event.WhichOneof("payload") for event in await log.read(table)].count("raised") == 1


async def test_the_wallet_may_be_away_and_play_goes_on(room: Room) -> None:
    process = await room.start(wallet="127.0.0.1:1")
    table = await room.open(process)
    await room.deposit("ann", 2000)
    ann = await room.join(process, table, "ann")
    request = table_pb2.TakeSeatRequest(seat=1, buy_in=2000)
    assert (await ann.ask(table_pb2.PlayRequest(take_seat=request))).result.version
    await ann.saw("transfer_requested")
    await room.kill(process)
    again = await room.start()
    await until(lambda: table in again.tables.actors)
    actor = again.tables.actors[table]
    await until(lambda: actor.why is None and not actor.table.transfers)
    assert await room.balance("ann") == 2000  # the seat was gone with the crash, so the buy-in came back
    log = await room.log()
    purposes = [event.transfer_settled.purpose for event in await log.read(table) if event.HasField("transfer_settled")]
    assert purposes == [events_pb2.TRANSFER_PURPOSE_BUY_IN, events_pb2.TRANSFER_PURPOSE_RETURN]
