"""Seats that are held, reservations that end, the time bank, notices (S4-S9, C1, C3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.poker.playing import CALL, FOLD, Room, config, room
from tests.poker.test_seats import kinds

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Context, Rejected, Request, decide, known_request, snapshot, view
from relance.poker import commands as cmd
from relance.poker.holding import next_expiry

SECOND = 1_000_000


def timed(**fields: int) -> game_pb2.TableConfig:
    """A table with these timers."""
    made = config(seats=3)
    made.timers.CopyFrom(game_pb2.Timers(**fields))
    return made


def refused(made: Room, command: cmd.Command) -> str:
    """Why a command is refused."""
    with pytest.raises(Rejected) as caught:
        made.do(command)
    return caught.value.name


def test_S9_a_held_seat_is_for_its_player_alone_until_its_time_is_over() -> None:
    made = Room(config(seats=2))
    held = made.do(cmd.HoldSeat("ann", made.at + 10 * SECOND, "lobby"))[0].seat_held
    assert (held.seat, held.player, held.held_by) == (1, "ann", "lobby")
    assert view(made.table).seats[0].reserved
    assert refused(made, cmd.TakeSeat("bob", 1, 500)) == "SEAT_TAKEN"
    made.do(cmd.TakeSeat("bob", 0, 500))
    assert refused(made, cmd.HoldSeat("cid", made.at + SECOND)) == "SEAT_TAKEN"
    assert refused(made, cmd.HoldSeat("bob", made.at + SECOND)) == "ALREADY_SEATED"
    assert kinds(made.do(cmd.TakeSeat("ann", 0, 500))) == ["seat_reserved", "transfer_requested"]
    assert not made.table.holds
    assert made.table.seats[1].player == "ann"


def test_S9_holding_again_is_for_longer_and_never_for_less_and_taking_another_seat_gives_it_up() -> None:
    made = Room(config(seats=3))
    made.do(cmd.HoldSeat("ann", made.at + 10 * SECOND))
    again = made.do(cmd.HoldSeat("ann", made.at + 2 * SECOND))[0].seat_held
    assert (again.seat, again.expire_time_us) == (1, made.at + 10 * SECOND)
    events = made.do(cmd.TakeSeat("ann", 3, 500))
    assert kinds(events) == ["seat_released", "seat_reserved", "transfer_requested"]
    assert not made.table.holds


def test_S9_a_hold_ends_by_time_or_by_release() -> None:
    made = Room(config(seats=2))
    made.do(cmd.HoldSeat("ann", made.at + 10 * SECOND))
    assert next_expiry(made.table) == made.at + 10 * SECOND
    assert made.do(cmd.ExpireSeats()) == []
    made.at += 10 * SECOND
    assert made.do(cmd.ExpireSeats())[0].seat_released.reason == "EXPIRED"
    assert next_expiry(made.table) == 0
    made.do(cmd.HoldSeat("ann", made.at + SECOND))
    assert kinds(made.do(cmd.ReleaseSeat("ann"))) == ["seat_released"]
    assert made.do(cmd.ReleaseSeat("ann")) == []


def test_S9_closing_the_table_gives_up_what_is_held() -> None:
    made = Room(config(seats=2))
    made.do(cmd.HoldSeat("ann", made.at + 10 * SECOND))
    assert kinds(made.do(cmd.CloseTable("ada"))) == ["table_closed", "seat_released"]
    assert made.table.finished


def test_private_tables_let_in_who_is_invited_or_has_a_held_seat() -> None:
    private = config(seats=3)
    private.private = True
    made = Room(private)
    assert refused(made, cmd.TakeSeat("ann", 1, 500, invited=False)) == "NOT_INVITED"
    made.do(cmd.HoldSeat("bob", made.at + SECOND))
    made.do(cmd.TakeSeat("bob", 0, 500, invited=False))
    made.do(cmd.TakeSeat("ann", 0, 500, invited=True))
    assert set(made.table.seats) == {1, 2}


def test_a_reservation_ends_and_what_settles_after_it_is_returned() -> None:
    made = Room(timed(reservation_ms=30_000))
    made.do(cmd.TakeSeat("ann", 1, 500))
    buy_in = next(iter(made.table.transfers.values()))
    made.at += 30 * SECOND
    assert kinds(made.do(cmd.ExpireSeats())) == ["seat_released"]
    made.do(cmd.TakeSeat("bob", 1, 700))
    events = made.do(cmd.TransferAnswered(buy_in.id, settled=True))
    assert kinds(events) == ["transfer_settled", "transfer_requested"]
    back = events[1].transfer_requested
    assert (back.player, back.purpose, back.amount) == ("ann", pb.TRANSFER_PURPOSE_RETURN, 500)
    assert made.table.seats[1].player == "bob"
    made.settle()
    made.at += 60 * SECOND
    assert made.do(cmd.ExpireSeats()) == []  # who sits does not expire


def club(grace: int = 20) -> Room:
    """Three players with antes of 10 and a grace for the disconnected."""
    rules = game_pb2.TableRules(protections_per_24h=-1, disconnect_grace_seconds=grace)
    return room([500] * 3, "closed", stakes=game_pb2.Stakes(ante=10, min_bet=10), rules=rules, seats=4)


def test_S6_club_staying_disconnected_for_the_grace_is_leaving() -> None:
    made = club()
    made.start()
    made.do(cmd.ConnectionLost("p3"))
    made.at += 19 * SECOND
    assert made.do(cmd.ExpireSeats()) == []
    made.at += SECOND
    events = made.do(cmd.ExpireSeats())
    assert kinds(events)[:2] == ["leave_requested", "folded"]
    assert events[0].leave_requested.reason == pb.LEAVE_REASON_DISCONNECTED
    made.passive()
    assert 3 not in made.table.seats


def test_S6_club_coming_back_within_the_grace_keeps_the_seat() -> None:
    made = club()
    made.do(cmd.ConnectionLost("p3"))
    assert next_expiry(made.table) == made.at + 20 * SECOND
    made.do(cmd.ConnectionRestored("p3"))
    assert next_expiry(made.table) == 0
    made.at += 60 * SECOND
    assert made.do(cmd.ExpireSeats()) == []


def test_S7_antes_are_asked_for_where_that_was_chosen_before_sitting() -> None:
    made = club()
    made.do(cmd.TakeSeat("p4", 4, 500, ask_to_post=True))
    made.settle()
    made.start()
    asked = made.asked()
    assert (asked.seat, asked.bank_ms) == (4, 0)
    made.act(4, FOLD)
    made.passive()
    assert 4 not in made.table.seats


def test_S6_leaving_after_the_hand_plays_it_to_its_end() -> None:
    made = room([5000] * 3)
    made.start()
    seat = made.asked().seat
    made.do(cmd.LeaveSeat(f"p{seat}", after_hand=True))
    assert refused(made, cmd.LeaveSeat(f"p{seat}", after_hand=True)) == "NOTHING_TO_CHANGE"
    made.act(seat, CALL)
    made.passive()
    assert seat not in made.table.seats


def test_S6_who_leaves_after_the_hand_may_still_go_at_once() -> None:
    made = room([5000] * 3)
    made.start()
    seat = made.asked().seat
    made.do(cmd.LeaveSeat(f"p{seat}", after_hand=True))
    assert kinds(made.do(cmd.LeaveSeat(f"p{seat}")))[:2] == ["leave_requested", "folded"]
    assert refused(made, cmd.LeaveSeat(f"p{seat}")) == "NOTHING_TO_CHANGE"


def test_S6_who_leaves_after_the_hand_may_take_that_back_by_sitting_in() -> None:
    made = room([5000] * 3)
    made.start()
    seat = made.asked().seat
    made.do(cmd.LeaveSeat(f"p{seat}", after_hand=True))
    assert view(made.table).seats[seat - 1].leaving
    assert kinds(made.do(cmd.SitIn(f"p{seat}"))) == ["leave_withdrawn"]
    assert not view(made.table).seats[seat - 1].leaving
    assert refused(made, cmd.SitIn(f"p{seat}")) == "NOTHING_TO_CHANGE"
    made.act(seat, CALL)
    made.passive()
    assert seat in made.table.seats


def test_S6_who_sits_out_and_leaves_sits_in_and_stays() -> None:
    made = room([5000] * 3)
    made.start()
    seat = made.asked().seat
    made.do(cmd.SitOut(f"p{seat}"))
    made.do(cmd.LeaveSeat(f"p{seat}", after_hand=True))
    assert kinds(made.do(cmd.SitIn(f"p{seat}"))) == ["leave_withdrawn", "player_sat_in"]


def test_S6_who_gave_the_hand_up_or_was_sent_away_cannot_take_it_back() -> None:
    made = room([5000] * 4)
    made.start()
    seat = made.asked().seat
    made.do(cmd.LeaveSeat(f"p{seat}", after_hand=True))
    made.do(cmd.LeaveSeat(f"p{seat}"))
    other = made.asked().seat
    made.do(cmd.BanPlayer(f"p{other}", "ada", "cheats", 0))
    for gone in (seat, other):
        assert refused(made, cmd.SitIn(f"p{gone}")) == "NOTHING_TO_CHANGE"


def test_S6_sitting_out_when_the_big_blind_comes() -> None:
    made = room([5000] * 3)
    made.do(cmd.SitOut("p1", at_next_big_blind=True))
    assert refused(made, cmd.SitOut("p1", at_next_big_blind=True)) == "NOTHING_TO_CHANGE"
    for _ in range(3):
        made.start()
        made.passive()
    assert made.table.seats[1].sitting_out
    assert [e for e in made.of("blind_posted") if e.seat == 1 and e.kind == pb.BLIND_KIND_BIG] == []


def banked() -> Room:
    """Three players with 20 s for a decision and a bank of 10 s."""
    made = Room(timed(decision_ms=20_000, time_bank_ms=10_000))
    for seat in (1, 2, 3):
        made.sit(seat, 5000)
    made.start()
    return made


def test_C1_the_time_bank_is_part_of_the_clock_and_is_used_by_late_answers() -> None:
    made = banked()
    asked = made.asked()
    assert (asked.clock_ms, asked.bank_ms, asked.to_proto().time_bank_ms) == (30_000, 10_000, 10_000)
    action = cmd.Act(asked.player, asked.turn, CALL)
    request = Request("r", b"h", asked.player)
    events = made.do(cmd.ActLate(action, 4_000), request=request)
    assert kinds(events)[:2] == ["time_bank_used", "called"]
    assert (events[0].time_bank_used.used_ms, events[0].time_bank_used.left_ms) == (4_000, 6_000)
    assert known_request(made.table, request) == events[0].version
    assert made.table.seats[asked.seat].time_bank == 6_000


def test_C1_a_refused_answer_uses_nothing_of_the_bank() -> None:
    made = banked()
    asked = made.asked()
    late = cmd.ActLate(cmd.Act(asked.player, asked.turn + 1, CALL), 4_000)
    assert refused(made, late) == "STALE_TURN"
    assert made.table.seats[asked.seat].time_bank == 10_000


def test_C1_a_clock_that_runs_out_has_used_the_whole_bank_which_fills_by_a_twentieth_a_hand() -> None:
    made = banked()
    asked = made.asked()
    timed_out = made.do(cmd.Timeout(asked.turn))[0].timed_out
    assert timed_out.time_bank_used_ms == 10_000
    assert made.table.seats[asked.seat].time_bank == 0
    made.passive()
    assert made.table.seats[asked.seat].time_bank == 500


@pytest.mark.parametrize(("after_crash", "taken"), [("cash_out", 5000), ("keep_seats", 0)])
def test_C3_who_comes_back_after_a_crash_finds_a_notice_until_it_was_seen(after_crash: str, taken: int) -> None:
    made = room([5000] * 3, rules=game_pb2.TableRules(after_crash=after_crash))
    made.start()
    made.do(cmd.TakeOver(2, "b", pb.OWNER_REASON_CRASH))
    notices = made.table.notices
    big = made.of("blind_posted")[1]
    notice = notices[f"p{big.seat}"]
    assert (notice.hand, notice.refund, notice.reason, notice.taken) == (1, 100, pb.VOID_REASON_CRASH, taken)
    assert kinds(made.do(cmd.AckNotices(f"p{big.seat}"))) == ["notice_seen"]
    assert made.do(cmd.AckNotices(f"p{big.seat}")) == []
    again = snapshot.load(snapshot.dump(made.table))
    assert again == made.table


def test_sessions_say_what_was_bought_and_taken_along() -> None:
    made = room([5000] * 2)
    made.do(cmd.AddChips("p1", 300))
    made.settle()
    made.start()
    made.act(made.asked().seat, FOLD)
    made.do(cmd.LeaveSeat("p1"))
    session = made.table.sessions["p1"]
    assert (session.bought_in, session.hands, session.reason) == (5300, 1, pb.LEAVE_REASON_REQUESTED)
    assert session.cashed_out == made.of("player_left")[0].amount


def test_C4_muting_is_on_record_and_ends() -> None:
    made = room([5000] * 2)
    muted: Any = made.do(cmd.MutePlayer("p1", "ada", "rude", 99))[0].player_muted
    assert (muted.player, muted.operator, muted.reason, muted.until_us) == ("p1", "ada", "rude", 99)
    assert made.table.mutes == {"p1": 99}
    made.do(cmd.UnmutePlayer("p1", "ada"))
    assert made.table.mutes == {}
    assert refused(made, cmd.UnmutePlayer("p1", "ada")) == "NOTHING_TO_CHANGE"


def test_what_expires_is_decided_from_the_state_alone() -> None:
    """Deciding twice gives the same events and changes nothing."""
    made = Room(config(seats=2))
    made.do(cmd.HoldSeat("ann", made.at + 1))
    context = Context(at=made.at + 1)
    assert decide(made.table, cmd.ExpireSeats(), context) == decide(made.table, cmd.ExpireSeats(), context)
    assert made.table.holds
