"""The lobby: tables in a list, filtered; the account; the way to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.client import RelanceError
from relance.play.catalogue import COLUMNS, ORDERS, details, matches, room_filter, row
from relance.play.dialogs import AmountDialog
from relance.play.glyphs import clean, money, parse_money
from relance.play.refusals import line
from relance.play.table import TableScreen

if TYPE_CHECKING:
    from relance.play.app import PlayApp

REFRESH_SECONDS = 5.0
_FAUCET = 100_000
_KEYS = (
    ("enter", "open"), ("/", "filter"), ("f", "free"), ("o", "order"), ("r", "refresh"), ("m", "money"),
    ("^t", "light"), ("^q", "quit"),
)  # fmt: skip


class LobbyScreen(Screen[None]):
    """The list is asked for again every few seconds, on `r`, and when the filter changes."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "focus_filter", "filter"),
        Binding("f", "free", "free seats"),
        Binding("o", "order", "order"),
        Binding("r", "refresh", "refresh"),
        Binding("m", "money", "money"),
        Binding("escape", "focus_list", "list"),
    ]
    CSS = """
    LobbyScreen Static { height: 1; }
    LobbyScreen Input { background: $boost; }
    LobbyScreen DataTable { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._tables: list[lobby_pb2.Table] = []
        self._shown: list[lobby_pb2.Table] = []
        self._free_only = False
        self._order = 0
        self._filter_said = ""

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        hint = '/ filter: words, or an expression as game = "holdem" AND big_blind <= 100'
        yield Input(placeholder=hint, id="filter", compact=True)
        yield DataTable(id="tables", cursor_type="row", zebra_stripes=False)
        yield Static(id="details")
        yield Static(id="said")
        yield Static(Text("  ").join(Text.assemble((key, "bold"), f" {label}") for key, label in _KEYS))

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for column in COLUMNS:
            table.add_column(column, key=column)
        table.focus()
        self.set_interval(REFRESH_SECONDS, self.refresh_list)
        self.refresh_list()

    def on_screen_resume(self) -> None:
        self.refresh_list()

    @work(exclusive=True, group="list")
    async def refresh_list(self) -> None:
        """Ask for tables and money, show them."""
        typed = self.query_one("#filter", Input).value.strip()
        room = self.app.room
        try:
            self._tables = await room.list_tables(
                room_filter(typed, free_only=self._free_only), ORDERS[self._order][0], limit=500
            )
            balances = await room.balance("eur"), await room.balance("credit")
        except RelanceError as refusal:
            self.say(line(refusal, game_pb2.CURRENCY_EUR, self.app.glyphs))
            return
        if self._filter_said:
            self.say("")
        self._head(*balances)
        self._list()

    def _head(self, euro: int, credit: int) -> None:
        app = self.app
        dot = f" {app.glyphs.dot} "
        parts = [
            "Relance",
            clean(app.names.get(app.room.player, "")),
            money(euro, game_pb2.CURRENCY_EUR, app.glyphs),
            money(credit, game_pb2.CURRENCY_CREDIT, app.glyphs),
            ORDERS[self._order][1],
            "free seats only" if self._free_only else "",
        ]
        self.query_one("#head", Static).update(Text(dot.join(part for part in parts if part), "bold"))

    def _list(self) -> None:
        """Show the tables that match, the cursor where it was."""
        typed = self.query_one("#filter", Input).value.strip()
        table: DataTable[Text] = self.query_one(DataTable)
        at = self._under_cursor()
        self._shown = [found for found in self._tables if matches(found, typed)]
        table.clear()
        for found in self._shown:
            cells = row(found, self.app.glyphs, seated=found.name in self.app.kept)
            table.add_row(*map(Text, cells), key=found.name)
        place = next((place for place, found in enumerate(self._shown) if at and found.name == at.name), 0)
        table.move_cursor(row=place)
        self._details()
        if not self._shown:
            self.say("No table matches." if self._tables else "No table is open.")

    def _under_cursor(self) -> lobby_pb2.Table | None:
        place = self.query_one(DataTable).cursor_row
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def _details(self) -> None:
        found = self._under_cursor()
        text = details(found, self.app.glyphs) if found is not None else ""
        self.query_one("#details", Static).update(Text(text, "italic"))

    def on_data_table_row_highlighted(self, _: DataTable.RowHighlighted) -> None:
        self._details()

    def on_data_table_row_selected(self, _: DataTable.RowSelected) -> None:
        found = self._under_cursor()
        if found is not None:
            self.app.push_screen(TableScreen(found.name))

    def on_input_changed(self, _: Input.Changed) -> None:
        self._list()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.action_focus_list()
        self.refresh_list()

    def action_focus_filter(self) -> None:
        self.query_one("#filter", Input).focus()

    def action_focus_list(self) -> None:
        self.query_one(DataTable).focus()

    def action_free(self) -> None:
        self._free_only = not self._free_only
        self.refresh_list()

    def action_order(self) -> None:
        self._order = (self._order + 1) % len(ORDERS)
        self.refresh_list()

    def action_refresh(self) -> None:
        self.refresh_list()

    @work(exclusive=True, group="money")
    async def action_money(self) -> None:
        """Draw from the room's development faucet, in the currency of the table under the cursor."""
        found = self._under_cursor()
        currency = found.config.currency if found is not None else game_pb2.CURRENCY_EUR
        amount = await self.app.push_screen_wait(
            AmountDialog(
                "From the faucet (play rooms only)", "enter: draw   esc: back", _FAUCET, currency,
                lambda text: parse_money(text, currency), {},
            )
        )  # fmt: skip
        if amount is not None:
            self.say(await self.app.draw_faucet(amount, currency))
            self.refresh_list()

    def say(self, sentence: str) -> None:
        """Show one line."""
        self._filter_said = sentence
        self.query_one("#said", Static).update(Text(sentence, "bold"))
