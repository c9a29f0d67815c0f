"""Clocks, disconnection, crash, drain and the management (section 6 of the house rules)."""

from __future__ import annotations

import pytest
from tests.poker.playing import ALL_IN, BET, CALL, CHECK, FIXED, FOLD, MUCK, RAISE, Room, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Rejected, UnknownEvent, apply, initial, prompt, view
from relance.poker import commands as cmd
from relance.poker.evolve import APPLIERS
from relance.poker.snapshot import FORMAT, UnknownSnapshot, dump, load

CRASH, HANDOVER = pb.OWNER_REASON_CRASH, pb.OWNER_REASON_HANDOVER


def kinds(events: list[pb.TableEvent]) -> list[str]:
    """Names of the payloads."""
    return [str(event.WhichOneof("payload")) for event in events]


def test_C1_a_connected_player_checks_if_free_else_folds_and_sits_out() -> None:
    made = room([5000] * 3)
    made.start()
    assert made.asked().clock_ms == 20_000
    events = made.do(cmd.Timeout(made.asked().turn))
    assert kinds(events) == ["timed_out", "folded", "player_sat_out"]
    made.act(2, CALL)
    events = made.do(cmd.Timeout(made.asked().turn))
    assert kinds(events)[:3] == ["timed_out", "checked", "player_sat_out"]
    assert made.do(cmd.Timeout(1)) == [], "a clock of an earlier prompt does nothing"


def frozen(*, left: bool = True, protections: int = 2, stakes: game_pb2.Stakes | None = None) -> Room:
    """Seat 1 raised before the flop; seat 2 is disconnected and out of time."""
    made = room([5000] * 3, rules=game_pb2.TableRules(protections_per_24h=protections), stakes=stakes)
    made.start("AsKsQs AdKdQd 2c7d9hTs3c")
    made.act(1, RAISE, 300)
    made.do(cmd.Timeout(made.asked().turn, connected=False, protection_left=left))
    return made


def test_C2_a_disconnected_player_is_all_in_for_what_is_in() -> None:
    made = frozen()
    assert [event.seat for event in made.of("protection_used")] == [2]
    assert view(made.table).seats[1].all_in
    made.act(3, CALL)
    assert made.asked().seat == 3
    made.passive()
    assert [(pot.amount, sorted(pot.eligible)) for pot in made.of("pot_awarded")] == [(150, [1, 2, 3]), (500, [1, 3])]
    assert made.stacks()[2] == 5100


def test_C2_without_protection_or_chips_in_the_hand_the_player_folds() -> None:
    """C2, S6: none left; not in club; nothing put in."""
    for made in (frozen(left=False), frozen(protections=-1)):
        assert made.of("folded")[-1].reason == pb.FOLD_REASON_DISCONNECTED
    made = room([5000] * 3, rules=game_pb2.TableRules(protections_per_24h=2))
    made.start()
    made.do(cmd.Timeout(made.asked().turn, connected=False))
    assert made.of("folded")[-1].seat == 1


def test_C2_checking_is_free_and_uses_no_protection() -> None:
    made = room([5000] * 2, rules=game_pb2.TableRules(protections_per_24h=2))
    made.start()
    made.act(1, CALL)
    made.do(cmd.Timeout(made.asked().turn, connected=False))
    assert not made.of("protection_used")
    assert made.of("checked")


def test_C2_who_is_artificially_all_in_stands_pat_and_leaves_with_the_claim() -> None:
    made = room([5000] * 3, "draw5", FIXED, rules=game_pb2.TableRules(protections_per_24h=2))
    made.start()
    made.act(1, RAISE, 200)
    made.do(cmd.Timeout(made.asked().turn, connected=False))
    made.act(3, CALL)
    assert [(event.seat, event.count) for event in made.of("cards_discarded")] == [(2, 0)]
    made.do(cmd.LeaveSeat("p2"))
    assert not made.of("folded")
    made.passive()
    assert 2 not in made.table.seats


def test_S6_club_an_all_in_player_who_is_gone_keeps_the_hand_and_stands_pat() -> None:
    """S6: disconnected too long counts as leaving; others fold."""
    made = room([100, 5000, 5000], "closed", stakes=game_pb2.Stakes(ante=10), button=3)
    made.start()
    made.act(1, ALL_IN)
    made.do(cmd.LeaveSeat("p1", pb.LEAVE_REASON_DISCONNECTED))
    made.act(2, CALL)
    made.do(cmd.LeaveSeat("p3", pb.LEAVE_REASON_DISCONNECTED))
    assert [(fold.seat, fold.reason) for fold in made.of("folded")] == [(3, pb.FOLD_REASON_DISCONNECTED)]
    assert made.asked().seat == 2
    assert [(event.seat, event.count) for event in made.of("cards_discarded")] == [(1, 0)]
    made.passive()
    assert {left.seat for left in made.of("player_left")} >= {1, 3}


def test_G14_a_winner_who_leaves_while_others_decide_to_show_keeps_the_pot() -> None:
    made = room([5000] * 2)
    made.do(cmd.SetPreferences("p1", auto_muck=False))
    made.start("As2c Ad7d 3h4h8s9cTd")
    made.act(1, CALL)
    made.act(2, CHECK)
    for _ in range(6):
        made.act(made.asked().seat, CHECK)
    assert made.asked().seat == 1
    made.do(cmd.LeaveSeat("p2"))
    made.act(1, MUCK)
    assert made.of("player_left")[-1].amount == 5100


def test_every_event_of_the_contract_is_applied() -> None:
    """What this version cannot apply it must not be able to read."""
    payloads = {field.name for field in pb.TableEvent.DESCRIPTOR.oneofs_by_name["payload"].fields}
    assert payloads == set(APPLIERS)


def test_C2_connections_are_on_record_once() -> None:
    made = room([5000] * 2)
    assert kinds(made.do(cmd.ConnectionLost("p1"))) == ["connection_lost"]
    assert made.do(cmd.ConnectionLost("p1")) == []
    assert not view(made.table).seats[0].connected
    assert kinds(made.do(cmd.ConnectionRestored("p1"))) == ["connection_restored"]
    assert made.do(cmd.ConnectionLost("nobody")) == []


def crashed_hand() -> Room:
    """The situation of PROTO-07 on the turn."""
    made = room([5000, 3000, 8000, 2000, 4000], button=1)
    made.table.last_dealt = 5
    for seat in made.table.seats.values():
        seat.entry = seat.number == 5
        seat.missed_small = seat.number == 5
    made.start()
    made.act(4, RAISE, 500)
    made.act(5, FOLD)
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CALL)
    made.act(2, BET, 700)
    made.act(3, RAISE, 1500)
    made.act(4, ALL_IN)
    made.act(1, FOLD)
    return made


def test_C3_PROTO_07_every_chip_goes_back_and_everyone_is_paid_out_once() -> None:
    made = crashed_hand()
    events = made.do(cmd.TakeOver(2, "b", CRASH))
    assert kinds(events)[:2] == ["owner_started", "hand_voided"]
    refunds = {refund.seat: refund.amount for refund in events[1].hand_voided.refunds}
    assert refunds == {1: 500, 2: 1200, 3: 2000, 4: 2000, 5: 150}
    paid = {transfer.seat: transfer.amount for transfer in made.table.transfers.values()}
    assert paid == {1: 5000, 2: 3000, 3: 8000, 4: 2000, 5: 4000}
    assert not made.table.seats
    assert made.table.rake_taken == 0
    assert kinds(made.do(cmd.TakeOver(3, "c", CRASH))) == ["owner_started"]


def test_C3_keep_seats_refunds_the_pot_and_keeps_the_seats() -> None:
    made = room([5000] * 3, rules=game_pb2.TableRules(after_crash="keep_seats"))
    made.start()
    made.act(1, RAISE, 300)
    assert kinds(made.do(cmd.TakeOver(2, "b", CRASH))) == ["owner_started", "hand_voided"]
    assert made.stacks() == {1: 5000, 2: 5000, 3: 5000}
    made.start()
    first, second = made.of("hand_started")
    assert first.button == second.button


def test_C3_a_pending_buy_in_is_returned_when_it_settles() -> None:
    made = room([5000] * 2, seats=4)
    transfer = made.do(cmd.TakeSeat("x", 3, 700))[1].transfer_requested.transfer
    made.do(cmd.TakeOver(2, "b", CRASH))
    assert transfer in made.table.transfers
    events = made.do(cmd.TransferAnswered(transfer, settled=True))
    assert kinds(events) == ["transfer_settled", "transfer_requested"]
    assert events[1].transfer_requested.purpose == pb.TRANSFER_PURPOSE_RETURN


def test_drain_lets_the_hand_end_and_the_next_owner_carries_on() -> None:
    made = room([5000] * 3)
    made.start()
    assert made.do(cmd.Drain()) == []
    made.act(1, FOLD)
    events = made.do(cmd.Act("p2", 0, FOLD), draining=True)
    assert kinds(events)[-2:] == ["hand_ended", "table_drained"]
    with pytest.raises(Rejected, match="TABLE_UNAVAILABLE"):
        made.do(cmd.TransferAnswered("t-1", settled=True))
    before = made.stacks()
    assert kinds(made.do(cmd.TakeOver(2, "b", CRASH))) == ["owner_started"], "what was drained did not crash"
    assert made.log[-1].owner_started.reason == HANDOVER
    assert made.stacks() == before
    made.start()
    assert made.of("hand_started")[-1].button == 2


def test_drain_voids_a_hand_that_does_not_end_in_time() -> None:
    made = room([5000] * 3)
    made.start()
    made.act(1, RAISE, 500)
    events = made.do(cmd.Drain(void=True))
    assert kinds(events) == ["hand_voided", "table_drained"]
    assert events[0].hand_voided.reason == pb.VOID_REASON_DRAIN
    assert made.stacks() == {1: 5000, 2: 5000, 3: 5000}


def test_C4_an_operator_voids_a_running_hand_and_rules() -> None:
    made = room([5000] * 3)
    made.start()
    made.act(1, RAISE, 500)
    with pytest.raises(Rejected, match="NO_ACTIVE_HAND"):
        made.do(cmd.VoidHand("floor", "", 2))
    made.do(cmd.VoidHand("floor", "wrong button", 1))
    voided = made.of("hand_voided")[-1]
    assert (voided.operator, voided.note, voided.reason) == ("floor", "wrong button", pb.VOID_REASON_OPERATOR)
    assert made.stacks() == {1: 5000, 2: 5000, 3: 5000}
    with pytest.raises(Rejected, match="HAND_ALREADY_OVER"):
        made.do(cmd.VoidHand("floor", "again", 1))
    made.do(cmd.RecordRuling("floor", 1, "pot returned"))
    made.do(cmd.WarnPlayer("p1", "floor", "slow"))
    with pytest.raises(Rejected, match="HAND_NOT_FOUND"):
        made.do(cmd.RecordRuling("floor", 2, "?"))


def test_C4_a_hand_that_was_paid_cannot_be_voided() -> None:
    made = room([5000] * 2)
    made.start()
    made.act(1, FOLD)
    with pytest.raises(Rejected, match="HAND_ALREADY_OVER"):
        made.do(cmd.VoidHand("floor", "", 1))


def test_PROTO_11_a_view_holds_own_cards_and_the_whole_state() -> None:
    made = room([2000] * 3)
    made.start("QdAs8s QhAh8h 2c7d9h")
    hand = made.table.hand
    assert hand is not None
    made.act(1, RAISE, 300)
    made.act(2, CALL)
    made.act(3, CALL)
    made.act(2, CHECK)
    made.act(3, BET, 200)
    made.act(1, CALL)
    shown = view(made.table, "p2")
    assert shown.seats[1].down == "QdQh"
    assert (shown.board, shown.pot, shown.your_seat) == ("2c7d9h", 1300, 2)
    assert [seat.stack for seat in shown.seats] == [1500, 1700, 1500]
    assert (shown.prompt.seat, shown.prompt.call) == (2, 200)
    assert (shown.prompt.min_raise_to, shown.prompt.max_raise_to) == (400, 1700)
    data = shown.SerializeToString()
    assert not any(card in data for card in (b"As", b"Ah", b"8s", b"8h"))
    assert b"Qd" not in view(made.table).SerializeToString()


def test_snapshots_are_made_between_hands_and_of_one_format() -> None:
    made = room([5000] * 3)
    assert load(dump(made.table)) == made.table
    made.start()
    with pytest.raises(ValueError, match="between hands"):
        dump(made.table)
    made.passive()
    assert load(dump(made.table)) == made.table
    for data in (b"", b"{}", b"[]", b'{"format":0}', dump(made.table).replace(b'"format":%d' % FORMAT, b'"format":99')):
        with pytest.raises(UnknownSnapshot):
            load(data)


def test_an_event_of_a_newer_version_gives_the_table_back() -> None:
    table = initial("t")
    with pytest.raises(UnknownEvent):
        apply(table, pb.TableEvent(table="t", version=1))
    assert prompt(table) is None


def test_versions_without_gaps_are_asserted() -> None:
    made = room([5000] * 2)
    with pytest.raises(AssertionError, match="after"):
        apply(made.table, pb.TableEvent(table="t", version=made.table.version + 2, table_paused=pb.TablePaused()))
