"""A table: followed over its stream, drawn, played with the keyboard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widgets import Input, RichLog, Static

from relance.api.table.v1 import table_pb2 as pb
from relance.client import Events, RelanceError, Seat
from relance.play.answering import Answer, Answering
from relance.play.buying import BuyIn, TopUp, buy
from relance.play.choices import shortcuts_text
from relance.play.dialogs import AmountInput, AnswerDialog
from relance.play.drawing import Scene, draw_table
from relance.play.glyphs import clean, money
from relance.play.hands import HandScreen
from relance.play.panel import Clock, Panel, head_text, keys_text, panel_text
from relance.play.recap import Recap
from relance.play.refusals import line
from relance.play.story import Teller

if TYPE_CHECKING:
    from relance.play.app import PlayApp

TICK_SECONDS = 0.25
STORY_LINES = 1000


class Felt(Static):
    """The table's drawing, as large as there is room."""

    scene: Scene | None = None

    def show(self, scene: Scene) -> None:
        """Draw another scene."""
        self.scene = scene
        self.refresh()

    def render(self) -> Text:
        return (
            draw_table(self.scene, self.size.width, self.size.height) if self.scene is not None else Text("Joining …")
        )


class Story(RichLog):
    """What happened, line by line, wrapped anew when there is more or less room."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="story", wrap=True, max_lines=STORY_LINES, min_width=10)
        self._told: deque[Text] = deque(maxlen=STORY_LINES)
        self._wide = 0

    def tell(self, text: Text) -> None:
        """One more line."""
        self._told.append(text)
        self.write(text)

    def on_resize(self, event: events.Resize) -> None:
        before, self._wide = self._wide, event.size.width
        if before not in {0, self._wide}:
            self.clear()
            for text in self._told:
                self.write(text)


class TableScreen(Screen[None]):
    """One table. Closing it keeps a seat that the player has: leaving is another thing."""

    app: PlayApp
    # Keys are the table's, until an amount is entered.
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (Textual declares it so)
    CSS = """
    TableScreen #head, TableScreen #keys { height: 1; }
    TableScreen #body { height: 1fr; layout: vertical; }
    TableScreen Felt { height: 1fr; width: 1fr; min-height: 13; }
    TableScreen #story { height: 5; border-top: solid $primary; scrollbar-size: 0 1; background: $background; }
    TableScreen.-wide #body { layout: horizontal; }
    TableScreen.-wide #story { height: 1fr; width: 38; border-top: none; border-left: solid $primary; padding-left: 1; }
    TableScreen #panel { height: 3; }
    TableScreen #panel.-entering { height: 2; }
    TableScreen #entry { height: 1; display: none; }
    TableScreen #entry.-shown { display: block; }
    TableScreen #label { width: auto; }
    TableScreen #amount { width: 14; background: $boost; }
    TableScreen #shortcuts { width: 1fr; margin-left: 2; }
    """

    def __init__(self, table: str) -> None:
        super().__init__()
        self.table_name = table
        self.seat: Seat | None = None
        self.message = ""
        self.recap = Recap()
        self.answering = Answering(self.app.glyphs)
        self._clock = Clock()
        self._teller = Teller(self.app.room.player, self.app.names, 0, self.app.glyphs)
        self._noticed: pb.Notice | None = None

    @property
    def seated(self) -> bool:
        """Whether the player has a seat here."""
        return self.seat is not None and self.seat.number > 0

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Container(id="body"):
            yield Felt(id="felt")
            yield Story()
        yield Static(id="panel")
        with Horizontal(id="entry"):
            yield Static(id="label")
            yield AmountInput(0, self._shortcut, id="amount", disabled=True)
            yield Static(id="shortcuts")
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.query_one("#head", Static).update("Joining the table …")
        self.set_interval(TICK_SECONDS, self.redraw)
        self.follow()

    @work(exclusive=True, group="stream")
    async def follow(self) -> None:
        """Stay on the table's stream until the screen is closed or the room lets go of it."""
        try:
            async with self.app.room.play(self.table_name) as seat:
                self.seat = seat
                currency = seat.view.config.currency
                self._teller.currency = self.query_one(AmountInput).currency = currency
                self._teller.seats = {each.seat: each.player for each in seat.view.seats if each.player}
                await self._learn_names(seat)
                with seat.events() as stream:
                    await asyncio.gather(self._tell(stream, seat), self._watch(seat))
        except RelanceError as refusal:
            self.app.notify(line(refusal, 0, self.app.glyphs), title="The table is gone", severity="warning", timeout=8)
            self.app.pop_screen()

    async def _watch(self, seat: Seat) -> None:
        """Draw after each change."""
        while True:
            drawn = self._stamp(seat)
            await self._learn_names(seat)
            self.redraw()
            await seat.until(lambda drawn=drawn: self._stamp(seat) != drawn)  # type: ignore[misc]

    def _stamp(self, seat: Seat) -> tuple[object, ...]:
        prompt = seat.view.prompt
        return seat.version, prompt.turn, prompt.deadline_us, seat.connected, len(seat.notices), seat.reconnects

    async def _tell(self, stream: Events, seat: Seat) -> None:
        """The story, event by event."""
        async for event in stream:
            player = getattr(event.data, "player", "")
            if player and player not in self.app.names:
                await self._learn_names(seat)
            self.recap.follow(event.data, event.hand)
            told = self._teller.tell(event)
            if told is not None:
                self.query_one(Story).tell(told)
            if (
                event.kind in {"hand_voided", "ruling_recorded", "table_closed", "table_paused", "transfer_refused"}
                and told
            ):
                self.say(told.plain)

    async def _learn_names(self, seat: Seat) -> None:
        """Names of players who are new here. While the lobby is away their ids serve."""
        unknown = {each.player for each in seat.view.seats if each.player} - self.app.names.keys()
        if not unknown:
            return
        self.app.names.update({player: player for player in unknown})
        self.ask_names(sorted(unknown))

    @work(group="names")
    async def ask_names(self, players: list[str]) -> None:
        """Ask the lobby; whom it does not tell now is asked about again later."""
        try:
            self.app.names.update(await self.app.room.names(players))
        except RelanceError:
            for player in players:
                self.app.names.pop(player, None)
        self.redraw()

    def redraw(self) -> None:
        """Everything anew from the state."""
        seat, glyphs = self.seat, self.app.glyphs
        if seat is None or not self.is_mounted:
            return
        view, now = seat.view, time.monotonic()
        self._clock.see(view, now)
        if self.answering.see(view):
            self.message = ""
            self.app.bell()
        self._notices(seat)
        (self.app.kept.add if seat.number else self.app.kept.discard)(self.table_name)
        width = self.size.width
        head = head_text(view, glyphs, width, connected=seat.connected, reconnects=seat.reconnects)
        self.query_one("#head", Static).update(head)
        self.query_one(Felt).show(Scene(view, self.app.names, self.recap, self._clock.seconds(now), glyphs))
        doing = self.answering
        panel = Panel(
            view,
            glyphs,
            doing.choices,
            doing.marks,
            doing.confirm.confirm if doing.confirm is not None else "",
            doing.entry is not None,
            doing.sent,
            self.message,
        )
        self.query_one("#panel", Static).update(panel_text(panel, width))
        self.query_one("#keys", Static).update(keys_text(view, width, glyphs))
        self._show_entry()

    def _notices(self, seat: Seat) -> None:
        newest = seat.notices[-1] if seat.notices else None
        if newest is not None and newest is not self._noticed:
            self._noticed = newest
            self.message = clean(newest.text)
            self.query_one(Story).tell(Text(f"Room: {clean(newest.text)}", "bold"))

    def _show_entry(self) -> None:
        """The amount entry is there while an amount is being typed."""
        entry, doing = self.query_one("#entry"), self.answering
        shown = doing.entry is not None
        if shown == entry.has_class("-shown"):
            return
        entry.set_class(shown, "-shown")
        self.query_one("#panel").set_class(shown, "-entering")
        amount = self.query_one(AmountInput)
        amount.disabled = not shown
        if doing.entry is None or doing.sizes is None or self.seat is None:
            self.set_focus(None)
            return
        currency = self.seat.view.config.currency
        self.query_one("#label", Static).update(f"{doing.entry.sized.capitalize()} ")
        self.query_one("#shortcuts", Static).update(f"{shortcuts_text(doing.sizes, currency)}  up/down")
        amount.show(doing.sizes.least)
        amount.focus()

    def _shortcut(self, key: str) -> int | None:
        sizes = self.answering.sizes
        if sizes is None or self.seat is None:
            return None
        if key in {"up", "down"}:
            try:
                total = sizes.read(self.query_one(AmountInput).value, self.seat.view.config.currency)
            except ValueError:
                return sizes.least
            return sizes.moved(total, 1 if key == "up" else -1)
        return sizes.shortcut(key)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.answering.entry is None:
            return
        try:
            self.send(self.answering.entered(event.value))
        except ValueError as wrong:
            self.message = f"{wrong}"
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        # A key that meant something here must mean nothing on the screen that it opened.
        if self._pressed(event.key):
            event.stop()

    def _pressed(self, key: str) -> bool:
        """Do what a key says; False: it says nothing here."""
        if self.seat is None:
            if key == "escape":
                self.app.pop_screen()
            return key == "escape"
        if self.answering.entry is None:
            meant, answer = self.answering.press(key)
            if answer is not None:
                self.send(answer)
        else:
            meant = False
        if meant or (key == "escape" and self.answering.back()):
            self.redraw()
            return True
        return self.answering.entry is None and self._always(key, self.seat)

    def _always(self, key: str, seat: Seat) -> bool:
        """Keys that work whatever is asked."""
        if key == "escape":
            self.ask_to_leave()
        elif key == "h":
            self.app.push_screen(HandScreen(self.table_name, seat.view.last_hand))
        elif key == "s" and not self.seated:
            self.sit()
        elif key == "z" and self.seated:
            away = seat.me.sitting_out
            self.do(seat.sit_in() if away else seat.sit_out(), "You are back." if away else "You sit out.")
        elif key == "t" and self.seated:
            self.top_up()
        elif key == "l" and self.seated:
            self.ask_to_leave(leave=True)
        else:
            return False
        return True

    @work(group="act")
    async def send(self, answer: Answer) -> None:
        """Send an answer to the prompt; where it is refused the turn stands."""
        assert self.seat is not None
        try:
            await self.seat.act(answer.kind, answer.amount, answer.cards, answer.turn)
            self.message = ""
        except RelanceError as refusal:
            self.say(line(refusal, self.seat.view.config.currency, self.app.glyphs))
            if self.answering.turn == answer.turn:
                self.answering.refused()
        self.redraw()

    @work(group="do")
    async def do(self, command: Awaitable[object], done: str) -> None:
        """A command besides the play, and what to say when it is done."""
        assert self.seat is not None
        try:
            await command
            self.say(done)
        except RelanceError as refusal:
            self.say(line(refusal, self.seat.view.config.currency, self.app.glyphs))

    @work(exclusive=True, group="chips")
    async def sit(self) -> None:
        """Ask how much to buy in for, and sit down."""
        await self._buy(BuyIn())

    @work(exclusive=True, group="chips")
    async def top_up(self) -> None:
        """Ask how many chips to buy, and buy them."""
        await self._buy(TopUp())

    async def _buy(self, purchase: BuyIn) -> None:
        assert self.seat is not None
        try:
            await buy(self.app, self.seat, purchase, self.say)
        except RelanceError as refusal:
            self.say(line(refusal, self.seat.view.config.currency, self.app.glyphs))

    @work(exclusive=True, group="leave")
    async def ask_to_leave(self, *, leave: bool = False, quit: bool = False) -> None:
        """Leave the seat, or only the screen, or both. Who has no seat just goes."""
        assert self.seat is not None
        answer = "k"
        if self.seated:
            away = "quit" if quit else "go to the lobby"
            answers = [("l", "leave the seat: take the chips along")]
            if not leave:
                answers = [("l", f"leave the seat and {away}"), ("k", f"keep the seat and {away}")]
            answer = await self.app.push_screen_wait(AnswerDialog("You have a seat here.", answers))
        if answer == "l":
            self.say("Leaving, after the hand …" if self.seat.view.hand else "Leaving …")
            try:
                taken = await self.seat.leave()
            except RelanceError as refusal:
                self.say(line(refusal, self.seat.view.config.currency, self.app.glyphs))
                return
            self.say(f"You took {money(taken, self.seat.view.config.currency, self.app.glyphs)} along.")
        if answer and not (leave and answer == "l"):
            self.app.exit() if quit else self.app.pop_screen()

    def say(self, sentence: str) -> None:
        """Show one line."""
        self.message = sentence
        self.redraw()
