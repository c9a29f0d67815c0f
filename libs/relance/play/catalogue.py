"""The lobby's list: its columns, its orders, and what is said of one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.play.filters import is_expression
from relance.play.glyphs import (
    LIMIT_LETTERS,
    LIMITS,
    Align,
    Glyphs,
    clean,
    figure,
    fit,
    game_title,
    money,
    stakes_text,
    unit,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A table of the list, and what it is to the player."""

    table: lobby_pb2.Table
    seated: bool = False
    invited: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its width, and what a table has there. `left`: where it is aligned."""

    title: str
    width: int
    cell: Callable[[Listed, Glyphs], str]
    align: Align = "left"


def _game(listed: Listed, glyphs: Glyphs) -> str:
    mark = "* " if listed.seated else ""
    return mark + game_title(listed.table.config.game)


def _game_and_limit(listed: Listed, glyphs: Glyphs) -> str:
    return f"{_game(listed, glyphs)} {LIMIT_LETTERS.get(listed.table.config.limit, '')}"


def _limit(listed: Listed, glyphs: Glyphs) -> str:
    return LIMITS.get(listed.table.config.limit, "")


def _house(listed: Listed, glyphs: Glyphs) -> str:
    return listed.table.config.house


def _stakes(listed: Listed, glyphs: Glyphs) -> str:
    config = listed.table.config
    return f"{stakes_text(config)} {unit(config.currency, glyphs)}"


def _seats(listed: Listed, glyphs: Glyphs) -> str:
    return f"{listed.table.players}/{listed.table.config.seats}"


def _waiting(listed: Listed, glyphs: Glyphs) -> str:
    return str(listed.table.waiting) if listed.table.waiting else glyphs.dash


def _pot(listed: Listed, glyphs: Glyphs) -> str:
    table = listed.table
    return figure(table.average_pot, table.config.currency) if table.average_pot else glyphs.dash


def _flop(listed: Listed, glyphs: Glyphs) -> str:
    return f"{listed.table.players_per_flop:.1f}" if listed.table.players_per_flop else glyphs.dash


def _speed(listed: Listed, glyphs: Glyphs) -> str:
    return f"{listed.table.hands_per_hour:.0f}" if listed.table.hands_per_hour else glyphs.dash


def _state(listed: Listed, glyphs: Glyphs) -> str:
    words = flags(listed)
    return " ".join(word.upper() if word in {"your seat", "invited"} else word for word in words)


def _letters(listed: Listed, glyphs: Glyphs) -> str:
    return "".join(_LETTERS.get(word, "") for word in flags(listed))


_LETTERS: Final = {
    "invited": "I", "private": "P", "turbo": "T", "heads-up": "H", "micro": "m", "paused": "!", "maintenance": "!",
}  # fmt: skip
#: For 80 cells, and for 110 and more.
NARROW: Final = (
    Column("Game", 23, _game_and_limit),
    Column("Stakes", 22, _stakes),
    Column("Seats", 6, _seats),
    Column("Wait", 5, _waiting, "right"),
    Column("Avg pot", 9, _pot, "right"),
    Column("Flop", 5, _flop, "right"),
    Column("H/h", 5, _speed, "right"),
    Column("", 4, _letters),
)
WIDE: Final = (
    Column("Game", 20, _game),
    Column("Limit", 15, _limit),
    Column("Stakes", 22, _stakes),
    Column("House", 10, _house),
    Column("Seats", 6, _seats),
    Column("Wait", 5, _waiting, "right"),
    Column("Avg pot", 10, _pot, "right"),
    Column("Pl/flop", 8, _flop, "right"),
    Column("Hands/h", 8, _speed, "right"),
    Column("", 15, _state),
)


def cells(listed: Listed, columns: Sequence[Column], glyphs: Glyphs) -> list[Text]:
    """The cells of a table, each as wide as its column, one blank between two."""
    style = "bold" if listed.seated else "dim" if listed.table.paused else ""
    drawn = []
    for column in columns:
        text = fit(Text(column.cell(listed, glyphs), style), column.width - 1, column.align, glyphs.ellipsis)
        drawn.append(Text.assemble(" ", text) if column.align == "right" else Text.assemble(text, " "))
    return drawn


@dataclass(frozen=True, slots=True)
class Order:
    """An order of the list: what is shown of it, and the key of a table. Ties go by stakes, then by name."""

    words: str
    key: Callable[[lobby_pb2.Table], Any]
    falling: bool = False

    def sorted(self, tables: Sequence[lobby_pb2.Table]) -> list[lobby_pb2.Table]:
        """The tables in this order."""
        first = sorted(tables, key=lambda table: (_low(table), table.config.game, table.name))
        return sorted(first, key=self.key, reverse=self.falling)


def _low(table: lobby_pb2.Table) -> tuple[int, int]:
    return table.config.currency, table.config.stakes.low_limit or table.config.stakes.ante


ORDERS: Final = (
    Order("most players", lambda table: table.players, falling=True),
    Order("lowest stakes", _low),
    Order("highest stakes", lambda table: table.config.stakes.low_limit, falling=True),
    Order("most seats free", lambda table: table.seats_free, falling=True),
    Order("largest pots", lambda table: table.average_pot, falling=True),
    Order("most players a flop", lambda table: table.players_per_flop, falling=True),
    Order("most hands an hour", lambda table: table.hands_per_hour, falling=True),
    Order("shortest waiting list", lambda table: table.waiting),
    Order("game", lambda table: game_title(table.config.game)),
)


def matches(table: lobby_pb2.Table, text: str) -> bool:
    """Whether a table has all the words typed, in any of its columns. Expressions are matched by the room."""
    if is_expression(text):
        return True
    listed = Listed(table)
    words = (clean(table.config.display_name), game_title(table.config.game), LIMITS.get(table.config.limit, ""))
    found = " ".join((*words, table.config.house, *flags(listed))).casefold()
    return all(word in found for word in text.casefold().split())


def flags(listed: Listed) -> list[str]:
    """What is particular about a table, in words."""
    table, config = listed.table, listed.table.config
    found = {
        "your seat": listed.seated,
        "invited": listed.invited,
        "paused": table.paused and not table.maintenance,
        "maintenance": table.maintenance,
        "turbo": config.turbo,
        "heads-up": config.seats == 2,
        "micro": config.micro,
        "private": config.private and not listed.invited,
    }
    return [flag for flag, on in found.items() if on]


def title(config: game_pb2.TableConfig, glyphs: Glyphs) -> str:
    """What a table is called: its name, or game, limit and stakes where the room made the name of these."""
    name, game = clean(config.display_name), game_title(config.game)
    limit = LIMITS.get(config.limit, "")
    made = f"{game} {limit} {stakes_text(config)} {unit(config.currency, glyphs)}"
    return made if not name or name.startswith(f"{game} {limit.removesuffix(' limit')}") else name


def details(listed: Listed, glyphs: Glyphs) -> tuple[str, str]:
    """Two lines about a table: what it is, and how it goes there."""
    table, config = listed.table, listed.table.config
    currency, dot = config.currency, f" {glyphs.dot} "
    most = money(config.max_buy_in, currency, glyphs) if config.max_buy_in else "no maximum"
    buy_in = f"buy-in {figure(config.min_buy_in, currency)} {glyphs.dash} {most}"
    clock = f"{config.timers.decision_ms / 1000:g} s to act"
    bank = f"+ {config.timers.time_bank_ms / 1000:g} s bank" if config.timers.time_bank_ms else ""
    what = [title(config, glyphs), config.house, buy_in, f"{clock} {bank}".strip()]
    goes = [
        f"{table.seats_free} of {config.seats} seats free",
        f"{table.waiting} waiting" if table.waiting else "",
        f"average pot {money(table.average_pot, currency, glyphs)}" if table.average_pot else "",
        f"{table.hands_per_hour:.0f} hands/h" if table.hands_per_hour else "",
        *flags(listed),
    ]
    return dot.join(what), dot.join(part for part in goes if part)
