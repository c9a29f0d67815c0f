"""Questions in the middle of the screen: an amount, or one of a few answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from relance.play.glyphs import figure

Answer = TypeVar("Answer")


class AmountInput(Input):
    """An amount, with keys that set it: `shortcut` answers the new minor units, or None where the key is none."""

    def __init__(
        self, currency: int, shortcut: Callable[[str], int | None], *, id: str | None = None, disabled: bool = False
    ) -> None:
        super().__init__(restrict=r"[0-9.,]*", compact=True, id=id, disabled=disabled)
        self.currency = currency
        self.shortcut = shortcut

    def show(self, amount: int) -> None:
        """Set the amount; it is selected, so that typing replaces it."""
        self.value = figure(amount, self.currency).replace(",", "")
        self.action_select_all()

    def on_key(self, event: events.Key) -> None:
        amount = self.shortcut(event.key)
        if amount is not None:
            event.prevent_default()
            event.stop()
            self.show(amount)


class Dialog(ModalScreen[Answer]):
    """A box in the middle of what is there."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        width: 64; max-width: 100%; height: auto; border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog Static { height: auto; }
    Dialog Input { margin: 1 0; background: $boost; }
    """


class AmountDialog(Dialog[int | None]):
    """Asks for an amount. Answers None on escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_none", "back")]

    def __init__(
        self, title: str, hint: str, first: int, currency: int, read: Callable[[str], int], shortcut: dict[str, int]
    ) -> None:
        """read: the typed text as minor units; raises ValueError with what would be accepted."""
        super().__init__()
        self._heading, self._hint, self._first = title, hint, first
        self._read = read
        self._entry = AmountInput(currency, shortcut.get, id="amount")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._heading, "bold"))
            yield self._entry
            yield Static(Text(self._hint), id="hint")

    def on_mount(self) -> None:
        self._entry.show(self._first)
        self._entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            self.dismiss(self._read(event.value))
        except ValueError as wrong:
            self.query_one("#hint", Static).update(Text(f"{wrong}", "bold"))

    def action_dismiss_none(self) -> None:
        self.dismiss(None)


class AnswerDialog(Dialog[str]):
    """Asks a question with a few answers, each a key. Answers that key; empty on escape."""

    def __init__(self, question: str, answers: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._question, self._answers = question, tuple(answers)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._question, "bold"))
            for key, label in (*self._answers, ("esc", "back")):
                yield Static(Text.assemble("  ", (key, "bold reverse"), f" {label}"))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key == "escape":
            self.dismiss("")
        elif event.key in {key for key, _ in self._answers}:
            self.dismiss(event.key)
