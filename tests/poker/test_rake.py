"""Rake (K1 currencies, K2-K7): the tables of the houses and how a figure is borne by the pots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.houses import load
from relance.poker.rake import check_tiers, no_rake, quote, rake_for, schedule_for
from relance.poker.rejected import Rejected

FIXED, SPREAD, POT = game_pb2.LIMIT_FIXED, game_pb2.LIMIT_SPREAD, game_pb2.LIMIT_POT
HALF_POT, NO_LIMIT = game_pb2.LIMIT_HALF_POT, game_pb2.LIMIT_NO_LIMIT
EUR, CREDIT = game_pb2.CURRENCY_EUR, game_pb2.CURRENCY_CREDIT


def boulevard(limit: game_pb2.Limit.ValueType, low_limit: int) -> game_pb2.RakeSchedule:
    return schedule_for(load("boulevard"), limit, low_limit, EUR)


def riviera(limit: game_pb2.Limit.ValueType, low_limit: int) -> game_pb2.RakeSchedule:
    return schedule_for(load("riviera"), limit, low_limit, EUR)


KINDS = {
    "nlpl": boulevard(NO_LIMIT, 100),
    "fl_micro": boulevard(FIXED, 2),
    "fl_1_2": boulevard(FIXED, 100),
    "fl_2_4": boulevard(FIXED, 200),
}

# Case RAKE-06 and the checks of K4: kind, players dealt in, pot, rake.
K4 = """
nlpl 2 19 0, nlpl 2 20 1, nlpl 2 399 19, nlpl 2 400 20, nlpl 2 499 20, nlpl 2 500 25, nlpl 2 1499 70, nlpl 2 1500 75,
nlpl 2 10000000 75, nlpl 3 3999 195, nlpl 3 4000 200, nlpl 4 4100 200, nlpl 5 4100 205, nlpl 5 5999 295,
nlpl 10 6000 300, nlpl 10 1000000 300,
fl_micro 2 199 9, fl_micro 3 200 10, fl_micro 2 299 10, fl_micro 3 1499 70, fl_micro 3 1500 75, fl_micro 4 1500 75,
fl_micro 4 1999 95, fl_micro 10 2000 100,
fl_1_2 2 199 9, fl_1_2 2 200 0, fl_1_2 2 499 0, fl_1_2 2 500 25, fl_1_2 2 999 25, fl_1_2 2 1000 50, fl_1_2 3 1500 75,
fl_1_2 4 4000 200,
fl_2_4 2 999 0, fl_2_4 2 1000 50, fl_2_4 2 2000 75, fl_2_4 3 2000 75, fl_2_4 4 3999 150, fl_2_4 4 4000 200,
fl_2_4 10 999999 200
"""


@pytest.mark.parametrize("row", [row.strip() for row in K4.split(",")])
def test_RAKE_06_K4_boulevard_rakes_whole_steps_with_caps_by_players_dealt_in(row: str) -> None:
    kind, players, pot, rake = row.split()
    assert rake_for(KINDS[kind], [int(pot)], int(players)) == (int(rake), [int(rake)])


def test_RAKE_09_K3_one_rake_on_the_total_is_borne_pot_by_pot() -> None:
    assert rake_for(KINDS["nlpl"], [303, 1000], 3) == (65, [15, 50])


def test_K3_small_pots_of_the_schedule_are_borne_by_the_sum_so_far() -> None:
    assert rake_for(KINDS["fl_1_2"], [199, 101], 3) == (0, [0, 0])
    assert rake_for(KINDS["fl_1_2"], [199, 301], 3) == (25, [9, 16])


def test_K3_a_side_pot_never_bears_more_than_it_holds() -> None:
    assert rake_for(KINDS["nlpl"], [499, 2], 3) == (25, [23, 2])
    assert rake_for(KINDS["fl_2_4"], [998, 1, 1], 3) == (50, [48, 1, 1])


@pytest.mark.parametrize(
    ("limit", "low", "band"),
    [
        (FIXED, 1, "fixed_2"),
        (FIXED, 2, "fixed_2"),
        (FIXED, 99, "fixed_2"),
        (SPREAD, 100, "fixed_100"),
        (FIXED, 199, "fixed_100"),
        (FIXED, 200, "fixed_200"),
        (SPREAD, 10**9, "fixed_200"),
        (NO_LIMIT, 1, "no_limit"),
        (POT, 1, "no_limit"),
        (HALF_POT, 10**9, "no_limit"),
    ],
)
def test_K7_the_band_is_the_last_whose_lowest_limit_is_not_above(
    limit: game_pb2.Limit.ValueType, low: int, band: str
) -> None:
    assert boulevard(limit, low).band == band


@pytest.mark.parametrize(
    ("limit", "low", "players", "pot", "rake"),
    [
        (FIXED, 2, 2, 99, 0),
        (FIXED, 2, 2, 100, 5),
        (FIXED, 25, 10, 1999, 95),
        (FIXED, 25, 10, 5000, 100),
        (FIXED, 50, 2, 499, 0),
        (FIXED, 50, 2, 500, 25),
        (FIXED, 100, 10, 2000, 100),
        (FIXED, 100, 10, 9999, 100),
        (FIXED, 200, 2, 999, 0),
        (FIXED, 200, 3, 1000, 25),
        (FIXED, 200, 3, 9999, 100),
        (FIXED, 200, 4, 1000, 50),
        (FIXED, 200, 5, 9999, 200),
        (FIXED, 200, 6, 9999, 300),
        (POT, 50, 3, 9999, 100),
        (NO_LIMIT, 50, 4, 9999, 200),
        (NO_LIMIT, 50, 6, 5999, 295),
        (NO_LIMIT, 50, 10, 10**9, 300),
    ],
)
def test_K5_riviera_rakes_by_stake_and_players(
    limit: game_pb2.Limit.ValueType, low: int, players: int, pot: int, rake: int
) -> None:
    assert rake_for(riviera(limit, low), [pot], players)[0] == rake


@given(st.sampled_from([(FIXED, 2), (FIXED, 50), (FIXED, 200), (POT, 10)]), st.integers(2, 10), st.integers(0, 10**6))
def test_K5_riviera_never_takes_more_than_300_nor_5_percent(
    row: tuple[game_pb2.Limit.ValueType, int], players: int, pot: int
) -> None:
    rake, _ = rake_for(riviera(*row), [pot], players)
    assert rake <= 300
    assert rake * 100 <= pot * 5


def test_K6_comptoir_takes_a_part_of_the_pot_rounded_down_with_an_optional_cap() -> None:
    comptoir = load("comptoir")
    assert rake_for(schedule_for(comptoir, FIXED, 100, EUR), [999], 2) == (49, [49])
    assert rake_for(schedule_for(comptoir, FIXED, 100, EUR, basis_points=333), [1001], 9)[0] == 33
    capped = schedule_for(comptoir, FIXED, 100, EUR, basis_points=500, cap=100)
    assert rake_for(capped, [1000, 9000], 9) == (100, [50, 50])
    assert schedule_for(comptoir, FIXED, 100, EUR, basis_points=0) == no_rake()


def test_K6_salon_and_club_have_none() -> None:
    assert schedule_for(load("salon"), NO_LIMIT, 100, EUR) == no_rake()
    assert schedule_for(load("club"), NO_LIMIT, 100, CREDIT) == no_rake()


@pytest.mark.parametrize("house", ["boulevard", "comptoir"])
def test_K1_play_money_is_never_raked(house: str) -> None:
    assert rake_for(schedule_for(load(house), NO_LIMIT, 100, CREDIT), [10**6], 6) == (0, [0])


def test_a_limit_without_a_band_has_no_schedule() -> None:
    with pytest.raises(Rejected) as refusal:
        riviera(SPREAD, 100)
    assert refusal.value.reason == reason_pb2.REASON_SCHEDULE_NOT_FOUND


SCHEDULES = st.sampled_from([*KINDS.values(), riviera(FIXED, 200), schedule_for(load("comptoir"), FIXED, 100, EUR)])


@given(SCHEDULES, st.lists(st.integers(0, 2_000), min_size=1, max_size=6), st.integers(2, 10))
def test_K3_the_parts_sum_to_the_rake_of_the_total_and_no_pot_goes_below_zero(
    schedule: game_pb2.RakeSchedule, pots: list[int], players: int
) -> None:
    whole, by_pot = rake_for(schedule, pots, players)
    assert whole == rake_for(schedule, [sum(pots)], players)[0] == sum(by_pot)
    assert all(0 <= part <= pot for part, pot in zip(by_pot, pots, strict=True))
    if len(pots) > 1 and by_pot[0] < rake_for(schedule, pots[:1], players)[0]:
        assert by_pot[0] == whole


@given(SCHEDULES, st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.integers(2, 10))
def test_a_quote_names_the_rake_of_every_pot(schedule: game_pb2.RakeSchedule, pots: list[int], players: int) -> None:
    _, by_pot = rake_for(schedule, pots, players)
    steps = quote(schedule, pots, players)
    assert f"{players} players were dealt in" in steps[0]
    assert f"The main pot of {pots[0]} bears {by_pot[0]};" in " ".join(steps)
    assert all(step.endswith(".") for step in steps)


def test_a_quote_explains_steps_caps_and_the_absence_of_rake() -> None:
    assert quote(KINDS["nlpl"], [303, 1000], 3) == [
        "Schedule boulevard version 1, band no_limit: 3 players were dealt in.",
        "The pots hold 1303 after uncalled chips went back.",
        "A pot pays 5 for each whole 100: 13 whole steps make 65.",
        "The cap for 3 players is 200: it is not passed.",
        "The main pot of 303 bears 15; the schedule on the pots up to it gives 15.",
        "Side pot 1 of 1000 bears 50; the schedule on the pots up to it gives 65.",
    ]
    assert "the rake is 75" in " ".join(quote(KINDS["nlpl"], [5000], 2))
    assert "5.00% of 999, rounded down, is 49." in quote(schedule_for(load("comptoir"), FIXED, 1, EUR), [999], 2)
    assert quote(no_rake(), [999], 2) == ["Schedule none, band none, has no rake for 2 players dealt in: 0."]


@pytest.mark.parametrize(
    ("tiers", "field"),
    [
        ([{"min_players": 2, "max_players": 9, "step": 100}], "tiers"),
        ([{"min_players": 3, "max_players": 10, "step": 100}], "tiers"),
        ([{"min_players": 2, "max_players": 2**31 - 1, "step": 100}], "tiers"),
        ([{"min_players": 2, "max_players": 5, "step": 1}, {"min_players": 5, "max_players": 10, "step": 1}], "tiers"),
        ([{"min_players": 2, "max_players": 10}], "tiers[0].step"),
        ([{"min_players": 2, "max_players": 10, "step": 100, "rake_per_step": 101}], "tiers[0].rake_per_step"),
        ([{"min_players": 2, "max_players": 10, "step": 100, "cap": -1}], "tiers[0].cap"),
        ([{"min_players": 2, "max_players": 10, "step": 100, "small_pot_below": 100}], "tiers[0].small_step"),
        (
            [{"min_players": 2, "max_players": 10, "step": 9, "small_pot_below": 9, "small_step": 2, "small_rake": 3}],
            "tiers[0].small_rake",
        ),
        ([{"min_players": 2, "max_players": 10, "basis_points": 10_001}], "tiers[0].basis_points"),
        ([{"min_players": 2, "max_players": 10, "basis_points": 500, "step": 100}], "tiers[0].basis_points"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_with_field_and_what_is_allowed(
    tiers: list[dict[str, int]], field: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        check_tiers([game_pb2.RakeTier(**tier) for tier in tiers])
    assert refusal.value.reason == reason_pb2.REASON_FIELD_INVALID
    assert refusal.value.metadata["field"] == field
    assert refusal.value.metadata["allowed"]


def test_the_schedules_of_all_houses_pass_the_check() -> None:
    for schedule in (*KINDS.values(), riviera(FIXED, 2), riviera(FIXED, 50), riviera(FIXED, 200), riviera(POT, 2)):
        check_tiers(schedule.tiers)
    check_tiers([])
