"""House files: TOML, one a house, read once. `HouseFileError` says file, key and what is allowed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.poker.games import GAMES
from relance.poker.houses.choices import CHOICES, Value
from relance.poker.houses.house import (
    BLIND_STRUCTURES,
    CURRENCIES,
    LIMITS,
    Band,
    BuyIn,
    GameOffer,
    House,
    Percentage,
    Rake,
)
from relance.poker.houses.reading import HouseFileError, Section
from relance.poker.money import MAX_AMOUNT
from relance.poker.rake import ALL_BASIS_POINTS, MOST_PLAYERS, check_tiers
from relance.poker.rejected import Rejected

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import Limit, RakeTier

HOUSES = ("boulevard", "riviera", "salon", "club", "comptoir")
"""The names of the houses, in the order of the house rules."""

LONGEST_MS = 3_600_000


@cache
def load(name: str) -> House:
    """A house by its name. Raises KeyError for an unknown name, HouseFileError for a file that cannot be used."""
    if name not in HOUSES:
        raise KeyError(f"there is no house {name!r}; houses are {', '.join(HOUSES)}")
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse(f"{name}.toml", text)


def all_houses() -> tuple[House, ...]:
    """Every house. Raises HouseFileError."""
    return tuple(load(name) for name in HOUSES)


def parse(file: str, text: str) -> House:
    """The house of a file's text; its name is the file's. Raises HouseFileError."""
    try:
        page = Section(file, "", tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise HouseFileError(f"{file}: no TOML: {error}") from error
    name = file.removesuffix(".toml")
    currencies = page.words("currencies", tuple(CURRENCIES))
    games = _games(page.section("games"))
    timers, turbo = _timers(page.section("timers"))
    house = House(
        name=name,
        about=page.text("about"),
        currencies=tuple(CURRENCIES[word] for word in currencies),
        games=games,
        blind_structures=page.words("blind_structures", BLIND_STRUCTURES),
        buy_ins=_buy_ins(page.section("buy_in"), games),
        timers=timers,
        turbo_decision_ms=turbo,
        choices={
            **{choice.name: choice.default for choice in CHOICES.values()},
            **_choices(page.section("choices", optional=True)),
        },
        micro_max=page.whole("micro_max", 0, MAX_AMOUNT),
        ante_ratio=_ratio(page),
        rake=_rake(page.section("rake")),
        tables=tuple(_table(one, name, games, currencies) for one in page.sections("tables")),
    )
    page.close()
    return house


def _games(page: Section) -> Mapping[str, GameOffer]:
    games: dict[str, GameOffer] = {}
    for game in page.unread():
        if game not in GAMES:
            raise page.wrong(game, game, ", ".join(GAMES))
        row = page.section(game)
        games[game] = GameOffer(
            game=game,
            seats=row.whole("seats", 2, GAMES[game].seats),
            limits=tuple(LIMITS[word] for word in row.words("limits", tuple(LIMITS))),
            choices=_choices(row.section("choices", optional=True), game),
        )
        row.close()
    if not games:
        raise page.wrong("holdem", None, "at least one of " + ", ".join(GAMES))
    return games


def _choices(page: Section, game: str = "") -> dict[str, Value]:
    """Choices of a house, or those of one of its games."""
    values: dict[str, Value] = {}
    for name in page.unread():
        choice = CHOICES.get(name)
        if choice is None or (choice.games and game not in choice.games):
            here = (one.name for one in CHOICES.values() if not one.games or game in one.games)
            raise page.wrong(name, name, ", ".join(here))
        if isinstance(choice.default, bool):
            values[name] = page.switch(name)
        elif isinstance(choice.default, int):
            values[name] = page.whole(name, choice.least, choice.most)
        else:
            values[name] = page.word(name, choice.words)
    return values


def _buy_ins(page: Section, games: Mapping[str, GameOffer]) -> Mapping[Limit.ValueType, BuyIn]:
    spread = {limit for offer in games.values() for limit in offer.limits}
    buy_ins: dict[Limit.ValueType, BuyIn] = {}
    for word, limit in LIMITS.items():
        if limit not in spread:
            continue
        row = page.section(word)
        least = row.whole("least", 1, 100_000)
        buy_ins[limit] = BuyIn(least, row.whole("most", 0, 100_000, default=0))
        if buy_ins[limit].most and buy_ins[limit].most < least:
            raise row.wrong("most", buy_ins[limit].most, f"0 (no maximum), {least} to 100000")
        row.close()
    page.close()
    return buy_ins


def _timers(page: Section) -> tuple[game_pb2.Timers, int]:
    timers = game_pb2.Timers(
        decision_ms=page.whole("decision", 1, LONGEST_MS),
        draw_ms=page.whole("draw", 1, LONGEST_MS),
        time_bank_ms=page.whole("time_bank", 0, LONGEST_MS),
        between_hands_ms=page.whole("between_hands", 0, LONGEST_MS),
        reservation_ms=page.whole("reservation", 1, LONGEST_MS),
        answer_ms=page.whole("answer", 1, LONGEST_MS),
    )
    turbo = page.whole("turbo_decision", 1, LONGEST_MS)
    page.close()
    return timers, turbo


def _ratio(page: Section) -> tuple[int, int] | None:
    if not page.has("ante_ratio"):
        return None
    text = page.text("ante_ratio")
    ratio = parse_ratio(text)
    if ratio is None:
        raise page.wrong("ante_ratio", text, "two whole numbers of at most four digits, the first smaller, as in 1/20")
    return ratio


def parse_ratio(text: str) -> tuple[int, int] | None:
    """``1/20`` as (1, 20); None when the text is no ratio below one."""
    parts = text.split("/")
    if len(parts) != 2 or not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    over, under = int(parts[0]), int(parts[1])
    return (over, under) if 0 < over < under else None


def _rake(page: Section) -> Rake:
    kind = page.word("kind", ("steps", "percent", "none"))
    if kind == "none":
        page.close()
        return Rake(version=1)
    version = page.whole("version", 1, 1_000_000)
    if kind == "percent":
        most = page.whole("most", 0, ALL_BASIS_POINTS)
        percentage = Percentage(most, page.whole("default", 0, most), page.whole("cap", 0, MAX_AMOUNT))
        page.close()
        return Rake(version, percentage=percentage)
    bands = tuple(_band(one) for one in page.sections("bands"))
    page.close()
    if not bands:
        raise page.wrong("bands", None, "at least one band")
    return Rake(version, bands)


def _band(page: Section) -> Band:
    band = Band(
        id=page.text("id"),
        limits=tuple(LIMITS[word] for word in page.words("limits", tuple(LIMITS))),
        lowest=page.whole("lowest", 0, MAX_AMOUNT),
        tiers=tuple(_tier(one) for one in page.sections("tiers")),
    )
    page.close()
    try:
        check_tiers(band.tiers)
    except Rejected as refusal:
        raise page.wrong(refusal.metadata["field"], refusal.message, refusal.metadata["allowed"]) from refusal
    return band


def _tier(page: Section) -> RakeTier:
    players = page.wholes("players", 2, MOST_PLAYERS)
    if len(players) != 2:
        raise page.wrong("players", list(players), "a pair: least and largest number of players dealt in")
    tier = game_pb2.RakeTier(
        min_players=players[0],
        max_players=players[1],
        step=page.whole("step", 1, MAX_AMOUNT),
        rake_per_step=page.whole("rake", 0, MAX_AMOUNT),
        cap=page.whole("cap", 0, MAX_AMOUNT, default=0),
        small_pot_below=page.whole("small_pot_below", 0, MAX_AMOUNT, default=0),
        small_step=page.whole("small_step", 0, MAX_AMOUNT, default=0),
        small_rake=page.whole("small_rake", 0, MAX_AMOUNT, default=0),
    )
    page.close()
    return tier


def _table(
    page: Section, house: str, games: Mapping[str, GameOffer], currencies: tuple[str, ...]
) -> table_pb2.OpenTableRequest:
    request = table_pb2.OpenTableRequest(
        house=house,
        game=page.word("game", tuple(games)),
        limit=LIMITS[page.word("limit", tuple(LIMITS))],
        stakes=game_pb2.Stakes(
            blinds=page.wholes("blinds", 1, MAX_AMOUNT, default=()),
            ante=page.whole("ante", 0, MAX_AMOUNT, default=0),
            bring_in=page.whole("bring_in", 0, MAX_AMOUNT, default=0),
            low_limit=page.whole("low_limit", 0, MAX_AMOUNT, default=0),
            high_limit=page.whole("high_limit", 0, MAX_AMOUNT, default=0),
            spread_max=page.wholes("spread_max", 1, MAX_AMOUNT, default=()),
            min_bet=page.whole("min_bet", 0, MAX_AMOUNT, default=0),
            max_bet=page.whole("max_bet", 0, MAX_AMOUNT, default=0),
            bets_cap=page.whole("bets_cap", 0, 100, default=0),
        ),
        seats=page.whole("seats", 0, MOST_PLAYERS, default=0),
        currency=CURRENCIES[page.word("currency", currencies, default=currencies[0])],
        min_buy_in=page.whole("min_buy_in", 0, MAX_AMOUNT, default=0),
        max_buy_in=page.whole("max_buy_in", 0, MAX_AMOUNT, default=0),
        turbo=page.switch("turbo", default=False),
    )
    bank = page.whole("time_bank", 0, LONGEST_MS, default=0)
    if bank:
        request.timers.time_bank_ms = bank
    page.close()
    return request
