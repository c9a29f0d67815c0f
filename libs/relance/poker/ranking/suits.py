"""Rankings of five cards in which suits decide more than a flush: 32-card draw (H7) and Soko's four-card hands (H9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from relance.poker.cards import rank_word, suit_words
from relance.poker.ranking.five import SOKO_ORDER, STRIPPED_ORDER, Order, best_five, key_of, shapes_of, table_of
from relance.poker.ranking.shapes import Category, Shape, words

_DRAW_32 = Order(STRIPPED_ORDER, lowest=5)
_SUIT_PLACES = (1, 2, 3, 0)
"""H7: hearts > diamonds > clubs > spades, by the numbers of clubs, diamonds, hearts, spades."""

_TIE_CARDS = {
    Category.STRAIGHT_FLUSH: 0,
    Category.FLUSH: 0,
    Category.STRAIGHT: 0,
    Category.TWO_PAIR: 2,
    Category.PAIR: 1,
    Category.HIGH_CARD: 0,
}
"""Which of the compared ranks names the card whose suit breaks a tie (H7). Trips and more never tie in one deck."""

_SOKO = Order(SOKO_ORDER)
_FOUR_SUITED = {4 * 8**suit + 8**odd: suit for suit in range(4) for odd in range(4) if odd != suit}


@cache
def _draw32_table() -> Mapping[int, tuple[int, int]]:
    """Key of five cards -> score without suits, and the rank of the card whose suit breaks ties (-1: none)."""
    shapes, scores = shapes_of(_DRAW_32), table_of(_DRAW_32)
    found: dict[int, tuple[int, int]] = {}
    for key, one in shapes.items():
        at = _TIE_CARDS.get(one.category)
        found[key] = (scores[key], -1 if at is None else one.ranks[at])
    return found


@dataclass(frozen=True, slots=True)
class Draw32:
    """Five cards of the deck of 32, all 201,376 hands in one strict order (H7).

    Below the suit that H7 compares stand all suits of the hand: hands that differ only there share a card and never
    meet, so that it decides nothing and makes the order strict.
    """

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int] = ()) -> int:
        """Score of five cards, bigger is better, equal for no two hands. Raises KeyError for cards below seven."""
        score, tie_rank = _draw32_table()[key_of(hole)]
        suit = rest = 0
        for card in sorted(hole):
            if card >> 2 == tie_rank:
                suit = _SUIT_PLACES[card & 3]
            rest = rest << 2 | card & 3
        return score << 12 | suit << 10 | rest

    def describe(self, hole: Sequence[int], board: Sequence[int] = ()) -> str:
        """The hand in words, with the suit where H7 looks at it: ``pair of aces, with the king of hearts``."""
        found = shapes_of(_DRAW_32)[key_of(hole)]
        at = _TIE_CARDS.get(found.category)
        if at is None or words(found) == "royal flush":
            return words(found)
        rank = found.ranks[at]
        suit = next(card & 3 for card in hole if card >> 2 == rank)
        return f"{words(found)}, with the {rank_word(rank)} of {suit_words(suit)}"


@dataclass(frozen=True, slots=True)
class SokoFourCard:
    """The standard order with four-card straights and flushes between a pair and two pair (H9).

    Among themselves they compare the four cards from the highest down, then the fifth. A-2-3-4 is the lowest four-card
    straight.
    """

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score of the best five of all cards, bigger is better."""
        return best_five((*hole, *board), _soko_score)[0]

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best hand in words."""
        _, five = best_five((*hole, *board), _soko_score)
        return words(_four_flush(five) or shapes_of(_SOKO)[key_of(five)])


def _soko_score(five: Sequence[int]) -> int:
    found = _four_flush(five)
    score = table_of(_SOKO)[key_of(five)]
    return score if found is None else max(score, _SOKO.score(found))


def _four_flush(five: Sequence[int]) -> Shape | None:
    """The four-card flush of five cards; None when there is none."""
    suit = _FOUR_SUITED.get(sum(8 ** (card & 3) for card in five))
    if suit is None:
        return None
    ranks = sorted((card >> 2 for card in five if card & 3 == suit), reverse=True)
    odd = next(card >> 2 for card in five if card & 3 != suit)
    return Shape(Category.FOUR_FLUSH, (*ranks, odd))
