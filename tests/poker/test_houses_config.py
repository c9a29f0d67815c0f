"""Opening a table from a house: what follows from little, and refusals that list what is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.table.v1 import table_pb2
from relance.poker.config import changed_rake, table_config
from relance.poker.games import GAMES, Forced
from relance.poker.houses import House, all_houses, load
from relance.poker.rejected import Rejected

LIMITS = {
    "fixed": game_pb2.LIMIT_FIXED,
    "spread": game_pb2.LIMIT_SPREAD,
    "pot": game_pb2.LIMIT_POT,
    "half_pot": game_pb2.LIMIT_HALF_POT,
    "no_limit": game_pb2.LIMIT_NO_LIMIT,
}


def request(
    house: str = "boulevard",
    game: str = "holdem",
    limit: str = "no_limit",
    *,
    blinds: tuple[int, ...] = (),
    spread_max: tuple[int, ...] = (),
    currency: game_pb2.Currency.ValueType = game_pb2.CURRENCY_EUR,
    choices: dict[str, str] | None = None,
    seats: int = 0,
    min_buy_in: int = 0,
    max_buy_in: int = 0,
    turbo: bool = False,
    display_name: str = "",
    decision_ms: int = 0,
    **stakes: int,
) -> table_pb2.OpenTableRequest:
    asked = table_pb2.OpenTableRequest(
        house=house,
        game=game,
        limit=LIMITS[limit],
        currency=currency,
        choices=choices or {},
        seats=seats,
        min_buy_in=min_buy_in,
        max_buy_in=max_buy_in,
        turbo=turbo,
        display_name=display_name,
        timers=game_pb2.Timers(decision_ms=decision_ms),
        stakes=game_pb2.Stakes(blinds=blinds, spread_max=spread_max),
    )
    for field, amount in stakes.items():
        setattr(asked.stakes, field, amount)
    return asked


def refusal(asked: table_pb2.OpenTableRequest) -> Rejected:
    with pytest.raises(Rejected) as caught:
        table_config(asked)
    return caught.value


@pytest.mark.parametrize("house", all_houses(), ids=lambda house: house.name)
def test_every_table_that_a_house_file_lists_can_be_opened(house: House) -> None:
    assert house.tables
    for asked in house.tables:
        assert table_config(asked).config.house == house.name


def test_every_game_and_limit_that_a_house_spreads_can_be_opened() -> None:
    for house in all_houses():
        for offer in house.games.values():
            for limit in offer.limits:
                asked = table_pb2.OpenTableRequest(
                    house=house.name, game=offer.game, limit=limit, currency=house.currencies[0]
                )
                match GAMES[offer.game].forced:
                    case Forced.BLINDS:
                        asked.stakes.blinds.extend((50, 100))
                    case Forced.BRING_IN:
                        asked.stakes.ante, asked.stakes.low_limit = 10, 100
                    case Forced.ANTES:
                        asked.min_buy_in = 200
                config, rake = table_config(asked)
                assert config.seats == offer.seats
                assert config.stakes.low_limit in {100, 10}
                assert rake.id in {house.name, "none"}


def test_a_table_follows_from_its_blinds() -> None:
    config, rake = table_config(request(blinds=(50, 100)))
    assert config.stakes == game_pb2.Stakes(blinds=(50, 100), low_limit=100)
    assert (config.seats, config.min_buy_in, config.max_buy_in) == (10, 2_000, 10_000)
    assert (config.timers.decision_ms, config.timers.draw_ms) == (20_000, 30_000)
    assert (config.display_name, config.turbo, config.micro) == ("Hold'em no limit €0.50/€1.00", False, False)
    assert (rake.id, rake.band) == ("boulevard", "no_limit")


def test_B3_fixed_limit_has_a_high_limit_of_twice_the_big_blind_and_no_largest_buy_in() -> None:
    config, rake = table_config(request(limit="fixed", blinds=(50, 100)))
    assert (config.stakes.low_limit, config.stakes.high_limit, config.max_buy_in) == (100, 200, 0)
    assert (config.display_name, rake.band) == ("Hold'em fixed €1.00/€2.00", "fixed_100")


@pytest.mark.parametrize(
    ("game", "ante", "largest"),
    [
        ("holdem", 0, [100, 100, 200, 300]),
        ("td27", 0, [100, 100, 200, 300]),
        ("stud7", 10, [100, 100, 200, 300, 300]),
        ("draw5", 0, [100, 300]),
    ],
)
def test_B4_the_largest_spread_bet_depends_on_the_round(game: str, ante: int, largest: list[int]) -> None:
    config, _ = table_config(request(game=game, limit="spread", low_limit=100, ante=ante))
    assert list(config.stakes.spread_max) == largest


def test_B4_a_table_may_set_its_own_largest_bets() -> None:
    config, _ = table_config(request(limit="spread", blinds=(1, 2), spread_max=(10,), bets_cap=4))
    assert list(config.stakes.spread_max) == [10]
    assert config.stakes.bets_cap == 4


@pytest.mark.parametrize(("low", "blinds"), [(1, [1, 1]), (2, [1, 2]), (5, [2, 5]), (100, [50, 100])])
def test_S1_the_small_blind_is_half_of_the_big_blind_rounded_down_at_least_one(low: int, blinds: list[int]) -> None:
    config, _ = table_config(request(low_limit=low))
    assert list(config.stakes.blinds) == blinds


@pytest.mark.parametrize(
    ("blinds", "ante", "low"), [((100,), 0, 100), ((25, 50, 100), 0, 100), ((), 100, 100), ((50, 100), 10, 100)]
)
def test_S3_one_two_more_blinds_an_ante_or_both(blinds: tuple[int, ...], ante: int, low: int) -> None:
    config, _ = table_config(request("salon", blinds=blinds, ante=ante))
    assert (tuple(config.stakes.blinds), config.stakes.ante, config.stakes.low_limit) == (blinds, ante, low)


def test_G9_the_bring_in_is_twice_the_ante_unless_set() -> None:
    config, _ = table_config(request(game="stud7", limit="fixed", ante=25, low_limit=200))
    assert config.stakes.bring_in == 50
    config, _ = table_config(request(game="stud7", limit="fixed", ante=25, low_limit=200, bring_in=199))
    assert config.stakes.bring_in == 199


def test_B15_without_blinds_the_low_limit_of_big_bet_games_is_the_ante() -> None:
    config, _ = table_config(request(game="stud7", limit="pot", ante=100, bring_in=50))
    assert config.stakes.low_limit == 100


def test_S7_the_ante_of_the_club_follows_from_the_cave_and_the_cave_from_the_ante() -> None:
    def club(*, min_buy_in: int = 0, ante: int = 0, ratio: str = "") -> table_pb2.OpenTableRequest:
        choices = {"ante_ratio": ratio} if ratio else {}
        credit = game_pb2.CURRENCY_CREDIT
        return request("club", "closed", currency=credit, min_buy_in=min_buy_in, ante=ante, choices=choices)

    config, rake = table_config(club(min_buy_in=200))
    assert (config.stakes.ante, config.stakes.min_bet, config.min_buy_in, config.max_buy_in) == (10, 10, 200, 0)
    assert rake.id == "none"
    config, _ = table_config(club(ante=7))
    assert (config.stakes.ante, config.min_buy_in) == (7, 140)
    assert table_config(club(min_buy_in=200, ratio="1/10")).config.stakes.ante == 20
    assert refusal(club(min_buy_in=200, ante=11)).metadata == {"field": "stakes.ante", "allowed": "0 or 10"}
    assert refusal(club(min_buy_in=200, ratio="1")).metadata["field"] == "choices.ante_ratio"


def test_T1_T2_T3_turbo_heads_up_and_micro_are_settings_of_a_table() -> None:
    config, _ = table_config(request("comptoir", blinds=(12, 25), seats=2, turbo=True))
    assert (config.timers.decision_ms, config.seats, config.turbo, config.micro) == (8_000, 2, True, True)
    config, _ = table_config(request("comptoir", blinds=(13, 26)))
    assert config.micro is False
    config, _ = table_config(request(blinds=(1, 2), currency=game_pb2.CURRENCY_CREDIT))
    assert config.micro is False


def test_C1_houses_know_no_time_bank_and_list_a_table_that_has_one() -> None:
    for house in all_houses():
        assert house.timers.time_bank_ms == 0
    for name in ("boulevard", "riviera", "comptoir"):
        banks = [table_config(each).config.timers.time_bank_ms for each in load(name).tables]
        assert banks == [0] * (len(banks) - 1) + [30_000]


def test_C1_a_request_may_set_its_own_clocks() -> None:
    config, _ = table_config(request(blinds=(1, 2), turbo=True, decision_ms=500))
    assert config.timers.decision_ms == 500
    assert refusal(request(blinds=(1, 2), decision_ms=-1)).metadata["field"] == "timers.decision_ms"


def test_choices_override_the_preset_by_their_names_in_the_rules() -> None:
    asked = {"after_crash": "keep_seats", "odd_chip_unit": "5", "burn_cards": "on", "disconnect_grace": "30"}
    rules = table_config(request(blinds=(50, 100), choices=asked)).config.rules
    assert rules.after_crash == "keep_seats"
    assert rules.odd_chip_unit == 5
    assert rules.burn_cards is True
    assert rules.disconnect_grace_seconds == 30


@pytest.mark.parametrize(
    ("name", "value", "field", "allowed"),
    [
        ("after_crash", "explode", "choices.after_crash", "cash_out, keep_seats"),
        ("odd_chip_unit", "0", "choices.odd_chip_unit", "1 to 10000"),
        ("odd_chip_unit", "five", "choices.odd_chip_unit", "1 to 10000"),
        ("burn_cards", "maybe", "choices.burn_cards", "on, off"),
        ("fourth_street_high", "pair", "choices", "ace_low_straight, after_crash"),
        ("rake_basis_points", "100", "choices", "ace_low_straight, after_crash"),
        ("no_such_choice", "1", "choices", "ace_low_straight, after_crash"),
    ],
)
def test_a_choice_that_is_not_allowed_is_refused_with_what_is(name: str, value: str, field: str, allowed: str) -> None:
    wrong = refusal(request(blinds=(50, 100), choices={name: value}))
    assert wrong.reason == reason_pb2.REASON_FIELD_INVALID
    assert wrong.metadata["field"] == field
    assert wrong.metadata["allowed"].startswith(allowed)


def test_S8_the_stack_of_a_leaver_is_remembered_for_real_money_only() -> None:
    assert table_config(request(blinds=(1, 2))).config.rules.rathole_minutes == 30
    play = request(blinds=(1, 2), currency=game_pb2.CURRENCY_CREDIT)
    assert table_config(play).config.rules.rathole_minutes == 0


def test_K6_the_percentage_is_a_setting_of_the_table() -> None:
    asked = {"rake_basis_points": "250", "rake_cap": "150"}
    tier = table_config(request("comptoir", blinds=(50, 100), choices=asked)).rake.tiers[0]
    assert (tier.basis_points, tier.cap) == (250, 150)
    assert table_config(request("salon", blinds=(50, 100))).rake.id == "none"
    wrong = refusal(request("comptoir", blinds=(50, 100), choices={"rake_basis_points": "501"}))
    assert wrong.metadata == {"field": "choices.rake_basis_points", "allowed": "0 to 500"}


def test_K6_the_percentage_of_a_running_table_changes_as_a_new_version() -> None:
    setup = table_config(request("comptoir", blinds=(50, 100)))
    change = table_pb2.ChangeSettingsRequest(rake_basis_points=250, rake_cap=150)
    new = changed_rake(setup.config, setup.rake, change)
    assert new is not None
    assert (new.id, new.band, new.version, new.tiers[0].basis_points, new.tiers[0].cap) == (
        "comptoir", "percentage", setup.rake.version + 1, 250, 150,
    )  # fmt: skip
    none = changed_rake(setup.config, new, table_pb2.ChangeSettingsRequest(rake_basis_points=0))
    assert none is not None
    assert not none.tiers
    capped = changed_rake(setup.config, new, table_pb2.ChangeSettingsRequest(rake_cap=0))
    assert capped is not None
    assert (capped.version, capped.tiers[0].basis_points, capped.tiers[0].cap) == (new.version + 1, 250, 0)
    assert changed_rake(setup.config, new, table_pb2.ChangeSettingsRequest(display_name="x")) is None
    salon = table_config(request("salon", blinds=(50, 100)))
    taken = changed_rake(salon.config, salon.rake, table_pb2.ChangeSettingsRequest(rake_basis_points=500))
    assert taken is not None
    assert (taken.id, taken.tiers[0].basis_points) == ("salon", 500)
    with pytest.raises(Rejected) as refused:
        changed_rake(setup.config, new, table_pb2.ChangeSettingsRequest(rake_basis_points=501))
    assert refused.value.metadata == {"field": "rake_basis_points", "allowed": "0 to 500"}
    bands = table_config(request(blinds=(1, 2)))
    with pytest.raises(Rejected, match="only in a house that takes a percentage"):
        changed_rake(bands.config, bands.rake, change)


NOT_SPREAD = [
    (request("casino"), "house", "boulevard, riviera, salon, club, comptoir"),
    (request("riviera", "stud7"), "game", "holdem, omaha, omaha8"),
    (request("riviera", "holdem", "half_pot"), "limit", "fixed, pot, no_limit"),
    (request("club", "closed", "fixed", currency=game_pb2.CURRENCY_CREDIT), "limit", "no_limit"),
    (request("club", "closed"), "currency", "credit"),
    (request("riviera", currency=game_pb2.CURRENCY_CREDIT), "currency", "eur"),
    (request(game="omaha", blinds=(1, 2), seats=10), "seats", "2 to 9"),
    (request(blinds=(1, 2), seats=1), "seats", "2 to 10"),
    (request(game="razz"), "game", "holdem, omaha, omaha8, soko, stud7, stud8, draw5, td27, draw32"),
]


@pytest.mark.parametrize(("asked", "field", "allowed"), NOT_SPREAD)
def test_what_a_house_does_not_spread_is_refused_with_the_list_of_what_it_does(
    asked: table_pb2.OpenTableRequest, field: str, allowed: str
) -> None:
    wrong = refusal(asked)
    assert wrong.reason == reason_pb2.REASON_NOT_SPREAD
    assert wrong.metadata == {"field": field, "allowed": allowed}


MISSING = [
    (table_pb2.OpenTableRequest(), "house"),
    (table_pb2.OpenTableRequest(house="club"), "game"),
    (table_pb2.OpenTableRequest(house="club", game="closed"), "limit"),
    (table_pb2.OpenTableRequest(house="club", game="closed", limit=game_pb2.LIMIT_NO_LIMIT), "currency"),
    (request(), "stakes.blinds"),
    (request(game="stud7", limit="fixed", ante=10), "stakes.low_limit"),
    (request(game="stud7", limit="fixed", low_limit=100), "stakes.bring_in"),
    (request("club", "closed", currency=game_pb2.CURRENCY_CREDIT), "min_buy_in"),
]


@pytest.mark.parametrize(("asked", "field"), MISSING)
def test_what_follows_from_nothing_is_asked_for(asked: table_pb2.OpenTableRequest, field: str) -> None:
    wrong = refusal(asked)
    assert wrong.reason == reason_pb2.REASON_FIELD_MISSING
    assert wrong.metadata == {"field": field}


INVALID = [
    (request(blinds=(49, 100)), "stakes.blinds", "50 to 100"),  # S1
    (request(blinds=(100, 50)), "stakes.blinds", "none smaller than the one before"),  # S3
    (request(blinds=(1, 2, 3), seats=2), "stakes.blinds", "at most 2"),
    (request(blinds=(50, 100), low_limit=200), "stakes.low_limit", "0 or 100"),
    (request(blinds=(50, 100), ante=101), "stakes.ante", "0 to 100"),
    (request(blinds=(50, 100), high_limit=200), "stakes.high_limit", "0"),
    (request(blinds=(50, 100), spread_max=(200,)), "stakes.spread_max", "none"),
    (request(blinds=(50, 100), bets_cap=3), "stakes.bets_cap", "0"),
    (request(blinds=(50, 100), bring_in=3), "stakes.bring_in", "0"),
    (request(blinds=(50, 100), min_bet=3), "stakes.min_bet", "0"),
    (request(limit="fixed", blinds=(50, 100), high_limit=99), "stakes.high_limit", "at least 100"),
    (request(limit="fixed", blinds=(50, 100), max_buy_in=9_000), "max_buy_in", "0"),  # B1
    (request(limit="spread", blinds=(50, 100), spread_max=(100,) * 5), "stakes.spread_max", "at most 4"),
    (request(game="stud7", limit="fixed", ante=100, low_limit=200), "stakes.bring_in", "1 to 199"),  # G9
    (request(game="stud7", limit="fixed", ante=10, low_limit=200, blinds=(1, 2)), "stakes.blinds", "none"),
]


@pytest.mark.parametrize(("asked", "field", "allowed"), INVALID)
def test_stakes_that_make_no_game_are_refused_with_what_would(
    asked: table_pb2.OpenTableRequest, field: str, allowed: str
) -> None:
    wrong = refusal(asked)
    assert wrong.reason == reason_pb2.REASON_FIELD_INVALID
    assert wrong.metadata == {"field": field, "allowed": allowed}


AMOUNTS = [
    (request(blinds=(-1, 100)), "stakes.blinds"),
    (request(blinds=(0, 100)), "stakes.blinds"),
    (request(blinds=(50, 10**12)), "stakes.blinds"),
    (request(blinds=(50, 100), ante=-5), "stakes.ante"),
    (request(blinds=(50, 100), min_buy_in=99), "min_buy_in"),
    (request(blinds=(50, 100), min_buy_in=10**15 + 1), "min_buy_in"),
    (request(blinds=(50, 100), max_buy_in=1_999), "max_buy_in"),
    (request(limit="spread", blinds=(50, 100), spread_max=(99,)), "stakes.spread_max"),
]


@pytest.mark.parametrize(("asked", "field"), AMOUNTS)
def test_amounts_out_of_bounds_are_refused_with_the_bounds(asked: table_pb2.OpenTableRequest, field: str) -> None:
    wrong = refusal(asked)
    assert wrong.reason == reason_pb2.REASON_INVALID_AMOUNT
    assert wrong.metadata["field"] == field
    assert int(wrong.metadata["min"]) <= int(wrong.metadata["max"])


def test_N1_the_name_of_a_table_is_checked_like_other_names() -> None:
    assert table_config(request(blinds=(1, 2), display_name="Été")).config.display_name == "Été"
    assert refusal(request(blinds=(1, 2), display_name="a\tb")).reason == reason_pb2.REASON_FIELD_INVALID
    assert refusal(request(blinds=(1, 2), display_name="x" * 65)).reason == reason_pb2.REASON_FIELD_TOO_LONG


AMOUNT = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 300)


@given(
    st.builds(
        table_pb2.OpenTableRequest,
        house=st.sampled_from(["boulevard", "club", "salon", "comptoir"]),
        game=st.sampled_from(["holdem", "stud7", "closed", "draw5", "x"]),
        limit=st.sampled_from(list(LIMITS.values())),
        currency=st.sampled_from([game_pb2.CURRENCY_EUR, game_pb2.CURRENCY_CREDIT]),
        seats=st.integers(-3, 12),
        min_buy_in=AMOUNT,
        max_buy_in=AMOUNT,
        stakes=st.builds(
            game_pb2.Stakes,
            blinds=st.lists(AMOUNT, max_size=4),
            ante=AMOUNT,
            bring_in=AMOUNT,
            low_limit=AMOUNT,
            high_limit=AMOUNT,
            min_bet=AMOUNT,
        ),
        choices=st.dictionaries(
            st.sampled_from(["ante_ratio", "odd_chip_unit", "rake_cap", "y"]), st.text(max_size=20)
        ),
    )
)
def test_any_request_makes_a_table_or_a_refusal(asked: table_pb2.OpenTableRequest) -> None:
    try:
        config, _ = table_config(asked)
    except Rejected:
        pass
    else:
        assert 0 < config.min_buy_in <= 10**15
        assert config.max_buy_in == 0 or config.min_buy_in <= config.max_buy_in <= 10**15
        assert config.stakes.low_limit > 0
        assert 2 <= config.seats <= 10
