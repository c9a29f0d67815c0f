"""The terminal client: one room, one player, its screens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from textual import work
from textual.app import App, ScreenStackError
from textual.binding import Binding, BindingType

from relance.client import RelanceError, Room, Tls, connect
from relance.play.calls import CallBar
from relance.play.dialogs import Dialog
from relance.play.glyphs import SYMBOLS, Glyphs, currency_name, money
from relance.play.help import HelpScreen
from relance.play.lobby import LobbyScreen
from relance.play.refusals import line
from relance.play.sign_in import SignInScreen
from relance.play.table import TableScreen
from relance.play.waiting import Places
from relance.play.wishes import Wishes

DARK, LIGHT = "textual-dark", "textual-light"
# A lobby that does not answer for so long is said to be away, before any screen is drawn.
_FIRST_SECONDS = 5.0
_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """lobby: host:port; tls: how the room is reached, None: in plaintext. name, password: signed in with at once where
    both are given. light: a light screen.
    """

    lobby: str
    tls: Tls | None = None
    name: str = ""
    password: str = field(default="", repr=False)
    light: bool = False
    glyphs: Glyphs = SYMBOLS


def light_background(environ: Mapping[str, str]) -> bool:
    """Whether the terminal says that its background is light (COLORFGBG, "0;15")."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdigit() and int(background) in {7, 9, 10, 11, 12, 13, 14, 15}


async def play(options: PlayOptions) -> None:
    """Run the client until the player quits. Raises RelanceError where the lobby does not answer."""
    async with connect(options.lobby, tls=options.tls, patience=_FIRST_SECONDS, timeout=_FIRST_SECONDS) as probe:
        await probe.services()
    async with connect(options.lobby, tls=options.tls) as room:
        app = PlayApp(room, options)
        await app.run_async()
    if app.mistake is not None:
        raise app.mistake


class PlayApp(App[None]):
    """names: of players, by id, as far as they were asked for. kept: tables where the player left a seat behind.

    wishes: for new seats. places: what the player waits for, and the seats that are offered.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "light", "light/dark", priority=True),
        Binding("ctrl+q", "quit", "quit", priority=True),
        Binding("ctrl+y", "take_offer", "take the seat offered", priority=True),
        Binding("ctrl+n", "leave_offer", "leave the seat offered", priority=True),
        Binding("f1", "help", "help"),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "Relance"

    def __init__(self, room: Room, options: PlayOptions) -> None:
        super().__init__()
        self.room = room
        self.options = options
        self.glyphs = options.glyphs
        self.names: dict[str, str] = {}
        self.kept: set[str] = set()
        self.wishes = Wishes()
        self.places = Places(self)
        self.mistake: Exception | None = None

    @property
    def light(self) -> bool:
        """Whether the screen is light."""
        return self.theme == LIGHT

    def on_mount(self) -> None:
        self.theme = LIGHT if self.options.light else DARK
        self.push_screen(SignInScreen())

    def signed_in(self) -> None:
        """The player is known: the lobby, and what is offered from now on."""
        self.switch_screen(LobbyScreen())
        self.run_worker(self.places.follow(), group="offers", exclusive=True)
        self.set_interval(_TICK_SECONDS, self.show_call)

    def show_call(self) -> None:
        """What calls the player, on every screen: a turn at a table that is covered, a seat that is offered."""
        now = time.monotonic()
        turns = [screen.call(now) for screen in self._tables() if not screen.is_active]
        text = next(filter(None, turns), "") or self.places.offered.text(now)
        for screen in self.screen_stack:
            for bar in screen.query(CallBar):
                bar.show(text, self.glyphs)

    def _tables(self) -> list[TableScreen]:
        return [screen for screen in self.screen_stack if isinstance(screen, TableScreen)]

    def say(self, sentence: str) -> None:
        """Show one line, where the player looks."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, LobbyScreen | TableScreen):
                screen.say(sentence)
                return

    async def pause(self, seconds: float) -> None:
        """Wait before something is tried again."""
        await asyncio.sleep(seconds)

    def sit_at(self, table: str) -> None:
        """Go to a table and sit down there, wherever one is now."""
        there = next((screen for screen in self._tables() if screen.table_name == table), None)
        bases = (LobbyScreen, TableScreen) if there is None else (LobbyScreen,)
        while self.screen is not there and not isinstance(self.screen, bases):
            self._go_back()
        if there is None:
            self.push_screen(TableScreen(table, sit=True))
        else:
            there.sit()

    def _go_back(self) -> None:
        """Close the screen on top; what a dialog asked is answered as by escape."""
        if isinstance(self.screen, Dialog):
            self.screen.give_up()
        else:
            self.pop_screen()

    def show_as(self, *, four_colours: bool, light: bool) -> None:
        """The suits in four colours or two, on a light screen or a dark one."""
        self.glyphs = replace(self.glyphs, four_colours=four_colours)
        self.theme = LIGHT if light else DARK

    async def learn_names(self, players: Iterable[str]) -> None:
        """Ask the lobby for names that are not known yet. Raises RelanceError."""
        unknown = set(players) - self.names.keys() - {""}
        if unknown:
            self.names.update(await self.room.names(sorted(unknown)))

    def action_light(self) -> None:
        """Light or dark."""
        self.theme = DARK if self.theme == LIGHT else LIGHT

    def action_help(self) -> None:
        """The keys."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    @work(exclusive=True, group="offer")
    async def action_take_offer(self) -> None:
        """Take the seat that is offered."""
        await self.places.take()

    @work(exclusive=True, group="offer")
    async def action_leave_offer(self) -> None:
        """Leave the seat that is offered to the next."""
        await self.places.leave()

    async def action_quit(self) -> None:
        """Quit; who has a seat is asked first, a second time quits."""
        if isinstance(self.screen, TableScreen) and self.screen.seated:
            self.screen.ask_to_leave(quit=True)
        else:
            self.exit()

    async def draw_faucet(self, amount: int, currency: int) -> str:
        """Draw from the faucet; what came of it, in a line."""
        try:
            await self.room.faucet(amount, currency_name(currency))
        except RelanceError as refusal:
            return line(refusal, currency, self.glyphs)
        return f"{money(amount, currency, self.glyphs)} came from the faucet."

    def _handle_exception(self, error: Exception) -> None:
        """A mistake of ours ends the client; whoever called `play` reports it, without the values of variables."""
        if isinstance(error, ScreenStackError) and not self.screen_stack:
            # A key that was pressed while the screens were taken down: it meant nothing.
            return
        self.mistake = self.mistake or error
        super()._handle_exception(error)
        self._exit_renderables.clear()
