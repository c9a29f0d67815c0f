"""What a client remembers of a table beside its view, and the steps that events have in common."""

from __future__ import annotations

from typing import Any, Final

from relance.api.table.v1 import table_pb2

_HAND_FIELDS: Final = ("bet", "contributed", "in_hand", "folded", "all_in", "down_count", "down", "up")


class LiveState:
    """A TableView (`shown`) as `player` may see it, and the little that events need beside it.

    What was before the view was taken is not known here: entry posts owed and dead posts of a hand joined in its
    middle. They matter for `waiting_for_big_blind` and for how `pots` are split until the next hand, for nothing else.
    """

    __slots__ = (
        "bank",
        "button",
        "dead",
        "entry",
        "missed",
        "missing",
        "player",
        "received",
        "shown",
        "street",
        "transfers",
        "wait",
    )

    def __init__(self, player: str) -> None:
        self.player = player
        self.shown = table_pb2.TableView()
        self.bank = 0
        self.button = 0
        self.dead: dict[int, int] = {}
        self.entry: set[int] = set()
        self.missed: set[int] = set()
        self.missing: set[int] = set()
        self.wait: set[int] = set()
        self.street = 0
        self.received = 0
        self.transfers: dict[str, int] = {}

    def seat(self, number: int) -> table_pb2.SeatView:
        """A seat by its number."""
        return self.shown.seats[number - 1]

    def free(self, number: int) -> None:
        if self.shown.your_seat == number:
            self.shown.your_seat = 0
        seat = self.seat(number)
        seat.Clear()
        seat.seat = number
        for seats in (self.entry, self.missed, self.missing, self.wait):
            seats.discard(number)
        self.transfers = {transfer: at if at != number else 0 for transfer, at in self.transfers.items()}

    def put(self, event: Any, *, bet: bool = True) -> None:
        """Chips go from a stack into the hand."""
        seat = self.seat(event.seat)
        seat.stack -= event.amount
        seat.contributed += event.amount
        self.shown.pot += event.amount
        if bet:
            seat.bet += event.amount
        if not seat.stack:
            seat.all_in = True

    def clear_hand(self) -> None:
        shown = self.shown
        for field in ("hand", "round", "pot", "board", "pots"):
            shown.ClearField(field)
        for seat in shown.seats:
            for name in _HAND_FIELDS:
                seat.ClearField(name)
        self.dead = {}

    def wishes(self, number: int, wait: bool) -> None:
        """A seat wants to wait for the big blind, or does not; it shows where a post is owed (S4, S5)."""
        (self.wait.add if wait else self.wait.discard)(number)
        self.seat(number).waiting_for_big_blind = wait and (number in self.entry or number in self.missed)

    def street_dealt(self) -> None:
        """A street's cards are out: its round begins, unless nobody is left to bet (B16)."""
        self.street += 1
        self.received = 0
        dealt = [seat for seat in self.shown.seats if seat.in_hand and not seat.folded]
        if sum(not seat.all_in for seat in dealt) > 1 or any(seat.bet for seat in self.shown.seats):
            self.shown.round = self.street
