"""The client itself, without a terminal, against a real room: every key that a player presses."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from rich.console import Console
from tests.client.live import BUY_IN, Live
from textual import events
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog, Static

from relance.api.common.v1.game_pb2 import Timers
from relance.client import RelanceError, Seat, connect
from relance.play.app import PlayApp, PlayOptions
from relance.play.calls import CallBar
from relance.play.dialogs import AnswerDialog
from relance.play.drawing import draw_table
from relance.play.entry import TalkEntry
from relance.play.form import Form
from relance.play.hands import HandScreen, HandsScreen
from relance.play.help import HelpScreen
from relance.play.lobby import LobbyScreen
from relance.play.panes import Felt
from relance.play.sign_in import SignInScreen
from relance.play.table import TableScreen

pytestmark = pytest.mark.asyncio(loop_scope="session")

PASSWORD = "correct horse"
SIZES = [(80, 24), (120, 40)]


def new_name() -> str:
    return f"guest {uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def client(live: Live, name: str, *, password: str = "", size: tuple[int, int] = (80, 24)) -> AsyncIterator[At]:
    """The client, running."""
    async with connect(live.lobby) as room:
        app = PlayApp(room, PlayOptions(live.lobby, name=name, password=password))
        async with app.run_test(size=size) as pilot:
            yield At(app, pilot)


class At:
    """Somebody before the screen."""

    def __init__(self, app: PlayApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def table(self) -> TableScreen:
        return next(screen for screen in self.app.screen_stack if isinstance(screen, TableScreen))

    @property
    def seat(self) -> Seat:
        assert self.table.seat is not None
        return self.table.seat

    async def sees(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so. Fails with what the screen says instead."""
        until = time.monotonic() + 30
        while not condition():
            await asyncio.sleep(0.02)
            if time.monotonic() > until:
                pytest.fail("\n".join(str(static.visual) for static in self.app.screen.query(Static)))

    async def reads(self, words: str, selector: str = "#panel") -> None:
        """Wait until a line of the screen says something."""
        await self.sees(lambda: words in self.text(selector))

    async def press(self, *keys: str) -> None:
        """Keys, one after the other, each as soon as the one before it did what it does."""
        for key in keys:
            self.app.post_message(events.Key(key, _CHARACTERS.get(key, key if len(key) == 1 else None)))
            await self.settles()

    async def settles(self) -> None:
        """What was begun by a key is done: the app has passed it on, the widgets have answered each other."""
        for _ in range(2):
            passed = asyncio.Event()
            self.app.call_later(passed.set)
            await passed.wait()
            await self.pilot.pause(0)

    async def writes(self, text: str) -> None:
        await self.press(*(_KEYS.get(letter, letter) for letter in text))

    async def comes_to(self, kind: type) -> None:
        """Wait for a screen."""
        await self.sees(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        await self.settles()

    async def fills(self, **texts: str) -> None:
        """Fill in a form by the names of its rows, and send it."""
        await self.comes_to(Form)
        form = self.app.screen
        assert isinstance(form, Form)
        for row in form.rows:
            if row.name in texts:
                await self.writes(texts[row.name])
            await self.press("down")
        await self.press("enter")

    def text(self, selector: str) -> str:
        """What a line of the screen says."""
        console = Console(width=200)
        with console.capture() as capture:
            console.print(self.app.screen.query_one(selector, Static).visual, end="")
        return capture.get()

    def story(self) -> str:
        return "\n".join(strip.text for strip in self.table.query_one(RichLog).lines)

    def drawn(self) -> str:
        felt = self.table.query_one(Felt)
        assert felt.scene is not None
        return draw_table(felt.scene, felt.size.width, felt.size.height).plain

    async def asked(self) -> None:
        """Wait for a turn that is not answered yet."""
        doing = self.table.answering
        await self.sees(lambda: doing.turn > 0 and not doing.sent)

    async def finds(self, table: str) -> None:
        """The cursor of the lobby on a table, which comes by itself."""
        await self.comes_to(LobbyScreen)
        rows = self.app.screen.query_one(DataTable)
        await self.sees(lambda: table in {key.value for key in rows.rows})
        rows.move_cursor(row=rows.get_row_index(table))
        await self.settles()

    async def open_table(self, table: str) -> None:
        """From the lobby to a table, by its row."""
        await self.finds(table)
        await self.press("enter")
        await self.comes_to(TableScreen)
        await self.sees(lambda: self.table.seat is not None)

    async def sit(self, key: str = "s") -> None:
        """Sit down with money from the faucet."""
        await self.press(key)
        await self.comes_to(AnswerDialog)
        await self.press("f")
        await self.comes_to(Form)
        await self.press("enter")
        await self.comes_to(TableScreen)
        await self.sees(lambda: self.table.seated and self.seat.stack > 0)


_KEYS = {" ": "space", ",": "comma", ".": "full_stop", "/": "slash", "?": "question_mark", "-": "minus"}
_CHARACTERS = {key: character for character, key in _KEYS.items()}


@asynccontextmanager
async def opponent(live: Live, table: str, *, playing: bool = True) -> AsyncIterator[Seat]:
    """Somebody who checks and calls and stands pat, or only sits there."""

    async def answer(seat: Seat) -> None:
        async for turn in seat.turns():
            await (turn.stand_pat() if turn.is_draw else turn.check_or_call())

    async with connect(live.lobby) as room:
        name = new_name()
        await room.register(name, PASSWORD)
        await room.sign_in(name, PASSWORD)
        await room.faucet(BUY_IN)
        async with room.play(table) as seat:
            await seat.sit(BUY_IN)
            answering = asyncio.create_task(answer(seat) if playing else asyncio.sleep(0))
            try:
                yield seat
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)


async def player(live: Live) -> str:
    """A registered player; the name."""
    async with connect(live.lobby) as room:
        name = new_name()
        await room.register(name, PASSWORD)
    return name


@pytest.mark.parametrize("size", SIZES)
async def test_from_registering_to_taking_the_chips_home(live: Live, size: tuple[int, int]) -> None:
    table = await live.open_table(timers=Timers(between_hands_ms=1_000, decision_ms=60_000))
    async with opponent(live, table), client(live, "", size=size) as me:
        await me.comes_to(SignInScreen)
        name = new_name()
        me.app.screen.query_one("#name", Input).value = name
        me.app.screen.query_one("#password", Input).value = PASSWORD
        await me.pilot.click("#sign-in")
        await me.reads("Register", "#said")
        await me.pilot.click("#register")
        await me.open_table(table)
        await me.sit()
        await me.asked()
        assert f"{name[:12]}" in me.drawn()
        assert "Your turn" in me.drawn()
        assert me.drawn().count("▒▒") == 1
        await me.press("r", "p", "enter")
        await me.sees(lambda: "You raise to" in me.story() or "You bet" in me.story())
        while not me.table.recap.over:
            await me.sees(lambda: me.table.recap.over or (me.table.answering.turn > 0 and not me.table.answering.sent))
            await me.press("c")
        await me.sees(lambda: ("── Hand 1 ──" in me.story() and " wins " in me.drawn()) or "You win" in me.drawn())
        await me.press("h")
        await me.comes_to(HandsScreen)
        hands = me.app.screen.query_one(DataTable)
        await me.sees(lambda: hands.row_count > 0)
        await me.reads("Your turn at Hold'em no limit 0.50/1.00 €", "CallBar")
        await me.reads("in 100.00 €", "#session")
        hands.move_cursor(row=hands.row_count - 1)
        await me.press("enter")
        await me.comes_to(HandScreen)
        told = me.app.screen.query_one(RichLog)
        await me.sees(lambda: any("the big blind" in strip.text for strip in told.lines))
        await me.press("escape")
        await me.comes_to(HandsScreen)
        await me.press("escape")
        await me.comes_to(TableScreen)
        await me.press("l")
        await me.comes_to(AnswerDialog)
        await me.press("l")
        await me.sees(lambda: not me.table.seated)
        await me.reads(" along: ")
        await me.press("escape")
        await me.comes_to(LobbyScreen)


async def test_a_draw_is_made_by_marking_cards(live: Live) -> None:
    table = await live.open_table(game="draw5")
    async with opponent(live, table), client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.sit()
        doing = me.table.answering
        while doing.marks is None:
            await me.asked()
            if doing.marks is None:
                await me.press("c")
                await me.sees(lambda: doing.sent or doing.turn == 0 or doing.marks is not None)
        kept = doing.marks.cards[2:]
        await me.press("1", "2")
        assert "exchange 2" in me.text("#panel")
        await me.press("enter")
        await me.sees(lambda: "You discard 2" in me.story() and "You draw" in me.story())
        await me.sees(lambda: len(me.seat.cards) == 10)
        assert all(card in me.seat.cards for card in kept)


async def test_what_the_room_refuses_is_one_line_and_the_turn_stands(live: Live) -> None:
    table = await live.open_table()
    async with opponent(live, table), client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.sit()
        await me.asked()
        await me.press("r", "1", "enter")
        assert "is legal" in me.text("#panel")
        await me.press("escape")
        await me.press("t")
        await me.comes_to(AnswerDialog)
        assert me.table.answering.turn > 0
        await me.press("escape")
        await me.comes_to(TableScreen)
        for said in ("You sit out.", "You are back."):
            await me.press("z")
            await me.comes_to(AnswerDialog)
            await me.press("z")
            await me.comes_to(TableScreen)
            await me.reads(said)
        await me.press("ctrl+q")
        await me.comes_to(AnswerDialog)
        await me.press("escape")
        await me.comes_to(TableScreen)


async def test_a_seat_is_chosen_by_its_key_and_its_owner_says_how_it_plays(live: Live) -> None:
    table = await live.open_table()
    async with client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.press("9")
        await me.reads("There is no seat 9 here.")
        await me.sit("4")
        assert me.seat.number == 4
        await me.press("e")
        await me.comes_to(Form)
        await me.press("down", "right", "down", "down", "down", *"50", "down", "right", "enter")
        await me.comes_to(TableScreen)
        await me.reads("Your preferences are kept.")
        wishes = me.seat.preferences
        assert (wishes.auto_post, wishes.auto_muck, wishes.auto_top_up) == (True, False, 5_000)
        assert me.app.glyphs.four_colours
        await me.press("z")
        await me.comes_to(AnswerDialog)
        await me.press("b")
        await me.comes_to(TableScreen)
        await me.reads("You sit out at the next big blind.")
        assert (me.seat.preferences.sit_out_next_big_blind, me.seat.preferences.auto_top_up) == (True, 5_000)
        await me.press("question_mark")
        await me.comes_to(HelpScreen)
        assert me.app.room.player in me.text("#foot")
        await me.press("escape")
        await me.comes_to(TableScreen)


async def test_talk_is_read_and_written_and_a_muted_player_reads_why_not(live: Live) -> None:
    table = await live.open_table()
    async with opponent(live, table, playing=False) as other, client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.press("slash")
        await me.reads("Only who has a seat may talk here.")
        await me.sit()
        await other.say("good luck")
        await me.sees(lambda: ": good luck" in me.story())
        await me.press("slash")
        await me.writes("thanks, f")
        assert me.table.query_one(TalkEntry).words.value == "thanks, f"
        await me.press("enter")
        await me.sees(lambda: "You: thanks, f" in me.story() and not me.table.query_one(TalkEntry).open)
        await me.press("v")
        await me.sees(lambda: "sits down" not in me.story() and "You: thanks" in me.story())
        await live.operator.mute(table, me.app.room.player, "language", 3_600)
        await me.reads("muted in the talk: language")
        await me.press("slash")
        await me.writes("why")
        await me.press("enter")
        await me.reads("An operator muted you at this table until ")
        assert me.table.query_one(TalkEntry).words.value == "why", "what was refused can be changed"
        await live.operator.warn(table, me.app.room.player, "slow")
        await me.reads("warned: slow")


async def test_a_seat_that_is_offered_is_taken_from_wherever_one_is(live: Live) -> None:
    table = await live.open_table(seats=2)
    async with (
        opponent(live, table, playing=False) as first,
        opponent(live, table, playing=False),
        client(live, await player(live), password=PASSWORD) as me,
    ):
        await me.finds(table)
        await me.press("w")
        await me.comes_to(AnswerDialog)
        await me.press("w")
        await me.comes_to(LobbyScreen)
        await me.reads("You are 1st in line", "#said")
        await me.reads("You wait: 1st at ", "#places")
        await me.press("question_mark")
        await me.comes_to(HelpScreen)
        await first.leave()
        await me.sees(lambda: me.app.screen.query_one(CallBar).has_class("-shown"))
        assert "^y take it" in me.text("CallBar")
        await me.press("ctrl+y")
        await me.comes_to(AnswerDialog)
        await me.press("f")
        await me.comes_to(Form)
        assert "held for you" in me.text("#rows")
        await me.press("enter")
        await me.comes_to(TableScreen)
        await me.sees(lambda: me.table.seated and me.seat.stack > 0)
        await me.sees(lambda: not me.table.query_one(CallBar).has_class("-shown"))
        assert [type(screen) for screen in me.app.screen_stack[1:]] == [LobbyScreen, TableScreen]


async def test_friends_come_in_by_password_or_as_guests(live: Live) -> None:
    like = await live.open_table()
    async with client(live, await player(live), password=PASSWORD) as host:
        await host.finds(like)
        await host.press("n")
        await host.fills(name="Kitchen", password="sesame")
        await host.comes_to(TableScreen)
        await host.sees(lambda: host.table.seat is not None)
        await host.reads("g invites friends")
        table = host.table.table_name
        await host.sit()
        async with client(live, await player(live), password=PASSWORD) as friend:
            await friend.open_table(table)
            await friend.press("s")
            await friend.comes_to(AnswerDialog)
            await friend.press("f")
            await friend.fills(password="wrong")
            await friend.comes_to(TableScreen)
            await friend.reads("That is not the password of this table.")
            await host.press("g")
            await host.fills(invite=friend.app.room.player)
            await host.comes_to(TableScreen)
            await host.reads("may sit here")
            await friend.press("s")
            await friend.fills()
            await friend.sees(lambda: friend.table.seated and friend.seat.stack > 0)


async def test_the_list_comes_by_itself_is_filtered_by_a_form_and_survives_the_lobby(live: Live) -> None:
    async with client(live, await player(live), password=PASSWORD) as me:
        omaha = await live.open_table(game="omaha", limit="pot", display_name="Corner")
        await me.finds(omaha)
        assert "Corner · boulevard" in me.text("#details")
        await me.press("f")
        await me.comes_to(Form)
        await me.press("down", "right", "right", "enter")
        await me.comes_to(LobbyScreen)
        shown = me.app.screen.query_one(DataTable)
        await me.sees(
            lambda: (
                shown.row_count > 0
                and all("Omaha PL" in str(shown.get_row_at(row)[0]) for row in range(shown.row_count))
            )
        )
        live.supervisor.kill("lobby")
        await me.reads("The lobby does not answer", "#said")
        await me.reads("NO ANSWER", "#head")
        await me.reads("live", "#head")
        assert "does not answer" not in me.text("#said")
        await me.press("x", "o")
        await me.reads("lowest stakes first", "#head")
        await me.press("slash")
        await me.writes("nonsense")
        await me.reads("No table matches", "#said")


async def test_the_table_comes_back_after_its_process_was_killed_and_says_what_came_back(live: Live) -> None:
    table = await live.open_table()
    async with opponent(live, table), client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.sit()
        await me.asked()
        live.supervisor.kill("table")
        await me.reads("RECONNECTING", "#head")
        await me.sees(lambda: "Hand void (the server crashed)" in me.story())
        await me.reads("connected", "#head")
        await me.reads("You are watching")
        await me.reads(" void (server crash): ", "#notice")
        await me.reads(" to your account", "#notice")
        await me.reads("k: seen", "#notice")
        await me.press("k")
        await me.sees(lambda: not me.table.query_one("#notice").has_class("-shown"))
        with pytest.raises(RelanceError, match="NOT_SEATED"):
            await me.seat.say("anybody here?")
        assert await me.app.room.notices(table) == []
