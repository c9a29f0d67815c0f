"""The player's own hands at a table with the result of the sitting; one hand as the player may see it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, RichLog, Static

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.client import RelanceError
from relance.play.calls import CallBar
from relance.play.glyphs import Align, Glyphs, cards_text, figure, fit, money, signed
from relance.play.refusals import line
from relance.play.story import Teller

if TYPE_CHECKING:
    from relance.play.app import PlayApp

MOST_HANDS = 200
_COLUMNS: tuple[tuple[str, int, Align], ...] = (
    ("Hand", 7, "right"), ("Time", 7, "right"), ("  Your cards", 18, "left"), ("Board", 13, "left"),
    ("Pot", 11, "right"), ("You put in", 11, "right"), ("Result", 12, "right"),
)  # fmt: skip


class HandsScreen(Screen[None]):
    """Own hands, newest first; enter shows one."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,h", "app.pop_screen", "table"),
        Binding("a", "any", "any hand"),
        Binding("question_mark", "app.help", "keys"),
    ]
    CSS = """
    HandsScreen Static { height: 1; }
    HandsScreen #session { height: auto; }
    HandsScreen DataTable { height: 1fr; scrollbar-size: 1 1; }
    """

    def __init__(self, table: str, view: pb.TableView) -> None:
        super().__init__()
        self._table_name, self._currency, self._last = table, view.config.currency, view.last_hand
        self._hands: list[pb.HandSummary] = []

    def compose(self) -> ComposeResult:
        yield CallBar()
        yield Static(Text("Your hands at this table", "bold"), id="head")
        yield Static(Text("Asking …"), id="session")
        yield DataTable(id="hands", cursor_type="row", cell_padding=0)
        keys = (("enter", "the hand"), ("a", "the table's last hand"), ("up/down", "scroll"), ("esc", "table"))
        yield Static(Text("  ").join(Text.assemble((key, "bold"), f" {label}") for key, label in keys))

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for title, width, align in _COLUMNS:
            table.add_column(fit(Text(title), width, align), width=width)
        table.focus()
        self.load()

    @work(exclusive=True)
    async def load(self) -> None:
        """Ask for the sitting and for the hands."""
        said = self.query_one("#session", Static)
        table: DataTable[Text] = self.query_one(DataTable)
        try:
            self._hands = await self.app.room.hands(self._table_name, limit=MOST_HANDS)
            session = await self.app.room.session(self._table_name)
        except RelanceError as refusal:
            said.update(
                "You have not sat at this table." if refusal.reason == "NOT_SEATED" else line(refusal, self._currency)
            )
        else:
            said.update(Text(session_text(session, self._currency, self.app.glyphs)))
        for hand in self._hands:
            table.add_row(*hand_row(hand, self._currency, self.app.glyphs), key=str(hand.hand))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self.app.push_screen(HandScreen(self._table_name, int(event.row_key.value or 1), self._last))

    def action_any(self) -> None:
        """The last hand of the table, and from there any."""
        self.app.push_screen(HandScreen(self._table_name, self._last, self._last))


def session_text(session: pb.Session, currency: int, glyphs: Glyphs) -> str:
    """The result of a sitting."""
    over = session.end_time_us > 0
    minutes = max((session.end_time_us or round(time.time() * 1e6)) - session.start_time_us, 0) // 60_000_000
    dot = f" {glyphs.dot} "
    which = "Last sitting" if over else "This sitting"
    parts = [
        f"{which}: {session.hands} {'hand' if session.hands == 1 else 'hands'} in {minutes // 60}:{minutes % 60:02d} h",
        f"in {money(session.bought_in, currency, glyphs)}",
        f"{'out' if over else 'now'} {money(session.cashed_out, currency, glyphs)}",
        signed(session.net, currency, glyphs),
    ]
    return dot.join(parts)


def hand_row(hand: pb.HandSummary, currency: int, glyphs: Glyphs) -> list[Text]:
    """The cells of a hand."""
    result = "void" if hand.void else "runs" if not hand.end_time_us else signed(hand.net, currency, glyphs)
    texts = [
        Text(str(hand.hand)),
        Text(time.strftime("%H:%M", time.localtime(hand.start_time_us / 1e6))),
        Text.assemble("  ", cards_text(hand.cards, glyphs, gap=" " if len(hand.cards) <= 10 else "")),
        cards_text(hand.board, glyphs, gap=""),
        Text(figure(hand.pot, currency) if hand.pot else glyphs.dash),
        Text(figure(hand.contributed, currency) if hand.end_time_us else glyphs.dash),
        Text(result, "bold" if hand.net > 0 else ""),
    ]
    return [fit(text, width, align, glyphs.ellipsis) for text, (_, width, align) in zip(texts, _COLUMNS, strict=True)]


class HandScreen(Screen[None]):
    """The events of one hand; left and right go to the hands before and after it."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "hand before"),
        Binding("right", "move(1)", "hand after"),
        Binding("escape,h", "app.pop_screen", "back"),
        Binding("question_mark", "app.help", "keys"),
    ]
    CSS = """
    HandScreen Static { height: 1; }
    HandScreen RichLog { height: 1fr; background: $background; scrollbar-size: 1 1; }
    """

    def __init__(self, table: str, number: int, last: int) -> None:
        super().__init__()
        self._table_name = table
        self._last = last
        self._number = number

    def compose(self) -> ComposeResult:
        yield CallBar()
        yield Static(id="head")
        yield RichLog(id="hand", wrap=True, min_width=10)
        keys = (("left/right", "other hands"), ("up/down", "scroll"), ("esc", "back"))
        yield Static(Text("  ").join(Text.assemble((key, "bold"), f" {label}") for key, label in keys))

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
            await self.app.learn_names(getattr(event.data, "player", "") for event in events)
        except RelanceError as refusal:
            log.write(Text(line(refusal, game_pb2.CURRENCY_EUR, self.app.glyphs), "bold"))
            return
        teller = Teller(self.app.room.player, self.app.names, config.currency, self.app.glyphs)
        for event in events:
            told = teller.tell(event)
            if told is not None:
                log.write(told, scroll_end=False)
