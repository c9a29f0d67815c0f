"""A fleet of bots in one process, on shared connections."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import structlog

from relance.api.lobby.v1 import lobby_pb2
from relance.client import Channels, RelanceError, Room, connect
from relance.client.names import CurrencyName
from relance.room.bots.accounts import Accounts
from relance.room.bots.blotter import Blotter
from relance.room.bots.misbehaviour import MISBEHAVIOURS
from relance.room.bots.player import PACES, Bot, Pace
from relance.room.bots.rascal import Rascal
from relance.room.bots.styles import STYLES

log = structlog.get_logger(__name__)

_CATALOGUE_SECONDS = 2.0
# A bot draws this many buy-ins at once, so that it seldom asks.
_BUY_INS = 5
# Players that make a game.
_GAME = 4


@dataclass(frozen=True, slots=True)
class BotStats:
    """One bot: where it is and what it did."""

    name: str
    player: str
    style: str
    table: str
    seat: int
    stack: int
    turns: int
    refusals: int
    errors: int
    last_error: str
    reconnects: int


@dataclass(frozen=True, slots=True)
class FleetStats:
    """The whole fleet. `hands`: hands begun at tables with bots since the start; `errors`: refusals and failures that
    a bot should not meet; `refusals`: those that are part of the game (too late, seat gone)."""

    hands: int
    turns: int
    refusals: int
    errors: int
    reconnects: int
    seated: int
    bots: tuple[BotStats, ...]


class BotFleet:
    """`count` bots that play in a room until stopped.

    paces: a name of `PACES`, a `Pace`, or several that the bots take in turn. folder: where their accounts are kept.
    operator_token: where there is no faucet, a cashier's token (or a function that answers one) to deposit with.
    blotter: where it is noted how the bots misbehave; None: they do not.
    """

    def __init__(
        self,
        lobby: str,
        count: int,
        *,
        folder: Path,
        pace: str | Pace | tuple[str | Pace, ...] = ("human", "fast"),
        seed: int = 1,
        operator_token: str | Callable[[], str] | None = None,
        patience: float = 60.0,
        blotter: Blotter | None = None,
    ) -> None:
        self._channels = Channels()
        self._accounts = Accounts(folder / "bots.json")
        self._operator_token = operator_token
        self._tasks: list[asyncio.Task[None]] = []
        self._tables: list[lobby_pb2.Table] = []
        self._listed_at = 0.0
        self._listing = asyncio.Lock()
        self._going: dict[str, str] = {}
        self._hands: dict[str, tuple[int, int]] = {}
        paces = cycle(pace if isinstance(pace, tuple) else (pace,))
        made: Callable[..., Bot] = Bot
        if blotter is not None:
            made = partial(Rascal, habits=MISBEHAVIOURS, blotter=blotter)
        self.bots = [
            made(
                account=account,
                style=style,
                pace=PACES[chosen] if isinstance(chosen, str) else chosen,
                rng=random.Random(f"{seed}/{account.name}"),
                room=connect(lobby, channels=self._channels, patience=patience),
                floor=self,
                fund=self._fund,
            )
            for account, style, chosen in zip(self._accounts.get(count), cycle(STYLES), paces, strict=False)
        ]

    async def start(self) -> None:
        """Set the bots to work."""
        self._tasks = [asyncio.create_task(bot.live(), name=f"bot {bot.account.name}") for bot in self.bots]
        for task in self._tasks:
            task.add_done_callback(_report)

    async def stop(self) -> None:
        """Let go of the tables at once; seats are kept. Started again the bots come back to them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._accounts.save()
        await self._channels.close()

    def stats(self) -> FleetStats:
        """What the fleet did so far."""
        bots = tuple(_stats(bot) for bot in self.bots)
        return FleetStats(
            hands=sum(last - first + 1 for first, last in self._hands.values()),
            turns=sum(bot.turns for bot in bots),
            refusals=sum(bot.refusals for bot in bots),
            errors=sum(bot.errors for bot in bots),
            reconnects=sum(bot.reconnects for bot in bots),
            seated=sum(bot.seat > 0 for bot in bots),
            bots=bots,
        )

    async def find(self, bot: Bot) -> lobby_pb2.Table | None:
        """The table that the bot sat at last, or one with a seat free; None: there is none.

        Tables with a game that is short of players come first, then empty ones, then those with the most room left.
        """
        tables = [table for table in await self._open_tables(bot) if table.name not in bot.avoids]
        by_name = {table.name: table for table in tables}
        if bot.account.table in by_name:
            return by_name[bot.account.table]
        going = Counter(self._going.values())

        def appeal(table: lobby_pb2.Table) -> tuple[int, float]:
            count, seats = max(table.players, going[table.name]), table.config.seats
            if count == 0:
                return 1, 0
            return (0, -count) if count < min(_GAME, seats) else (2, count / seats)

        free = [table for table in tables if max(table.players, going[table.name]) < table.config.seats]
        if not free:
            return None
        bot.rng.shuffle(free)
        choice = min(free, key=appeal)
        self._going[bot.account.name] = choice.name
        return choice

    def taken(self, bot: Bot, table: str) -> None:
        """Remember where a bot sits."""
        bot.account.table = table
        if table:
            self._going[bot.account.name] = table
        else:
            self._going.pop(bot.account.name, None)
        self._accounts.save()

    def saw(self, table: str, hand: int) -> None:
        """Count hands."""
        first, last = self._hands.get(table, (hand, hand))
        self._hands[table] = (min(first, hand), max(last, hand))

    async def _open_tables(self, bot: Bot) -> list[lobby_pb2.Table]:
        """The catalogue, asked for once for all bots every few seconds."""
        async with self._listing:
            if time.monotonic() - self._listed_at > _CATALOGUE_SECONDS:
                tables = await bot.room.list_tables()
                self._tables = [table for table in tables if not table.closed and not table.config.private]
                self._listed_at = time.monotonic()
            return self._tables

    async def _fund(self, room: Room, amount: int, currency: CurrencyName) -> None:
        """Money for a bot: from the faucet, as much as it gives at once, or from the cashier."""
        if self._operator_token is None:
            try:
                await room.faucet(amount * _BUY_INS, currency)
            except RelanceError as refusal:
                if refusal.reason not in {"AMOUNT_OUT_OF_RANGE", "INVALID_AMOUNT"}:
                    raise
                await room.faucet(int(refusal.metadata["max"]), currency)
        else:
            await room.operator(self._operator_token).deposit(room.player, amount * _BUY_INS, currency)


def _stats(bot: Bot) -> BotStats:
    seat = bot.seat
    return BotStats(
        name=bot.account.name,
        player=bot.room.player,
        style=bot.style.name,
        table=seat.table if seat is not None else "",
        seat=seat.number if seat is not None else 0,
        stack=seat.stack if seat is not None else 0,
        turns=bot.turns,
        refusals=bot.refusals,
        errors=bot.errors,
        last_error=bot.last_error,
        reconnects=bot.reconnects + (seat.reconnects if seat is not None else 0),
    )


def _report(task: asyncio.Task[None]) -> None:
    """A bot that ended for another reason than being stopped is a fault of the fleet: say so loudly."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("bot_died", bot=task.get_name(), exc_info=failure)
