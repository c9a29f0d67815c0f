"""The lobby's list: rows of tables, and what a filter typed by people means."""

from __future__ import annotations

import re

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.play.glyphs import LIMITS, Glyphs, clean, figure, game_title, money, stakes_text

COLUMNS = ("Game", "Limit", "Stakes", "Seats", "State", "Avg pot", "Hands/h", "Name")
# Orders that a key goes through: the room's own words, and what is shown.
ORDERS = (
    ("players desc", "most players"),
    ("big_blind, low_limit", "lowest stakes"),
    ("seats_free desc", "most seats free"),
)
_COMPARED = re.compile(r"[=<>]|\b(AND|OR|NOT)\b|^-?(turbo|heads_up|micro|private)$")


def is_expression(text: str) -> bool:
    """Whether a typed filter is for the room (AIP-160: game = "holdem" AND seats_free > 0), not plain words."""
    return bool(_COMPARED.search(text))


def room_filter(text: str, *, free_only: bool) -> str:
    """The filter to send to the room."""
    parts = [f"({text})" if free_only else text] if text and is_expression(text) else []
    return " AND ".join([*parts, *(["seats_free > 0"] if free_only else [])])


def matches(table: lobby_pb2.Table, text: str) -> bool:
    """Whether a table has all the words typed, in any of its columns."""
    if is_expression(text):
        return True
    words = " ".join((clean(table.config.display_name), _game(table), _limit(table), table.config.house, _flags(table)))
    return all(word in words.casefold() for word in text.casefold().split())


def row(table: lobby_pb2.Table, glyphs: Glyphs, *, seated: bool = False) -> tuple[str, ...]:
    """The cells of a table. `seated`: the player left a seat there."""
    config = table.config
    return (
        _game(table),
        _limit(table) if config.limit == game_pb2.LIMIT_NO_LIMIT else _limit(table).removesuffix(" limit"),
        f"{stakes_text(config)} {_unit(table, glyphs)}",
        f"{table.players}/{config.seats}",
        " ".join(part for part in ("YOUR SEAT" if seated else "", _flags(table)) if part),
        figure(table.average_pot, config.currency) if table.average_pot else glyphs.dash,
        f"{table.hands_per_hour:.0f}" if table.hands_per_hour else glyphs.dash,
        clean(config.display_name) or table.name.rpartition("/")[2],
    )


def details(table: lobby_pb2.Table, glyphs: Glyphs) -> str:
    """One line about a table: house, buy-in, clock."""
    config = table.config
    most = money(config.max_buy_in, config.currency, glyphs) if config.max_buy_in else "no maximum"
    least = money(config.min_buy_in, config.currency, glyphs)
    clock = f"{config.timers.decision_ms / 1000:g} s to act"
    return (
        f"{config.house}  buy-in {least} {glyphs.dash} {most}  {clock}  {table.players} of {config.seats} seats taken"
    )


def _game(table: lobby_pb2.Table) -> str:
    return game_title(table.config.game)


def _limit(table: lobby_pb2.Table) -> str:
    return LIMITS.get(table.config.limit, "")


def _unit(table: lobby_pb2.Table, glyphs: Glyphs) -> str:
    return money(0, table.config.currency, glyphs).rpartition(" ")[2]


def _flags(table: lobby_pb2.Table) -> str:
    config = table.config
    flags = {
        "paused": table.paused,
        "maintenance": table.maintenance,
        "turbo": config.turbo,
        "heads-up": config.seats == 2,
        "micro": config.micro,
        "private": config.private,
        f"{table.waiting} wait": table.waiting > 0,
    }
    return " ".join(flag for flag, on in flags.items() if on)
