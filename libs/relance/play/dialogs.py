"""Questions in the middle of the screen with a few answers, each a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A box in the middle of what is there."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        width: 70; max-width: 100%; height: auto; border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog Static { height: auto; }
    """

    def give_up(self) -> None:
        """Go away as on escape."""
        raise NotImplementedError


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
            self.give_up()
        elif event.key in {key for key, _ in self._answers}:
            self.dismiss(event.key)

    def give_up(self) -> None:
        self.dismiss("")
