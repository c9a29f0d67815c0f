"""Who is asked, for what, and what is legal."""

from __future__ import annotations

from dataclasses import dataclass

from relance.api.table.v1 import table_pb2
from relance.poker.betting import Offer, offer_of
from relance.poker.hand import BET, DRAW, NOBODY
from relance.poker.table import Table


@dataclass(frozen=True, slots=True)
class Prompt:
    """The question that a table waits for. `turn`: the table's version at which it arose.

    clock_ms: time for the answer, with what the player's time bank adds (bank_ms) behind the decision time.
    """

    turn: int
    seat: int
    player: str
    kind: table_pb2.PromptKind.ValueType
    clock_ms: int
    hand: int
    offer: Offer
    bank_ms: int = 0

    def to_proto(self, deadline_us: int = 0, remaining_ms: int = 0) -> table_pb2.Prompt:
        """The prompt as clients get it."""
        offer = self.offer
        return table_pb2.Prompt(
            turn=self.turn,
            seat=self.seat,
            kind=self.kind,
            deadline_us=deadline_us,
            remaining_ms=remaining_ms,
            actions=offer.actions,
            call=offer.call,
            min_raise_to=offer.min_raise_to,
            max_raise_to=offer.max_raise_to,
            raise_sizes=offer.raise_sizes,
            max_discards=offer.max_discards,
            hand=self.hand,
            time_bank_ms=self.bank_ms,
        )


def prompt(table: Table) -> Prompt | None:
    """Who is asked now; None: nobody."""
    hand = table.hand
    if hand is None or hand.asked == NOBODY:
        return None
    terms = hand.terms
    at = hand.asked
    seat, bank = hand.seats[at], 0
    if hand.asks == BET:
        bank = table.seats[seat].time_bank
        clock = terms.decision_ms + bank
    else:
        clock = terms.draw_ms if hand.asks == DRAW else terms.answer_ms
    return Prompt(hand.turn, seat, hand.players[at], hand.asks, clock, hand.number, offer_of(hand), bank)
