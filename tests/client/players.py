"""Players of the real room for tests: signed in, seated, playing."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.client.live import BUY_IN, Live

from relance.client import Room, Seat, connect

PASSWORD = "correct horse"


@asynccontextmanager
async def player(live: Live, money: int = 5 * BUY_IN) -> AsyncIterator[Room]:
    """A new player, signed in, with money."""
    async with connect(live.lobby) as room:
        name = f"guest {uuid.uuid4().hex[:10]}"
        await room.register(name, PASSWORD)
        await room.sign_in(name, PASSWORD)
        if money:
            await room.faucet(money)
        yield room


@asynccontextmanager
async def two_seated(live: Live, table: str) -> AsyncIterator[tuple[Room, Seat, Room, Seat]]:
    """Two players at a table, the first in seat 1."""
    async with player(live) as ada, player(live) as bob, ada.play(table) as first, bob.play(table) as second:
        assert await first.sit(buy_in=BUY_IN, seat=1) == 1
        assert await second.sit(buy_in=BUY_IN, seat=2) == 2
        yield ada, first, bob, second
        await asyncio.gather(first.leave(), second.leave())


async def check_or_call(seat: Seat, hand: int = 0) -> None:
    """Answer every turn (of one hand), until the seat is given up."""
    async for turn in seat.turns():
        if not hand or turn.hand == hand:
            await turn.check_or_call()


async def check_down(*seats: Seat) -> int:
    """Check or call in turn until the running hand, or the next one, is over; its number."""
    hand = seats[0].view.hand or seats[0].view.last_hand + 1
    players = [asyncio.create_task(check_or_call(seat, hand)) for seat in seats]
    shown = seats[0]
    await shown.until(lambda: shown.view.last_hand > hand or (shown.view.last_hand == hand and not shown.view.hand))
    for playing in players:
        playing.cancel()
    return hand


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds that only asking can tell."""
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)
