"""A form in the middle of the screen: rows of choices, amounts and texts, all by keyboard."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from relance.play.dialogs import Dialog
from relance.play.glyphs import Glyphs
from relance.play.rows import Row


class Answers(dict[str, object]):
    """What a form was filled in with, by the rows' names."""

    def amount(self, name: str) -> int:
        """A whole number."""
        value = self[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        """A text."""
        value = self[name]
        assert isinstance(value, str)
        return value


class Form(Dialog[Answers | None]):
    """Asks for several values at once. Answers them by name; None on escape.

    `do`: what enter does, in a word.
    """

    DEFAULT_CSS = """
    Form #hint { color: $text-muted; }
    """

    def __init__(self, title: str, rows: Sequence[Row], do: str, glyphs: Glyphs) -> None:
        super().__init__()
        self.rows = list(rows)
        self._heading, self._do, self._glyphs = title, do, glyphs
        self._at = 0
        self._wrong = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._heading, "bold"))
            yield Static(id="rows")
            yield Static(id="hint")
            yield Static(id="wrong")

    def on_mount(self) -> None:
        self.draw()

    def draw(self) -> None:
        """All rows anew."""
        wide = max(len(row.label) for row in self.rows)
        lines = []
        for place, row in enumerate(self.rows):
            chosen = place == self._at
            mark = f"{self._glyphs.turn} " if chosen else "  "
            label = Text(f"{mark}{row.label:<{wide}}  ", "bold" if chosen else "")
            lines.append(Text.assemble(label, row.shown(chosen, self._glyphs)))
        self.query_one("#rows", Static).update(Text("\n").join(lines))
        moves = "up/down: row   " if len(self.rows) > 1 else ""
        hint = f"{self.rows[self._at].hint}\n{moves}enter: {self._do}   esc: back"
        self.query_one("#hint", Static).update(Text(hint))
        self.query_one("#wrong", Static).update(Text(self._wrong, "bold"))
        self.query_one("#wrong", Static).display = bool(self._wrong)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self._wrong = ""
        key = event.key
        if key == "escape":
            self.give_up()
        elif key == "enter":
            self._finish()
        elif key in {"up", "shift+tab"}:
            self._at = (self._at - 1) % len(self.rows)
        elif key in {"down", "tab"}:
            self._at = (self._at + 1) % len(self.rows)
        else:
            self.rows[self._at].press(key, event.character or "")
        if self.is_current:
            self.draw()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        for letter in event.text.splitlines()[0] if event.text else "":
            self.rows[self._at].press(letter, letter)
        self.draw()

    def give_up(self) -> None:
        self.dismiss(None)

    def _finish(self) -> None:
        values = Answers()
        for place, row in enumerate(self.rows):
            try:
                values[row.name] = row.value
            except ValueError as wrong:
                self._at, self._wrong = place, str(wrong)
                return
        self.dismiss(values)
