"""What calls a player wherever they are in the client: a turn at a table that another screen covers, a seat offered."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from relance.play.glyphs import Glyphs, fit


class CallBar(Static):
    """One line at the top of a screen while something calls; nothing otherwise."""

    DEFAULT_CSS = """
    CallBar { dock: top; height: 1; display: none; }
    CallBar.-shown { display: block; }
    """

    def show(self, text: str, glyphs: Glyphs) -> None:
        """The line; empty: none."""
        self.set_class(bool(text), "-shown")
        self.update(fit(Text(f" {text}", "bold reverse"), self.app.size.width, ellipsis=glyphs.ellipsis))
