"""Orders of five-card hands as tables: one look-up by the sum of the cards' weights.

A weight is 5 to the power of the rank, so that the sum of five tells how often each rank occurs (at most four times).
Hands of one suit stand under the same sum plus SUITED.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from relance.poker.ranking.shapes import Category, Shape, four_straights, rank_multisets, shape, straights, words

WEIGHTS: tuple[int, ...] = tuple(5 ** (card >> 2) for card in range(52))
SUITED = 5**13

STANDARD_ORDER = (
    Category.HIGH_CARD,
    Category.PAIR,
    Category.TWO_PAIR,
    Category.TRIPS,
    Category.STRAIGHT,
    Category.FLUSH,
    Category.FULL_HOUSE,
    Category.QUADS,
    Category.STRAIGHT_FLUSH,
)
"""H1, worst first."""

STRIPPED_ORDER = (
    Category.HIGH_CARD,
    Category.PAIR,
    Category.TWO_PAIR,
    Category.TRIPS,
    Category.STRAIGHT,
    Category.FULL_HOUSE,
    Category.FLUSH,
    Category.QUADS,
    Category.STRAIGHT_FLUSH,
)
"""H7, and H8 from 36 cards up: a flush beats a full house."""

CLUB_32_ORDER = (
    Category.HIGH_CARD,
    Category.PAIR,
    Category.TWO_PAIR,
    Category.TRIPS,
    Category.STRAIGHT,
    Category.FULL_HOUSE,
    Category.QUADS,
    Category.FLUSH,
    Category.STRAIGHT_FLUSH,
)
"""H8 with 32 cards: a flush beats four of a kind too."""

SOKO_ORDER = (
    Category.HIGH_CARD,
    Category.PAIR,
    Category.FOUR_STRAIGHT,
    Category.FOUR_FLUSH,
    *STANDARD_ORDER[2:],
)
"""H9 with four-card hands."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of five-card hands as data: kinds from the worst up, the deck's lowest rank, and the low ace."""

    categories: tuple[Category, ...]
    lowest: int = 0
    ace_low: bool = True

    def score(self, found: Shape) -> int:
        """Bigger is better: the place of the kind, then the compared ranks, four bits each."""
        value = self.categories.index(found.category)
        for at in range(5):
            value = value << 4 | (found.ranks[at] if at < len(found.ranks) else 0)
        return value


@cache
def shapes_of(order: Order) -> Mapping[int, Shape]:
    """Sum of weights (plus SUITED for one suit) -> shape, for every hand of the order's deck."""
    runs = straights(order.lowest, ace_low=order.ace_low)
    fours = four_straights() if Category.FOUR_STRAIGHT in order.categories else {}
    found: dict[int, Shape] = {}
    for ranks in rank_multisets(order.lowest):
        key = sum(5**rank for rank in ranks)
        found[key] = shape(ranks, False, runs, fours)
        if len(set(ranks)) == 5:
            found[key + SUITED] = shape(ranks, True, runs, fours)
    return found


@cache
def table_of(order: Order) -> Mapping[int, int]:
    """Sum of weights (plus SUITED for one suit) -> score, bigger is better."""
    return {key: order.score(found) for key, found in shapes_of(order).items()}


@cache
def words_of(order: Order) -> Mapping[int, str]:
    """Score -> the hand in words."""
    return {order.score(found): words(found) for found in shapes_of(order).values()}


def key_of(cards: Sequence[int]) -> int:
    """The key of five cards in an order's tables."""
    a, b, c, d, e = cards
    key = WEIGHTS[a] + WEIGHTS[b] + WEIGHTS[c] + WEIGHTS[d] + WEIGHTS[e]
    return key + SUITED if a & 3 == b & 3 == c & 3 == d & 3 == e & 3 else key


def best_five(cards: Sequence[int], score: Callable[[Sequence[int]], int]) -> tuple[int, Sequence[int]]:
    """Best score among the choices of five of the cards, and those five."""
    return max(((score(five), five) for five in combinations(cards, 5)), key=lambda found: found[0])


@dataclass(frozen=True, slots=True)
class TableRanking:
    """A high ranking of five cards by an order's table. Of more than five cards the best five count."""

    name: str
    order: Order

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score of the best five of all cards, bigger is better. Raises KeyError for cards that the deck lacks."""
        table = table_of(self.order)
        cards = (*hole, *board) if board else hole
        if len(cards) == 5:
            return table[key_of(cards)]
        return best_five(cards, lambda five: table[key_of(five)])[0]

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best hand in words."""
        return words_of(self.order)[self.best(hole, board)]


def club_rankings() -> tuple[TableRanking, ...]:
    """H8: closed poker by the size of its deck, with the low ace and (`_high_ace`) without."""
    rankings: list[TableRanking] = []
    for size in (32, 36, 40, 44, 48, 52):
        categories, lowest = CLUB_32_ORDER if size == 32 else STRIPPED_ORDER, (52 - size) // 4
        rankings.append(TableRanking(f"closed_{size}", Order(categories, lowest)))
        rankings.append(TableRanking(f"closed_{size}_high_ace", Order(categories, lowest, ace_low=False)))
    return tuple(rankings)
