"""Verification: whatever is played by the rules is proven, and whatever is changed afterwards is found where it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ops.logs import ORACLE_GAMES, ListSource, LoggedRoom, oracle_room, play_hands, play_on
from tests.poker import playing

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.verify import Kept, Verified, verify_stream
from relance.poker import commands as cmd
from relance.poker.deck import VirtualDeck
from relance.poker.houses import load
from relance.poker.rake import schedule_for

BOULEVARD = schedule_for(load("boulevard"), game_pb2.LIMIT_NO_LIMIT, 100, game_pb2.CURRENCY_EUR)
OTHERS = {
    "soko": (game_pb2.LIMIT_POT, game_pb2.Stakes(ante=10, bring_in=30, low_limit=100)),
    "stud5": (game_pb2.LIMIT_FIXED, game_pb2.Stakes(ante=10, bring_in=30, low_limit=100)),
    "draw32": (game_pb2.LIMIT_HALF_POT, game_pb2.Stakes(blinds=[50, 100])),
    "closed": (game_pb2.LIMIT_NO_LIMIT, game_pb2.Stakes(ante=50, min_bet=50)),
}


async def verified(room: LoggedRoom, appends: list[list[pb.TableEvent]] | None = None) -> Verified:
    """Verify a room's log, or another version of it."""
    source = ListSource(room.appends if appends is None else appends)
    return await verify_stream(source, "t", source.head)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("name", ORACLE_GAMES)
async def test_hands_of_every_game_are_proven(name: str, commit: bool) -> None:
    room = oracle_room(ORACLE_GAMES[name], 7, least=600, commit=commit)
    play_hands(room, 8, 7)
    result = await verified(room)
    assert result.finding is None, str(result.finding)
    assert result.events == room.table.version
    assert result.hands > 1
    assert (result.cards > 0) is commit


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("game", OTHERS)
async def test_games_that_nobody_else_knows_are_proven_too(game: str, commit: bool) -> None:
    limit, stakes = OTHERS[game]
    rules = game_pb2.TableRules(deck_commitments=commit)
    room = LoggedRoom(playing.config(game, limit, seats=5, stakes=stakes, rules=rules))
    for seat in range(1, 6):
        room.sit(seat, 1_500 * seat)
    play_hands(room, 10, 3)
    result = await verified(room)
    assert result.finding is None, str(result.finding)
    assert result.hands > 1


def eventful() -> LoggedRoom:
    """A raked table on which everything happens that is not a betting action."""
    room = LoggedRoom(
        playing.config(rules=game_pb2.TableRules(deck_commitments=True, protections_per_24h=2)), BOULEVARD
    )
    room.do(cmd.TakeOver(1, "first", pb.OWNER_REASON_OPENED))
    for seat in range(1, 6):
        room.sit(seat, 10_000)
    play_hands(room, 2, 1)
    room.do(cmd.AddChips("p1", 500))
    room.do(cmd.SitOut("p2"))
    room.settle()
    play_hands(room, 1, 2)
    room.do(cmd.SitIn("p2"))
    room.do(cmd.SetPreferences("p3", auto_muck=False))
    chance = random.Random(3)
    for step in (_leaves_in_a_hand, _loses_connection, _is_voided, _crashes):
        _seat_everybody(room)
        room.start(VirtualDeck(chance.shuffle, chance.randbytes))
        step(room)
        play_on(room, chance)
        room.settle()
    room.do(cmd.RecordRuling("ann", 1, "it stands"))
    room.do(cmd.PauseTable("ann", "a break"))
    room.do(cmd.ResumeTable("ann"))
    _seat_everybody(room)
    play_hands(room, 1, 5)
    _seat_everybody(room)
    room.start(VirtualDeck(chance.shuffle, chance.randbytes))
    room.do(cmd.Drain(void=True))
    room.do(cmd.TakeOver(3, "third", pb.OWNER_REASON_HANDOVER))
    room.do(cmd.BanPlayer("p1", "ann", "enough"))
    room.do(cmd.CloseTable("ann", "the end"))
    room.settle()
    return room


def _leaves_in_a_hand(room: LoggedRoom) -> None:
    room.do(cmd.LeaveSeat("p4"))


def _loses_connection(room: LoggedRoom) -> None:
    room.act(room.asked().seat, playing.RAISE, 300)
    hand = room.table.hand
    assert hand is not None
    while not hand.put[hand.asked]:
        room.act(room.asked().seat, playing.CALL)
    asked = room.asked()
    room.do(cmd.ConnectionLost(asked.player))
    room.do(cmd.Timeout(asked.turn, connected=False, protection_left=True))
    room.do(cmd.ConnectionRestored(asked.player))
    asked = room.asked()
    room.do(cmd.Timeout(asked.turn))


def _seat_everybody(room: LoggedRoom) -> None:
    for seat in range(1, 6):
        if seat not in room.table.seats:
            room.sit(seat, 40_000)
        elif room.table.seats[seat].sitting_out:
            room.do(cmd.SitIn(f"p{seat}"))
        room.do(cmd.AddChips(f"p{seat}", 5_000))
    room.settle()


def _is_voided(room: LoggedRoom) -> None:
    room.do(cmd.VoidHand("ann", "wrong deck", room.table.last_hand))


def _crashes(room: LoggedRoom) -> None:
    room.do(cmd.TakeOver(2, "second", pb.OWNER_REASON_CRASH))


async def test_whatever_happens_at_a_table_is_proven() -> None:
    room = eventful()
    result = await verified(room)
    assert result.finding is None, str(result.finding)
    assert result.events == room.table.version
    assert result.voided == 3
    assert result.cards > 20
    kinds = {event.WhichOneof("payload") for event in room.log}
    wanted = {"protection_used", "timed_out", "leave_requested", "hand_voided", "table_drained", "player_banned"}
    assert wanted <= kinds


def _of(room: LoggedRoom, kind: str, number: int = 0) -> pb.TableEvent:
    return [event for append in room.appends for event in append if event.WhichOneof("payload") == kind][number]


def _paid_more(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "pot_awarded")
    event.pot_awarded.shares[0].amount += 1
    return event


def _bet_out_of_bounds(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "raised")
    event.raised.to += 1
    event.raised.amount += 1
    return event


def _other_winner(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "pot_awarded")
    event.pot_awarded.shares[0].seat = 1 + event.pot_awarded.shares[0].seat % 5
    return event


def _less_rake(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "rake_taken")
    event.rake_taken.amount -= 1
    return event


def _other_card(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "board_dealt")
    held = event.board_dealt.cards
    event.board_dealt.cards = ("2c" if held[:2] != "2c" else "3c") + held[2:]
    return event


def _other_salt(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "cards_dealt", 2)
    event.cards_dealt.down_salts = bytes(32)
    return event


def _other_refund(room: LoggedRoom) -> pb.TableEvent:
    event = _of(room, "hand_voided")
    event.hand_voided.refunds[0].amount += 1
    return event


CHANGES: dict[str, Callable[[LoggedRoom], pb.TableEvent]] = {
    change.__name__.strip("_"): change
    for change in (
        _paid_more, _bet_out_of_bounds, _other_winner, _less_rake, _other_card, _other_salt, _other_refund,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
async def test_a_changed_event_is_found_at_its_version(name: str) -> None:
    room = eventful()
    event = CHANGES[name](room)
    result = await verified(room)
    assert result.finding is not None
    assert result.finding.version == event.version, str(result.finding)


async def test_a_missing_event_is_found() -> None:
    room = eventful()
    gone = _of(room, "checked")
    appends = [[event for event in append if event is not gone] for append in room.appends]
    result = await verified(room, appends)
    assert result.finding is not None
    assert result.finding.version == gone.version
    assert "missing" in result.finding.text


async def test_an_action_out_of_turn_is_refused_by_the_rules() -> None:
    room = eventful()
    event = _of(room, "called")
    event.called.seat = 1 + event.called.seat % 5
    result = await verified(room)
    assert result.finding is not None
    assert result.finding.version == event.version
    assert "NOT_YOUR_TURN" in result.finding.text


async def test_a_payment_that_is_split_over_two_appends_is_found() -> None:
    room = eventful()
    at = next(n for n, append in enumerate(room.appends) if append[-1].HasField("hand_ended") and len(append) > 1)
    append = room.appends[at]
    appends = [*room.appends[:at], append[:1], append[1:], *room.appends[at + 1 :]]
    result = await verified(room, appends)
    assert result.finding is not None
    assert result.finding.version == append[0].version
    assert "the append ends here" in result.finding.text


async def test_what_was_verified_is_not_verified_again(tmp_path: Path) -> None:
    room = eventful()
    file = tmp_path / "kept.json"
    ended = max(event.version for event in room.log if event.HasField("hand_ended"))
    appends = [append for append in room.appends if append[0].version <= ended]
    first = ListSource(appends)
    assert (await verify_stream(first, "t", first.head, Kept.read(file))).finding is None
    whole = ListSource(room.appends)
    result = await verify_stream(whole, "t", whole.head, Kept.read(file))
    assert result.finding is None
    assert 0 < result.events == whole.head - first.head


async def test_what_was_verified_before_a_hand_that_runs_is_not_verified_again(tmp_path: Path) -> None:
    room = eventful()
    file = tmp_path / "kept.json"
    begun = max(event.version for event in room.log if event.HasField("hand_started"))
    first = ListSource([append for append in room.appends if append[0].version <= begun])
    assert (await verify_stream(first, "t", first.head, Kept.read(file))).finding is None
    kept = Kept.read(file).state("t")
    assert kept.hand is None
    assert 0 < kept.version < begun
    whole = ListSource(room.appends)
    result = await verify_stream(whole, "t", whole.head, Kept.read(file))
    assert result.finding is None
    assert result.events == whole.head - kept.version


# What a fault is called, after how many rounds of betting and actions in the next one it may be reported.
FAULTS = {
    "FIRST_CARD_EXPOSED": (0, 0),
    "CARD_EXPOSED": (0, 0),
    "CARDS_EXPOSED": (0, 0),
    "EXTRA_CARD": (0, 0),
    "EXTRA_CARDS": (0, 0),
    "FLOP_EARLY": (0, 1),
    "FLOP_TOO_MANY": (1, 0),
    "TURN_EARLY": (1, 1),
    "RIVER_EARLY": (2, 0),
}


def live_room(kind: str) -> LoggedRoom:
    """A hand dealt by people, with a fault in it, checked and called to its end; then another hand."""
    rules = game_pb2.TableRules(burn_cards=True, showdown="all", deck_commitments=True)
    room = LoggedRoom(playing.config(rules=rules))
    for seat in range(1, 5):
        room.sit(seat, 10_000)
    chance = random.Random(kind)
    room.start(VirtualDeck(chance.shuffle, chance.randbytes))
    rounds, actions = FAULTS[kind]
    while (hand := room.table.hand) is not None and hand.street < rounds:
        _passes(room)
    for _ in range(actions):
        _passes(room)
    room.do(cmd.ReportDealingFault(pb.DealingFault.Value(f"DEALING_FAULT_{kind}"), 2, "floor"))
    while room.table.hand is not None:
        _passes(room)
    play_hands(room, 1, 9)
    return room


def _passes(room: LoggedRoom) -> None:
    asked = room.asked()
    room.act(asked.seat, playing.CHECK if playing.CHECK in asked.offer.actions else playing.CALL)


@pytest.mark.parametrize("kind", FAULTS)
async def test_F1_F2_F3_F4_F5_dealing_faults_are_proven_and_a_changed_ruling_is_found(kind: str) -> None:
    room = live_room(kind)
    result = await verified(room)
    assert result.finding is None, str(result.finding)
    assert result.hands + result.voided == 2
    appends = [[pb.TableEvent.FromString(event.SerializeToString()) for event in append] for append in room.appends]
    ruled = next(e for append in appends for e in append if e.WhichOneof("payload") == "dealing_fault_ruled")
    others = [fault for fault, moment in FAULTS.items() if moment != FAULTS[kind]]
    ruled.dealing_fault_ruled.fault = pb.DealingFault.Value(f"DEALING_FAULT_{others[-1]}")
    found = (await verified(room, appends)).finding
    assert found is not None
    assert found.version <= ruled.version
