"""What `relance up` shows: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel as Box
from rich.table import Table
from rich.text import Text

from relance.api.common.v1 import game_pb2
from relance.room.figures import Figures, money

LINE_SECONDS = 5.0
KEPT_SENTENCES = 6
WIDE = 130  # columns
HINT = "relance token --role floor --name ann: a token for operators; Ctrl-C drains"
LIMITS = {
    game_pb2.LIMIT_FIXED: "fixed",
    game_pb2.LIMIT_SPREAD: "spread",
    game_pb2.LIMIT_POT: "pot",
    game_pb2.LIMIT_HALF_POT: "half pot",
    game_pb2.LIMIT_NO_LIMIT: "no limit",
}


class ProcessLine(Protocol):
    """A process as the panel shows it."""

    name: str
    address: str
    state: str
    pid: int
    restarts: int
    megabytes: float


class Display(Protocol):
    """Where a room's news goes."""

    def say(self, sentence: str) -> None:
        """Something happened."""

    def tell(self, sentences: Sequence[str]) -> None:
        """What is to be read when all is over."""

    def show(self, figures: Figures | None, processes: Sequence[ProcessLine], audit: str) -> None:
        """The room as it is now; figures None: they cannot be read."""

    def close(self) -> None:
        """No more news."""


class Lines:
    """Plain lines, for files and pipes: each sentence at once, the figures every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0

    def say(self, sentence: str) -> None:
        """Print the sentence."""
        self._console.print(sentence, highlight=False, soft_wrap=True, markup=False)

    def tell(self, sentences: Sequence[str]) -> None:
        """Print them."""
        for sentence in sentences:
            self.say(sentence)

    def show(self, figures: Figures | None, processes: Sequence[ProcessLine], audit: str) -> None:
        """Print one line now and then."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        down = [line.name for line in processes if line.state != "up"]
        parts = [f"last audit: {audit}"]
        if figures is not None:
            parts.insert(0, f"{len(figures.tables)} tables, {figures.players} players, {totals(figures)}")
        if down:
            parts.append(f"not up: {', '.join(down)}")
        self.say("; ".join(parts))

    def close(self) -> None:
        """Nothing to put back."""


class LivePanel:
    """A panel that is drawn anew in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sentences: deque[str] = deque(maxlen=KEPT_SENTENCES)
        self._head = Text("starting", "bold")
        self._below: list[Table] = []
        self._last_words: list[str] = []
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._live.start()

    def say(self, sentence: str) -> None:
        """Add the sentence to the last few."""
        self._sentences.append(f"{time.strftime('%H:%M:%S')}  {sentence}")
        self._draw()

    def tell(self, sentences: Sequence[str]) -> None:
        """Keep them for the end: the panel is too small."""
        self._last_words += sentences

    def show(self, figures: Figures | None, processes: Sequence[ProcessLine], audit: str) -> None:
        """Draw the room."""
        self._head = Text(f"last audit: {audit}", "bold")
        self._below = [_services(processes)]
        if figures is not None:
            self._head = Text(f"{totals(figures)}\nlast audit: {audit}", "bold")
            self._below.append(_tables(figures, self._console.width))
        self._draw()

    def close(self) -> None:
        """Leave the last drawing on the screen, and below it what was to be read then."""
        self._live.stop()
        for sentence in self._last_words:
            self._console.print(sentence, highlight=False, soft_wrap=True, markup=False)

    def _draw(self) -> None:
        # What matters most comes first: a terminal that is too low cuts the end off.
        news = Text("\n".join(self._sentences), "dim", overflow="ellipsis", no_wrap=True)
        self._live.update(Box(Group(self._head, news, *self._below), title=f"Relance: {HINT}"), refresh=True)


def display(console: Console) -> Display:
    """The panel on a terminal, lines elsewhere."""
    return LivePanel(console) if console.is_terminal else Lines(console)


def totals(figures: Figures) -> str:
    """Rates and money in one line."""
    on_tables = ", ".join(money(amount, currency) for currency, amount in sorted(figures.money.items())) or "none"
    return (
        f"{figures.hands:,} hands, {figures.hands_a_minute:,.0f} a minute; "
        f"{figures.events:,} events, {figures.events_a_second:,.0f} a second; money on the tables: {on_tables}"
    )


def _services(processes: Sequence[ProcessLine]) -> Table:
    table = Table(box=None, expand=True)
    for heading, justify in (("process", "left"), ("address", "left"), ("state", "left"), ("pid", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("restarts", justify="right")
    table.add_column("MB", justify="right")
    for line in processes:
        state = Text(line.state, "green" if line.state == "up" else "red")
        table.add_row(line.name, line.address, state, str(line.pid or ""), str(line.restarts), f"{line.megabytes:.0f}")
    return table


def _tables(figures: Figures, width: int) -> Table:
    """One line a table. Where there is room its game and stakes stand beside its name, which mostly tells them."""
    table = Table(box=None, expand=True)
    table.add_column("table")  # gives way first
    for heading in ("house", *(("game", "stakes") if width >= WIDE else ())):
        table.add_column(heading, no_wrap=True)
    for heading in ("players", "hands", "an hour", "average pot", "on the table"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in figures.tables:
        config = row.config
        currency = config.currency
        stakes = "/".join(money(blind, currency).rsplit(" ", 1)[0] for blind in config.stakes.blinds)
        table.add_row(
            Text(config.display_name or row.name, no_wrap=True, overflow="ellipsis"),
            config.house,
            *((f"{config.game} {LIMITS.get(config.limit, '')}", stakes) if width >= WIDE else ()),
            f"{row.players}/{config.seats}",
            f"{row.last_hand:,}",
            f"{row.hands_per_hour:,.0f}",
            money(row.average_pot, currency),
            money(figures.escrow.get(row.name, 0), currency),
        )
    return table
