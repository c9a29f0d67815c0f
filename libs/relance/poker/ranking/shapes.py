"""What five cards are: their category and the ranks that are compared within it (H1, H2, H7, H8)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations_with_replacement

from relance.poker.cards import rank_word, rank_words

ACE = 12


class Category(StrEnum):
    """A kind of hand. The order of the kinds belongs to a ranking, not to this list."""

    HIGH_CARD = "high card"
    PAIR = "pair"
    FOUR_STRAIGHT = "four-card straight"
    FOUR_FLUSH = "four-card flush"
    TWO_PAIR = "two pair"
    TRIPS = "three of a kind"
    STRAIGHT = "straight"
    FLUSH = "flush"
    FULL_HOUSE = "full house"
    QUADS = "four of a kind"
    STRAIGHT_FLUSH = "straight flush"


@dataclass(frozen=True, slots=True)
class Shape:
    """Category and the ranks to compare, the most important first; straights carry their top card only."""

    category: Category
    ranks: tuple[int, ...]


_GROUPS = {
    (1, 1, 1, 1, 1): Category.HIGH_CARD,
    (2, 1, 1, 1): Category.PAIR,
    (2, 2, 1): Category.TWO_PAIR,
    (3, 1, 1): Category.TRIPS,
    (3, 2): Category.FULL_HOUSE,
    (4, 1): Category.QUADS,
}


def straights(lowest: int, *, ace_low: bool) -> dict[frozenset[int], int]:
    """The straights of a deck whose lowest rank is given: set of ranks -> top card.

    With ace_low the ace also stands under the lowest rank: A-2-3-4-5 of 52 cards (H2), A-7-8-9-10 of 32 (H7, H8).
    """
    tops = {frozenset(range(top - 4, top + 1)): top for top in range(lowest + 4, ACE + 1)}
    if ace_low:
        tops[frozenset({ACE, *range(lowest, lowest + 4)})] = lowest + 3
    return tops


def four_straights() -> dict[frozenset[int], int]:
    """The four-card straights of 52 cards (H9): set of ranks -> top card; A-2-3-4 is the lowest."""
    return {frozenset(range(top - 3, top + 1)): top for top in range(3, ACE + 1)} | {frozenset({ACE, 0, 1, 2}): 2}


def shape(
    ranks: tuple[int, ...],
    suited: bool,
    runs: Mapping[frozenset[int], int],
    four_runs: Mapping[frozenset[int], int],
) -> Shape:
    """The shape of five ranks, of one suit or not, given the straights that count.

    A four-card straight carries its top card and the fifth card. Four-card flushes are not seen here: ranks do not
    tell them.
    """
    counts = sorted(((count, rank) for rank, count in Counter(ranks).items()), reverse=True)
    compared = tuple(rank for _, rank in counts)
    category = _GROUPS[tuple(count for count, _ in counts)]
    if category is Category.HIGH_CARD:
        top = runs.get(frozenset(ranks))
        if top is not None:
            return Shape(Category.STRAIGHT_FLUSH if suited else Category.STRAIGHT, (top,))
        if suited:
            return Shape(Category.FLUSH, compared)
    if category in {Category.HIGH_CARD, Category.PAIR}:
        for at, odd in enumerate(ranks):
            top = four_runs.get(frozenset(ranks[:at] + ranks[at + 1 :]))
            if top is not None:
                return Shape(Category.FOUR_STRAIGHT, (top, odd))
    return Shape(category, compared)


def rank_multisets(lowest: int) -> Iterator[tuple[int, ...]]:
    """Every choice of five ranks from `lowest` up that a deck with four suits can give, ascending."""
    for ranks in combinations_with_replacement(range(lowest, ACE + 1), 5):
        if ranks[0] != ranks[4]:
            yield ranks


def words(found: Shape) -> str:
    """A hand in the field's words: ``two pair, aces and kings``."""
    first, *rest = found.ranks
    match found.category:
        case Category.STRAIGHT_FLUSH if first == ACE:
            return "royal flush"
        case (
            Category.STRAIGHT_FLUSH | Category.STRAIGHT | Category.FOUR_STRAIGHT | Category.FOUR_FLUSH | Category.FLUSH
        ):
            return f"{found.category}, {rank_word(first)} high"
        case Category.FULL_HOUSE:
            return f"full house, {rank_words(first)} full of {rank_words(rest[0])}"
        case Category.TWO_PAIR:
            return f"two pair, {rank_words(first)} and {rank_words(rest[0])}"
        case Category.PAIR:
            return f"pair of {rank_words(first)}"
        case Category.HIGH_CARD:
            return f"{rank_word(first)} high"
        case _:
            return f"{found.category}, {rank_words(first)}"
