"""The standard high hand (H1-H4), evaluated by phevaluator's compiled tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

# The package's public functions convert card names first, which costs more than the evaluation; our cards are its
# numbers already.
from phevaluator._pheval import (
    evaluate_5cards,
    evaluate_6cards,
    evaluate_7cards,
    evaluate_omaha_cards,
)

from relance.poker.ranking.five import STANDARD_ORDER, Order, TableRanking, words_of

WORST = 7462
"""phevaluator counts from 1, the royal flush, to this, the worst high card."""

STANDARD_TABLE = TableRanking("standard", Order(STANDARD_ORDER))
"""The same ranking by our own tables: it finds words, and tests hold the two together."""

_EVALUATORS = {5: evaluate_5cards, 6: evaluate_6cards, 7: evaluate_7cards}


@dataclass(frozen=True, slots=True)
class Standard:
    """Best five of five to seven cards: Hold'em, stud, five-card draw."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score from 1 to 7462, bigger is better. Raises KeyError for fewer than five or more than seven cards."""
        value: int = _EVALUATORS[len(hole) + len(board)](*hole, *board)
        return WORST + 1 - value

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best hand in words: ``two pair, aces and kings``."""
        return _words()[self.best(hole, board)]


@dataclass(frozen=True, slots=True)
class Omaha:
    """Exactly two of four hole cards and three of five board cards (H4)."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score from 1 to 7462, bigger is better. Raises TypeError unless there are four hole and five board cards."""
        value: int = evaluate_omaha_cards(*board, *hole)
        return WORST + 1 - value

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best hand in words."""
        return _words()[self.best(hole, board)]


@cache
def _words() -> tuple[str, ...]:
    """Score -> words: our table has the same 7462 kinds of hands in the same order."""
    by_score = words_of(STANDARD_TABLE.order)
    return ("", *(by_score[score] for score in sorted(by_score)))
