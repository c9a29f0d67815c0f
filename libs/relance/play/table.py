"""A table: followed over its stream, drawn, played with the keyboard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input, Static

from relance.client import Events, RelanceError, ResumeImpossible, Seat, SlowReader, Unavailable
from relance.play import commands
from relance.play.answering import Answer, Answering
from relance.play.calls import CallBar
from relance.play.catalogue import title
from relance.play.dialogs import AnswerDialog
from relance.play.drawing import Scene
from relance.play.entry import BetEntry, TalkEntry
from relance.play.glyphs import clean
from relance.play.hands import HandsScreen
from relance.play.notices import LASTING, news_text, notice_bar, notices_text
from relance.play.panel import Absence, Clock, Panel, head_text, keys_text, panel_text
from relance.play.panes import Felt, Story
from relance.play.recap import Recap
from relance.play.refusals import line
from relance.play.story import SAID_TOO, Teller

if TYPE_CHECKING:
    from relance.play.app import PlayApp

TICK_SECONDS = 0.25


class TableScreen(Screen[None]):
    """One table. Closing it keeps a seat that the player has: leaving is another thing."""

    app: PlayApp
    # Keys are the table's, until an amount is entered or something is said.
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 (Textual declares it so)
    CSS = """
    TableScreen #head, TableScreen #keys, TableScreen #notice { height: 1; }
    TableScreen #notice { display: none; }
    TableScreen #notice.-shown { display: block; }
    TableScreen #body { height: 1fr; layout: vertical; }
    TableScreen Felt { height: 1fr; width: 1fr; min-height: 13; }
    TableScreen #story { height: 5; border-top: solid $primary; scrollbar-size: 0 1; background: $background; }
    TableScreen.-tight #story { height: 4; }
    TableScreen.-wide #body { layout: horizontal; }
    TableScreen.-wide #story { height: 1fr; width: 38; border-top: none; border-left: solid $primary; padding-left: 1; }
    TableScreen #panel { height: 3; }
    TableScreen #panel.-entering { height: 2; }
    """

    def __init__(self, table: str, *, sit: bool = False, greeting: str = "") -> None:
        super().__init__()
        self.table_name = table
        self.seat: Seat | None = None
        self.message = greeting
        self.recap = Recap()
        self.answering = Answering(self.app.glyphs)
        self._sit_at_once = sit
        self._clock = Clock()
        self._teller = Teller(self.app.room.player, self.app.names, 0, self.app.glyphs)
        self._heard = 0
        self._news = 0
        self._absence = Absence(time.monotonic())
        # Held here, not looked up: what is still said while the screen is taken apart finds them all the same.
        self._lines = {name: Static(id=name) for name in ("head", "notice", "panel", "keys")}
        self._felt, self._story = Felt(), Story()
        self._bet = BetEntry(self.answering)
        self._talk = TalkEntry()

    @property
    def seated(self) -> bool:
        """Whether the player has a seat here."""
        return self.seat is not None and self.seat.number > 0

    def call(self, now: float) -> str:
        """What calls the player back to this table; empty: nothing does."""
        if self.seat is None or not self.answering.turn or self.answering.sent:
            return ""
        seconds = self._clock.seconds(now)
        left = f"{seconds.left + seconds.bank:.0f} s  " if seconds is not None else ""
        return f"{left}Your turn at {title(self.seat.view.config, self.app.glyphs)}: esc goes back there"

    def compose(self) -> ComposeResult:
        yield CallBar()
        yield self._lines["head"]
        yield self._lines["notice"]
        with Container(id="body"):
            yield self._felt
            yield self._story
        yield self._lines["panel"]
        yield self._bet
        yield self._talk
        yield self._lines["keys"]

    def on_mount(self) -> None:
        self.set_interval(TICK_SECONDS, self.redraw)
        self.follow()

    @work(exclusive=True, group="stream")
    async def follow(self) -> None:
        """Stay on the table's stream until the screen is closed or the room lets go of it."""
        while True:
            try:
                async with self.app.room.play(self.table_name) as seat:
                    await self._follow(seat)
            except (Unavailable, ResumeImpossible, SlowReader):
                # Nobody answers for long, or a gap: join anew, for as long as the player waits.
                continue
            except RelanceError as refusal:
                text = line(refusal, 0, self.app.glyphs)
                self.app.notify(text, title="The table is gone", severity="warning", timeout=8)
                self.app.pop_screen()
                return

    async def _follow(self, seat: Seat) -> None:
        self.seat = seat
        self._teller.currency = seat.view.config.currency
        self._teller.seats = {each.seat: each.player for each in seat.view.seats if each.player}
        self._learn_names(seat)
        if self._sit_at_once:
            self._sit_at_once = False
            self.sit()
        with seat.events() as stream:
            await asyncio.gather(self._tell(stream, seat), self._watch(seat))

    async def _watch(self, seat: Seat) -> None:
        """Draw after each change."""
        while True:
            drawn = self._stamp(seat)
            self._learn_names(seat)
            self._hear(seat)
            self.redraw()
            await seat.until(lambda drawn=drawn: self._stamp(seat) != drawn)  # type: ignore[misc]

    def _stamp(self, seat: Seat) -> tuple[object, ...]:
        prompt, said = seat.view.prompt, seat.talk[-1].number if seat.talk else 0
        return seat.version, prompt.turn, prompt.deadline_us, seat.connected, len(seat.notices), seat.reconnects, said

    async def _tell(self, stream: Events, seat: Seat) -> None:
        """The story, event by event."""
        async for event in stream:
            self._learn_names(seat)
            self.recap.follow(event.data, event.hand)
            told = self._teller.tell(event)
            if told is not None:
                self._story.tell(told)
                if event.kind in SAID_TOO:
                    self.say(told.plain)

    def _hear(self, seat: Seat) -> None:
        """What was said since the last look."""
        for said in [said for said in seat.talk if said.number > self._heard]:
            self._heard = said.number
            name = self._teller.named(said.player.rpartition("/")[2])
            self._story.tell(Text.assemble((f"{name}: ", "bold"), clean(said.text)), talk=True)

    def _learn_names(self, seat: Seat) -> None:
        """Names of players who are new here. While the lobby is away their ids serve."""
        here = {each.player for each in seat.view.seats} | {said.player.rpartition("/")[2] for said in seat.talk}
        unknown = here - self.app.names.keys() - {""}
        if unknown:
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
        seat, glyphs, now = self.seat, self.app.glyphs, time.monotonic()
        if not self.is_mounted:
            return
        if seat is None:
            self._felt.wait(self._absence.text(now))
            return
        view, self._teller.glyphs = seat.view, glyphs
        self._clock.see(view, now)
        if self.answering.see(view):
            self.message = ""
            self.app.bell()
        self.message = self._absence.see(seat.connected, now, self.message)
        self._notices(seat)
        (self.app.kept.add if seat.number else self.app.kept.discard)(self.table_name)
        width = self.size.width
        head = head_text(view, glyphs, width, connected=seat.connected)
        self._lines["head"].update(head)
        self._felt.show(Scene(view, self.app.names, self.recap, self._clock.seconds(now), glyphs))
        self._lines["panel"].update(panel_text(self._panel(seat), width))
        self._lines["keys"].update(keys_text(view, width, glyphs))
        self._lines["panel"].set_class(self.answering.entry is not None, "-entering")
        if self._bet.follow(view.config.currency, width):
            self._focus_words()

    def _panel(self, seat: Seat) -> Panel:
        doing = self.answering
        return Panel(
            seat.view,
            self.app.glyphs,
            doing.choices,
            doing.marks,
            doing.confirm.confirm if doing.confirm is not None else "",
            doing.entry is not None,
            doing.sent,
            self.message if seat.connected else self._absence.text(time.monotonic()),
            doing.sizes,
            self._bet.typed,
            seat.player,
        )

    def _notices(self, seat: Seat) -> None:
        """What became of the player's chips stays above the table until it was seen; other news are said once."""
        text = notices_text(seat.notices, seat.view.config.currency, self.app.glyphs)
        bar = self._lines["notice"]
        bar.set_class(bool(text), "-shown")
        self.set_class(bool(text) and self.size.height < 26, "-tight")
        bar.update(notice_bar(text, self.size.width, self.app.glyphs))
        news = [notice for notice in seat.notices if notice.kind not in LASTING]
        if len(news) > self._news:
            self.message = news_text(news[-1])
            self._story.tell(Text(f"Room: {self.message}", "bold"))
        self._news = len(news)

    def _focus_words(self) -> None:
        """Back to what was being said, if something was; else to the keys."""
        talk = self._talk
        self.set_focus(talk.words if talk.open else None)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.id == "words":
            self.talk(event.value)
            return
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
        if self.answering.entry is None and self._talk.open:
            if key == "escape":
                self._talk_row(shown=False)
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
        app, say = self.app, self.say
        if key == "escape":
            self.ask_to_leave()
        elif key == "question_mark":
            app.action_help()
        elif key == "h":
            app.push_screen(HandsScreen(self.table_name, seat.view))
        elif key == "v":
            story = self._story
            story.only_talk(not story.talk_only)
            say("Talk only; v: all that happens." if story.talk_only else "All that happens.")
        elif key == "e":
            self.do(commands.preferences(app, seat))
        elif key == "g":
            self.do(commands.guests(app, seat))
        elif key == "k" and seat.notices:
            self.do(commands.acknowledge(seat))
        elif key == "slash":
            self._talk_row(shown=True)
        elif not self.seated:
            return self._of_watcher(key, seat)
        elif key == "z":
            self.do(commands.away_or_back(app, seat))
        elif key == "t":
            self.do(commands.buy_more(app, seat, say))
        elif key == "l":
            self.ask_to_leave(leave=True)
        else:
            return False
        return True

    def _of_watcher(self, key: str, seat: Seat) -> bool:
        """Keys of who has no seat."""
        if key == "s" or key in commands.SEAT_KEYS:
            self.sit(commands.SEAT_KEYS.get(key, 0))
        elif key == "w":
            self.do(commands.wait_for_seat(self.app, seat))
        else:
            return False
        return True

    def sit(self, number: int = 0) -> None:
        """Sit down, at this seat or at any; once the table has answered."""
        if self.seat is None:
            self._sit_at_once = True
        else:
            self.do(commands.sit(self.app, self.seat, self.say, number))

    def _talk_row(self, *, shown: bool) -> None:
        """Begin or stop to write a line."""
        if shown and not self.seated:
            self.say("Only who has a seat may talk here.")
            return
        self._talk.show(shown=shown)
        self._focus_words()

    @work(group="talk", exclusive=True)
    async def talk(self, text: str) -> None:
        """Say a line. One that the room does not take stays, to be changed."""
        assert self.seat is not None
        if not text.strip():
            self._talk_row(shown=False)
            return
        try:
            await self.seat.say(text)
        except RelanceError as refusal:
            self.say(line(refusal, self.seat.view.config.currency, self.app.glyphs))
            return
        if self._talk.words.value == text:
            self._talk_row(shown=False)

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
    async def do(self, command: Awaitable[str | None]) -> None:
        """A command besides the play, and what came of it."""
        assert self.seat is not None
        await commands.told(self.app, self.seat, command, self.say)
        self.redraw()

    @work(exclusive=True, group="leave")
    async def ask_to_leave(self, *, leave: bool = False, quit: bool = False) -> None:
        """Leave the seat, or only the screen, or both. Who has no seat just goes."""
        assert self.seat is not None
        answer = "k"
        if self.seated:
            away = "quit" if quit else "go to the lobby"
            answers = commands.ways_to_leave(self.seat)
            if not leave:
                answers = [("l", f"leave the seat and {away}"), ("k", f"keep the seat and {away}")]
            answer = await self.app.push_screen_wait(AnswerDialog("You have a seat here.", answers))
        if answer in {"l", "a"}:
            leaving = commands.leave(self.app, self.seat, self.say, after_hand=answer == "a")
            await commands.told(self.app, self.seat, leaving, self.say)
            if self.seated:
                return
        if answer and not (leave and answer in {"l", "a"}):
            self.app.exit() if quit else self.app.pop_screen()

    def say(self, sentence: str) -> None:
        """Show one line."""
        self.message = sentence
        self.redraw()
