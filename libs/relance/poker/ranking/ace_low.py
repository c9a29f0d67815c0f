"""Ace-to-five without a qualifier (Razz) and Badugi: rankings that no house needs, proof that a game is a row."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from relance.poker.ranking.five import WEIGHTS
from relance.poker.ranking.low import LOW_BITS, LOW_RANKS, lowest_five, ranks_in_words
from relance.poker.ranking.shapes import rank_multisets

_BADNESS = ((1, 1, 1, 1, 1), (2, 1, 1, 1), (2, 2, 1), (3, 1, 1), (3, 2), (4, 1))
"""Kinds of five cards by how often their ranks occur, the best low first."""

_TOP = 1 << 24


def _packed(badness: int, low_ranks: Sequence[int]) -> int:
    """Score, bigger is better (lower): the kind, then the compared ranks, four bits each."""
    value = badness
    for at in range(5):
        value = value << 4 | (low_ranks[at] if at < len(low_ranks) else 0)
    return _TOP - value


@cache
def _paired() -> Mapping[int, int]:
    """Sum of five weights -> score, for every kind of hand."""
    scores: dict[int, int] = {}
    for ranks in rank_multisets(0):
        counts = sorted(((count, (rank + 1) % 13) for rank, count in Counter(ranks).items()), reverse=True)
        badness = _BADNESS.index(tuple(count for count, _ in counts))
        scores[sum(5**rank for rank in ranks)] = _packed(badness, [rank for _, rank in counts])
    return scores


@cache
def _unpaired() -> tuple[int, ...]:
    """Set of ranks -> score of the five lowest, 0 where there are fewer."""
    scores: list[int] = []
    for mask in range(1 << 13):
        low = lowest_five(mask)
        scores.append(_packed(0, [at for at in reversed(range(13)) if low >> at & 1]) if low else 0)
    return tuple(scores)


@dataclass(frozen=True, slots=True)
class AceToFive:
    """The lowest five of all cards: ace low, straights and flushes do not count, pairs do."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score of the best low of five or more cards, bigger is better."""
        cards = (*hole, *board)
        mask = 0
        for card in cards:
            mask |= LOW_BITS[card]
        score = _unpaired()[mask]
        if score:
            return score
        table = _paired()
        return max(table[sum(five)] for five in combinations([WEIGHTS[card] for card in cards], 5))

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best low in words: ``6-4-3-2-A low``, paired ranks first."""
        value = _TOP - self.best(hole, board)
        counts = _BADNESS[value >> 20]
        ranks = [LOW_RANKS[value >> 16 - 4 * at & 15] for at in range(len(counts))]
        return "-".join("-".join(rank * count) for rank, count in zip(ranks, counts, strict=True)) + " low"


@dataclass(frozen=True, slots=True)
class Badugi:
    """The most cards of different suits and different ranks, then the lowest; ace low."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score of four cards, bigger is better: first the number of cards that play, then how low they are."""
        size, mask = _badugi((*hole, *board))
        return size << 13 | (1 << 13) - mask

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The hand in words: ``7-5-3-A badugi``, ``5-3-2, three cards``."""
        size, mask = _badugi((*hole, *board))
        return ranks_in_words(mask) + ("", ", one card", ", two cards", ", three cards", " badugi")[size]


def _badugi(cards: Sequence[int]) -> tuple[int, int]:
    """How many cards play, and the lowest set of ranks of that many."""
    for size in range(min(4, len(cards)), 0, -1):
        masks = [
            sum(LOW_BITS[card] for card in some)
            for some in combinations(cards, size)
            if len({card & 3 for card in some}) == size and len({card >> 2 for card in some}) == size
        ]
        if masks:
            return size, min(masks)
    raise ValueError("a badugi hand has at least one card")
