"""Hands that were played at a table, one after the other, as the player may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import RichLog, Static

from relance.client import RelanceError
from relance.play.refusals import line
from relance.play.story import Teller

if TYPE_CHECKING:
    from relance.play.app import PlayApp


class HandScreen(Screen[None]):
    """The events of one hand; left and right go to the hands before and after it."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "hand before"),
        Binding("right", "move(1)", "hand after"),
        Binding("escape,h", "app.pop_screen", "table"),
    ]
    CSS = """
    HandScreen Static { height: 1; }
    HandScreen RichLog { height: 1fr; background: $background; }
    """

    def __init__(self, table: str, last: int) -> None:
        super().__init__()
        self._table_name = table
        self._last = last
        self._number = last

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield RichLog(id="hand", wrap=True, min_width=10)
        yield Static(
            Text.assemble(
                ("left/right", "bold"), " other hands  ", ("up/down", "bold"), " scroll  ", ("esc", "bold"), " table"
            )
        )

    def on_mount(self) -> None:
        self.query_one(RichLog).focus()
        self.action_move(0)

    def action_move(self, by: int) -> None:
        """Show the hand `by` hands later."""
        self._number = min(max(self._number + by, 1), max(self._last, 1))
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        """Ask for the hand and tell it."""
        head, log = self.query_one("#head", Static), self.query_one(RichLog)
        head.update(Text(f"Hand {self._number} of {self._last}", "bold"))
        log.clear()
        try:
            events = await self.app.room.hand(self._table_name, self._number)
            config = (await self.app.room.table(self._table_name)).config
            await self._learn_names({getattr(event.data, "player", "") for event in events})
        except RelanceError as refusal:
            log.write(Text(line(refusal, 0, self.app.glyphs), "bold"))
            return
        teller = Teller(self.app.room.player, self.app.names, config.currency, self.app.glyphs)
        for event in events:
            told = teller.tell(event)
            if told is not None:
                log.write(told, scroll_end=False)

    async def _learn_names(self, players: set[str]) -> None:
        unknown = players - self.app.names.keys() - {""}
        if unknown:
            self.app.names.update(await self.app.room.names(sorted(unknown)))
