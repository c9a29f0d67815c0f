"""A bot that misbehaves: between two ordinary actions it does what no room wants, and looks at what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from enum import Enum

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.client import RelanceError, Seat, Turn
from relance.room.bots.blotter import Blotter
from relance.room.bots.player import EXPECTED, Bot
from relance.room.bots.styles import Choice

STIR_SECONDS = (0.5, 3.0)
"""Between two looks around the table, from and to."""
REST_SECONDS = (0.0, 4.0)
"""How long who sits out stays away, from and to."""


class Occasion(Enum):
    """When a bot may misbehave."""

    ARRIVAL = "before it sits down"
    TURN = "when it is asked"
    SEATED = "every few seconds at the table"


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """A way to misbehave: when, how likely each time, and the reasons with which the room may refuse it."""

    name: str
    occasion: Occasion
    chance: float
    do: Callable[[Attempt], Awaitable[None]]
    refusals: frozenset[str] = frozenset()


class Aside(Exception):
    """The bot lets go of its stream in the middle of whatever it is, and does this instead."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.work = work


@dataclass(frozen=True, slots=True)
class Attempt:
    """A bot that misbehaves at a table, just now. `asked`: its turn, on that occasion."""

    habit: Misbehaviour
    bot: Rascal
    seat: Seat
    asked: Turn | None

    @property
    def turn(self) -> Turn:
        """The bot's turn."""
        assert self.asked is not None
        return self.asked

    @property
    def choice(self) -> Choice:
        """What it would do without bad habits."""
        return self.bot.style.choose(self.turn, self.seat.me.down if self.seat.number else "", self.bot.rng)

    def finding(self, what: str) -> None:
        """Say that the room did something wrong."""
        self.bot.finding(f"{self.habit.name}: {what}")

    async def outcome(self, work: Awaitable[object]) -> str:
        """What the room answers: the reason of its refusal, which goes on record, or nothing."""
        try:
            await work
        except RelanceError as refusal:
            if refusal.reason in self.habit.refusals:
                self.bot.blotter.refused(self.habit.name, refusal.reason)
            else:
                self.finding(f"refused with {refusal}")
            return refusal.reason
        return ""

    async def refused(self, work: Awaitable[object], what: str) -> str:
        """The same for what the room must refuse."""
        reason = await self.outcome(work)
        if not reason:
            self.finding(f"{what} was accepted")
        return reason


@dataclass
class Rascal(Bot):
    """A bot with bad habits."""

    habits: Sequence[Misbehaviour] = ()
    blotter: Blotter = field(default_factory=Blotter)
    _held: tuple[int, str] = (0, "")  # hand and own cards when the stream was dropped

    def finding(self, what: str) -> None:
        """Say that the room did something wrong."""
        self.blotter.found(f"{self.account.name} at {self.account.table or 'no table'}: {what}")

    def buy_in(self, config: game_pb2.TableConfig) -> int:
        """What it would bring without bad habits."""
        return self._buy_in(config)

    def remember(self, seat: Seat) -> None:
        """The cards that it must have again when it comes back in this hand."""
        if seat.number and seat.me.in_hand and not seat.me.folded:
            self._held = (seat.view.hand, seat.cards)

    async def _visit(self, table: lobby_pb2.Table) -> None:
        try:
            await super()._visit(table)
        except Aside as aside:
            await aside.work()

    def _at_table(self, seat: Seat) -> list[Coroutine[None, None, None]]:
        self._has_its_cards(seat)
        return [*super()._at_table(seat), self._stir(seat)]

    async def _rest(self) -> None:
        await asyncio.sleep(self.rng.uniform(*REST_SECONDS))

    async def _sit(self, seat: Seat, config: game_pb2.TableConfig) -> None:
        await self._perhaps(Occasion.ARRIVAL, seat, None)
        if not seat.number:
            await super()._sit(seat, config)

    async def _answer(self, turn: Turn, choice: Choice) -> None:
        await self._perhaps(Occasion.TURN, turn.seat, turn)
        if turn.open:
            await super()._answer(turn, choice)

    async def _stir(self, seat: Seat) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(*STIR_SECONDS))
            if seat.number:
                await self._perhaps(Occasion.SEATED, seat, None)

    async def _perhaps(self, occasion: Occasion, seat: Seat, turn: Turn | None) -> None:
        """Misbehave, or not, in one of the ways that the occasion offers."""
        luck = self.rng.random()
        for habit in self.habits:
            if habit.occasion is occasion:
                luck -= habit.chance
                if luck < 0:
                    self.blotter.tried(habit.name)
                    await habit.do(Attempt(habit, self, seat, turn))
                    return

    def _has_its_cards(self, seat: Seat) -> None:
        """Who comes back in the hand in which they went has their cards (C2)."""
        (hand, held), self._held = self._held, (0, "")
        if held and seat.number and seat.view.hand == hand and seat.me.in_hand and not seat.me.folded:
            has = seat.cards
            if any(held[at : at + 2] not in has for at in range(0, len(held), 2)):
                self.finding(f"came back to hand {hand} with {has} and not {held}")

    def _failed(self, failure: RelanceError) -> None:
        super()._failed(failure)
        if failure.reason not in EXPECTED:
            self.finding(f"plays: refused with {failure}")
