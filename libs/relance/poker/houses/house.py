"""What a house is: the typed content of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2
from relance.poker.houses.choices import Value

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import Currency, Limit, RakeTier, Timers
    from relance.api.table.v1.table_pb2 import OpenTableRequest

LIMITS: Mapping[str, Limit.ValueType] = {
    "fixed": game_pb2.LIMIT_FIXED,
    "spread": game_pb2.LIMIT_SPREAD,
    "pot": game_pb2.LIMIT_POT,
    "half_pot": game_pb2.LIMIT_HALF_POT,
    "no_limit": game_pb2.LIMIT_NO_LIMIT,
}
LIMIT_WORDS: Mapping[Limit.ValueType, str] = {limit: word for word, limit in LIMITS.items()}

CURRENCIES: Mapping[str, Currency.ValueType] = {"eur": game_pb2.CURRENCY_EUR, "credit": game_pb2.CURRENCY_CREDIT}
CURRENCY_WORDS: Mapping[Currency.ValueType, str] = {currency: word for word, currency in CURRENCIES.items()}

BLIND_STRUCTURES = ("one", "two", "more", "ante_only")
"""How a game with blinds may be opened (S3); any of them may have an ante besides."""


@dataclass(frozen=True, slots=True)
class GameOffer:
    """A game that a house spreads: most seats (D3), limits, and the choices that it plays differently here."""

    game: str
    seats: int
    limits: tuple[Limit.ValueType, ...]
    choices: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class BuyIn:
    """Default buy-ins in low limits; most 0 = no maximum (B1)."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Band:
    """A band of a rake schedule: for these limits from this low limit up (K7)."""

    id: str
    limits: tuple[Limit.ValueType, ...]
    lowest: int
    tiers: tuple[RakeTier, ...]


@dataclass(frozen=True, slots=True)
class Percentage:
    """Rake as a part of the pot, a setting of the table (K6). Basis points; cap in minor units, 0 = none."""

    most: int
    default: int
    cap: int


@dataclass(frozen=True, slots=True)
class Rake:
    """The rake of a house: bands of steps (K4, K5), a percentage (K6), or neither: none."""

    version: int
    bands: tuple[Band, ...] = ()
    percentage: Percentage | None = None


@dataclass(frozen=True, slots=True)
class House:
    """A preset of everything that a table can be asked to be.

    timers: milliseconds; turbo_decision_ms replaces the decision time at turbo tables (T1).
    choices: every choice of the rules by name, as this house plays it. tables: those that a new room opens.
    """

    name: str
    about: str
    currencies: tuple[Currency.ValueType, ...]
    games: Mapping[str, GameOffer]
    blind_structures: tuple[str, ...]
    buy_ins: Mapping[Limit.ValueType, BuyIn]
    timers: Timers
    turbo_decision_ms: int
    choices: Mapping[str, Value]
    micro_max: int
    ante_ratio: tuple[int, int] | None
    rake: Rake
    tables: tuple[OpenTableRequest, ...]

    def choices_for(self, game: str) -> dict[str, Value]:
        """Every choice as the house plays it in a game."""
        return {**self.choices, **self.games[game].choices}
