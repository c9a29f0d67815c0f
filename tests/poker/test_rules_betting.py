"""Betting rules by example (section 4 of the house rules, G14, G15)."""

from __future__ import annotations

import pytest
from tests.poker import playing
from tests.poker.playing import ALL_IN, BET, CALL, CHECK, FIXED, FOLD, HALF_POT, MUCK, RAISE, SHOW, SPREAD, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Rejected
from relance.poker import commands as cmd


def bounds(made: playing.Room) -> tuple[int, int, int]:
    """Call, least and largest raise of the player asked."""
    offer = made.asked().offer
    return offer.call, offer.min_raise_to, offer.max_raise_to


def test_B2_bet_10_is_raised_by_at_least_10() -> None:
    made = room([1000] * 3, stakes=game_pb2.Stakes(blinds=[5, 10]))
    made.start()
    for seat, kind in ((1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    made.act(2, BET, 10)
    assert bounds(made) == (10, 20, 990)


def test_B3_fixed_limit_high_bets_on_turn_and_river() -> None:
    made = room([10000] * 2, limit=FIXED, stakes=game_pb2.Stakes(blinds=[250, 500], high_limit=1000))
    made.start()
    sizes = []
    made.act(1, CALL)
    made.act(2, CHECK)
    while made.table.hand is not None:
        sizes.append(made.asked().offer.raise_sizes)
        made.act(made.asked().seat, CHECK)
    assert sizes == [(500,)] * 2 + [(1000,)] * 4


def test_B3_big_blind_is_the_first_of_four_bets() -> None:
    made = room([10000] * 3, limit=FIXED, stakes=game_pb2.Stakes(blinds=[250, 500], high_limit=1000))
    made.start()
    for seat, to in ((1, 1000), (2, 1500), (3, 2000)):
        made.act(seat, RAISE, to)
    assert bounds(made) == (1000, 0, 0)
    with pytest.raises(Rejected, match="RAISE_NOT_ALLOWED"):
        made.act(1, RAISE, 2500)


@pytest.mark.parametrize(("choice", "second"), [("low_high", 200), ("low_low", 100)])
def test_B3_two_round_draw_sizes(choice: str, second: int) -> None:
    made = room([5000] * 3, "draw5", FIXED, rules=game_pb2.TableRules(two_round_draw=choice))
    made.start()
    for seat, kind in ((1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    for seat in (2, 3, 1):
        made.act(seat, playing.DISCARD)
    assert made.asked().offer.raise_sizes == (second,)


def spread_room(rule: str = "at_least") -> playing.Room:
    stakes = game_pb2.Stakes(blinds=[50, 100], spread_max=[300, 300, 400, 500])
    made = room([5000] * 3, limit=SPREAD, stakes=stakes, rules=game_pb2.TableRules(spread_raise=rule))
    made.start()
    return made


def test_B4_spread_raises_from_the_last_to_the_round_maximum() -> None:
    made = spread_room()
    assert bounds(made) == (100, 200, 400)
    made.act(1, RAISE, 350)
    assert bounds(made)[1:] == (600, 650)
    made.act(2, CALL)
    made.act(3, CALL)
    assert bounds(made) == (0, 100, 300)


def test_B4_spread_raise_equal_to_the_last() -> None:
    made = spread_room("equal")
    made.act(1, RAISE, 350)
    assert bounds(made)[1:] == (600, 600)


def test_B5_no_limit_bets_from_the_big_blind_to_the_stack() -> None:
    made = room([1000, 800])
    made.start()
    made.act(1, CALL)
    made.act(2, CHECK)
    assert bounds(made) == (0, 100, 700)


def test_B6_a_dead_blind_counts_in_the_pot() -> None:
    """B6, B10: the pot after calling, dead small blinds included."""
    made = room([5000] * 4, limit=playing.POT)
    made.table.last_dealt = 4
    for seat in made.table.seats.values():
        seat.entry, seat.missed_small = False, seat.number == 4
    made.start()
    assert made.table.pot() == 200
    assert bounds(made) == (100, 200, 400)


def test_B7_half_pot_is_never_less_than_the_least_raise() -> None:
    made = room([5000] * 2, limit=HALF_POT)
    made.start()
    assert bounds(made) == (50, 200, 200)


def test_B8_all_ins_that_sum_to_a_full_raise_reopen() -> None:
    made = room([20000, 1900, 2800, 20000], stakes=game_pb2.Stakes(blinds=[100, 200]), button=1)
    made.start()
    made.act(4, RAISE, 1000)
    made.act(1, CALL)
    made.act(2, ALL_IN)
    made.act(3, ALL_IN)
    assert bounds(made) == (1800, 3700, 20000)
    made.act(4, CALL)
    assert bounds(made)[1] == 3700


def test_B8_a_short_all_in_alone_does_not_reopen() -> None:
    made = room([20000, 1500, 20000], stakes=game_pb2.Stakes(blinds=[100, 200]), button=1)
    made.start()
    made.act(1, RAISE, 1000)
    made.act(2, ALL_IN)
    made.act(3, CALL)
    assert bounds(made) == (500, 0, 0)


def test_B8_fixed_who_has_acted_may_not_raise_until_someone_completes() -> None:
    made = room([20000, 20000, 20000, 2300], limit=FIXED, stakes=game_pb2.Stakes(blinds=[500, 1000]), button=4)
    made.start()
    made.act(3, CALL)
    made.act(4, CALL)
    made.act(1, CALL)
    made.act(2, CHECK)
    made.act(1, BET, 1000)
    made.act(2, CALL)
    made.act(3, CALL)
    made.act(4, ALL_IN)
    assert bounds(made) == (300, 0, 0)


def test_B9_ante_then_blind_then_dead_small_blind() -> None:
    made = room([5000, 60, 110, 5000], stakes=game_pb2.Stakes(blinds=[50, 100], ante=25), button=1)
    made.start()
    assert [(ante.seat, ante.amount) for ante in made.of("ante_posted")] == [(2, 25), (3, 25), (4, 25), (1, 25)]
    assert [(blind.seat, blind.amount, blind.all_in) for blind in made.of("blind_posted")] == [
        (2, 35, True),
        (3, 85, True),
    ]
    assert bounds(made)[0] == 100


def test_B10_dead_small_blind_goes_to_the_main_pot() -> None:
    """10 + 10 + 10 + dead 5: one pot of 35."""
    made = room([1000] * 3, stakes=game_pb2.Stakes(blinds=[5, 10]), button=1)
    made.table.last_dealt = 3
    for seat in made.table.seats.values():
        seat.entry, seat.missed_small = False, seat.number == 1
    made.start("AsKsQs AhKhQh 2c2d7h8h9d")
    made.act(1, CALL)
    made.passive()
    assert [(pot.amount, list(pot.eligible)) for pot in made.of("pot_awarded")] == [(35, [1, 2, 3])]


def test_B11_folded_bets_count_for_what_is_uncalled() -> None:
    made = room([5000] * 3)
    made.start()
    made.act(1, RAISE, 600)
    made.act(2, RAISE, 1500)
    made.act(3, FOLD)
    made.act(1, FOLD)
    assert [(back.seat, back.amount) for back in made.of("uncalled_returned")] == [(2, 900)]
    assert made.stacks() == {1: 4400, 2: 5700, 3: 4900}


@pytest.mark.parametrize(("unit", "stacks"), [(1, {1: 1012, 3: 1013}), (25, {1: 1000, 3: 1025})])
def test_B13_odd_units_left_of_the_button(unit: int, stacks: dict[int, int]) -> None:
    rules = game_pb2.TableRules(odd_chip_unit=unit)
    made = room([1000] * 3, rules=rules, stakes=game_pb2.Stakes(blinds=[25, 50]), button=1)
    made.start("2c9d9h 3c8d8h AsAdKsKdQh")
    made.act(1, CALL)
    made.act(2, FOLD)
    made.passive()
    assert {seat: made.stacks()[seat] for seat in stacks} == stacks


def test_B14_closed_poker_bets_between_min_and_max_bet() -> None:
    stakes = game_pb2.Stakes(ante=10, min_bet=50, max_bet=200)
    made = room([5000] * 3, "closed", stakes=stakes)
    made.start()
    assert bounds(made) == (0, 50, 200)
    made.act(2, BET, 100)
    assert bounds(made) == (100, 200, 300)


def test_B14_opening_exactly_the_least_bet() -> None:
    stakes = game_pb2.Stakes(ante=10, min_bet=50)
    made = room([5000] * 3, "closed", stakes=stakes, rules=game_pb2.TableRules(opening="exact_min"))
    made.start()
    assert bounds(made) == (0, 50, 50)
    made.act(2, BET, 50)
    assert bounds(made) == (50, 100, 4990)


def test_B15_no_limit_stud_without_blinds_uses_the_low_limit() -> None:
    made = room([5000] * 3, "stud5", stakes=game_pb2.Stakes(ante=10, bring_in=20, low_limit=100))
    made.start()
    made.act(made.asked().seat, playing.BRING_IN)
    assert bounds(made)[1] == 100


def test_B16_folding_is_offered_when_checking_is_free() -> None:
    made = room([1000] * 2)
    made.start()
    made.act(1, CALL)
    assert set(made.asked().offer.actions) >= {FOLD, CHECK}
    made.act(2, FOLD)
    assert made.stacks() == {1: 1100, 2: 900}


def test_B16_no_raise_against_all_in_players_only() -> None:
    made = room([5000, 300, 5000])
    made.start()
    made.act(1, FOLD)
    made.act(2, ALL_IN)
    assert bounds(made) == (200, 0, 0)


def test_B16_no_option_against_all_in_players() -> None:
    """B16, G15: the big blind is not asked when everybody else is all-in for less."""
    made = room([100, 60], button=2)
    made.start()
    made.act(2, ALL_IN)
    assert made.table.hand is None


def test_G15_big_blind_may_raise_an_unraised_pot() -> None:
    made = room([1000] * 3)
    made.start()
    made.act(1, CALL)
    made.act(2, CALL)
    assert bounds(made) == (0, 200, 1000)


def shown(made: playing.Room) -> list[int]:
    """Seats that showed, in order."""
    return [event.seat for event in made.of("hand_shown")]


def test_G14_last_aggressor_of_the_river_shows_first_and_beaten_hands_are_mucked() -> None:
    made = room([5000] * 3)
    made.start("KsAs2c KdAd7d 3h4h8s9cTd")
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CHECK)
    for _ in range(6):
        made.act(made.asked().seat, CHECK)
    made.act(2, CHECK)
    made.act(3, CHECK)
    made.act(1, BET, 100)
    made.act(2, CALL)
    made.act(3, CALL)
    assert shown(made) == [1, 3]
    assert [event.seat for event in made.of("hand_mucked")] == [2]


def test_G14_without_a_bet_on_the_river_the_first_left_of_the_button_shows() -> None:
    made = room([5000] * 3)
    made.start("KsAs2c KdAd7d 3h4h8s9cTd")
    made.act(1, RAISE, 300)
    made.act(2, CALL)
    made.act(3, CALL)
    made.passive()
    assert shown(made) == [2, 3]


def test_G14_hands_are_turned_up_when_no_more_betting_is_possible() -> None:
    made = room([1000] * 2)
    made.start()
    made.act(1, ALL_IN)
    events = [event.WhichOneof("payload") for event in made.act(2, CALL)]
    assert events.index("hand_shown") < events.index("board_dealt")


def test_G14_a_beaten_hand_is_mucked_or_shown_as_its_owner_says() -> None:
    for answer, kind in ((SHOW, "hand_shown"), (MUCK, "hand_mucked")):
        made = room([5000] * 3)
        made.do(cmd.SetPreferences("p1", auto_muck=False))
        made.start("KsAs2c KdAd7d 3h4h8s9cTd")
        made.act(1, CALL)
        made.act(2, CALL)
        made.act(3, CHECK)
        for _ in range(9):
            made.act(made.asked().seat, CHECK)
        asked = made.asked()
        assert (asked.seat, asked.kind) == (1, table_pb2.PROMPT_KIND_SHOW)
        events = made.act(1, answer)
        assert events[0].WhichOneof("payload") == kind
        assert events[-1].WhichOneof("payload") == "hand_ended"


def test_F6_who_throws_the_cards_away_gives_up_every_claim() -> None:
    made = room([5000] * 2, rules=game_pb2.TableRules(showdown="all"))
    made.do(cmd.SetPreferences("p2", auto_muck=False))
    made.start("As2c Ad7d 3h4h8s9cTd")
    made.act(1, CALL)
    made.act(2, CHECK)
    for _ in range(6):
        made.act(made.asked().seat, CHECK)
    made.act(2, MUCK)
    folded = made.of("folded")[-1]
    assert (folded.seat, folded.reason) == (2, pb.FOLD_REASON_THROWN_AWAY)
    assert made.stacks() == {1: 5100, 2: 4900}


def test_K1_no_flop_no_drop_and_play_money_is_never_raked() -> None:
    tier = game_pb2.RakeTier(min_players=2, max_players=10, step=20, rake_per_step=1)
    rake = game_pb2.RakeSchedule(id="test", version=3, band="all", tiers=[tier])
    made = room([1000] * 2, rake=rake)
    made.start()
    made.act(1, FOLD)
    assert made.of("hand_ended")[-1].rake == 0
    made.start()
    made.passive()
    assert made.of("hand_ended")[-1].rake == 10
    assert made.of("hand_started")[-1].rake_schedule == "test/all@3"
    config = playing.config(seats=2, currency=game_pb2.CURRENCY_CREDIT)
    credits_room = playing.Room(config, rake)
    for seat in (1, 2):
        credits_room.sit(seat, 1000)
    credits_room.start()
    credits_room.passive()
    assert credits_room.of("hand_ended")[-1].rake == 0


def test_K7_a_schedule_is_fixed_when_the_hand_starts_and_is_in_the_log() -> None:
    tier = game_pb2.RakeTier(min_players=2, max_players=10, step=20, rake_per_step=1)
    rake = game_pb2.RakeSchedule(id="test", version=4, band="all", tiers=[tier])
    made = room([1000] * 2)
    made.start("", rake=rake)
    assert made.of("hand_started")[-1].new_rake == rake
    made.passive()
    ended = made.of("hand_ended")[-1]
    assert (ended.rake, ended.rake_schedule) == (10, "test/all@4")
    assert made.table.rake_taken == 10


def test_K2_rake_is_taken_after_uncalled_chips_went_back_by_players_dealt_in() -> None:
    """K2: whoever folded before the flop counts; whole steps only."""
    tiers = [
        game_pb2.RakeTier(min_players=2, max_players=2, step=100, rake_per_step=1),
        game_pb2.RakeTier(min_players=3, max_players=10, step=100, rake_per_step=5),
    ]
    made = room([5000] * 3, rake=game_pb2.RakeSchedule(id="test", version=1, band="all", tiers=tiers))
    made.start()
    made.act(1, FOLD)
    made.act(2, CALL)
    made.act(3, CHECK)
    made.act(2, BET, 1000)
    made.act(3, FOLD)
    ended = made.of("hand_ended")[-1]
    assert (ended.pot, ended.rake) == (200, 10)
    assert made.stacks() == {1: 5000, 2: 5090, 3: 4900}
