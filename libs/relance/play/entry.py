"""The lines in which something is typed at a table: a bet or raise, and what one says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from relance.play.answering import Answering
from relance.play.choices import shortcuts_text
from relance.play.glyphs import figure, parse_money

LONGEST_TALK: Final = 128


class AmountInput(Input):
    """An amount, with keys that set it: `shortcut` answers the new minor units, or None where the key is none."""

    def __init__(self, shortcut: Callable[[str], int | None], *, id: str) -> None:
        super().__init__(restrict=r"[0-9.,]*", compact=True, id=id, disabled=True)
        self.shortcut = shortcut

    def on_key(self, event: events.Key) -> None:
        if self.shortcut(event.key) is not None:
            event.prevent_default()
            event.stop()


class BetEntry(Horizontal):
    """The amount of a bet, there while one is being entered."""

    DEFAULT_CSS = """
    BetEntry { height: 1; display: none; }
    BetEntry.-shown { display: block; }
    BetEntry #label { width: auto; }
    BetEntry #amount { width: 12; background: $boost; }
    BetEntry #shortcuts { width: 1fr; margin-left: 1; }
    """

    def __init__(self, doing: Answering) -> None:
        super().__init__()
        self._doing = doing
        self._currency = 0
        self._label, self._keys = Static(id="label"), Static(id="shortcuts")
        self._amount = AmountInput(self._shortcut, id="amount")

    def compose(self) -> ComposeResult:
        yield self._label
        yield self._amount
        yield self._keys

    @property
    def typed(self) -> int:
        """What is typed, minor units; 0: nothing that is an amount."""
        if self._doing.entry is None:
            return 0
        try:
            return parse_money(self._amount.value, self._currency)
        except ValueError:
            return 0

    def follow(self, currency: int, width: int) -> bool:
        """Come and go with what the player does; whether it just went."""
        doing = self._doing
        shown = doing.entry is not None
        if shown == self.has_class("-shown"):
            return False
        self._currency = currency
        self.set_class(shown, "-shown")
        amount = self._amount
        amount.disabled = not shown
        if doing.entry is None or doing.sizes is None:
            return True
        label = f"{doing.entry.sized.capitalize()} "
        self._label.update(label)
        self._keys.update(shortcuts_text(doing.sizes, currency, width - len(label) - 14))
        self._set(doing.sizes.least)
        amount.focus()
        return False

    def _shortcut(self, key: str) -> int | None:
        """Do what a key says: sizes by letters, steps by arrows."""
        sizes = self._doing.sizes
        if sizes is None:
            return None
        if key in {"up", "down"}:
            total: int | None = sizes.moved(self.typed, 1 if key == "up" else -1) if self.typed else sizes.least
        else:
            total = sizes.shortcut(key)
        if total is not None:
            self._set(total)
        return total

    def _set(self, amount: int) -> None:
        """The amount, selected, so that typing replaces it."""
        self._amount.value = figure(amount, self._currency).replace(",", "")
        self._amount.action_select_all()


class TalkEntry(Horizontal):
    """A line to say, there while it is being written."""

    DEFAULT_CSS = """
    TalkEntry { height: 1; display: none; }
    TalkEntry.-shown { display: block; }
    TalkEntry Static { width: auto; }
    TalkEntry Input { width: 1fr; background: $boost; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = Input(id="words", compact=True, max_length=LONGEST_TALK, disabled=True)
        """Where it is written."""

    def compose(self) -> ComposeResult:
        yield Static("Say  ")
        yield self.words

    @property
    def open(self) -> bool:
        """Whether a line is being written."""
        return not self.words.disabled

    def show(self, *, shown: bool) -> None:
        """Begin with an empty line, or end."""
        self.set_class(shown, "-shown")
        self.words.disabled = not shown
        self.words.value = ""
