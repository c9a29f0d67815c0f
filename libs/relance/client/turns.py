"""A player's turn: what is legal, until when, and the actions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from relance.api.table.v1 import table_pb2
from relance.api.table.v1.table_pb2 import (
    ACTION_KIND_ACCEPT_SPLIT,
    ACTION_KIND_ALL_IN,
    ACTION_KIND_BET,
    ACTION_KIND_BRING_IN,
    ACTION_KIND_CALL,
    ACTION_KIND_CHECK,
    ACTION_KIND_COMPLETE,
    ACTION_KIND_DISCARD,
    ACTION_KIND_FOLD,
    ACTION_KIND_MUCK,
    ACTION_KIND_OFFER_SPLIT,
    ACTION_KIND_POST,
    ACTION_KIND_RAISE,
    ACTION_KIND_REFUSE_SPLIT,
    ACTION_KIND_SHOW,
)

if TYPE_CHECKING:
    from relance.client.seat import Seat

_RAISES = (ACTION_KIND_RAISE, ACTION_KIND_BET, ACTION_KIND_COMPLETE)

_STAYS = (
    ACTION_KIND_CHECK,
    ACTION_KIND_CALL,
    ACTION_KIND_BRING_IN,
    ACTION_KIND_ALL_IN,
    ACTION_KIND_DISCARD,
    ACTION_KIND_POST,
    ACTION_KIND_SHOW,
    ACTION_KIND_REFUSE_SPLIT,
)
"""What stays in the hand for the least, the first that is offered. Discarding no cards stands pat."""


class Turn:
    """One prompt to the player. Amounts are minor units; `..._to` amounts are totals for the betting round.

    Actions return the version that they caused. They raise StaleAction when the turn is over (the clock won, the hand
    was voided) and ActionRefused, with the bounds in `metadata`, when the action is not a legal one: then the turn
    stands and another action may be tried.
    """

    __slots__ = (
        "_deadline_us",
        "_seat",
        "actions",
        "call_amount",
        "deadline",
        "hand",
        "kind",
        "max_discards",
        "max_raise_to",
        "min_raise_to",
        "number",
        "open",
        "raise_sizes",
    )

    def __init__(self, seat: Seat, prompt: table_pb2.Prompt) -> None:
        self._seat = seat
        #: Number of the turn: the table version at which the prompt arose.
        self.number = prompt.turn
        self.hand = prompt.hand
        #: What is asked: bet, draw, split, post or show.
        self.kind = prompt.kind
        self.actions = frozenset(prompt.actions)
        #: Chips to add for a call; 0: no call is offered.
        self.call_amount = prompt.call
        #: Least and largest total of a bet or raise; 0: none is offered.
        self.min_raise_to = prompt.min_raise_to
        self.max_raise_to = prompt.max_raise_to
        #: Where only certain totals are legal (fixed limit): these.
        self.raise_sizes = tuple(prompt.raise_sizes)
        self.max_discards = prompt.max_discards
        #: When the clock wins, in seconds of this machine's time.monotonic().
        self.deadline = time.monotonic() + prompt.remaining_ms / 1000
        self._deadline_us = prompt.deadline_us
        #: False once somebody else is asked or the hand is over.
        self.open = True

    def __repr__(self) -> str:
        offered = ", ".join(sorted(table_pb2.ActionKind.Name(kind)[12:].lower() for kind in self.actions))
        return f"<Turn {self.number} of hand {self.hand}: {offered}>"

    @property
    def seat(self) -> Seat:
        """The seat that is asked."""
        return self._seat

    @property
    def seconds_left(self) -> float:
        """Seconds until the clock wins, at least 0."""
        return max(self.deadline - time.monotonic(), 0.0)

    @property
    def can_check(self) -> bool:
        return ACTION_KIND_CHECK in self.actions

    @property
    def can_call(self) -> bool:
        return ACTION_KIND_CALL in self.actions

    @property
    def can_raise(self) -> bool:
        """Whether a bet, a raise or a completion is offered."""
        return any(kind in self.actions for kind in _RAISES)

    @property
    def is_draw(self) -> bool:
        return self.kind == table_pb2.PROMPT_KIND_DRAW

    def asked_again(self, prompt: table_pb2.Prompt) -> None:
        """Called by the seat: the same prompt, with a new deadline after the room paused the clock."""
        if prompt.deadline_us != self._deadline_us:
            self._deadline_us = prompt.deadline_us
            self.deadline = time.monotonic() + prompt.remaining_ms / 1000

    def close(self) -> None:
        """Called by the seat: the turn is over."""
        self.open = False

    async def fold(self) -> int:
        """Give the hand up."""
        return await self.act(ACTION_KIND_FOLD)

    async def check(self) -> int:
        """Bet nothing, where nothing is owed."""
        return await self.act(ACTION_KIND_CHECK)

    async def call(self) -> int:
        """Call, with everything if the stack is shorter."""
        return await self.act(ACTION_KIND_CALL)

    async def check_or_call(self) -> int:
        """Check where that is free; else call, or go all-in where that is what a call is. It answers every turn: a
        draw by standing pat, what else is asked by posting, showing, no split.
        """
        return await self.act(next((kind for kind in _STAYS if kind in self.actions), ACTION_KIND_ALL_IN))

    async def check_or_fold(self) -> int:
        """Check where that is free, else fold."""
        return await (self.check() if self.can_check else self.fold())

    async def bet(self, to: int) -> int:
        """The first bet of a round."""
        return await self.act(ACTION_KIND_BET, to)

    async def raise_to(self, to: int) -> int:
        """Bet, raise or complete to a total for the round, whichever is offered."""
        kind = next((kind for kind in _RAISES if kind in self.actions), ACTION_KIND_RAISE)
        return await self.act(kind, to)

    async def all_in(self) -> int:
        """Call, bet or raise with everything."""
        return await self.act(ACTION_KIND_ALL_IN)

    async def bring_in(self) -> int:
        """Stud: post the bring-in."""
        return await self.act(ACTION_KIND_BRING_IN)

    async def complete(self, to: int = 0) -> int:
        """Stud: complete the bring-in; 0: to the only legal total."""
        return await self.act(ACTION_KIND_COMPLETE, to)

    async def discard(self, cards: str) -> int:
        """Draw: exchange these cards, for example "7c2d"; at most `max_discards`."""
        return await self.act(ACTION_KIND_DISCARD, cards=cards)

    async def stand_pat(self) -> int:
        """Draw: keep every card."""
        return await self.act(ACTION_KIND_DISCARD)

    async def post(self) -> int:
        """Post the ante or blind asked for."""
        return await self.act(ACTION_KIND_POST)

    async def show(self) -> int:
        """Show the hand."""
        return await self.act(ACTION_KIND_SHOW)

    async def muck(self) -> int:
        """Muck a beaten hand."""
        return await self.act(ACTION_KIND_MUCK)

    async def offer_split(self) -> int:
        """Offer to split the pot (P1)."""
        return await self.act(ACTION_KIND_OFFER_SPLIT)

    async def accept_split(self) -> int:
        """Accept the split offered."""
        return await self.act(ACTION_KIND_ACCEPT_SPLIT)

    async def refuse_split(self) -> int:
        """Refuse the split offered."""
        return await self.act(ACTION_KIND_REFUSE_SPLIT)

    async def act(self, kind: table_pb2.ActionKind.ValueType, amount: int = 0, cards: str = "") -> int:
        """Any action, by its kind."""
        return await self._seat.act(kind, amount, cards, self.number)
