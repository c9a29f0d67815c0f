"""The lobby: tables as they change, filtered and in order; the account; the way to a table."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import DataTable, Input, Static

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.client import RelanceError
from relance.play.calls import CallBar
from relance.play.catalogue import NARROW, ORDERS, WIDE, Column, Listed, cells, details, matches
from relance.play.filters import Wanted, filter_form, is_expression, wanted_by
from relance.play.form import Form
from relance.play.glyphs import clean, fit, money
from relance.play.notices import notice_bar, notices_text
from relance.play.private import open_private
from relance.play.refusals import line
from relance.play.rows import Amount
from relance.play.table import TableScreen
from relance.play.waiting import places_text
from relance.play.wishes import ask_wishes

if TYPE_CHECKING:
    from relance.play.app import PlayApp

DRAW_SECONDS = 0.4
"""The list is drawn at most so often, however fast it changes."""
LOOK_SECONDS = 5.0
"""How often is asked for what no stream tells: money, places in line, notices of seats left behind."""
_AWAY = "The lobby does not answer; trying again …"
_FAUCET = 100_000
_WIDE_FROM = 110
_KEYS = (
    ("enter", "open"), ("/", "search"), ("f", "filter"), ("o", "order"), ("w", "wait"), ("n", "private"),
    ("m", "money"), ("e", "preferences"), ("r", "ask anew"), ("?", "keys"), ("^q", "quit"),
)  # fmt: skip
_ONLY_WIDE = frozenset({"m", "e", "r"})


class LobbyScreen(Screen[None]):
    """The list follows the room over a stream; where there is none it asks now and then, until there is one again."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "focus_filter", "search"),
        Binding("f", "filter", "filter"),
        Binding("x", "no_filter", "no filter"),
        Binding("o", "order(1)", "order"),
        Binding("O", "order(-1)", "order before"),
        Binding("r", "refresh", "ask anew"),
        Binding("w", "wait", "wait"),
        Binding("n", "private", "private table"),
        Binding("m", "money", "money"),
        Binding("e", "wishes", "preferences"),
        Binding("k", "seen", "notice seen"),
        Binding("question_mark", "app.help", "keys"),
        Binding("escape", "focus_list", "list"),
    ]
    CSS = """
    LobbyScreen Static { height: 1; }
    LobbyScreen #details { height: 2; }
    LobbyScreen #places, LobbyScreen #notice { display: none; }
    LobbyScreen #places.-shown, LobbyScreen #notice.-shown { display: block; }
    LobbyScreen Input { background: $boost; }
    LobbyScreen DataTable { height: 1fr; scrollbar-size: 1 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        # Held here, not looked up: what is still said while the screen is taken apart finds them all the same.
        self._lines = {name: Static(id=name) for name in ("head", "details", "notice", "places", "said", "keys")}
        hint = '/ search: words, or an expression as game = "holdem" AND low_limit <= 100'
        self._search = Input(placeholder=hint, id="filter", compact=True)
        self._rows: DataTable[Text] = DataTable(id="tables", cursor_type="row", cell_padding=0)
        self._tables: dict[str, lobby_pb2.Table] = {}
        self._shown: list[lobby_pb2.Table] = []
        self._drawn: list[tuple[str, ...]] = []
        self._columns: tuple[Column, ...] = ()
        self._order = 0
        self._wanted = Wanted()
        self._houses: set[str] = set()
        self._invited: set[str] = set()
        self._balances: tuple[int, int] | None = None
        self._noticed: dict[str, str] = {}
        self._live = False
        self._said = ""
        self._drawing: Timer | None = None

    def compose(self) -> ComposeResult:
        yield CallBar()
        yield self._lines["head"]
        yield self._search
        yield self._rows
        yield self._lines["details"]
        yield self._lines["notice"]
        yield self._lines["places"]
        yield self._lines["said"]
        yield self._lines["keys"]

    def on_mount(self) -> None:
        self._rows.focus()
        self.set_interval(LOOK_SECONDS, self.look)
        self.follow_tables()

    def on_screen_resume(self) -> None:
        self.look()

    def on_resize(self) -> None:
        self.draw()

    @work(exclusive=True, group="tables")
    async def follow_tables(self) -> None:
        """Stay on the room's list, in the tables that the filter lets through."""
        typed = self._search.value.strip()
        expression = typed if is_expression(typed) else ""
        room = self.app.room
        while True:
            try:
                async for tables in room.watch_tables(expression, lost=self._lost):
                    self._came(tables)
            except RelanceError as refusal:
                self._lost(refusal)
                if refusal.reason in {"INVALID_FILTER", "FIELD_INVALID"}:
                    self.say(line(refusal, 0, self.app.glyphs))
                    return
            try:
                self._came({table.name: table for table in await room.list_tables(expression, limit=500)})
            except RelanceError as refusal:
                self._lost(refusal)
            await self.app.pause(LOOK_SECONDS)

    def _came(self, tables: dict[str, lobby_pb2.Table]) -> None:
        self._tables, self._live = tables, True
        self._houses |= {table.config.house for table in tables.values()}
        self.draw_soon()

    def _lost(self, refusal: RelanceError) -> None:
        self._live = False
        self.draw()

    @work(exclusive=True, group="look")
    async def look(self) -> None:
        """Ask for what no stream tells; what cannot be had now is as it was."""
        room, places = self.app.room, self.app.places
        try:
            self._invited = {invite.table for invite in await room.private.invites()}
            if places.waits:
                await places.refresh()
            for table in sorted(self.app.kept):
                notices = await room.notices(table)
                self._noticed[table] = notices_text(notices, self._currency(table), self.app.glyphs)
                if any(notice.kind == "CASHED_OUT" for notice in notices):
                    self.app.kept.discard(table)
            self.draw()
            self._balances = await room.balance("eur"), await room.balance("credit")
        except RelanceError:
            return
        self.draw()

    def _currency(self, table: str) -> int:
        found = self._tables.get(table)
        return found.config.currency if found is not None else game_pb2.CURRENCY_EUR

    def draw_soon(self) -> None:
        """Draw once what changes in a short while."""
        if self._drawing is None:
            self._drawing = self.set_timer(DRAW_SECONDS if self._drawn else 0.01, self.draw)

    def draw(self) -> None:
        """Everything anew from the state."""
        self._drawing = None
        if not self.is_mounted:
            return
        self._list()
        self._keys()
        self._head()
        self._details()
        places = self.app.places
        waits = f"You wait: {places_text(places.waits, places.titles, self.app.glyphs)}" if places.waits else ""
        self._line("places", waits)
        notice = next((text for text in self._noticed.values() if text), "")
        bar = self._lines["notice"]
        bar.set_class(bool(notice), "-shown")
        bar.update(notice_bar(notice, self.size.width, self.app.glyphs))
        self._status()

    def _keys(self) -> None:
        """The keys that most people need; ? shows all."""
        few = self.size.width < _WIDE_FROM
        shown = [(key, label) for key, label in _KEYS if not few or key not in _ONLY_WIDE]
        text = Text("  ").join(Text.assemble((key, "bold"), f" {label}") for key, label in shown)
        self._lines["keys"].update(text)

    def _line(self, name: str, text: str) -> None:
        """A line that is there only while it says something."""
        static = self._lines[name]
        static.set_class(bool(text), "-shown")
        static.update(fit(Text(text, "bold"), self.size.width, ellipsis=self.app.glyphs.ellipsis))

    def _head(self) -> None:
        app, glyphs = self.app, self.app.glyphs
        dot = f" {glyphs.dot} "
        euro, credit = self._balances or (None, None)
        parts = [
            "Relance",
            clean(app.names.get(app.room.player, "")),
            money(euro, game_pb2.CURRENCY_EUR, glyphs) if euro is not None else "",
            money(credit, game_pb2.CURRENCY_CREDIT, glyphs) if credit is not None else "",
            f"{len(self._shown)} tables, {ORDERS[self._order].words} first" if self._shown else "",
        ]
        state = f"{glyphs.on} live" if self._live else f"{glyphs.off} NO ANSWER"
        left = fit(
            Text(dot.join(filter(None, parts)), "bold"), self.size.width - len(state) - 1, ellipsis=glyphs.ellipsis
        )
        self._lines["head"].update(Text.assemble(left, " ", (state, "green" if self._live else "bold red reverse")))

    def _list(self) -> None:
        """The tables that match, the cursor where it was. Only what changed is drawn again."""
        typed = self._search.value.strip()
        table = self._rows
        at = self._under_cursor()
        columns = WIDE if self.size.width >= _WIDE_FROM else NARROW
        listed = ORDERS[self._order].sorted([found for found in self._tables.values() if matches(found, typed)])
        rows = [cells(self._listed(found), columns, self.app.glyphs) for found in listed]
        drawn = [tuple(cell.plain for cell in row) for row in rows]
        same = columns is self._columns and [found.name for found in self._shown] == [found.name for found in listed]
        self._shown, before, self._drawn = listed, self._drawn, drawn
        if same:
            for place, row in enumerate(rows):
                for number, cell in enumerate(row):
                    if before[place][number] != cell.plain:
                        table.update_cell_at((place, number), cell)  # type: ignore[arg-type]
            return
        if columns is not self._columns:
            self._columns = columns
            table.clear(columns=True)
            for column in columns:
                title = fit(Text(column.title), column.width - 1, column.align)
                table.add_column(Text.assemble(" ", title) if column.align == "right" else title, width=column.width)
        table.clear()
        for found, row in zip(listed, rows, strict=True):
            table.add_row(*row, key=found.name)
        place = next((place for place, found in enumerate(listed) if at is not None and found.name == at.name), 0)
        table.move_cursor(row=place)

    def _listed(self, table: lobby_pb2.Table) -> Listed:
        return Listed(table, table.name in self.app.kept, table.name in self._invited)

    def _under_cursor(self) -> lobby_pb2.Table | None:
        place = self._rows.cursor_row
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def _details(self) -> None:
        found = self._under_cursor()
        lines = details(self._listed(found), self.app.glyphs) if found is not None else ("", "")
        fitted = [fit(Text(text, "italic"), self.size.width, ellipsis=self.app.glyphs.ellipsis) for text in lines]
        self._lines["details"].update(Text("\n").join(fitted))

    def _status(self) -> None:
        """The last line said; that the lobby is away; that there is nothing."""
        empty = ""
        if not self._shown and self._live:
            empty = "No table matches (x: no filter)." if self._tables or self._filtered() else "No table is open."
        text = _AWAY if not self._live else self._said or empty
        self._lines["said"].update(fit(Text(text, "bold"), self.size.width, ellipsis=self.app.glyphs.ellipsis))

    def _filtered(self) -> bool:
        return bool(self._search.value.strip())

    def on_data_table_row_highlighted(self, _: DataTable.RowHighlighted) -> None:
        self._details()

    def on_data_table_row_selected(self, _: DataTable.RowSelected) -> None:
        found = self._under_cursor()
        if found is not None:
            self.say("")
            self.app.push_screen(TableScreen(found.name))

    def on_input_changed(self, _: Input.Changed) -> None:
        self.draw()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.action_focus_list()
        self.say("")
        self.follow_tables()

    def action_focus_filter(self) -> None:
        self._search.focus()

    def action_focus_list(self) -> None:
        self._rows.focus()

    @work(exclusive=True, group="ask")
    async def action_filter(self) -> None:
        """A form that writes the expression."""
        houses = self._houses or {"boulevard"}
        answers = await self.app.push_screen_wait(filter_form(self._wanted, houses, self.app.glyphs))
        if answers is not None:
            self._wanted = wanted_by(answers)
            self._search_for(self._wanted.expression())

    def action_no_filter(self) -> None:
        self._wanted = Wanted()
        self._search_for("")

    def _search_for(self, expression: str) -> None:
        self._search.value = expression
        self.say("")
        self.follow_tables()

    def action_order(self, by: int) -> None:
        """The next order of the list, or the one before."""
        self._order = (self._order + by) % len(ORDERS)
        self.draw()

    def action_refresh(self) -> None:
        self.follow_tables()
        self.look()

    @work(exclusive=True, group="ask")
    async def action_wait(self) -> None:
        """Wait for a seat at the table under the cursor, or at any like it."""
        found = self._under_cursor()
        if found is not None:
            await self._do(self.app.places.ask(found.name, found.config))

    @work(exclusive=True, group="ask")
    async def action_wishes(self) -> None:
        """Preferences."""
        await self._do(ask_wishes(self.app))

    @work(exclusive=True, group="ask")
    async def action_private(self) -> None:
        """Open a private table like the one under the cursor, and go there."""
        found = self._under_cursor()
        if found is None:
            self.say("Put the cursor on a table of the game that you want.")
            return
        try:
            table = await open_private(self.app, found.config)
        except RelanceError as refusal:
            self.say(line(refusal, found.config.currency, self.app.glyphs))
            return
        if table:
            self.app.push_screen(TableScreen(table, greeting="The table is yours: g invites friends, s sits down."))

    @work(exclusive=True, group="ask")
    async def action_money(self) -> None:
        """Draw from the room's development faucet, in the currency of the table under the cursor."""
        found = self._under_cursor()
        currency = found.config.currency if found is not None else game_pb2.CURRENCY_EUR
        row = Amount("amount", "Amount", currency, 1, first=_FAUCET, step=_FAUCET)
        answers = await self.app.push_screen_wait(
            Form("From the faucet (play rooms only)", [row], "draw", self.app.glyphs)
        )
        if answers is not None:
            self.say(await self.app.draw_faucet(answers.amount("amount"), currency))
            self.look()

    @work(exclusive=True, group="seen")
    async def action_seen(self) -> None:
        """The notice that is shown was seen."""
        table = next((table for table, text in self._noticed.items() if text), "")
        if table:
            del self._noticed[table]
            await self._do(self._acknowledge(table))

    async def _acknowledge(self, table: str) -> str:
        await self.app.room.acknowledge(table)
        return ""

    async def _do(self, command: Awaitable[str]) -> None:
        """Do something, and say what came of it."""
        try:
            self.say(await command)
        except RelanceError as refusal:
            self.say(line(refusal, game_pb2.CURRENCY_EUR, self.app.glyphs))
        self.draw()

    def say(self, sentence: str) -> None:
        """Show one line."""
        self._said = sentence
        self._status()
