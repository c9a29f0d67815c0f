"""Houses: the presets say what the house rules say, and a mistake in a file says file, key and what is allowed."""

from __future__ import annotations

from importlib import resources

import pytest

from relance.api.common.v1 import game_pb2
from relance.poker.games import GAMES
from relance.poker.houses import CHOICES, HOUSES, HouseFileError, all_houses, load, parse

ALL_LIMITS = ("fixed", "spread", "pot", "half_pot", "no_limit")

# D3 and the table of houses: game -> seats.
SEATS = {
    "boulevard": {
        "holdem": 10,
        "omaha": 9,
        "omaha8": 9,
        "soko": 8,
        "stud7": 8,
        "stud8": 8,
        "draw5": 6,
        "td27": 6,
        "draw32": 5,
    },
    "riviera": {"holdem": 10, "omaha": 10, "omaha8": 10},
    "salon": {"holdem": 10},
    "club": {"closed": 8},
    "comptoir": {"holdem": 10, "omaha": 10, "omaha8": 10, "stud7": 8, "stud5": 10},
}

LIMITS = {
    "boulevard": ALL_LIMITS,
    "riviera": ("fixed", "pot", "no_limit"),
    "salon": ALL_LIMITS,
    "club": ("no_limit",),
    "comptoir": ("fixed", "pot", "no_limit"),
}


def text_of(house: str) -> str:
    return resources.files("relance.poker.houses").joinpath(f"{house}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HOUSES)
def test_D3_each_house_spreads_its_games_with_its_seats(name: str) -> None:
    assert {offer.game: offer.seats for offer in load(name).games.values()} == SEATS[name]


@pytest.mark.parametrize("name", HOUSES)
def test_B3_to_B7_each_house_spreads_its_limits_in_all_its_games(name: str) -> None:
    allowed = tuple(game_pb2.Limit.Value(f"LIMIT_{limit.upper()}") for limit in LIMITS[name])
    assert {offer.limits for offer in load(name).games.values()} == {allowed}


def test_the_houses_together_spread_every_game_but_the_two_that_prove_the_rows() -> None:
    spread = {game for house in all_houses() for game in house.games}
    assert set(GAMES) - spread == {"razz", "badugi"}


@pytest.mark.parametrize("name", HOUSES)
def test_C1_G12_T1_clocks_of_the_houses(name: str) -> None:
    house = load(name)
    assert (house.timers.decision_ms, house.turbo_decision_ms, house.timers.draw_ms) == (20_000, 8_000, 30_000)


@pytest.mark.parametrize("name", HOUSES)
def test_V1_only_the_club_plays_for_credits_alone(name: str) -> None:
    assert (game_pb2.CURRENCY_EUR not in load(name).currencies) == (name == "club")


# The defaults that the rules name, and the houses that differ.
DEFAULTS: dict[str, bool | int | str] = {
    "odd_chip_unit": 1,  # B13
    "two_round_draw": "low_high",  # B3
    "spread_raise": "at_least",  # B4
    "opening": "from_min",  # B14
    "button_rule": "moving",  # S2
    "missed_big_blind": "live",  # S5
    "rathole_minutes": 30,  # S8
    "protections_per_24h": 2,  # C2
    "after_crash": "cash_out",  # C3
    "stand_pat_penalty": True,  # G12
    "check_after_exchange": False,  # G13
    "all_in_exchange": "choose",  # G14
    "ace_low_straight": True,  # H8
    "four_card_hands": False,  # H9
    "deck_policy": "table",  # D2
    "burn_cards": False,  # D5
    "exposed_card": "replaced",  # F1
    "early_turn_betting": "finish",  # F4
    "split_after_action": "ends",  # P1
    "disconnect_grace": 0,  # S6
    "showdown": "order",  # G14
}
DIFFERENT: dict[str, dict[str, bool | int | str]] = {
    "boulevard": {},
    "riviera": {},
    "salon": {"burn_cards": True, "showdown": "all"},
    "club": {"stand_pat_penalty": False, "protections_per_24h": -1, "disconnect_grace": 20, "rathole_minutes": 0},
    "comptoir": {},
}


@pytest.mark.parametrize("name", HOUSES)
def test_every_choice_has_the_default_that_the_rules_give_it(name: str) -> None:
    assert load(name).choices.items() >= {**DEFAULTS, **DIFFERENT[name]}.items()
    assert set(load(name).choices) == set(CHOICES)


def test_G11_high_bets_on_fourth_street_by_house_and_game() -> None:
    found = {
        (house.name, game): house.choices_for(game)["fourth_street_high"]
        for house in all_houses()
        for game in house.games
        if house.choices_for(game)["fourth_street_high"] != "never"
    }
    assert found == {("boulevard", "stud7"): "pair", ("comptoir", "stud7"): "always", ("comptoir", "stud5"): "always"}


def test_every_field_of_the_table_rules_is_a_choice() -> None:
    fields = {field.name for field in game_pb2.TableRules.DESCRIPTOR.fields}
    assert {choice.field or choice.name for choice in CHOICES.values()} == fields


def test_S7_the_ante_of_the_club_is_a_twentieth_of_the_cave() -> None:
    assert load("club").ante_ratio == (1, 20)
    assert [house.name for house in all_houses() if house.ante_ratio] == ["club"]


def test_there_is_no_other_house() -> None:
    with pytest.raises(KeyError, match="boulevard, riviera, salon, club, comptoir"):
        load("casino")


MISTAKES = [
    ("about = ", "about = 3 #", "about: 3 is not allowed; allowed: a text"),
    (
        'currencies = ["eur"]',
        'currencies = ["usd"]',
        "currencies: 'usd' is not allowed; allowed: each once of eur, credit",
    ),
    ('currencies = ["eur"]', "", "currencies: is missing; allowed: a list of eur, credit"),
    ('currencies = ["eur"]', 'currencies = ["eur", "eur"]', "currencies: 'eur' is not allowed"),
    ("holdem = { seats = 10", "holdem = { seats = 11", "games.holdem.seats: 11 is not allowed; allowed: 2 to 10"),
    ("holdem = { seats = 10", "holdem = { seats = true", "games.holdem.seats: True is not allowed; allowed: 2 to 10"),
    ("holdem = { seats = 10", "holdem = { chairs = 9", "games.holdem.seats: is missing; allowed: 2 to 10"),
    ("holdem = { seats = 10,", "holdem = { seats = 10, chairs = 9,", "games.holdem.chairs: no such key (9); allowed: "),
    ("omaha8 = {", "omaha9 = {", "games.omaha9: 'omaha9' is not allowed; allowed: holdem, omaha, omaha8, soko"),
    ('["fixed", "pot", "no_limit"] }', '["fixed", "pott"] }', "games.holdem.limits: 'pott' is not allowed; allowed: "),
    ("decision = 20000", "decision = 0", "timers.decision: 0 is not allowed; allowed: 1 to 3600000"),
    ("[choices]", "[choices]\nopening = 'any'", "choices.opening: 'any' is not allowed; allowed: from_min, exact_min"),
    ("[choices]", "[choices]\nburn_cards = 1", "choices.burn_cards: 1 is not allowed; allowed: true, false"),
    ("[choices]", "[choices]\nodd_chip_unit = 0", "choices.odd_chip_unit: 0 is not allowed; allowed: 1 to 10000"),
    ("[choices]", "[choices]\nfourth_street_high = 'pair'", "choices.fourth_street_high: 'fourth_street_high' is not"),
    ("[choices]", "[choices]\nburn = true", "choices.burn: 'burn' is not allowed; allowed: odd_chip_unit, "),
    ("pot      = { least = 20, most = 100 }", "pot = { least = 20, most = 10 }", "buy_in.pot.most: 10 is not allowed"),
    ('kind = "steps"', 'kind = "stairs"', "rake.kind: 'stairs' is not allowed; allowed: steps, percent, none"),
    ("step = 100, rake = 5", "step = 0, rake = 5", "rake.bands[0].tiers[0].step: 0 is not allowed; allowed: 1 to"),
    ("players = [2, 10]", "players = [2, 9]", "every number of players from 2 to 10 in exactly one tier"),
    ("players = [2, 10]", "players = [2]", "rake.bands[0].tiers[0].players: [2] is not allowed; allowed: a pair"),
    ("step = 100, rake = 5", "step = 100, rake = 101", "rake.bands[0].tiers[0].rake_per_step: "),
    ('limit = "fixed"\nblinds', 'limit = "spred"\nblinds', "tables[1].limit: 'spred' is not allowed; allowed: fixed"),
    ("blinds = [25, 50]", "blinds = [0, 50]", "tables[2].blinds: 0 is not allowed; allowed: 1 to"),
    ("blinds = [25, 50]", "blinds = 50", "tables[2].blinds: 50 is not allowed; allowed: a list of whole numbers"),
    ("micro_max = 25", "micro_max = -1", "micro_max: -1 is not allowed; allowed: 0 to"),
    ("micro_max = 25", "micro_max = 25\nante_ratio = '3/2'", "ante_ratio: '3/2' is not allowed; allowed: two whole"),
    ("micro_max = 25", "micro_max = 25\nflags = 1", "flags: no such key (1); allowed: about, "),
    ("[choices]", "[choices", "no TOML: "),
]


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_in_a_house_file_says_file_key_and_what_is_allowed(right: str, wrong: str, message: str) -> None:
    text = text_of("riviera")
    assert right in text
    with pytest.raises(HouseFileError) as error:
        parse("riviera.toml", text.replace(right, wrong, 1))
    assert str(error.value).startswith("riviera.toml: ")
    assert message in str(error.value)


def test_a_list_of_tables_must_be_one() -> None:
    with pytest.raises(HouseFileError, match=r"rake.bands: 3 is not allowed; allowed: a list of tables"):
        parse("x.toml", text_of("club").replace('kind = "none"', 'kind = "steps"\nversion = 1\nbands = 3'))
    with pytest.raises(HouseFileError, match=r"rake.bands: is missing; allowed: at least one band"):
        parse("x.toml", text_of("club").replace('kind = "none"', 'kind = "steps"\nversion = 1'))
    with pytest.raises(HouseFileError, match=r"rake: 3 is not allowed; allowed: a table"):
        parse("x.toml", "rake = 3\n" + text_of("club").replace('[rake] # K6\nkind = "none"', ""))
