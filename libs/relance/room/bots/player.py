"""One bot: signs in, finds a table, sits, plays, rebuys, leaves, and comes back whatever happens to the room."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.client import ActionRefused, NoMoney, RelanceError, Room, Seat, StaleAction, Turn
from relance.client.backoff import Backoff
from relance.client.names import CurrencyName
from relance.room.bots.accounts import Account
from relance.room.bots.styles import Choice, Style, quiet

log = structlog.get_logger(__name__)

# A refusal that is no fault: the world moved on while the bot thought.
EXPECTED = frozenset(
    {"SEAT_TAKEN", "SEAT_RELEASED", "TABLE_CLOSED", "TABLE_PAUSED", "NOT_SEATED", "NOTHING_TO_CHANGE",
     "TRANSFER_PENDING", "CASH_OUT_PENDING", "BUY_IN_BELOW_PREVIOUS_STACK", "ALREADY_SEATED"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a bot plays: seconds of thought, from and to, and seconds between two tables."""

    think: tuple[float, float]
    rest: tuple[float, float]


PACES = {
    "human": Pace(think=(0.6, 3.5), rest=(2.0, 8.0)),
    "fast": Pace(think=(0.0, 0.12), rest=(0.2, 0.8)),
    "instant": Pace(think=(0.0, 0.0), rest=(0.05, 0.2)),
}

Fund = Callable[[Room, int, CurrencyName], Awaitable[None]]


class Floor(Protocol):
    """Where there are seats, for all bots of a fleet."""

    async def find(self, bot: Bot) -> lobby_pb2.Table | None:
        """A table to sit at; None: there is none now."""

    def taken(self, bot: Bot, table: str) -> None:
        """The bot has a seat there; empty: nowhere."""

    def saw(self, table: str, hand: int) -> None:
        """The last hand of a table."""


@dataclass(slots=True)
class Bot:
    """A bot and what it did so far."""

    account: Account
    style: Style
    pace: Pace
    rng: random.Random
    room: Room
    floor: Floor
    fund: Fund
    seat: Seat | None = None
    turns: int = 0
    refusals: int = 0
    errors: int = 0
    last_error: str = ""
    reconnects: int = 0
    avoids: set[str] = field(default_factory=set)
    """Tables to which it does not go."""

    async def live(self) -> None:
        """Play until cancelled."""
        backoff = Backoff(first=0.2, most=5.0)
        while True:
            try:
                if not self.room.player:
                    await self._sign_in()
                table = await self.floor.find(self)
                if table is None:
                    await backoff.wait()
                    continue
                await self._visit(table)
                backoff.reset()
                await asyncio.sleep(self.rng.uniform(*self.pace.rest))
            except RelanceError as failure:
                self._failed(failure)
                await asyncio.sleep(float(failure.metadata.get("retry_after_seconds", 0)))
                await backoff.wait()

    async def _sign_in(self) -> None:
        """Sign in, the first time with a new account. A name that is somebody else's gets a number."""
        account = self.account
        if not account.registered:
            try:
                await self.room.register(account.name, account.password)
            except RelanceError as refusal:
                if refusal.reason != "NAME_TAKEN":
                    raise
        try:
            await self.room.sign_in(account.name, account.password)
        except RelanceError as refusal:
            if refusal.reason == "SIGN_IN_REFUSED":
                account.name, account.registered = f"{account.name} {self.rng.randrange(1000)}", False
            raise
        account.registered = True

    async def _visit(self, table: lobby_pb2.Table) -> None:
        """Sit down, if not sitting there already, and play until the seat is given up or lost."""
        async with self.room.play(table) as seat:
            self.seat = seat
            try:
                if not seat.number:
                    self.floor.taken(self, "")
                    await self._sit(seat, table.config)
                self.floor.taken(self, seat.table)
                await _until_one_ends(*self._at_table(seat))
            finally:
                self.seat = None
                self.reconnects += seat.reconnects
                if not seat.number:
                    self.floor.taken(self, "")

    def _at_table(self, seat: Seat) -> list[Coroutine[None, None, None]]:
        """What it does at a table; the first that ends ends the visit."""
        return [self._play(seat), self._keep_seat(seat)]

    async def _rest(self) -> None:
        """How long it stays away from the table once it sits out."""

    async def _sit(self, seat: Seat, config: game_pb2.TableConfig) -> None:
        """Take a seat, with money from the fund where the account has too little."""
        amount = self._buy_in(config)
        for _ in range(4):
            try:
                await seat.sit(amount)
            except NoMoney:
                await self.fund(self.room, amount, _currency(config))
            except RelanceError as refusal:
                if refusal.reason != "BUY_IN_BELOW_PREVIOUS_STACK":
                    raise
                amount = int(refusal.metadata["min"])
            else:
                return
        raise NoMoney("NO_MONEY", f"{amount} could not be raised")

    def _buy_in(self, config: game_pb2.TableConfig) -> int:
        """Between the least and the largest buy-in, seldom the most."""
        most = config.max_buy_in or config.min_buy_in * 3
        return config.min_buy_in + int((most - config.min_buy_in) * self.rng.random() ** 2)

    async def _play(self, seat: Seat) -> None:
        """Answer turns; leave when it is time to move on, sometimes in the middle of a hand."""
        first = seat.view.last_hand
        stay = self.rng.randint(*self.style.stay)
        async for turn in seat.turns():
            self.floor.saw(seat.table, turn.hand)
            await asyncio.sleep(self.rng.uniform(*self.pace.think))
            if turn.hand - first >= stay:
                await seat.leave()
                return
            if turn.open:
                await self._answer(turn, self.style.choose(turn, seat.me.down if seat.number else "", self.rng))

    async def _answer(self, turn: Turn, choice: Choice) -> None:
        self.turns += 1
        try:
            await turn.act(choice.kind, choice.amount, choice.cards)
        except StaleAction:
            self.refusals += 1
        except ActionRefused as refusal:
            self._failed(refusal)
            await turn.act(quiet(turn).kind)

    async def _keep_seat(self, seat: Seat) -> None:
        """Sit in again after being sat out; buy chips when the stack is gone. Half of the broke ones go home."""
        while True:
            await seat.until(lambda: not seat.number or (seat.me.sitting_out and not seat.me.leaving))
            if not seat.number:
                return
            try:
                if seat.stack == 0 and not await self._rebuy(seat):
                    await seat.leave()
                    return
                await self._rest()
                await seat.sit_in()
                await seat.until(lambda: not seat.number or not seat.me.sitting_out)
            except RelanceError as refusal:
                if refusal.reason not in EXPECTED:
                    raise
                self._failed(refusal)
                await asyncio.sleep(0.5)

    async def _rebuy(self, seat: Seat) -> bool:
        """Buy chips again and wait until they are there; whether they are."""
        if seat.me.chips_held:
            return True
        if self.rng.random() < 0.5:
            return False
        amount = self._buy_in(seat.view.config)
        currency = _currency(seat.view.config)
        if await self.room.balance(currency) < amount:
            await self.fund(self.room, amount, currency)
        await seat.add_chips(amount)
        await seat.until(lambda: not seat.number or seat.me.chips_held > 0 or seat.stack > 0)
        return bool(seat.number)

    def _failed(self, failure: RelanceError) -> None:
        self.last_error = failure.reason
        if failure.reason in EXPECTED:
            self.refusals += 1
            return
        self.errors += 1
        log.info("bot_refused", bot=self.account.name, reason=failure.reason, message=failure.message)


def _currency(config: game_pb2.TableConfig) -> CurrencyName:
    return "credit" if config.currency == game_pb2.CURRENCY_CREDIT else "eur"


async def _until_one_ends(*work: Coroutine[None, None, None]) -> None:
    """Run coroutines until the first ends, and stop the others. Raises what it raised."""
    tasks = [asyncio.create_task(part) for part in work]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        await task
