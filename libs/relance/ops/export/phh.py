"""PHH, the poker hand history format: TOML, one table of keys a hand, several hands a file (.phhs).

Variant codes are those of the format where it has one for the game and limit; other games have a code made the same
way, which readers that do not know it refuse by name. What the format lacks stands in fields that begin with `_`:

    _house _game _limit     what was played, in words of RULES.md and the games' ids
    _ids                    ids of the players, as `players` is ordered
    _button                 seat of the button
    _rake _rake_schedule    rake taken, and the schedule that says so
    _pots                   each pot: amount, rake, and who got how much of which part
    _void                   why the hand is void; then the stacks are those before it
    _rules                  ids of the rules by which another program may come to other figures

Amounts are whole minor units. What the viewer may not see is `??`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.export.differences import rules_of_its_own
from relance.ops.export.record import HandRecord
from relance.ops.words import moment, word
from relance.poker.games import GAMES, Forced

_FIXED, _POT, _NO = game_pb2.LIMIT_FIXED, game_pb2.LIMIT_POT, game_pb2.LIMIT_NO_LIMIT
STANDARD: Final[dict[tuple[str, game_pb2.Limit.ValueType], str]] = {
    ("holdem", _NO): "NT",
    ("holdem", _FIXED): "FT",
    ("omaha", _POT): "PO",
    ("omaha8", _FIXED): "FO/8",
    ("stud7", _FIXED): "F7S",
    ("stud8", _FIXED): "F7S/8",
    ("razz", _FIXED): "FR",
    ("td27", _FIXED): "F2L3D",
    ("badugi", _FIXED): "FB",
}
"""Codes of the format, by game and limit."""
_LETTERS: Final[dict[int, str]] = {
    _FIXED: "F", _POT: "P", _NO: "N", game_pb2.LIMIT_SPREAD: "S", game_pb2.LIMIT_HALF_POT: "H",
}  # fmt: skip
_GAMES: Final[dict[str, str]] = {
    "holdem": "T", "omaha": "O", "omaha8": "O/8", "stud7": "7S", "stud8": "7S/8", "razz": "R", "td27": "2L3D",
    "badugi": "B", "stud5": "5S", "soko": "SK", "draw5": "5D", "draw32": "32D", "closed": "CD",
}  # fmt: skip


def variant(config: game_pb2.TableConfig) -> str:
    """The code of a table's game and limit: the format's where it has one, else one made the same way."""
    standard = STANDARD.get((config.game, config.limit))
    return standard or _LETTERS[config.limit] + _GAMES.get(config.game, config.game)


def write(hand: HandRecord) -> str:
    """One hand, without the heading that a file of several needs."""
    fields = _fields(hand)
    return "".join(f"{name} = {toml(value)}\n" for name, value in fields.items())


def _fields(hand: HandRecord) -> dict[str, Any]:
    config = hand.config
    stakes = config.stakes
    start = moment(hand.time_us)
    fields: dict[str, Any] = {"variant": variant(config), "ante_trimming_status": False, "antes": _antes(hand)}
    if GAMES[config.game].forced is Forced.BRING_IN:
        fields["bring_in"] = stakes.bring_in
    else:
        fields["blinds_or_straddles"] = _blinds(hand)
    low = stakes.low_limit or (stakes.blinds[-1] if stakes.blinds else stakes.min_bet or stakes.ante)
    if config.limit == _FIXED:
        fields |= {"small_bet": low, "big_bet": stakes.high_limit or 2 * low}
    else:
        fields["min_bet"] = stakes.blinds[-1] if stakes.blinds else stakes.min_bet or low
    fields |= {
        "starting_stacks": [each.stack for each in hand.players],
        "actions": actions(hand),
        "time": _Bare(start.strftime("%H:%M:%S.%f")),
        "time_zone": "UTC",
        "day": start.day,
        "month": start.month,
        "year": start.year,
        "hand": hand.number,
        "seats": [each.seat for each in hand.players],
        "seat_count": config.seats,
        "table": hand.table,
        "players": [hand.names[each.player] for each in hand.players],
        "finishing_stacks": hand.stacks_after,
        "currency": "EUR" if config.currency == game_pb2.CURRENCY_EUR else "V$",
        "_house": config.house,
        "_game": config.game,
        "_limit": word(config.limit, game_pb2.Limit),
        "_ids": [each.player for each in hand.players],
        "_button": hand.started.button,
    }
    if config.limit == game_pb2.LIMIT_SPREAD:
        fields["_spread"] = list(stakes.spread_max)
    if hand.started.deck_size != 52:
        fields["_deck"] = hand.started.deck_size
    if hand.ended is not None:
        fields |= {
            "_rake": hand.ended.rake,
            "_rake_schedule": hand.started.rake_schedule,
            "_pots": [_pot(hand, payload) for kind, payload in hand.told if kind == "pot_awarded"],
        }
    if hand.voided is not None:
        fields["_void"] = word(hand.voided.reason, pb.VoidReason)
    rules = rules_of_its_own(hand)
    if rules:
        fields["_rules"] = rules
    return fields


def _pot(hand: HandRecord, pot: pb.PotAwarded) -> dict[str, Any]:
    shares = [
        {"player": hand.position[share.seat] + 1, "amount": share.amount, "part": word(share.part, pb.PotPart)}
        for share in pot.shares
    ]
    return {"amount": pot.amount, "rake": pot.rake, "shares": shares}


def _by_position(hand: HandRecord, chips: dict[int, int]) -> list[int]:
    """Chips by seat as the format orders antes and blinds: by position, but heads-up the button's come first."""
    found = [chips.get(each.seat, 0) for each in hand.players]
    return found[::-1] if len(found) == 2 else found


def _antes(hand: HandRecord) -> list[int]:
    """Antes, and dead posts, which are chips in the pot and no bet as they are."""
    chips = {each.seat: hand.config.stakes.ante for each in hand.players}
    for kind, payload in hand.told:
        if kind == "blind_posted" and payload.kind == pb.BLIND_KIND_DEAD:
            chips[payload.seat] += payload.amount
    return _by_position(hand, chips)


def _blinds(hand: HandRecord) -> list[int]:
    """Blinds as they are due; a live post of a new or returning player, which gives no right to speak last, is below 0.

    A blind that was all-in stands at what is due: the stack says what could be paid.
    """
    sizes = list(hand.config.stakes.blinds)
    chips: dict[int, int] = {}
    for kind, posted in hand.told:
        if kind != "blind_posted":
            continue
        if posted.kind == pb.BLIND_KIND_BIG:
            chips[posted.seat] = sizes[-1]
        elif posted.kind == pb.BLIND_KIND_POST:
            chips[posted.seat] = -sizes[-1]
        elif posted.kind != pb.BLIND_KIND_DEAD:
            chips[posted.seat] = min((size for size in sizes if size >= posted.amount), default=posted.amount)
    return _by_position(hand, chips)


def actions(hand: HandRecord) -> list[str]:
    """Dealing and players' actions in the notation of the format."""
    writer = _Actions(hand)
    for kind, payload in hand.told:
        step = _STEPS.get(kind)
        if step is not None:
            step(writer, payload)
    writer.flush()
    return writer.found + writer.showdown()


class _Actions:
    """Gathers actions. Replacement cards come after everyone has discarded, whatever the order at the table was."""

    def __init__(self, hand: HandRecord) -> None:
        self.hand = hand
        self.found: list[str] = []
        self.drawn: dict[int, str] = {}
        self.asked: set[int] = set()
        """Seats that have discarded, or stood pat, in this draw."""
        self.shown: dict[int, str] = {}

    def add(self, seat: int, what: str) -> None:
        self.flush()
        self.found.append(f"p{self.hand.position[seat] + 1} {what}")

    def flush(self) -> None:
        for seat, cards in self.drawn.items():
            self.found.append(f"d dh p{self.hand.position[seat] + 1} {cards}")
        self.drawn, self.asked = {}, set()

    def dealt(self, e: pb.CardsDealt) -> None:
        self.flush()
        down = e.down or "??" * e.down_count
        self.found.append(f"d dh p{self.hand.position[e.seat] + 1} {down}{e.up}")

    def board(self, e: pb.BoardDealt) -> None:
        self.flush()
        self.found.append(f"d db {e.cards}")

    def discarded(self, e: pb.CardsDiscarded) -> None:
        if e.seat in self.asked:  # the next draw, without a bet in between: all are all-in
            self.flush()
        self.asked.add(e.seat)
        cards = e.cards or "??" * e.count
        self.found.append(f"p{self.hand.position[e.seat] + 1} sd {cards}".rstrip())

    def drew(self, e: pb.CardsDrawn) -> None:
        self.drawn[e.seat] = self.drawn.get(e.seat, "") + (e.cards or "??" * e.count)

    def showdown(self) -> list[str]:
        """Hands that were shown or mucked, at the end: what was turned up before the last card is shown then too."""
        return [f"p{self.hand.position[seat] + 1} sm {cards}".rstrip() for seat, cards in self.shown.items()]


def _act(what: str) -> Callable[[_Actions, Any], None]:
    return lambda writer, e: writer.add(e.seat, what)


def _to(writer: _Actions, e: Any) -> None:
    writer.add(e.seat, f"cbr {e.to}")


def _shown(writer: _Actions, e: pb.HandShown) -> None:
    writer.shown[e.seat] = e.cards


def _mucked(writer: _Actions, e: pb.HandMucked) -> None:
    writer.shown.setdefault(e.seat, "")


_STEPS: Final[dict[str, Callable[[_Actions, Any], None]]] = {
    "cards_dealt": _Actions.dealt,
    "board_dealt": _Actions.board,
    "cards_discarded": _Actions.discarded,
    "cards_drawn": _Actions.drew,
    "bring_in_posted": _act("pb"),
    "checked": _act("cc"),
    "called": _act("cc"),
    "folded": _act("f"),
    "bet_made": _to,
    "raised": _to,
    "hand_shown": _shown,
    "hand_mucked": _mucked,
}
"""How each event is written; what readers follow by themselves (blinds, returns, pots) is not."""


_json: Final = json.JSONEncoder(ensure_ascii=False).encode


class _Bare(str):
    """TOML that is written as it stands."""


def toml(value: Any) -> str:
    """A value as TOML. Text is a basic string, in which everything that could end or bend it is escaped."""
    kind = type(value)
    if kind is int or kind is _Bare:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is str:
        return _json(value).replace("\x7f", "\\u007f")
    if kind is dict:
        return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + "}"
    assert kind is list
    if value and type(value[0]) in {int, str}:  # one kind in a list: JSON is TOML
        return _json(value).replace("\x7f", "\\u007f")
    return "[" + ", ".join(toml(each) for each in value) + "]"
