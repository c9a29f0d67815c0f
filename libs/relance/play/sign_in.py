"""Who are you: sign in, or register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Button, Input, Static

from relance.api.common.v1 import game_pb2
from relance.client import RelanceError
from relance.play.refusals import line

if TYPE_CHECKING:
    from relance.play.app import PlayApp


class SignInScreen(Screen[None]):
    """Name and password; the password is shown to nobody and kept nowhere."""

    app: PlayApp
    CSS = """
    SignInScreen { align: center middle; }
    SignInScreen > Vertical { width: 56; max-width: 100%; height: auto; border: round $primary; padding: 0 1; }
    SignInScreen Input { margin: 0 0 1 0; }
    SignInScreen Static { height: auto; }
    SignInScreen Horizontal { height: auto; }
    SignInScreen Button { margin: 0 2 0 0; }
    """

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(f"Relance {self.app.glyphs.dot} {self.app.options.lobby}", "bold"))
            yield Input(self.app.options.name, placeholder="name", id="name", max_length=64)
            yield Input(self.app.options.password, placeholder="password", password=True, id="password", max_length=128)
            with Horizontal():
                yield Button("Sign in", id="sign-in", variant="primary")
                yield Button("Register", id="register")
            yield Static("", id="said")
            yield Static(Text("enter sign in  tab next  ^t light  F1 keys  ^q quit", "dim"))

    def on_mount(self) -> None:
        if self.app.options.name and self.app.options.password:
            self.enter(register=False)
        else:
            self.query_one("#password" if self.app.options.name else "#name", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "name":
            self.query_one("#password", Input).focus()
        else:
            self.enter(register=False)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.enter(register=event.button.id == "register")

    @work(exclusive=True)
    async def enter(self, *, register: bool) -> None:
        """Sign in, as somebody new where `register`; then the lobby."""
        name, password = self.query_one("#name", Input).value.strip(), self.query_one("#password", Input).value
        if not name or not password:
            self.say("Name and password, please.")
            return
        self.say("Signing in …")
        try:
            if register:
                await self.app.room.register(name, password)
            player = await self.app.room.sign_in(name, password)
        except RelanceError as refusal:
            self.say(line(refusal, game_pb2.CURRENCY_EUR, self.app.glyphs))
            return
        self.app.names[player] = name
        self.query_one("#password", Input).value = ""
        self.app.signed_in()

    def say(self, sentence: str) -> None:
        """Show one line."""
        self.query_one("#said", Static).update(Text(sentence, "bold"))
