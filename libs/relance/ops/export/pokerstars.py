"""Text in the manner of PokerStars' hand histories, which trackers read. A blank line between hands.

A line of this format is found by its words, so a name that holds a line's end would make two of it: control characters
are written as \\uXXXX (names of the lobby have none, N1). Everything else in a name stands as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.export.record import HandRecord
from relance.ops.words import cards, moment, word
from relance.poker.games import GAMES

_GAMES: Final[dict[str, str]] = {
    "holdem": "Hold'em", "omaha": "Omaha", "omaha8": "Omaha Hi/Lo", "stud7": "7 Card Stud",
    "stud8": "7 Card Stud Hi/Lo", "razz": "Razz", "td27": "Triple Draw 2-7 Lowball", "badugi": "Badugi",
    "draw5": "5 Card Draw",
}  # fmt: skip
_LIMITS: Final[dict[int, str]] = {
    game_pb2.LIMIT_NO_LIMIT: "No Limit", game_pb2.LIMIT_POT: "Pot Limit", game_pb2.LIMIT_FIXED: "Limit",
    game_pb2.LIMIT_SPREAD: "Spread Limit", game_pb2.LIMIT_HALF_POT: "Half Pot Limit",
}  # fmt: skip
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]|\\\\(?=u[0-9a-f]{4})")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def name_text(name: str) -> str:
    """A name as it stands in a line."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", name)


def name_of(text: str) -> str:
    """The name that `name_text` made this of."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def write(hand: HandRecord) -> str:
    """One hand."""
    writer = _Lines(hand)
    for kind, payload in hand.told:
        step = _STEPS.get(kind)
        if step is not None:
            step(writer, payload)
    return "\n".join([*_head(hand, writer), *writer.lines, *writer.summary()]) + "\n"


def hand_id(table: str, number: int) -> int:
    """A number for a hand: trackers want one, unique in a room as far as 32 bits go."""
    return crc32(table.encode()) * 1_000_000 + number


def _head(hand: HandRecord, w: _Lines) -> list[str]:
    config, stakes = hand.config, hand.config.stakes
    low = list(stakes.blinds[-2:]) or [stakes.low_limit or stakes.ante]
    if config.limit == game_pb2.LIMIT_FIXED:
        first = stakes.low_limit or (stakes.blinds[-1] if stakes.blinds else 0)
        low = [first, stakes.high_limit or 2 * first]
    figures = "/".join(w.money(each) for each in low)
    unit = " EUR" if w.euro else ""
    game = f"{_GAMES.get(config.game, GAMES[config.game].name)} {_LIMITS.get(config.limit, '')}"
    time = moment(hand.time_us).strftime("%Y/%m/%d %H:%M:%S")
    table = name_text(config.display_name or hand.table)
    play = "" if w.euro else " (Play Money)"
    return [
        f"PokerStars Hand #{hand_id(hand.table, hand.number)}:  {game} ({figures}{unit}) - {time} UTC",
        f"Table '{table}' {config.seats}-max{play} Seat #{hand.started.button} is the button",
        *(
            f"Seat {each.seat}: {w.who(each.seat)} ({w.money(each.stack)} in chips)"
            for each in sorted(hand.players, key=lambda each: each.seat)
        ),
    ]


class _Lines:
    """The lines after the head, gathered event by event."""

    def __init__(self, hand: HandRecord) -> None:
        self.hand = hand
        self.euro = hand.config.currency == game_pb2.CURRENCY_EUR
        self.lines: list[str] = []
        self.board = ""
        self.streets = GAMES[hand.config.game].streets
        self.street = 0
        self.dealing = False
        self.dealt: set[int] = set()
        self.asked: set[int] = set()
        """Seats that have discarded, or stood pat, on this street."""
        self.showing = False
        self.current = 0
        self.folded: dict[int, str] = {}
        self.shown: dict[int, str] = {}
        self.mucked: set[int] = set()
        self.collected: dict[int, int] = {}
        self.pots: list[pb.PotAwarded] = []
        self.blinds: dict[int, str] = {}

    def money(self, chips: int) -> str:
        if not self.euro:
            return str(chips)
        return f"€{chips // 100}.{chips % 100:02}" if chips % 100 else f"€{chips // 100}"

    def who(self, seat: int) -> str:
        return name_text(self.hand.name(seat))

    def say(self, seat: int, what: str) -> None:
        self.lines.append(f"{self.who(seat)}: {what}")

    def heading(self, street: int) -> str:
        if self.streets[street].board:
            return self.streets[street].name.upper()
        return "HOLE CARDS" if street == 0 and not self.streets[0].up else f"{self.streets[street].name.upper()}"

    def next_street(self) -> None:
        self.street = min(self.street + 1, len(self.streets) - 1)
        self.lines.append(f"*** {self.heading(self.street)} ***")
        self.current = 0
        self.asked = set()
        self.dealt = set()

    def summary(self) -> list[str]:
        ended, voided = self.hand.ended, self.hand.voided
        found = ["*** SUMMARY ***"]
        if ended is not None:
            names = ["Main pot", *(f"Side pot-{number}" for number in range(1, len(self.pots)))]
            sides = " ".join(f"{name} {self.money(pot.amount)}." for name, pot in zip(names, self.pots, strict=False))
            more = f" {sides}" if len(self.pots) > 1 else ""
            found.append(f"Total pot {self.money(ended.pot)}{more} | Rake {self.money(ended.rake)}")
        elif voided is not None:
            found.append(f"Hand cancelled: {word(voided.reason, pb.VoidReason)}")
            found += [
                f"{self.money(each.amount)} returned to {self.who(each.seat)}" for each in voided.refunds if each.amount
            ]
        if self.board:
            found.append(f"Board [{cards(self.board)}]")
        for each in sorted(self.hand.players, key=lambda each: each.seat):
            found.append(
                f"Seat {each.seat}: {self.who(each.seat)}{self._place(each.seat)} {self._fate(each.seat)}".rstrip()
            )
        return found

    def _place(self, seat: int) -> str:
        button = " (button)" if seat == self.hand.started.button else ""
        return button + self.blinds.get(seat, "")

    def _fate(self, seat: int) -> str:
        won = self.collected.get(seat, 0)
        if seat in self.folded:
            return f"folded {self.folded[seat]}"
        if seat in self.shown:
            result = f"and won ({self.money(won)})" if won else "and lost"
            return f"showed [{cards(self.shown[seat])}] {result}"
        if seat in self.mucked:
            return "mucked"
        return f"collected ({self.money(won)})" if won else ""


def _ante(w: _Lines, e: pb.AntePosted) -> None:
    w.say(e.seat, f"posts the ante {w.money(e.amount)}{_all_in(e)}")


def _blind(w: _Lines, e: pb.BlindPosted) -> None:
    words = {
        pb.BLIND_KIND_SMALL: ("small blind", " (small blind)"),
        pb.BLIND_KIND_BIG: ("big blind", " (big blind)"),
        pb.BLIND_KIND_DEAD: ("dead blind", ""),
    }
    said, place = words.get(e.kind, ("big blind", ""))
    w.say(e.seat, f"posts {said} {w.money(e.amount)}{_all_in(e)}")
    if place:
        w.blinds[e.seat] = place
    if e.kind != pb.BLIND_KIND_DEAD:
        w.current = max(w.current, e.amount)


def _bring_in(w: _Lines, e: pb.BringInPosted) -> None:
    w.say(e.seat, f"brings in for {w.money(e.amount)}{_all_in(e)}")
    w.current = max(w.current, e.amount)


def _dealt(w: _Lines, e: pb.CardsDealt) -> None:
    """A second deal to somebody is the next street's."""
    if not w.dealing:
        w.lines.append(f"*** {w.heading(0)} ***")
        w.dealing = True
    elif e.seat in w.dealt:
        w.next_street()
    w.dealt.add(e.seat)
    parts = [f"[{cards(part)}]" for part in (e.down, e.up) if part]
    if parts:
        w.lines.append(f"Dealt to {w.who(e.seat)} {' '.join(parts)}")


def _board(w: _Lines, e: pb.BoardDealt) -> None:
    before = f"[{cards(w.board)}] " if w.board else ""
    w.next_street()
    w.lines[-1] += f" {before}[{cards(e.cards)}]"
    w.board += e.cards


def _to(verb: str) -> Callable[[_Lines, Any], None]:
    def step(w: _Lines, e: Any) -> None:
        if verb == "bets":
            w.say(e.seat, f"bets {w.money(e.to)}{_all_in(e)}")
        else:
            w.say(e.seat, f"raises {w.money(e.to - w.current)} to {w.money(e.to)}{_all_in(e)}")
        w.current = max(w.current, e.to)

    return step


def _folded(w: _Lines, e: pb.Folded) -> None:
    w.say(e.seat, "folds")
    w.folded[e.seat] = "before Flop" if w.street == 0 else f"on the {w.streets[w.street].name.capitalize()}"


def _discarded(w: _Lines, e: pb.CardsDiscarded) -> None:
    """Who is asked again is at the next draw: where all are all-in, no bets come in between."""
    if e.seat in w.asked:
        w.next_street()
    w.asked.add(e.seat)
    if not e.count:
        w.say(e.seat, "stands pat")
        return
    shown = f" [{cards(e.cards)}]" if e.cards else ""
    w.say(e.seat, f"discards {e.count} card{'s' if e.count > 1 else ''}{shown}")


def _drawn(w: _Lines, e: pb.CardsDrawn) -> None:
    if e.cards:
        w.lines.append(f"Dealt to {w.who(e.seat)} [{cards(e.cards)}]")


def _round_over(w: _Lines, e: pb.RoundEnded) -> None:
    """Draws come before the next round's bets."""
    following = w.street + 1
    if following < len(w.streets) and w.streets[following].draw >= 0:
        w.next_street()


def _returned(w: _Lines, e: pb.UncalledReturned) -> None:
    w.lines.append(f"Uncalled bet ({w.money(e.amount)}) returned to {w.who(e.seat)}")


def _showdown(w: _Lines) -> None:
    if not w.showing:
        w.showing = True
        w.lines.append("*** SHOW DOWN ***")


def _shown(w: _Lines, e: pb.HandShown) -> None:
    """What is turned up before the last card is told at the showdown."""
    if not e.high:
        return
    _showdown(w)
    low = f"; LO: {e.low}" if e.low else ""
    w.say(e.seat, f"shows [{cards(e.cards)}] ({'HI: ' if low else ''}{e.high}{low})")
    w.shown[e.seat] = e.cards


def _mucked(w: _Lines, e: pb.HandMucked) -> None:
    _showdown(w)
    w.say(e.seat, "mucks hand")
    w.mucked.add(e.seat)


def _awarded(w: _Lines, e: pb.PotAwarded) -> None:
    w.pots.append(e)
    name = "pot" if e.pot == 0 else f"side pot-{e.pot}"
    for share in e.shares:
        w.lines.append(f"{w.who(share.seat)} collected {w.money(share.amount)} from {name}")
        w.collected[share.seat] = w.collected.get(share.seat, 0) + share.amount


def _all_in(e: Any) -> str:
    return " and is all-in" if e.all_in else ""


_STEPS: Final[dict[str, Callable[[_Lines, Any], None]]] = {
    "ante_posted": _ante,
    "blind_posted": _blind,
    "bring_in_posted": _bring_in,
    "cards_dealt": _dealt,
    "board_dealt": _board,
    "checked": lambda w, e: w.say(e.seat, "checks"),
    "called": lambda w, e: w.say(e.seat, f"calls {w.money(e.amount)}{_all_in(e)}"),
    "bet_made": _to("bets"),
    "raised": _to("raises"),
    "folded": _folded,
    "cards_discarded": _discarded,
    "cards_drawn": _drawn,
    "round_ended": _round_over,
    "uncalled_returned": _returned,
    "hand_shown": _shown,
    "hand_mucked": _mucked,
    "pot_awarded": _awarded,
}
