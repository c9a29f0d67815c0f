"""Blinds and seats, the buy-in saga, leaving (section 5 of the house rules)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.poker import playing
from tests.poker.playing import ALL_IN, BET, CALL, CHECK, FOLD, RAISE, Room, config, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Rejected, Request, known_request, pending_transfers, ready_to_start
from relance.poker import commands as cmd
from relance.poker.money import MAX_AMOUNT


def kinds(events: list[pb.TableEvent]) -> list[str]:
    """Names of the payloads."""
    return [str(event.WhichOneof("payload")) for event in events]


def blinds(made: Room) -> list[tuple[int, int, int]]:
    """Blinds of the last hand: seat, kind, amount."""
    number = made.table.last_hand
    posted = [event.blind_posted for event in made.log if event.hand == number and event.HasField("blind_posted")]
    return [(blind.seat, blind.kind, blind.amount) for blind in posted]


SMALL, BIG, MIDDLE = pb.BLIND_KIND_SMALL, pb.BLIND_KIND_BIG, pb.BLIND_KIND_MIDDLE
LIVE, DEAD = pb.BLIND_KIND_POST, pb.BLIND_KIND_DEAD


def dealt(made: Room) -> list[int]:
    """Seats dealt in to the last hand."""
    return [player.seat for player in made.of("hand_started")[-1].players]


def played_hands(made: Room, count: int) -> None:
    """Hands, checked and called to the end."""
    for _ in range(count):
        made.start()
        made.passive()


def test_S1_S2_button_and_blinds_go_round() -> None:
    made = room([5000] * 3)
    seen = []
    for _ in range(4):
        made.start()
        started = made.of("hand_started")[-1]
        seen.append((started.button, started.small_blind, started.big_blind))
        made.passive()
    assert seen == [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 2, 3)]


def test_S2_nobody_has_the_big_blind_twice_running_heads_up() -> None:
    made = room([5000] * 2, button=1)
    seen = []
    for _ in range(4):
        made.start()
        seen.append(made.of("hand_started")[-1].big_blind)
        made.passive()
    assert seen == [2, 1, 2, 1]


def test_S3_one_blind_three_blinds_and_ante_only() -> None:
    one = room([5000] * 4, stakes=game_pb2.Stakes(blinds=[100]))
    one.start()
    assert blinds(one) == [(2, BIG, 100)]
    assert one.asked().seat == 3
    three = room([5000] * 5, stakes=game_pb2.Stakes(blinds=[25, 50, 100]))
    three.start()
    assert blinds(three) == [(2, MIDDLE, 25), (3, SMALL, 50), (4, BIG, 100)]
    assert three.asked().seat == 5
    ante = room([5000] * 3, stakes=game_pb2.Stakes(ante=50, low_limit=100))
    ante.start()
    assert ante.asked().seat == 2
    assert CHECK in ante.asked().offer.actions


def joined(seats: list[int], new: int, *, wait: bool = False, hands: int = 1) -> Room:
    """A table that has played; then somebody new sits down."""
    made = room(dict.fromkeys(seats, 5000), button=seats[0], seats=9)
    played_hands(made, hands)
    made.sit(new, 5000, wait=wait)
    return made


def test_S4_a_new_player_posts_the_big_blind_live() -> None:
    made = joined([1, 2, 3, 4], 6)
    made.start()
    assert blinds(made) == [(3, SMALL, 50), (4, BIG, 100), (6, LIVE, 100)]
    assert made.asked().seat == 6
    assert CHECK in made.asked().offer.actions


def test_S4_a_new_player_may_wait_for_the_big_blind() -> None:
    made = joined([1, 2, 3, 4], 6, wait=True)
    made.start()
    assert 6 not in dealt(made)
    made.passive()
    made.start()
    assert blinds(made) == [(4, SMALL, 50), (6, BIG, 100)]


def test_S4_between_button_and_big_blind_a_new_player_is_not_dealt_in() -> None:
    made = joined([1, 2, 4, 5], 3)
    made.start()
    assert made.of("hand_started")[-1].button == 2
    assert 3 not in dealt(made)
    assert blinds(made) == [(4, SMALL, 50), (5, BIG, 100)]


def test_S4_on_the_button_a_new_player_may_post() -> None:
    made = joined([1, 3, 4], 2)
    made.start()
    assert made.of("hand_started")[-1].button == 2
    assert blinds(made) == [(3, SMALL, 50), (4, BIG, 100), (2, LIVE, 100)]


def test_S4_nobody_owes_when_the_game_starts() -> None:
    made = room([5000] * 3)
    made.start()
    assert dealt(made) == [1, 2, 3]
    assert [kind for _, kind, _ in blinds(made)] == [SMALL, BIG]


def away(made: Room, seat: int, hands: int) -> None:
    """A player sits out for some hands."""
    made.do(cmd.SitOut(f"p{seat}"))
    played_hands(made, hands)


@pytest.mark.parametrize("choice", ["live", "dead"])
def test_S5_who_missed_both_blinds_posts_both(choice: str) -> None:
    made = room([5000] * 5, button=1, rules=game_pb2.TableRules(missed_big_blind=choice))
    played_hands(made, 1)
    away(made, 4, 3)
    assert (made.table.seats[4].missed_big, made.table.seats[4].missed_small) == (True, True)
    made.do(cmd.SitIn("p4"))
    made.start()
    assert blinds(made)[2:] == [(4, LIVE if choice == "live" else DEAD, 100), (4, DEAD, 50)]
    made.passive()
    assert (made.table.seats[4].missed_big, made.table.seats[4].missed_small) == (False, False)


def test_S5_waiting_for_the_big_blind_clears_all() -> None:
    made = room([5000] * 5, button=1)
    played_hands(made, 1)
    away(made, 4, 3)
    made.do(cmd.SitIn("p4", wait_for_big_blind=True))
    while 4 not in (played := dealt(made)):
        made.start()
        played = dealt(made)
        if 4 in played:
            assert (4, BIG, 100) in blinds(made)
            break
        made.passive()
    made.passive()
    assert not made.table.seats[4].missed_big


def test_S5_C3_a_void_hand_leaves_marks_and_button_as_before() -> None:
    made = room([5000] * 5, button=1, rules=game_pb2.TableRules(after_crash="keep_seats"))
    played_hands(made, 1)
    made.do(cmd.SitOut("p4"))
    button = made.table.button
    made.start()
    made.passive()
    made.start()
    assert made.of("blind_missed")
    before = (made.table.button, made.table.seats[4].missed_big)
    made.do(cmd.TakeOver(2, "b", pb.OWNER_REASON_CRASH))
    assert (made.table.button, made.table.seats[4].missed_big) == before
    assert made.table.button != button
    assert len(made.table.seats) == 5


def test_S6_sitting_out_takes_effect_after_the_hand() -> None:
    made = room([5000] * 3)
    made.start()
    made.do(cmd.SitOut("p1"))
    assert made.asked().seat == 1
    made.act(1, CALL)
    made.passive()
    made.start()
    assert dealt(made) == [2, 3]


def test_S6_who_leaves_folds_at_once_and_the_seat_is_free_with_the_hands_end() -> None:
    """Out of turn too; PlayerLeft and the cash-out stand in HandEnded's append."""
    made = room([5000] * 3)
    made.start()
    events = made.do(cmd.LeaveSeat("p3"))
    assert kinds(events) == ["leave_requested", "folded", "uncalled_returned"]
    assert made.asked().seat == 1
    assert 3 in made.table.seats
    events = made.act(1, FOLD)
    assert kinds(events)[-3:] == ["hand_ended", "player_left", "transfer_requested"]
    assert events[-1].transfer_requested.amount == 4950
    assert 3 not in made.table.seats


def test_S6_a_leavers_raise_goes_back_and_the_call_drops() -> None:
    made = room([5000] * 3)
    made.start()
    made.act(1, RAISE, 300)
    made.act(2, RAISE, 2000)
    made.do(cmd.LeaveSeat("p2"))
    assert [(back.seat, back.amount) for back in made.of("uncalled_returned")] == [(2, 1700)]
    assert (made.asked().seat, made.asked().offer.call) == (3, 200)


def test_S6_an_all_in_player_who_leaves_keeps_the_claim() -> None:
    made = room([1000, 5000, 5000])
    made.start("KsQsAs KdQdAd 2c7d9hTs3c")
    made.act(1, ALL_IN)
    made.do(cmd.LeaveSeat("p1"))
    made.act(2, FOLD)
    made.act(3, CALL)
    assert made.of("pot_awarded")[-1].shares[0].seat == 1
    assert made.of("player_left")[-1].amount == 2050


def test_S7_who_loses_the_whole_stack_is_out() -> None:
    made = room([100, 5000], "closed", stakes=game_pb2.Stakes(ante=10), button=2)
    made.start("7cAs8dAd9hAhTsAcJdKs")
    made.act(1, ALL_IN)
    made.act(2, CALL)
    made.passive()
    assert 1 not in made.table.seats
    assert made.of("player_left")[-1].reason == pb.LEAVE_REASON_BUSTED


def rathole_room() -> Room:
    rules = game_pb2.TableRules(rathole_minutes=30)
    made = Room(config(seats=9, rules=rules, min_buy_in=400, max_buy_in=2000))
    made.sit(1, 2000)
    made.sit(2, 2000)
    return made


def test_S8_PROTO_13_who_comes_back_brings_what_they_took() -> None:
    """Sitting down and leaving without playing does not clear it; losing it all does; nor does it last for ever."""
    made = rathole_room()
    made.start("AsKsAdKd2c7d9hTs3c")
    made.act(made.asked().seat, ALL_IN)
    made.act(made.asked().seat, CALL)
    winner = max(made.table.seats, key=lambda seat: made.table.seats[seat].stack)
    name = f"p{winner}"
    made.do(cmd.LeaveSeat(name))
    made.settle()
    made.do(cmd.TakeSeat(name, 5, 4000))
    made.do(cmd.LeaveSeat(name))
    made.settle()
    made.do(cmd.TakeSeat(name, 5, 4000))
    made.settle()
    made.do(cmd.LeaveSeat(name))
    made.settle()
    with pytest.raises(Rejected) as refused:
        made.do(cmd.TakeSeat(name, 5, 2000))
    assert refused.value.metadata == {"min": "4000"}
    assert str(refused.value).startswith("BUY_IN_BELOW_PREVIOUS_STACK")
    with pytest.raises(Rejected, match="BUY_IN_OUT_OF_RANGE"):
        made.do(cmd.TakeSeat(name, 5, 4001))
    made.at += 31 * 60 * 1_000_000
    made.do(cmd.TakeSeat(name, 5, 2000))


def test_S8_losing_it_all_clears_what_was_taken() -> None:
    made = rathole_room()
    made.start("AsKsAdKd2c7d9hTs3c")
    made.act(made.asked().seat, ALL_IN)
    made.act(made.asked().seat, CALL)
    loser = min(made.table.seats, key=lambda seat: made.table.seats[seat].stack)
    made.do(cmd.LeaveSeat(f"p{loser}"))
    made.do(cmd.TakeSeat(f"p{loser}", 5, 400))


def test_S9_PROTO_05_one_seat_a_player_and_one_player_a_seat() -> None:
    made = rathole_room()
    for seat in (1, 2, 3, 9, 0):
        with pytest.raises(Rejected, match="ALREADY_SEATED"):
            made.do(cmd.TakeSeat("p1", seat, 1000))
    with pytest.raises(Rejected) as refused:
        made.do(cmd.TakeSeat("other", 1, 1000))
    assert refused.value.metadata["free"] == "3, 4, 5, 6, 7, 8, 9"
    assert not made.table.transfers


def test_B1_buy_in_between_least_and_most() -> None:
    made = rathole_room()
    for amount in (399, 2001):
        with pytest.raises(Rejected) as refused:
            made.do(cmd.TakeSeat("x", 3, amount))
        assert refused.value.metadata == {"min": "400", "max": "2000"}
    no_amounts: list[Any] = [0, -1, MAX_AMOUNT + 1, True, 1.5, "400", None]
    for wrong in no_amounts:
        with pytest.raises(Rejected, match="INVALID_AMOUNT"):
            made.do(cmd.TakeSeat("x", 3, wrong))
    with pytest.raises(Rejected, match="SEAT_OUT_OF_RANGE"):
        made.do(cmd.TakeSeat("x", 10, 500))


def test_B1_chips_join_the_stack_at_the_next_hand() -> None:
    made = room([1000] * 2)
    made.start()
    made.do(cmd.AddChips("p1", 500))
    with pytest.raises(Rejected, match="TRANSFER_PENDING"):
        made.do(cmd.AddChips("p1", 500))
    made.settle()
    assert made.table.seats[1].held == 500
    assert made.asked().offer.max_raise_to == 1000
    made.act(1, FOLD)
    events = made.start()
    assert kinds(events)[:2] == ["chips_added", "hand_started"]
    assert made.table.hand is not None
    assert dict(zip(made.table.hand.seats, made.table.hand.start, strict=True))[1] == 1450


def test_a_refused_buy_in_frees_the_seat() -> None:
    made = rathole_room()
    events = made.do(cmd.TakeSeat("x", 3, 500))
    assert kinds(events) == ["seat_reserved", "transfer_requested"]
    transfer = events[1].transfer_requested.transfer
    assert transfer == f"t-{events[1].version}"
    events = made.do(cmd.TransferAnswered(transfer, settled=False, refusal="NO_MONEY"))
    assert kinds(events) == ["transfer_refused", "seat_released"]
    assert 3 not in made.table.seats
    assert made.do(cmd.TransferAnswered(transfer, settled=False, refusal="NO_MONEY")) == []


def test_money_for_a_seat_that_is_gone_goes_back_in_the_same_append() -> None:
    made = rathole_room()
    transfer = made.do(cmd.TakeSeat("x", 3, 500))[1].transfer_requested.transfer
    assert kinds(made.do(cmd.LeaveSeat("x"))) == ["seat_released"]
    events = made.do(cmd.TransferAnswered(transfer, settled=True))
    assert kinds(events) == ["transfer_settled", "transfer_requested"]
    assert events[1].transfer_requested.purpose == pb.TRANSFER_PURPOSE_RETURN
    assert events[1].transfer_requested.amount == 500


def test_a_refused_cash_out_is_parked() -> None:
    made = rathole_room()
    transfer = made.do(cmd.LeaveSeat("p1"))[1].transfer_requested.transfer
    made.do(cmd.TransferAnswered(transfer, settled=False, refusal="ACCOUNT_NOT_FOUND"))
    assert list(made.table.parked) == [transfer]
    assert not pending_transfers(made.table)


def test_PROTO_02_a_repeated_request_is_known_and_other_content_refused() -> None:
    made = room([2000] * 3)
    made.start()
    request = Request("r1", b"300", "p1")
    assert known_request(made.table, request) is None
    events = made.do(cmd.Act("p1", 0, RAISE, 300), request=request)
    assert known_request(made.table, request) == events[0].version
    with pytest.raises(Rejected, match="REQUEST_ID_REUSED"):
        known_request(made.table, Request("r1", b"500", "p1"))
    for number in range(40):
        made.do(cmd.SitOut("p1") if number % 2 == 0 else cmd.SitIn("p1"), request=Request(f"s{number}", b"", "p1"))
    assert known_request(made.table, request) is None, "the last 32 of a player are kept"
    assert known_request(made.table, Request("s39", b"", "p1")) is not None


def test_a_closed_table_cashes_everyone_out_after_the_hand() -> None:
    made = room([1000] * 2)
    made.start()
    made.do(cmd.CloseTable("floor", "end of day"))
    assert made.table.hand is not None
    with pytest.raises(Rejected, match="TABLE_CLOSED"):
        made.do(cmd.TakeSeat("x", 0, 1000))
    made.act(1, FOLD)
    assert not made.table.seats
    assert not made.table.finished
    made.settle()
    assert made.table.finished
    assert not ready_to_start(made.table)


def test_a_buy_in_that_settles_at_a_closed_table_goes_back() -> None:
    made = rathole_room()
    transfer = made.do(cmd.TakeSeat("x", 3, 500))[1].transfer_requested.transfer
    made.do(cmd.CloseTable("floor"))
    assert not made.table.finished
    events = made.do(cmd.TransferAnswered(transfer, settled=True))
    assert kinds(events) == ["transfer_settled", "seat_released", "transfer_requested"]
    made.settle()
    assert made.table.finished


def test_preferences_sit_out_at_the_next_big_blind_and_top_up() -> None:
    made = room([1000] * 4, button=1)
    made.do(cmd.SetPreferences("p3", sit_out_next_big_blind=True))
    made.do(cmd.SetPreferences("p2", auto_top_up=1000))
    made.start()
    assert 3 not in dealt(made)
    made.act(1, FOLD)
    made.act(2, FOLD)
    assert [transfer.amount for transfer in made.table.transfers.values()] == [50]


def test_who_was_away_too_long_loses_the_seat() -> None:
    made = room([5000] * 3, rules=game_pb2.TableRules(away_hands=2))
    made.do(cmd.SitOut("p3"))
    played_hands(made, 2)
    assert 3 not in made.table.seats
    assert made.of("player_left")[-1].reason == pb.LEAVE_REASON_AWAY


def test_a_banned_player_leaves_and_cannot_come_back() -> None:
    made = room([5000] * 3)
    made.do(cmd.BanPlayer("p3", "floor", "abuse", until=made.at + 10))
    assert 3 not in made.table.seats
    with pytest.raises(Rejected, match="PLAYER_BANNED"):
        made.do(cmd.TakeSeat("p3", 3, 5000))
    made.at += 11
    made.do(cmd.TakeSeat("p3", 3, 5000))


def test_settings_change_for_the_next_hand_and_the_rake_between_hands() -> None:
    made = room([5000] * 3)
    made.start()
    with pytest.raises(Rejected, match="NOTHING_TO_CHANGE"):
        made.do(cmd.ChangeSettings("floor", config(), game_pb2.RakeSchedule(id="other")))
    made.do(cmd.ChangeSettings("floor", config(stakes=game_pb2.Stakes(blinds=[100, 200]))))
    assert made.asked().offer.call == 100, "the running hand has its own terms"
    made.passive()
    made.start()
    assert [amount for _, _, amount in blinds(made)] == [100, 200]
    made.passive()
    made.do(cmd.PauseTable("floor"))
    assert not ready_to_start(made.table)
    made.do(cmd.ResumeTable("floor"))
    assert ready_to_start(made.table)


def test_a_configuration_that_makes_no_game_says_what_is_allowed() -> None:
    wrong = [
        (config("nogame"), "game"),
        (config(limit=game_pb2.LIMIT_UNSPECIFIED), "limit"),
        (config("draw32", seats=9), "seats"),
        (config(stakes=game_pb2.Stakes()), "stakes"),
        (config("stud7", seats=8, stakes=game_pb2.Stakes(ante=1, bring_in=100, low_limit=100)), "stakes.bring_in"),
    ]
    for bad, field in wrong:
        with pytest.raises(Rejected) as refused:
            Room(bad)
        assert refused.value.metadata["field"] == field
        assert refused.value.metadata["allowed"]


def test_turn_of_a_prompt_does_not_change_with_unrelated_events() -> None:
    made = room([5000] * 3, seats=6)
    made.start()
    turn = made.asked().turn
    made.sit(5, 1000)
    assert made.asked().turn == turn
    made.act(1, CALL, turn=turn)
    with pytest.raises(Rejected) as refused:
        made.act(2, CALL, turn=turn)
    assert str(refused.value).startswith("STALE_TURN")
    assert refused.value.metadata == {"turn": str(made.asked().turn)}
    with pytest.raises(Rejected, match="NOT_SEATED"):
        made.do(cmd.Act("stranger", 0, CALL))
    with pytest.raises(Rejected) as offered:
        made.act(2, BET, 500)
    assert "RAISE" in offered.value.metadata["offered"]
    assert playing.FOLD in made.asked().offer.actions
