"""Rankings against PokerKit's, wherever it knows them: of two hands the same one wins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pokerkit import (
    BadugiHand,
    EightOrBetterLowHand,
    Hand,
    OmahaEightOrBetterLowHand,
    OmahaHoldemHand,
    RegularLowHand,
    StandardHighHand,
    StandardLowHand,
)

from relance.poker.cards import FULL_DECK, render
from relance.poker.ranking import RANKINGS

# Ranking, PokerKit's, hole cards of a player, board cards.
ORACLES: list[tuple[str, type[Hand], int, int]] = [
    ("standard", StandardHighHand, 2, 5),
    ("standard", StandardHighHand, 7, 0),
    ("standard", StandardHighHand, 5, 0),
    ("omaha", OmahaHoldemHand, 4, 5),
    ("omaha_eight", OmahaEightOrBetterLowHand, 4, 5),
    ("eight_or_better", EightOrBetterLowHand, 7, 0),
    ("deuce_to_seven", StandardLowHand, 5, 0),
    ("razz", RegularLowHand, 7, 0),
    ("badugi", BadugiHand, 4, 0),
]


def deal(hole: int, board: int, deck: tuple[int, ...]) -> st.SearchStrategy[list[int]]:
    """Cards for two hands and a board."""
    count = 2 * hole + board
    return st.permutations(deck).map(lambda cards: list(cards[:count]))


@pytest.mark.parametrize(("name", "kind", "hole", "board"), ORACLES, ids=str)
def test_two_hands_compare_as_in_pokerkit(name: str, kind: type[Hand], hole: int, board: int) -> None:
    best = RANKINGS[name].best
    few_ranks = tuple(card for card in FULL_DECK if card >> 2 in {0, 1, 2, 3, 4, 6, 12})
    lows_and_pairs = deal(hole, board, few_ranks)

    @settings(max_examples=150, deadline=None)
    @given(st.one_of(deal(hole, board, FULL_DECK), lows_and_pairs))
    def compare(cards: list[int]) -> None:
        middle = cards[2 * hole :]
        one, other = cards[:hole], cards[hole : 2 * hole]
        ours = best(one, middle), best(other, middle)
        theirs = (
            kind.from_game_or_none(render(one), render(middle)),
            kind.from_game_or_none(render(other), render(middle)),
        )
        assert [score is None for score in ours] == [hand is None for hand in theirs]
        if ours[0] is not None and ours[1] is not None and theirs[0] is not None and theirs[1] is not None:
            assert (ours[0] < ours[1]) == (theirs[0] < theirs[1])
            assert (ours[1] < ours[0]) == (theirs[1] < theirs[0])

    compare()
