"""The terminal client: one room, one player, its screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from relance.client import RelanceError, Room, Tls, connect
from relance.play.glyphs import SYMBOLS, Glyphs, currency_name, money
from relance.play.refusals import line
from relance.play.sign_in import SignInScreen
from relance.play.table import TableScreen

DARK, LIGHT = "textual-dark", "textual-light"
# A lobby that does not answer for so long is said to be away, before any screen is drawn.
_FIRST_SECONDS = 5.0


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
    """names: of players, by id, as far as they were asked for. kept: tables where the player left a seat behind."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "light", "light/dark", priority=True),
        Binding("ctrl+q", "quit", "quit", priority=True),
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
        self.mistake: Exception | None = None

    def on_mount(self) -> None:
        self.theme = LIGHT if self.options.light else DARK
        self.push_screen(SignInScreen())

    def action_light(self) -> None:
        """Light or dark."""
        self.theme = DARK if self.theme == LIGHT else LIGHT

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
        self.mistake = self.mistake or error
        super()._handle_exception(error)
        self._exit_renderables.clear()
