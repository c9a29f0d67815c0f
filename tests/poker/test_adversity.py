"""Situations in which rules meet that each seem simple alone: leavers, short posts, offers, orders of blinds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.poker import playing
from tests.poker.playing import (
    ACCEPT_SPLIT,
    ALL_IN,
    BET,
    BRING_IN,
    CALL,
    CHECK,
    COMPLETE,
    DISCARD,
    FIXED,
    FOLD,
    NO_LIMIT,
    OFFER_SPLIT,
    RAISE,
    Room,
    room,
)

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Rejected
from relance.poker import commands as cmd

STUD = game_pb2.Stakes(ante=25, bring_in=50, low_limit=500, high_limit=1000)
CLOSED = game_pb2.Stakes(ante=10)


def kinds(events: list[pb.TableEvent]) -> list[str]:
    """Names of the payloads."""
    return [str(event.WhichOneof("payload")) for event in events]


def blinds(made: Room) -> tuple[int, int, int, int]:
    """Button, small blind, dead small blind, big blind of the last hand begun."""
    started = made.of("hand_started")[-1]
    return started.button, started.small_blind, started.dead_small_blind, started.big_blind


def bounds(made: Room) -> tuple[int, int, int, int]:
    """Seat asked, call, least and largest raise."""
    asked = made.asked()
    return asked.seat, asked.offer.call, asked.offer.min_raise_to, asked.offer.max_raise_to


# Blinds and the button


@pytest.mark.parametrize(
    ("leaver", "expected"),
    [
        (3, [(2, 0, 3, 4), (3, 4, 0, 1), (4, 1, 0, 2)]),
        (2, [(2, 3, 0, 4), (3, 4, 0, 1), (4, 1, 0, 3)]),
        (1, [(2, 3, 0, 4), (3, 4, 0, 2), (4, 2, 0, 3)]),
    ],
)
def test_S2_dead_button_and_dead_small_blind_stand_where_somebody_left(
    leaver: int, expected: list[tuple[int, int, int, int]]
) -> None:
    """The big blind advances one player each hand; nobody skips the small blind or has the button twice."""
    made = room([4000] * 4, button=1, rules=game_pb2.TableRules(button_rule="dead"))
    made.start()
    made.passive()
    made.do(cmd.LeaveSeat(f"p{leaver}"))
    seen = []
    for _ in expected:
        made.start()
        seen.append(blinds(made))
        made.passive()
    assert seen == expected


def test_S2_three_to_two_to_three_players_nobody_has_the_big_blind_twice_running() -> None:
    made = room([5000] * 3, button=1)
    seen = []
    for number in range(9):
        if number in {2, 5}:
            made.do(cmd.SitOut("p2") if number == 2 else cmd.SitIn("p2"))
        made.start()
        seen.append(blinds(made)[3])
        made.passive()
    assert seen == [3, 1, 3, 1, 3, 1, 2, 3, 1]


@pytest.mark.parametrize("button", [1, 2])
def test_S4_nobody_owes_where_a_new_game_begins_because_only_one_player_was_left(button: int) -> None:
    made = room([5000] * 2, button=button, seats=3)
    made.start()
    made.passive()
    made.do(cmd.LeaveSeat("p2"))
    made.sit(3, 5000)
    events = made.start()
    assert [event.blind_posted.amount for event in events if event.HasField("blind_posted")] == [50, 100]


def test_B9_a_big_blind_whose_ante_took_everything_is_still_faced_in_full() -> None:
    made = room([5000, 5000, 25], stakes=game_pb2.Stakes(blinds=[50, 100], ante=25), button=1)
    made.start()
    assert bounds(made) == (1, 100, 200, 4975)
    made.act(1, CALL)
    assert bounds(made)[:2] == (2, 50)
    made.act(2, CALL)
    made.passive()
    assert [(pot.amount, list(pot.eligible)) for pot in made.of("pot_awarded")] == [(75, [1, 2, 3]), (200, [1, 2])]


def test_B9_G9_a_bring_in_that_is_all_in_is_completed_over_the_full_one() -> None:
    made = room([60, 5000, 5000], "stud7", FIXED, stakes=STUD, button=3)
    made.start("AsKsQs AdKdQd 2c4d9h")
    made.act(1, BRING_IN)
    assert bounds(made) == (2, 50, 500, 500)
    made.act(2, COMPLETE, 500)
    assert bounds(made) == (3, 500, 1000, 1000)


# Leavers


def test_S6_a_big_blind_that_leaves_out_of_turn_takes_back_what_nobody_matched() -> None:
    """S6, B11: the amount to call drops to the highest bet of the others."""
    made = room([5000] * 4, button=1)
    made.start()
    made.do(cmd.LeaveSeat("p3"))
    assert made.stacks()[3] == 4950
    assert bounds(made)[:2] == (4, 50)
    made.act(4, CALL)
    made.act(1, CALL)
    assert CHECK in made.asked().offer.actions


def test_S6_B9_a_leavers_raise_goes_back_to_a_short_big_blind_that_is_faced_in_full() -> None:
    made = room([5000, 5000, 25, 5000], button=1)
    made.start()
    made.act(4, RAISE, 400)
    made.do(cmd.LeaveSeat("p4"))
    assert bounds(made)[:2] == (1, 100)
    assert made.of("uncalled_returned")[-1].amount == 350


def test_S6_a_round_whose_only_bettor_left_begins_anew() -> None:
    made = room([5000] * 3, button=1)
    made.start()
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CHECK)
    made.act(2, BET, 500)
    made.do(cmd.LeaveSeat("p2"))
    assert bounds(made) == (3, 0, 100, 4900)
    assert BET in made.asked().offer.actions


def test_S6_a_bring_in_that_leaves_is_faced_no_more() -> None:
    made = room([5000] * 3, "stud7", FIXED, stakes=STUD, button=3)
    made.start("AsKsQs AdKdQd 4c4d9h")
    made.act(1, BRING_IN)
    made.do(cmd.LeaveSeat("p1"))
    assert made.of("uncalled_returned")[-1].amount == 50
    assert bounds(made) == (2, 0, 500, 500)
    made.act(2, CHECK)
    made.act(3, CHECK)
    assert made.table.hand is not None
    assert made.table.hand.street == 1


def test_S6_leaving_before_the_first_betting_round_forfeits_the_ante() -> None:
    """Club: also while somebody else is still asked to post."""
    made = room([1000] * 2, "closed", stakes=CLOSED, button=1)
    made.do(cmd.SetPreferences("p1", auto_post=False))
    made.start()
    assert made.asked().seat == 1
    made.do(cmd.LeaveSeat("p2"))
    assert made.stacks() == {1: 1010}
    assert [transfer.amount for transfer in made.table.transfers.values()] == [990]


def test_S6_a_fold_out_of_turn_that_leaves_one_player_ends_the_hand() -> None:
    made = room([5000] * 3, button=1)
    made.start()
    made.act(1, RAISE, 300)
    made.do(cmd.LeaveSeat("p3"))
    made.do(cmd.LeaveSeat("p1"))
    assert made.table.hand is None
    assert made.stacks() == {2: 5200}


# All-in without a bet


@pytest.mark.parametrize(("game", "stakes", "stack"), [("stud7", STUD, 25), ("closed", CLOSED, 10)])
def test_G14_hands_are_turned_up_at_once_when_the_antes_took_everything(
    game: str, stakes: game_pb2.Stakes, stack: int
) -> None:
    """Club: before the exchange, in which each still chooses."""
    made = room([stack] * 2, game, stakes=stakes, button=2)
    events = kinds(made.start())
    first = events.index("hand_shown")
    assert events[:first].count("cards_dealt") == 2
    assert events[first + 1] == "hand_shown"
    if game == "closed":
        assert made.asked().kind == table_pb2.PROMPT_KIND_DRAW


def test_C2_B16_two_artificial_all_ins_and_one_player_end_the_betting() -> None:
    made = room([5000] * 3, button=1, rules=game_pb2.TableRules(protections_per_24h=2))
    made.start()
    made.act(1, RAISE, 400)
    for _ in range(2):
        made.do(cmd.Timeout(made.asked().turn, connected=False))
    assert made.table.hand is None
    pots = [(pot.amount, list(pot.eligible)) for pot in made.of("pot_awarded")]
    assert pots == [(150, [1, 2, 3]), (100, [1, 3])]
    assert made.of("uncalled_returned")[0].amount == 300


def test_C2_an_artificial_all_in_of_a_raiser_is_called_and_played_on_by_others() -> None:
    """Who is artificially all-in keeps the rest of the stack, which the others cannot win."""
    made = room([5000] * 4, button=1, rules=game_pb2.TableRules(protections_per_24h=2))
    made.start()
    made.act(4, RAISE, 300)
    made.act(1, RAISE, 900)
    made.act(2, CALL)
    made.act(3, FOLD)
    made.do(cmd.Timeout(made.asked().turn, connected=False))
    assert made.asked().seat == 2
    made.act(2, BET, 1000)
    made.act(1, CALL)
    made.passive()
    assert [(pot.amount, list(pot.eligible)) for pot in made.of("pot_awarded")] == [(1000, [1, 2, 4]), (3200, [1, 2])]


# Betting


def test_B8_completing_a_short_all_in_may_be_called_that() -> None:
    made = room([20000, 20000, 20000, 1300], limit=FIXED, stakes=game_pb2.Stakes(blinds=[500, 1000]), button=1)
    made.start()
    with pytest.raises(Rejected, match="ACTION_NOT_OFFERED"):
        made.act(4, COMPLETE, 2000)
    made.act(4, ALL_IN)
    made.act(1, COMPLETE, 2000)
    assert made.of("raised")[-1].completes


def test_B8_an_opening_all_in_below_the_minimum_is_raised_by_a_full_bet() -> None:
    made = room([20000, 20000, 140], button=1)
    made.start()
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CHECK)
    made.act(2, CHECK)
    made.act(3, ALL_IN)
    assert bounds(made) == (1, 40, 140, 19900)
    made.act(1, CALL)
    assert bounds(made) == (2, 40, 0, 0), "who has checked is not reopened to by less than a full bet"


def test_B10_B13_odd_units_of_hi_lo_in_main_and_side_pot() -> None:
    """Each pot by itself: the odd unit between the halves to the high one, within it clockwise from the button."""
    made = room([1000, 1000, 101], "omaha8", playing.POT, stakes=game_pb2.Stakes(blinds=[25, 50]), button=2, seats=3)
    # Seats 1 and 2 tie for low, seat 2 alone is high; seat 3 is all-in and has neither.
    made.start("KcAsAd TcQhKh TdJdQd 8d7s5s 3h6d8cKsTh".replace(" ", ""))
    made.passive()
    for pot in made.of("pot_awarded"):
        high = sum(share.amount for share in pot.shares if share.part == pb.POT_PART_HIGH)
        low = sum(share.amount for share in pot.shares if share.part == pb.POT_PART_LOW)
        assert not low or high - low == pot.amount % 2


def test_K2_uncalled_chips_are_not_raked_and_players_are_those_dealt_in() -> None:
    """K2: what went back does not count; who folded before the flop does."""
    tiers = [
        game_pb2.RakeTier(min_players=2, max_players=2, step=100, rake_per_step=5, cap=75),
        game_pb2.RakeTier(min_players=3, max_players=10, step=100, rake_per_step=5, cap=200),
    ]
    made = room([5000] * 3, rake=game_pb2.RakeSchedule(id="x", version=1, band="x", tiers=tiers))
    made.start()
    made.act(1, FOLD)
    made.act(2, RAISE, 1000)
    made.act(3, CALL)
    made.act(2, BET, 3000)
    made.act(3, FOLD)
    assert made.of("uncalled_returned")[-1].amount == 3000
    assert made.of("hand_ended")[-1].rake == 100


# Split offers


def after_the_draw(stacks: list[int], **rules: Any) -> Room:
    """32-card draw after the draw; seat 1, the button, is left of the big blind and acts first."""
    made = room(stacks, "draw32", NO_LIMIT, rules=game_pb2.TableRules(**rules), button=1)
    made.start()
    while made.asked().kind != table_pb2.PROMPT_KIND_DRAW:
        offered = made.asked().offer.actions
        made.act(made.asked().seat, CALL if CALL in offered else CHECK)
    while made.asked().kind == table_pb2.PROMPT_KIND_DRAW:
        made.act(made.asked().seat, DISCARD)
    return made


def test_P2_nobody_is_asked_to_show_what_was_split() -> None:
    made = room([5000] * 3, "draw32", button=1)
    for seat in (1, 2, 3):
        made.do(cmd.SetPreferences(f"p{seat}", auto_muck=False))
    made.start()
    for seat, kind in ((1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    for seat in (2, 3, 1):
        made.act(seat, DISCARD)
    made.act(1, OFFER_SPLIT)
    made.act(2, ACCEPT_SPLIT)
    events = made.act(3, ACCEPT_SPLIT)
    assert kinds(events)[-1] == "hand_ended"
    assert not {"hand_shown", "hand_mucked"} & set(kinds(events))


def test_P3_three_levels_an_all_in_refusal_in_the_middle_leaves_the_top_pot_split() -> None:
    made = room([5000, 5000, 300, 60], "draw32", button=4, seats=4)
    made.start()
    while made.asked().kind != table_pb2.PROMPT_KIND_DRAW:
        seat, offered = made.asked().seat, made.asked().offer.actions
        if seat == 3 and ALL_IN in offered:
            made.act(3, ALL_IN)
        elif seat == 3 and RAISE in offered:
            made.act(3, RAISE, 300)
        else:
            made.act(seat, CALL if CALL in offered else CHECK)
    while made.asked().kind == table_pb2.PROMPT_KIND_DRAW:
        made.act(made.asked().seat, DISCARD)
    first = made.asked().seat
    made.act(first, BET, 200)
    other = made.asked().seat
    made.act(other, CALL)
    assert [len(pot.eligible) for pot in made.of("pot_awarded")] == [4, 3, 2]


def test_P1_G12_who_missed_the_draw_clock_may_answer_an_offer_but_make_none() -> None:
    """G12: check, call, fold and split answers remain."""
    made = room([5000] * 3, "draw32", rules=game_pb2.TableRules(stand_pat_penalty=True), button=1)
    made.start()
    for seat, kind in ((1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    made.act(2, DISCARD)
    made.act(3, DISCARD)
    made.do(cmd.Timeout(made.asked().turn))
    assert set(made.asked().offer.actions) == {FOLD, CHECK}
    with pytest.raises(Rejected, match="ACTION_NOT_OFFERED"):
        made.act(1, OFFER_SPLIT)
    made = room([5000] * 3, "draw32", rules=game_pb2.TableRules(stand_pat_penalty=True), button=1)
    made.start()
    for seat, kind in ((1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    made.do(cmd.Timeout(made.asked().turn))
    made.act(3, DISCARD)
    made.act(1, DISCARD)
    made.act(1, OFFER_SPLIT)
    assert ACCEPT_SPLIT in made.asked().offer.actions


def test_P1_an_offerer_who_leaves_takes_the_offer_along() -> None:
    made = after_the_draw([5000] * 3)
    made.act(1, OFFER_SPLIT)
    made.do(cmd.LeaveSeat("p1"))
    assert made.asked().seat == 2
    assert set(made.asked().offer.actions) >= {CHECK, BET}
    assert ACCEPT_SPLIT not in made.asked().offer.actions


def test_G14_mucking_by_silence_is_no_reason_to_sit_out() -> None:
    made = room([5000] * 2)
    made.do(cmd.SetPreferences("p1", auto_muck=False))
    made.start("As2cAd3d 4h7h8s9cTd")
    while made.asked().kind != table_pb2.PROMPT_KIND_SHOW:
        offered = made.asked().offer.actions
        made.act(made.asked().seat, CHECK if CHECK in offered else CALL)
    made.do(cmd.Timeout(made.asked().turn))
    assert made.of("hand_mucked")
    assert not made.of("player_sat_out")
