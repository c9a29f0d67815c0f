"""What tables are wanted: plain words, or an expression for the room; and a form that writes such an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from relance.api.common.v1 import game_pb2
from relance.play.form import Answers, Form
from relance.play.glyphs import GAMES, LIMITS, Glyphs, game_title
from relance.play.rows import Amount, Choice, Row

_COMPARED = re.compile(r"[=<>]|\b(AND|OR|NOT)\b|^-?(turbo|heads_up|micro|private)$")
_WHATEVER: Final = ("any", "")
_FLAGS: Final = (("turbo", "Turbo"), ("heads_up", "Heads-up"), ("micro", "Micro"), ("private", "Private"))
_SEATS: Final = ("any", "a free one", "2 free", "4 free")
_FREE: Final = (0, 1, 2, 4)


def is_expression(text: str) -> bool:
    """Whether a typed filter is for the room (AIP-160: game = "holdem" AND seats_free > 0), not plain words."""
    return bool(_COMPARED.search(text))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tables that are wanted. Stakes are low limits, which a big blind is (B15), minor units. None, "", 0: any."""

    house: str = ""
    game: str = ""
    limit: int = 0
    currency: int = 0
    least: int = 0
    most: int = 0
    free: int = 0
    turbo: bool | None = None
    heads_up: bool | None = None
    micro: bool | None = None
    private: bool | None = None

    def expression(self) -> str:
        """As the room reads it."""
        limit = game_pb2.Limit.Name(self.limit).removeprefix("LIMIT_")  # type: ignore[arg-type]
        currency = game_pb2.Currency.Name(self.currency).removeprefix("CURRENCY_")  # type: ignore[arg-type]
        parts = [
            f'house = "{self.house}"' if self.house else "",
            f'game = "{self.game}"' if self.game else "",
            f"limit = {limit}" if self.limit else "",
            f"currency = {currency}" if self.currency else "",
            f"low_limit >= {self.least}" if self.least else "",
            f"low_limit <= {self.most}" if self.most else "",
            f"seats_free >= {self.free}" if self.free else "",
            *(name if getattr(self, name) else f"NOT {name}" for name, _ in _FLAGS if getattr(self, name) is not None),
        ]
        return " AND ".join(part for part in parts if part)


def filter_form(wanted: Wanted, houses: Iterable[str], glyphs: Glyphs) -> Form:
    """A form with what is wanted until now. `houses`: those that there are."""
    games = [_WHATEVER, *((game_title(game), game) for game in GAMES)]
    limits = [("any", 0), *((word, limit) for limit, word in LIMITS.items())]
    currencies = [("any", 0), ("euro", game_pb2.CURRENCY_EUR), ("V$ credits", game_pb2.CURRENCY_CREDIT)]
    flags = (("any", None), ("yes", True), ("no", False))
    rows: list[Row] = [
        _choice("house", "House", [_WHATEVER, *((house, house) for house in sorted(houses))], wanted.house),
        _choice("game", "Game", games, wanted.game),
        _choice("limit", "Limit", limits, wanted.limit),
        _choice("currency", "Currency", currencies, wanted.currency),
        _stakes("least", "Stakes from, €", wanted.least),
        _stakes("most", "Stakes to, €", wanted.most),
        _choice("free", "Seats", list(zip(_SEATS, _FREE, strict=True)), wanted.free),
        *(_choice(name, label, flags, getattr(wanted, name)) for name, label in _FLAGS),
    ]
    return Form("Show only tables with", rows, "show them", glyphs)


def wanted_by(answers: Answers) -> Wanted:
    """What a form was filled in with."""
    return Wanted(**answers)  # type: ignore[arg-type]


def _choice(name: str, label: str, options: Iterable[tuple[str, object]], now: object) -> Choice:
    found = list(options)
    return Choice(name, label, found, next((at for at, (_, value) in enumerate(found) if value == now), 0))


def _stakes(name: str, label: str, now: int) -> Amount:
    return Amount(name, label, game_pb2.CURRENCY_EUR, first=now or None, empty=0)
