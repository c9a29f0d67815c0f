"""Who holds what at the showdown, and who wins which part of a pot (H1-H9, B10, B13)."""

from __future__ import annotations

from collections.abc import Sequence

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.games import Showdown
from relance.poker.hand import FOLDED, Hand
from relance.poker.pots import pots_of
from relance.poker.ranking import RANKINGS, Ranking

Part = tuple[int, tuple[int, ...]]
"""A PotPart and the positions that win it."""


def ranking_of(showdown: Showdown, hand: Hand) -> Ranking:
    """The ranking that a showdown uses under the table's choices (H8, H9) and with the deck in play (D2)."""
    terms = hand.terms
    name = showdown.ranking
    if showdown.four_card and terms.four_card:
        name = showdown.four_card
    elif showdown.no_low_ace and not terms.ace_low:
        name = showdown.no_low_ace
    return RANKINGS[name.format(deck=hand.deck)]


class Comparison:
    """The live hands of a showdown, scored once."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._high = ranking_of(hand.game.high, hand)
        self._low = ranking_of(hand.game.low, hand) if hand.game.low is not None else None
        board = hand.board
        live = [at for at, status in enumerate(hand.status) if status != FOLDED]
        self.high = {at: self._high.best(hand.hole(at), board) for at in live}
        self.low = {at: self._low.best(hand.hole(at), board) for at in live} if self._low is not None else {}

    def describe_high(self, at: int) -> str:
        """The high hand in words."""
        return self._high.describe(self._hand.hole(at), self._hand.board)

    def describe_low(self, at: int) -> str:
        """The low hand in words; empty: none."""
        if self._low is None or self.low[at] is None:
            return ""
        return self._low.describe(self._hand.hole(at), self._hand.board)

    def winners(self, eligible: Sequence[int]) -> list[Part]:
        """The parts of a pot and who wins each: one part, or high and low (H5: no low, no low half)."""
        high = _best(self.high, eligible)
        low = _best(self.low, eligible) if self.low else ()
        if not low:
            return [(pb.POT_PART_WHOLE, high)]
        return [(pb.POT_PART_HIGH, high), (pb.POT_PART_LOW, low)]


def compare(hand: Hand) -> Comparison:
    """Score all live hands."""
    return Comparison(hand)


def winners_of(hand: Hand) -> set[int]:
    """Positions that win any part of any pot that is not split by agreement."""
    result = compare(hand)
    pots = [pot for number, pot in enumerate(pots_of(hand)) if number not in hand.agreed]
    return {at for pot in pots for _, winners in result.winners(pot.eligible) for at in winners}


def _best(scores: dict[int, int | None], eligible: Sequence[int]) -> tuple[int, ...]:
    made = [(score, at) for at in eligible if (score := scores[at]) is not None]
    if not made:
        return ()
    best = max(made)[0]
    return tuple(at for score, at in made if score == best)
