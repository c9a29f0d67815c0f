"""What a prompt lets a player do, by key, with bounds; sizes of bets; draws by marking cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relance.api.table.v1 import table_pb2 as pb
from relance.play.glyphs import SYMBOLS, Glyphs, figure, money, parse_money, split_cards

RAISES: Final = (pb.ACTION_KIND_BET, pb.ACTION_KIND_RAISE, pb.ACTION_KIND_COMPLETE)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to do.

    key: what is pressed. label: what it does. sized: what an amount is entered for first; empty: none is. confirm: a
    question that is asked before, with the same key as its yes; empty: done at once.
    """

    key: str
    label: str
    kind: pb.ActionKind.ValueType
    amount: int = 0
    sized: str = ""
    confirm: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Totals for the round that a bet or raise may make.

    only: where just these are legal. all_in: whether the most is everything that the player has.
    """

    least: int
    most: int
    half_pot: int
    pot: int
    step: int
    only: tuple[int, ...] = ()
    all_in: bool = False

    def shortcut(self, key: str) -> int | None:
        """The total of a shortcut: m least, h half the pot, p the pot, x most."""
        return {"m": self.least, "h": self.half_pot, "p": self.pot, "x": self.most}.get(key)

    def moved(self, total: int, by: int) -> int:
        """The total `by` steps up or down, within the bounds."""
        if self.only:
            places = [place for place, size in enumerate(self.only) if size <= total] or [0]
            return self.only[min(max(places[-1] + by, 0), len(self.only) - 1)]
        return min(max(total + by * self.step, self.least), self.most)

    def read(self, text: str, currency: int) -> int:
        """What was typed as a total. Raises ValueError with what would be accepted."""
        total = parse_money(text, currency)
        if self.only and total not in self.only:
            raise ValueError(f"only {' or '.join(figure(size, currency) for size in self.only)} is legal")
        if not self.least <= total <= self.most:
            raise ValueError(f"{figure(self.least, currency)} to {figure(self.most, currency)} is legal")
        return total


def choices(prompt: pb.Prompt, currency: int, glyphs: Glyphs = SYMBOLS) -> tuple[Choice, ...]:
    """What may be done now, in the order of showing. A draw has none: cards are marked (`Marks`)."""
    offered = set(prompt.actions)
    found = [maker for kind in _ORDER if kind in offered and (maker := _choice(kind, prompt, currency, glyphs))]
    return tuple(found)


def sizes(prompt: pb.Prompt, view: pb.TableView) -> Sizes:
    """The bounds of a bet or raise and its usual sizes (B6: the pot after calling)."""
    me = view.seats[prompt.seat - 1]
    called, after = me.bet + prompt.call, view.pot + prompt.call
    only = tuple(prompt.raise_sizes)

    def legal(total: int) -> int:
        total = min(max(total, prompt.min_raise_to), prompt.max_raise_to)
        return max((size for size in only if size <= total), default=only[0]) if only else total

    return Sizes(
        prompt.min_raise_to,
        prompt.max_raise_to,
        legal(called + after // 2),
        legal(called + after),
        step(view),
        only,
        all_in=prompt.max_raise_to == me.bet + me.stack,
    )


def step(view: pb.TableView) -> int:
    """By how much an arrow key moves an amount: the big blind, or what stands for it."""
    stakes = view.config.stakes
    return (stakes.blinds[-1] if stakes.blinds else 0) or stakes.low_limit or stakes.min_bet or stakes.ante or 1


def shortcuts_text(sizes: Sizes, currency: int, width: int = 80) -> str:
    """The shortcuts of an amount entry, with what they mean now; fewer words where there is little room."""
    most = "all-in" if sizes.all_in else "max"
    named = (
        ("m", "min", sizes.least),
        ("h", "half pot", sizes.half_pot),
        ("p", "pot", sizes.pot),
        ("x", most, sizes.most),
    )
    text = "  ".join(f"{key} {word} {figure(total, currency)}" for key, word, total in named)
    if len(text) <= width:
        return text
    return "  ".join(f"{key} {figure(total, currency)}" for key, _, total in named)


class Marks:
    """Cards of a hand that are marked to be exchanged: by place, from 0."""

    def __init__(self, cards: str, most: int) -> None:
        self.cards = split_cards(cards)
        self.most = most
        self.places: set[int] = set()

    def toggle(self, place: int) -> bool:
        """Mark or unmark; False: there is no such card, or no more may be marked."""
        if place in self.places:
            self.places.discard(place)
            return True
        if place >= len(self.cards) or len(self.places) >= self.most:
            return False
        self.places.add(place)
        return True

    @property
    def marked(self) -> str:
        """The cards to discard, as the room wants them."""
        return "".join(self.cards[place] for place in sorted(self.places))


_ORDER: Final = (
    pb.ACTION_KIND_FOLD,
    pb.ACTION_KIND_CHECK,
    pb.ACTION_KIND_CALL,
    pb.ACTION_KIND_BRING_IN,
    *RAISES,
    pb.ACTION_KIND_ALL_IN,
    pb.ACTION_KIND_OFFER_SPLIT,
    pb.ACTION_KIND_ACCEPT_SPLIT,
    pb.ACTION_KIND_REFUSE_SPLIT,
    pb.ACTION_KIND_POST,
    pb.ACTION_KIND_SHOW,
    pb.ACTION_KIND_MUCK,
)
_PLAIN: Final = {
    pb.ACTION_KIND_CHECK: ("c", "check"),
    pb.ACTION_KIND_OFFER_SPLIT: ("o", "offer a split"),
    pb.ACTION_KIND_ACCEPT_SPLIT: ("y", "accept the split"),
    pb.ACTION_KIND_REFUSE_SPLIT: ("n", "refuse the split"),
    pb.ACTION_KIND_POST: ("p", "post"),
    pb.ACTION_KIND_SHOW: ("s", "show"),
    pb.ACTION_KIND_MUCK: ("m", "muck"),
}
_RAISING: Final = {
    pb.ACTION_KIND_BET: "bet",
    pb.ACTION_KIND_RAISE: "raise to",
    pb.ACTION_KIND_COMPLETE: "complete to",
}


def _choice(kind: pb.ActionKind.ValueType, prompt: pb.Prompt, currency: int, glyphs: Glyphs) -> Choice | None:
    if kind in _PLAIN:
        return Choice(*_PLAIN[kind], kind)
    if kind == pb.ACTION_KIND_FOLD:
        if prompt.kind == pb.PROMPT_KIND_POST:
            return Choice("f", "do not post", kind)
        free = pb.ACTION_KIND_CHECK in prompt.actions
        return Choice("f", "fold", kind, confirm="Checking is free. Fold all the same?" if free else "")
    if kind == pb.ACTION_KIND_CALL:
        return Choice("c", f"call {figure(prompt.call, currency)}", kind)
    if kind == pb.ACTION_KIND_BRING_IN:
        return Choice("i", f"bring in {figure(prompt.call, currency)}", kind)
    if kind == pb.ACTION_KIND_ALL_IN:
        return Choice("a", "all-in", kind, confirm=f"All-in{_all_in_amount(prompt, currency, glyphs)}?")
    return _raising(kind, prompt, currency, glyphs)


def _raising(kind: pb.ActionKind.ValueType, prompt: pb.Prompt, currency: int, glyphs: Glyphs) -> Choice:
    word = _RAISING[kind]
    least, most = prompt.min_raise_to, prompt.max_raise_to
    if least == most:
        return Choice("r", f"{word} {figure(least, currency)}", kind, least)
    between = f" {glyphs.dash} " if not prompt.raise_sizes else " or "
    bounds = [*prompt.raise_sizes] or [least, most]
    return Choice("r", f"{word} {between.join(figure(size, currency) for size in bounds)}", kind, sized=word)


def _all_in_amount(prompt: pb.Prompt, currency: int, glyphs: Glyphs) -> str:
    raises = any(kind in prompt.actions for kind in RAISES)
    if raises:
        return f", to {money(prompt.max_raise_to, currency, glyphs)}"
    return f" for {money(prompt.call, currency, glyphs)}" if prompt.call else ""
