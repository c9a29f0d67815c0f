"""OHH, the Open Hand History 1.4.7: one JSON object a hand, a blank line between hands.

Amounts are decimals of the currency; that of an action is what it added to the pot. Streets that the format has no name
for are called by ours. Uncalled chips are in no pot; a hand that is void has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.export.record import HandRecord
from relance.ops.viewer import AUDITOR, PUBLIC
from relance.ops.words import moment
from relance.poker.games import GAMES

VERSION = "1.4.7"
_TYPES: Final[dict[str, str]] = {
    "holdem": "Holdem", "omaha": "Omaha", "omaha8": "OmahaHiLo", "stud7": "Stud", "stud8": "StudHiLo",
}  # fmt: skip
_LIMITS: Final[dict[int, str]] = {
    game_pb2.LIMIT_NO_LIMIT: "NL", game_pb2.LIMIT_POT: "PL", game_pb2.LIMIT_FIXED: "FL",
    game_pb2.LIMIT_SPREAD: "SL", game_pb2.LIMIT_HALF_POT: "HPL",
}  # fmt: skip
_STREETS: Final = {"preflop": "Preflop", "flop": "Flop", "turn": "Turn", "river": "River"}


class _Money(int):
    """Minor units that are written as a decimal with two places."""


def write(hand: HandRecord) -> str:
    """One hand."""
    return _text({"ohh": _hand(hand)}) + "\n"


def _hand(hand: HandRecord) -> dict[str, Any]:
    config = hand.config
    blinds = list(config.stakes.blinds)
    money = _money(config)
    numbers = {each.seat: number for number, each in enumerate(sorted(hand.players, key=lambda each: each.seat))}
    hero = next((numbers[each.seat] for each in hand.players if each.player == hand.who), None)
    writer = _Rounds(hand, numbers, money)
    for kind, payload in hand.told:
        step = _STEPS.get(kind)
        if step is not None:
            step(writer, payload)
    found: dict[str, Any] = {
        "spec_version": VERSION,
        "internal_version": "1.0.0",
        "site_name": "Relance",
        "network_name": "Relance",
        "tournament": False,
        "game_number": f"{hand.table}-{hand.number}",
        "start_date_utc": moment(hand.time_us).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "table_name": config.display_name or hand.table,
        "table_handle": hand.table,
        "game_type": _TYPES.get(config.game, GAMES[config.game].name),
        "bet_limit": {"bet_type": _LIMITS.get(config.limit, ""), "bet_cap": money(0)},
        "table_size": config.seats,
        "currency": "EUR" if config.currency == game_pb2.CURRENCY_EUR else "XPM",
        "dealer_seat": hand.started.button,
        "small_blind_amount": money(blinds[-2] if len(blinds) > 1 else 0),
        "big_blind_amount": money(blinds[-1] if blinds else 0),
        "ante_amount": money(config.stakes.ante),
        "flags": [] if hero is not None else ["Observed"],
        "players": [
            {
                "id": numbers[each.seat],
                "seat": each.seat,
                "name": hand.names[each.player],
                "display": hand.names[each.player],
                "starting_stack": money(each.stack),
            }
            for each in sorted(hand.players, key=lambda each: each.seat)
        ],
        "rounds": writer.rounds,
        "pots": writer.pots,
    }
    if hero is not None:
        found["hero_player_id"] = hero
    if hand.who not in {PUBLIC, AUDITOR} and hero is None:
        found["flags"] = ["Observed"]
    return found


def _money(config: game_pb2.TableConfig) -> Callable[[int], Any]:
    return _Money if config.currency == game_pb2.CURRENCY_EUR else int


class _Rounds:
    """Rounds and pots, gathered event by event."""

    def __init__(self, hand: HandRecord, numbers: dict[int, int], money: Callable[[int], Any]) -> None:
        self.numbers, self.money = numbers, money
        self.streets = GAMES[hand.config.game].streets
        self.rounds: list[dict[str, Any]] = []
        self.pots: list[dict[str, Any]] = []
        self.count = 0
        self.opened = 0
        self.asked: set[int] = set()
        """Seats that have discarded, or stood pat, in this round."""
        self.round(self.streets[0].name)

    def round(self, street: str, cards: str = "") -> None:
        self.rounds.append(
            {"id": len(self.rounds), "street": _STREETS.get(street, street.capitalize()), "cards": _cards(cards),
             "actions": []}
        )  # fmt: skip

    def act(self, seat: int, action: str, **more: Any) -> None:
        self.count += 1
        entry = {"action_number": self.count, "player_id": self.numbers[seat], "action": action, **more}
        self.rounds[-1]["actions"].append(entry)

    def next_street(self) -> None:
        """Cards after the first round: the next street begins, unless it has begun."""
        self.opened = min(self.opened + 1, len(self.streets) - 1)
        self.asked = set()
        self.round(self.streets[self.opened].name)


def _cards(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def _dealt(w: _Rounds, e: pb.CardsDealt) -> None:
    """A second deal to somebody is the next street's."""
    before = w.rounds[-1]["actions"]
    if any(each["action"] == "Dealt Cards" and each["player_id"] == w.numbers[e.seat] for each in before):
        w.next_street()
    w.act(e.seat, "Dealt Cards", cards=_cards((e.down or "XX" * e.down_count) + e.up))


def _board(w: _Rounds, e: pb.BoardDealt) -> None:
    w.next_street()
    w.rounds[-1]["cards"] = _cards(e.cards)


def _discarded(w: _Rounds, e: pb.CardsDiscarded) -> None:
    """Who is asked again is at the next draw: where all are all-in, no bets come in between."""
    if e.seat in w.asked:
        w.next_street()
    w.asked.add(e.seat)


def _drawn(w: _Rounds, e: pb.CardsDrawn) -> None:
    w.act(e.seat, "Dealt Cards", cards=_cards(e.cards or "XX" * e.count))


def _round_over(w: _Rounds, e: pb.RoundEnded) -> None:
    """Draws come before the next round's bets."""
    following = w.opened + 1
    if following < len(w.streets) and w.streets[following].draw >= 0:
        w.next_street()


def _put(action: str) -> Callable[[_Rounds, Any], None]:
    def step(w: _Rounds, e: Any) -> None:
        # The format knows no bet before the flop.
        name = "Raise" if action == "Bet" and w.opened == 0 else action
        w.act(e.seat, name, amount=w.money(e.amount), is_allin=e.all_in)

    return step


def _blind(w: _Rounds, e: pb.BlindPosted) -> None:
    names = {pb.BLIND_KIND_SMALL: "Post SB", pb.BLIND_KIND_BIG: "Post BB", pb.BLIND_KIND_DEAD: "Post Dead"}
    w.act(e.seat, names.get(e.kind, "Post Extra Blind"), amount=w.money(e.amount), is_allin=e.all_in)


def _plain(action: str) -> Callable[[_Rounds, Any], None]:
    return lambda w, e: w.act(e.seat, action)


def _showdown(w: _Rounds) -> None:
    if w.rounds[-1]["street"] != "Showdown":
        w.round("Showdown")


def _shown(w: _Rounds, e: pb.HandShown) -> None:
    """What is turned up before the last card is shown again at the showdown: once is enough."""
    if e.high:
        _showdown(w)
        w.act(e.seat, "Shows Cards", cards=_cards(e.cards))


def _mucked(w: _Rounds, e: pb.HandMucked) -> None:
    _showdown(w)
    w.act(e.seat, "Mucks Cards")


def _awarded(w: _Rounds, e: pb.PotAwarded) -> None:
    sums: dict[int, int] = {}
    for share in e.shares:
        sums[share.seat] = sums.get(share.seat, 0) + share.amount
    wins = [{"player_id": w.numbers[seat], "win_amount": w.money(chips)} for seat, chips in sums.items()]
    w.pots.append(
        {"number": e.pot, "amount": w.money(e.amount), "rake": w.money(e.rake), "jackpot": w.money(0),
         "player_wins": wins}
    )  # fmt: skip


_STEPS: Final[dict[str, Callable[[_Rounds, Any], None]]] = {
    "ante_posted": _put("Post Ante"),
    "blind_posted": _blind,
    "bring_in_posted": _put("Post Extra Blind"),
    "cards_dealt": _dealt,
    "board_dealt": _board,
    "cards_discarded": _discarded,
    "cards_drawn": _drawn,
    "checked": _plain("Check"),
    "called": _put("Call"),
    "bet_made": _put("Bet"),
    "raised": _put("Raise"),
    "folded": _plain("Fold"),
    "round_ended": _round_over,
    "hand_shown": _shown,
    "hand_mucked": _mucked,
    "pot_awarded": _awarded,
}


def _text(value: Any, indent: str = "") -> str:
    """JSON, with money as decimals of two places and no float anywhere."""
    if isinstance(value, _Money):
        sign = "-" if value < 0 else ""
        return f"{sign}{abs(value) // 100}.{abs(value) % 100:02}"
    inner = indent + "  "
    if isinstance(value, dict):
        fields = [f"{inner}{json.dumps(name)}: {_text(each, inner)}" for name, each in value.items()]
        return "{\n" + ",\n".join(fields) + f"\n{indent}}}" if fields else "{}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(inner + _text(each, inner) for each in value) + f"\n{indent}]"
    if isinstance(value, list):
        return "[" + ", ".join(_text(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
