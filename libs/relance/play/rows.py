"""Rows of a form: a choice, an amount, a text. Keys in, a value out; drawn as one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rich.cells import cell_len
from rich.text import Text

from relance.play.glyphs import SYMBOLS, Glyphs, figure, parse_money


class Row(Protocol):
    """One line of a form. `name`: of its value in the answer. `hint`: keys, shown while the row is chosen."""

    name: str
    label: str

    @property
    def value(self) -> object:
        """What it answers. Raises ValueError with what would be accepted."""

    @property
    def hint(self) -> str:
        """What keys do here."""

    def press(self, key: str, character: str) -> bool:
        """A key; whether it meant something."""

    def shown(self, chosen: bool, glyphs: Glyphs) -> Text:
        """The value, as it is drawn."""


@dataclass(slots=True)
class Choice:
    """One of a few values, in a row of their words; left and right go through them."""

    name: str
    label: str
    options: Sequence[tuple[str, object]]
    at: int = 0

    @property
    def value(self) -> object:
        return self.options[self.at][1]

    @property
    def hint(self) -> str:
        return "left/right: choose"

    def press(self, key: str, character: str) -> bool:
        if key not in {"left", "right", "space"}:
            return False
        self.at = (self.at + (-1 if key == "left" else 1)) % len(self.options)
        return True

    def shown(self, chosen: bool, glyphs: Glyphs) -> Text:
        word = self.options[self.at][0]
        return Text.assemble(("< ", "bold" if chosen else "dim"), (word, "bold"), (" >", "bold" if chosen else "dim"))


def switch(name: str, label: str, on: bool) -> Choice:
    """Yes or no."""
    return Choice(name, label, (("no", False), ("yes", True)), int(on))


@dataclass(slots=True)
class Amount:
    """An amount within bounds. Typing replaces what is there; m and x set the bounds, left and right go by `step`.

    empty: the value where nothing is typed, `nothing` in words; None: something must be.
    """

    name: str
    label: str
    currency: int
    least: int = 0
    most: int = 0
    first: int | None = None
    step: int = 100
    empty: int | None = None
    nothing: str = "any"
    text: str = field(init=False)
    fresh: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        self.text = "" if self.first is None else figure(self.first, self.currency).replace(",", "")

    @property
    def value(self) -> object:
        if not self.text and self.empty is not None:
            return self.empty
        amount = parse_money(self.text, self.currency)
        if not self.least <= amount or (self.most and amount > self.most):
            raise ValueError(f"{self.label}: {self._bounds()} would be accepted")
        return amount

    @property
    def hint(self) -> str:
        bounds = "   m: least   x: most" if self.most else ""
        empty = f"   empty: {self.nothing}" if self.empty is not None else ""
        return f"type an amount   left/right: less, more{bounds}{empty}"

    def press(self, key: str, character: str) -> bool:
        if key == "backspace":
            self.text, self.fresh = "" if self.fresh else self.text[:-1], False
        elif character and character in "0123456789.,":
            self.text, self.fresh = character if self.fresh else self.text + character, False
        elif self.most and key in {"m", "x"}:
            self._set(self.least if key == "m" else self.most)
        elif key in {"left", "right"}:
            self._set(self._moved(-1 if key == "left" else 1))
        else:
            return False
        return True

    def shown(self, chosen: bool, glyphs: Glyphs) -> Text:
        caret = "_" if chosen and not self.fresh else ""
        style = "reverse" if chosen and self.fresh and self.text else "bold"
        bounds = f"   {self._bounds(glyphs)}" if self.most else ""
        return Text.assemble(
            (self.text or ("" if chosen and not self.fresh else self.nothing if self.empty is not None else ""), style),
            caret,
            (bounds, "dim"),
        )

    def _bounds(self, glyphs: Glyphs = SYMBOLS) -> str:
        least = figure(self.least, self.currency)
        return f"{least} {glyphs.dash} {figure(self.most, self.currency)}" if self.most else f"at least {least}"

    def _moved(self, by: int) -> int:
        try:
            now = parse_money(self.text, self.currency)
        except ValueError:
            return self.least
        moved = max(now + by * self.step, self.least)
        return min(moved, self.most) if self.most else moved

    def _set(self, amount: int) -> None:
        self.text, self.fresh = figure(amount, self.currency).replace(",", ""), True


@dataclass(slots=True)
class Line:
    """A text of at most `most` characters; a secret is not shown."""

    name: str
    label: str
    text: str = ""
    most: int = 64
    secret: bool = False
    needed: bool = False

    @property
    def value(self) -> object:
        if self.needed and not self.text.strip():
            raise ValueError(f"{self.label}: something must be typed")
        return self.text if self.secret else self.text.strip()

    @property
    def hint(self) -> str:
        return "type"

    def press(self, key: str, character: str) -> bool:
        if key == "backspace":
            self.text = self.text[:-1]
        elif key == "ctrl+u":
            self.text = ""
        elif character.isprintable() and character:
            self.text = (self.text + character)[: self.most]
        else:
            return False
        return True

    def shown(self, chosen: bool, glyphs: Glyphs) -> Text:
        text = "*" * len(self.text) if self.secret else self.text
        while cell_len(text) > 40:
            text = text[1:]
        return Text.assemble((text, "bold"), "_" if chosen else "")
