"""The client itself, without a terminal, against a real room: every key that a player presses."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from rich.console import Console
from tests.client.conftest import BUY_IN, Live, live
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, RichLog, Static

from relance.api.common.v1.game_pb2 import Timers
from relance.client import Seat, connect
from relance.play.app import PlayApp, PlayOptions
from relance.play.dialogs import AmountDialog, AnswerDialog
from relance.play.drawing import draw_table
from relance.play.hands import HandScreen
from relance.play.lobby import LobbyScreen
from relance.play.sign_in import SignInScreen
from relance.play.table import Felt, TableScreen

__all__ = ["live"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "correct horse"
SIZES = [(80, 24), (120, 40)]


def new_name() -> str:
    return f"guest {uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def client(live: Live, name: str, *, password: str = "", size: tuple[int, int] = (80, 24)) -> AsyncIterator[At]:
    """The client, running."""
    async with connect(live.lobby) as room:
        app = PlayApp(room, PlayOptions(live.lobby, name, password))
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
        """Wait until something is so."""
        async with asyncio.timeout(30):
            while not condition():
                await self.pilot.pause(0.01)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def comes_to(self, kind: type) -> None:
        """Wait for a screen."""
        await self.sees(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        await self.pilot.pause()

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

    async def open_table(self, table: str) -> None:
        """From the lobby to a table, by its row."""
        await self.comes_to(LobbyScreen)
        rows = self.app.screen.query_one(DataTable)
        while table not in {key.value for key in rows.rows}:
            await self.press("r")
            await self.pilot.pause(0.05)
        rows.move_cursor(row=rows.get_row_index(table))
        await self.pilot.pause()
        await self.press("enter")
        await self.comes_to(TableScreen)
        await self.sees(lambda: self.table.seat is not None)

    async def sit(self) -> None:
        """Sit down with money from the faucet."""
        await self.press("s")
        await self.comes_to(AnswerDialog)
        await self.press("f")
        await self.comes_to(AmountDialog)
        await self.press("enter")
        await self.comes_to(TableScreen)
        await self.sees(lambda: self.table.seated and self.seat.stack > 0)


@asynccontextmanager
async def opponent(live: Live, table: str) -> AsyncIterator[Seat]:
    """Somebody who checks and calls and stands pat."""

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
            playing = asyncio.create_task(answer(seat))
            try:
                yield seat
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)


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
        await me.sees(lambda: "Register" in me.text("#said"))
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
        await me.comes_to(HandScreen)
        hand = me.app.screen.query_one(RichLog)
        await me.sees(lambda: any("the big blind" in strip.text for strip in hand.lines))
        await me.press("escape", "l")
        await me.comes_to(AnswerDialog)
        await me.press("l")
        await me.sees(lambda: not me.table.seated)
        await me.sees(lambda: "along" in me.text("#panel"))
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
        await me.press("z")
        await me.sees(lambda: "You sit out" in me.text("#panel"))
        await me.press("z")
        await me.sees(lambda: "You are back" in me.text("#panel"))
        await me.press("ctrl+q")
        await me.comes_to(AnswerDialog)
        await me.press("escape")
        await me.comes_to(TableScreen)


async def test_the_table_comes_back_after_its_process_was_killed(live: Live) -> None:
    table = await live.open_table()
    async with opponent(live, table), client(live, await player(live), password=PASSWORD) as me:
        await me.open_table(table)
        await me.sit()
        await me.asked()
        live.supervisor.kill("table")
        await me.sees(lambda: "RECONNECTING" in me.text("#head"))
        await me.sees(lambda: "Hand void (the server crashed)" in me.story())
        await me.sees(lambda: "connected" in me.text("#head"))
        await me.sees(lambda: "You are watching" in me.text("#panel"))
