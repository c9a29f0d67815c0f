"""All keys on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from relance.play.calls import CallBar
from relance.play.glyphs import clean

if TYPE_CHECKING:
    from relance.play.app import PlayApp

KEYS: Final = (
    ("Your turn", (
        ("f", "fold"), ("c", "check, call"), ("r b", "bet, raise: then an amount"), ("a", "all-in"),
        ("i", "bring in"), ("1-9", "mark cards to exchange"), ("enter", "exchange, stand pat, yes"),
        ("p", "post"), ("s m", "show, muck"), ("o y n", "split: offer, yes, no"),
    )),
    ("An amount", (
        ("m", "the least"), ("h", "half the pot"), ("p", "the pot"), ("x", "the most"),
        ("up down", "a step more, less"), ("enter", "send"), ("esc", "back to the choices"),
    )),
    ("At a table", (
        ("s 1-9 0", "sit down: anywhere, there"), ("z", "sit out (now, next blind), in"), ("t", "more chips"),
        ("l", "leave: after the hand, now"), ("/", "talk"), ("v", "talk only, or everything"),
        ("e", "preferences"), ("h", "your hands and result"), ("w", "wait for a seat"), ("g", "guests (private)"),
        ("k", "notice seen"), ("esc", "lobby; the seat kept or not"),
    )),
    ("In the lobby", (
        ("enter", "open the table"), ("/", "search: words, expression"), ("f", "filter"), ("x", "no filter"),
        ("o O", "next order, order before"), ("w", "wait for a seat"), ("n", "new private table"),
        ("m", "money (play rooms)"), ("e", "preferences"), ("r", "ask anew"), ("k", "notice seen"),
    )),
    ("Everywhere", (
        ("^y ^n", "a seat offered: take, leave"), ("? F1", "this"), ("^t", "light or dark"), ("^q", "quit"),
    )),
)  # fmt: skip


class HelpScreen(Screen[None]):
    """The keys; escape goes back."""

    app: PlayApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "app.pop_screen", "back")]
    CSS = """
    HelpScreen #foot { dock: bottom; height: 1; }
    HelpScreen VerticalScroll { height: 1fr; scrollbar-size: 1 1; }
    """

    def compose(self) -> ComposeResult:
        yield CallBar()
        with VerticalScroll():
            yield Static(id="keys")
        me = self.app.room.player
        who = f"You are {clean(self.app.names.get(me, me))}, id {me}.   " if me else ""
        yield Static(Text.assemble(who, ("up/down", "bold"), " scroll  ", ("esc", "bold"), " back"), id="foot")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(help_text(self.size.width - 2))


def help_text(width: int) -> Text:
    """The keys, in as many columns as there is room for."""
    columns = max(width // 39, 1)
    blocks: list[list[Text]] = [[] for _ in range(columns)]
    for title, keys in KEYS:
        shortest = min(blocks, key=len)
        shortest.append(Text(title, "bold underline"))
        shortest += [Text.assemble((f"{key:>8}", "bold"), f"  {meaning}") for key, meaning in keys]
        shortest.append(Text(""))
    wide = width // columns
    lines = []
    for at in range(max(map(len, blocks))):
        parts = [block[at].copy() if at < len(block) else Text("") for block in blocks]
        for part in parts:
            part.truncate(wide, pad=True)
        lines.append(Text("").join(parts))
    return Text("\n").join(lines)
