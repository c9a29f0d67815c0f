"""Rankings over every hand of the decks: known counts, strict orders, and our tables against the compiled evaluator."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise
from math import comb, prod

import pytest

from relance.poker.cards import FULL_DECK, stripped_deck
from relance.poker.ranking import RANKINGS
from relance.poker.ranking.five import SUITED, Order, TableRanking, shapes_of
from relance.poker.ranking.high import STANDARD_TABLE
from relance.poker.ranking.low import LOW_BITS
from relance.poker.ranking.shapes import Category

# Scores of the compiled evaluator at which each kind begins, and how many of the 2,598,960 hands are of the kind.
NINE = {
    Category.STRAIGHT_FLUSH: (7453, 40),
    Category.QUADS: (7297, 624),
    Category.FULL_HOUSE: (7141, 3_744),
    Category.FLUSH: (5864, 5_108),
    Category.STRAIGHT: (5854, 10_200),
    Category.TRIPS: (4996, 54_912),
    Category.TWO_PAIR: (4138, 123_552),
    Category.PAIR: (1278, 1_098_240),
    Category.HIGH_CARD: (1, 1_302_540),
}

# H7: kinds of the 32-card deck, the best first, and their numbers.
THIRTY_TWO = {
    Category.STRAIGHT_FLUSH: 20,
    Category.QUADS: 224,
    Category.FLUSH: 204,
    Category.FULL_HOUSE: 1_344,
    Category.STRAIGHT: 5_100,
    Category.TRIPS: 10_752,
    Category.TWO_PAIR: 24_192,
    Category.PAIR: 107_520,
    Category.HIGH_CARD: 52_020,
}


def test_H1_the_nine_categories_of_all_2598960_hands_have_their_known_counts() -> None:
    best = RANKINGS["standard"].best
    counts = Counter(best(five, ()) for five in combinations(FULL_DECK, 5))
    assert len(counts) == 7_462
    floors = [*(floor for floor, _ in NINE.values()), 0]
    for at, (category, (floor, known)) in enumerate(NINE.items()):
        ceiling = floors[at - 1] if at else 7_463
        found = sum(number for score, number in counts.items() if score is not None and floor <= score < ceiling)
        assert found == known, category


def example(key: int) -> list[int]:
    """Five cards of a key of the tables."""
    suited = key >= SUITED
    key %= SUITED
    cards: list[int] = []
    for rank in range(13):
        count = key // 5**rank % 5
        cards.extend(rank * 4 + (0 if suited else (suit + rank) % 4) for suit in range(count))
    if not suited and len({card & 3 for card in cards}) == 1:
        cards[0] ^= 1
    return cards


def hands_of(key: int) -> int:
    """How many hands of a full deck a key of the tables stands for."""
    if key >= SUITED:
        return 4
    counts = [key // 5**rank % 5 for rank in range(13)]
    return prod(comb(4, count) for count in counts) - (4 if max(counts) == 1 else 0)


def test_H1_our_table_orders_all_7462_kinds_of_hands_as_the_compiled_evaluator_does() -> None:
    keys = shapes_of(STANDARD_TABLE.order)
    assert sum(map(hands_of, keys)) == comb(52, 5)
    pairs = sorted((STANDARD_TABLE.best(example(key), ()), RANKINGS["standard"].best(example(key), ())) for key in keys)
    assert [compiled for _, compiled in pairs] == list(range(1, 7_463))
    assert len({ours for ours, _ in pairs}) == 7_462


def test_H7_all_201376_hands_of_the_32_card_deck_are_strictly_ordered() -> None:
    best = RANKINGS["draw32"].best
    scores: set[int | None] = set()
    by_rule: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for five in combinations(stripped_deck(32), 5):
        score = best(five, ())
        assert score is not None
        scores.add(score)
        by_rule[score >> 10].append(five)
    assert len(scores) == comb(32, 5) == 201_376
    # What H7 itself compares leaves no tie between hands that can meet: equal ones share a card.
    for equal in by_rule.values():
        if not set.intersection(*map(set, equal)):
            assert all(set(one) & set(other) for one, other in combinations(equal, 2))


def test_H7_the_kinds_of_the_32_card_deck_stand_in_their_order_with_their_counts() -> None:
    ranking = RANKINGS["draw32"]
    order = Order(tuple(reversed(THIRTY_TWO)), lowest=5)
    counts: Counter[Category] = Counter()
    bounds: dict[Category, list[int]] = {}
    for key, found in shapes_of(order).items():
        score = ranking.best(example(key), ())
        assert score is not None
        counts[found.category] += hands_of(key)
        bounds.setdefault(found.category, []).append(score)
    assert counts == THIRTY_TWO
    for better, worse in pairwise(THIRTY_TWO):
        assert min(bounds[better]) > max(bounds[worse])


def club_counts(ranks: int, *, ace_low: bool) -> dict[Category, int]:
    """How many hands of each kind a deck of so many ranks holds."""
    runs = ranks - 4 + ace_low
    return {
        Category.STRAIGHT_FLUSH: 4 * runs,
        Category.QUADS: ranks * 4 * (ranks - 1),
        Category.FULL_HOUSE: ranks * 4 * (ranks - 1) * 6,
        Category.FLUSH: 4 * (comb(ranks, 5) - runs),
        Category.STRAIGHT: runs * (4**5 - 4),
        Category.TRIPS: ranks * 4 * comb(ranks - 1, 2) * 16,
        Category.TWO_PAIR: comb(ranks, 2) * 36 * (ranks - 2) * 4,
        Category.PAIR: ranks * 6 * comb(ranks - 1, 3) * 64,
        Category.HIGH_CARD: (comb(ranks, 5) - runs) * (4**5 - 4),
    }


MIDDLE = (Category.FULL_HOUSE, Category.STRAIGHT, Category.TRIPS, Category.TWO_PAIR, Category.PAIR, Category.HIGH_CARD)


@pytest.mark.parametrize("suffix", ["", "_high_ace"])
@pytest.mark.parametrize("size", [32, 36, 40, 44, 48, 52])
def test_H8_club_orders_for_every_deck(size: int, suffix: str) -> None:
    ranking = RANKINGS[f"closed_{size}{suffix}"]
    assert isinstance(ranking, TableRanking)
    counts: Counter[Category] = Counter()
    scores: dict[Category, list[int]] = {}
    for key, found in shapes_of(ranking.order).items():
        counts[found.category] += hands_of(key)
        scores.setdefault(found.category, []).append(ranking.best(example(key), ()))
    assert counts == club_counts(size // 4, ace_low=not suffix)
    assert counts.total() == comb(size, 5)
    strong = (Category.FLUSH, Category.QUADS) if size == 32 else (Category.QUADS, Category.FLUSH)
    order = (Category.STRAIGHT_FLUSH, *strong, *MIDDLE)
    for better, worse in pairwise(order):
        assert min(scores[better]) > max(scores[worse])


@pytest.mark.parametrize("size", [32, 36])
def test_H8_every_hand_of_a_club_deck_can_be_looked_up(size: int) -> None:
    best = RANKINGS[f"closed_{size}"].best
    assert sum(best(five, ()) is not None for five in combinations(stripped_deck(size), 5)) == comb(size, 5)


def test_H6_deuce_to_seven_turns_the_high_order_round_but_for_the_wheel() -> None:
    high, low = RANKINGS["closed_52_high_ace"], RANKINGS["deuce_to_seven"]
    keys = shapes_of(STANDARD_TABLE.order)
    kinds = {found.category for found in keys.values()}
    for kind in kinds - {Category.FLUSH, Category.FULL_HOUSE}:
        same = [example(key) for key, found in keys.items() if found.category is kind]
        by_high = sorted(same, key=lambda five: high.best(five, ()) or 0)
        assert by_high == sorted(same, key=lambda five: -(low.best(five, ()) or 0))


def test_H5_the_low_of_two_and_three_is_the_best_of_all_sixty_choices() -> None:
    """Every pair of sets of ranks that four hole cards and five board cards can show."""
    best = RANKINGS["omaha_eight"].best
    low_cards = [rank * 4 for rank in (12, 0, 1, 2, 3, 4, 5, 6)]
    high_cards = [rank * 4 + 1 for rank in (8, 9, 10, 11)]
    holes = [(*some, *high_cards)[:4] for count in range(5) for some in combinations(low_cards, count)]
    boards = [
        tuple(card + 2 for card in (*some, *high_cards, 29)[:5])
        for count in range(6)
        for some in combinations(low_cards, count)
    ]
    triples = {board: low_sets(board, 3) for board in boards}
    for hole in holes:
        pairs = low_sets(hole, 2)
        for board in boards:
            lows = [pair | triple for pair in pairs for triple in triples[board] if not pair & triple]
            assert best(hole, board) == (256 - min(lows) if lows else None)


def low_sets(cards: tuple[int, ...], count: int) -> list[int]:
    """The sets of so many different ranks up to eight among cards."""
    low = [LOW_BITS[card] for card in cards if LOW_BITS[card] < 256]
    return [sum(some) for some in combinations(low, count)]
