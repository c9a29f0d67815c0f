"""Low hands: eight or better (H5) and deuce to seven (H6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from relance.poker.ranking.five import STANDARD_ORDER, Order, best_five, key_of, shapes_of, table_of
from relance.poker.ranking.shapes import Category, words

LOW_RANKS = "A23456789TJQK"
LOW_BITS: tuple[int, ...] = tuple(1 << (rank + 1) % 13 for rank in range(13) for _ in range(4))
"""Card -> bit of its rank, ace lowest. Of two sets of five ranks the smaller number is the better low."""

EIGHT_BITS: tuple[int, ...] = tuple(bit if bit < 1 << 8 else 0 for bit in LOW_BITS)
"""The same for ace to eight, 0 for higher cards."""

_TOP = 1 << 24


def lowest_five(mask: int) -> int:
    """The five lowest ranks of a set; 0 when it has fewer."""
    if mask.bit_count() < 5:
        return 0
    while mask.bit_count() > 5:
        mask &= ~(1 << mask.bit_length() - 1)
    return mask


def ranks_in_words(mask: int) -> str:
    """A set of ranks, highest first: ``8-6-4-3-A``."""
    return "-".join(LOW_RANKS[at] for at in reversed(range(13)) if mask >> at & 1)


def _eight_score(mask: int) -> int:
    """Score of a set of five ranks: 256 less the set, 0 = no low."""
    return 256 - mask if mask else 0


_EIGHT_OF_ALL = bytes(_eight_score(lowest_five(mask)) for mask in range(256))
"""Ranks up to eight among all cards -> score of the best low."""


def _eight_of_two_and_three() -> tuple[bytes, ...]:
    """Ranks of the hole cards, ranks of the board -> score of the best low of exactly two and three (H4).

    Grown from exact pairs and triples: more cards can do what any of their subsets can.
    """
    rows = [bytearray(256) for _ in range(256)]
    for pair in (mask for mask in range(256) if mask.bit_count() == 2):
        row = rows[pair]
        for board in range(256):
            if board.bit_count() == 3 and not board & pair:
                row[board] = _eight_score(pair | board)
            else:
                row[board] = max((row[board & ~bit] for bit in _bits(board)), default=0)
    for hole in (mask for mask in range(256) if mask.bit_count() > 2):
        fewer = [rows[hole & ~bit] for bit in _bits(hole)]
        rows[hole][:] = bytes(map(max, *fewer))
    return tuple(bytes(row) for row in rows)


def _bits(mask: int) -> list[int]:
    return [1 << at for at in range(mask.bit_length()) if mask >> at & 1]


_EIGHT_OF_TWO_AND_THREE = _eight_of_two_and_three()


@dataclass(frozen=True, slots=True)
class EightOrBetter:
    """Five different ranks of eight or lower out of all cards, straights and flushes do not count (H5)."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int | None:
        """Score of the best low, bigger is better; None when none qualifies."""
        mask = 0
        for card in hole:
            mask |= EIGHT_BITS[card]
        for card in board:
            mask |= EIGHT_BITS[card]
        return _EIGHT_OF_ALL[mask] or None

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best low in words: ``8-6-4-3-A low``."""
        return _eight_words(self.best(hole, board))


@dataclass(frozen=True, slots=True)
class OmahaEight:
    """The eight-or-better low of exactly two hole cards and three board cards (H4, H5)."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int | None:
        """Score of the best low, bigger is better; None when none qualifies. Four hole cards, five board cards."""
        a, b, c, d = hole
        p, q, r, s, t = board
        bits = EIGHT_BITS
        row = _EIGHT_OF_TWO_AND_THREE[bits[a] | bits[b] | bits[c] | bits[d]]
        return row[bits[p] | bits[q] | bits[r] | bits[s] | bits[t]] or None

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The best low in words."""
        return _eight_words(self.best(hole, board))


def _eight_words(score: int | None) -> str:
    return "no low" if score is None else ranks_in_words(256 - score) + " low"


_DEUCE = Order(STANDARD_ORDER, ace_low=False)


@dataclass(frozen=True, slots=True)
class DeuceToSeven:
    """The lowest hand of five cards, ace only high, straights and flushes count against (H6)."""

    name: str

    def best(self, hole: Sequence[int], board: Sequence[int]) -> int:
        """Score, bigger is better (lower). Of more than five cards the lowest five count."""
        return best_five((*hole, *board), _deuce_score)[0] if len(hole) != 5 or board else _deuce_score(hole)

    def describe(self, hole: Sequence[int], board: Sequence[int]) -> str:
        """The hand in words: ``7-5-4-3-2 low``, ``pair of deuces``."""
        return _deuce_words()[self.best(hole, board)]


@cache
def _deuce_words() -> Mapping[int, str]:
    """Score -> words."""
    return {
        _TOP - _DEUCE.score(found): "-".join(LOW_RANKS[(rank + 1) % 13] for rank in found.ranks) + " low"
        if found.category is Category.HIGH_CARD
        else words(found)
        for found in shapes_of(_DEUCE).values()
    }


def _deuce_score(five: Sequence[int]) -> int:
    return _TOP - table_of(_DEUCE)[key_of(five)]
