"""Rankings by example: H1 to H9, and the cases that real rooms got wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest

from relance.poker.cards import parse
from relance.poker.games import GAMES
from relance.poker.ranking import RANKINGS


def score(ranking: str, hole: str, board: str = "") -> int:
    found = RANKINGS[ranking].best(parse(hole), parse(board))
    assert found is not None
    return found


def low_ranks(ranking: str, hole: str, board: str) -> list[int] | None:
    """The ranks of a low as numbers, ace = 1, highest first."""
    text = RANKINGS[ranking].describe(parse(hole), parse(board))
    values = {"A": 1} | {str(value): value for value in range(2, 9)}
    return None if text == "no low" else [values[rank] for rank in text.removesuffix(" low").split("-")]


BEST_TO_WORST = {
    "standard": [
        "AsKsQsJsTs",
        "5h4h3h2hAh",
        "9c9d9h9s2c",
        "KcKdKhQsQc",
        "KcKdKhJsJc",
        "AhJh9h5h3h",
        "AhJh9h5h2h",
        "AcKdQhJsTc",
        "5c4d3h2sAc",
        "QcQdQhAsKc",
        "AcAdKhKsQc",
        "AcAdQhQsKc",
        "AcAdKhQsJc",
        "AcAdKhQsTc",
        "AcKdQhJs9c",
        "7c5d4h3s2c",
    ],
    # Case EVAL-04
    "deuce_to_seven": [
        "7c5d4h3s2c",
        "7c6d4h3s2c",
        "8c5d4h3s2c",
        "Kc5d4h3s2c",
        "Ac5d4h3s2d",
        "2c2d3h4s5c",
        "2c2d3h3s4c",
        "2c2d2h3s4c",
        "7c6d5h4s3c",
        "7c5c4c3c2c",
    ],
    "draw32": [
        "AhKhQhJhTh",  # royal flush
        "AdKdQdJdTd",
        "KsQsJsTs9s",
        "Th9h8h7hAh",  # the lowest straight flush
        "Tc9c8c7cAc",
        "7c7d7h7s8c",  # four of a kind
        "AsQsJsTs9s",  # flush
        "KhQhJh9h8h",
        "KcQcJc9c8c",
        "AcAdAhKsKc",  # full house
        "AcKdQhJsTc",  # straight
        "KhQsJsTs9c",
        "KsQhJhTh9h",
        "TdAh9h8h7s",
        "TsAh9h8h7d",
        "8c8d8hAsKc",  # three of a kind
        "AsAcKsKcQh",  # two pair, by the kicker's suit
        "AhAdKhKdQs",
        "JsJcAhTc9c",  # pair, by the highest kicker's suit
        "JhJdAsTh9h",
        "AhKsQsJs9s",  # high card, by its suit
        "AdKhQhJh9h",
        "AcKhQhJd9h",
        "AsKhQhJd9h",
    ],
    "closed_32": ["KsQsJsTs9s", "AhQhJhTh8h", "7c7d7h7s8c", "AcAdAhKsKc", "AcKdQhJsTc", "Tc9d8h7sAc", "8c8d8hAsKc"],
    "closed_36": ["KsQsJsTs9s", "7c7d7h7s8c", "AhQhJhTh8h", "AcAdAhKsKc", "AcKdQhJsTc", "9d8h7s6cAc", "8c8d8hAsKc"],
    "closed_52": ["5s4s3s2sAs", "7c7d7h7s8c", "7h5h4h3h2h", "AcAdAhKsKc", "6d5h4s3c2c", "5d4h3s2cAc", "8c8d8hAsKc"],
    "soko_four_card": [
        "2c2d3h3s4c",  # two pair
        "AhKhQh9h2c",  # four-card flush
        "AhKhQh8h8c",
        "5h4h3h2hKc",
        "5h4h3h2h5c",
        "AcKdQhJs9c",  # four-card straight
        "AcKdQhJs2c",
        "8c8d7h6s5c",
        "4c3d2hAsKc",
        "4c4d3h2sAc",
        "AcAdKhQs9c",  # pair
        "AcKdQh9s8c",
    ],
    "razz": [
        "5c4d3h2sAc",
        "6h4h3h2hAh",
        "6c5d3h2sAc",
        "KcQdJhTs9c",
        "AcAd2h3s4c",
        "KcKdQhJsTc",
        "AcAd2h2s3c",
        "AcAdAh2s3c",
    ],
    "badugi": [
        "4c3d2hAs",
        "5c3d2hAs",
        "KcQdJhTs",
        "3d2hAsAc",
        "5d4h3s3c",
        "3s2hAsQc",
        "2cAdAhAs",
        "Ac2c3c4c",
        "2c3c4c5c",
    ],
}


@pytest.mark.parametrize("ranking", BEST_TO_WORST)
def test_H1_H2_H6_to_H9_hands_stand_in_the_order_of_the_rules(ranking: str) -> None:
    scores = [score(ranking, hand) for hand in BEST_TO_WORST[ranking]]
    for (better, worse), (left, right) in zip(pairwise(scores), pairwise(BEST_TO_WORST[ranking]), strict=True):
        assert better > worse, f"{left} must beat {right}"


def test_H3_suits_never_break_ties_except_in_32_card_draw() -> None:
    for ranking in ("standard", "closed_32", "deuce_to_seven", "soko_four_card"):
        assert score(ranking, "AsKhQhJd9h") == score(ranking, "AhKsQsJc9s")
    assert score("draw32", "AsKhQhJd9h") != score("draw32", "AhKsQsJc9s")


# Case TIE-01: board, hands, winners.
TIES = [
    ("Jd 7h Jc Kh Ks", ["Ah 8h", "As Qc"], [0, 1]),
    ("As Jd 3c Qh 3d", ["8h 5d", "8c 2s"], [0, 1]),
    ("Qh Qc As Tc 5h", ["Th 3c", "Td 9h"], [0, 1]),
    ("Jd Tc Qs Ks 9s", ["9c 2s", "Jh Kh", "Qc 4h", "Qh 8d"], [0, 1, 2, 3]),
    ("4c 5d 6h 7s 8c", ["As Kd", "Qh Qd"], [0, 1]),
    ("4c 5d 6h 7s 8c", ["As Kd", "9c 2d"], [1]),
    ("4d 8s 4h 7d 8c", ["7h 5c", "Kc 6s"], [0]),
    ("9c 7s 5h 5s 3c", ["8h Ks", "4d Qs"], [0]),
    ("Kd Kc 4h 4s 9d", ["Qc Qs", "Ah 2c"], [0]),
    ("2d 3d 4d 5d Ks", ["Ad 9c", "6c Kh"], [0]),
    ("2h 3c 4d 5s 9h", ["Ad Kc", "9c 9s"], [0]),
    ("2h 3c 4d 5s 9h", ["Ad Kc", "6c 2s"], [1]),
]


@pytest.mark.parametrize(("board", "hands", "winners"), TIES)
def test_TIE_01_five_cards_only_kickers_that_do_not_play_and_playing_the_board(
    board: str, hands: list[str], winners: list[int]
) -> None:
    scores = [score("standard", hand, board) for hand in hands]
    assert [at for at, one in enumerate(scores) if one == max(scores)] == winners


# Case EVAL-01: board, hole cards, kind.
@pytest.mark.parametrize(
    ("board", "hole", "kind"),
    [
        ("3s 5h Qs Qd 9h", "Ks 8c Js 5c", "two pair, queens and fives"),
        ("Kc Kd Kh Ks 2c", "As Ad 7h 6d", "full house, kings full of aces"),
        ("As Ks 9s 4s 2d", "Qs Jd Th 3c", "ace high"),
        ("As Ks 9s 4s 2d", "Qs Js Th 3c", "flush, ace high"),
    ],
)
def test_EVAL_01_H4_omaha_takes_exactly_two_hole_cards_and_three_of_the_board(board: str, hole: str, kind: str) -> None:
    assert RANKINGS["omaha"].describe(parse(hole), parse(board)) == kind


# Case EVAL-02: board, hole cards, low.
@pytest.mark.parametrize(
    ("board", "hole", "low"),
    [
        ("2h 5c 7d Ks Kd", "As 2d Qc Jc", None),
        ("2h 5c 7d Ks Kd", "3s 4h 9c 8h", [7, 5, 4, 3, 2]),
        ("3d 4c 5s Kh Qh", "As 2c Kd Ks", [5, 4, 3, 2, 1]),
        ("Ah 2d 3c 8s 9h", "7d Kc Kd Qs", None),
        ("Ah 2d 3c 8s 9h", "7d 6c Kd Qs", [7, 6, 3, 2, 1]),
        ("9h Th Jd 2c 3s", "As 4d 5c 6h", None),
        ("3h 6d 8c Ks Qd", "As 4s Jc 7d", [8, 6, 4, 3, 1]),
        ("2c 3c 4c 8h 8d", "Ac 5c Kd Kh", [5, 4, 3, 2, 1]),
    ],
)
def test_EVAL_02_H4_H5_omaha_low_qualifies_by_two_hole_cards_and_may_be_counterfeited(
    board: str, hole: str, low: list[int] | None
) -> None:
    assert low_ranks("omaha_eight", hole, board) == low
    assert (RANKINGS["omaha_eight"].best(parse(hole), parse(board)) is None) == (low is None)


def test_H5_lows_compare_from_the_highest_card_down_and_straights_do_not_count() -> None:
    lows = ["5h4h3h2hAhKsKd", "6c4d3h2sAcKsKd", "6c5d4h3s2cKsKd", "7c4d3h2sAcKsKd", "8c6d5h4s3cKsKd", "8c7d6h5s4cKsKd"]
    scores = [score("eight_or_better", hand) for hand in lows]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert score("eight_or_better", "8c6d5h", "4s3cKsKd") == scores[4]


@pytest.mark.parametrize("hand", ["9c7d6h5s4cKsKd", "8c8d6h5s4c4dKd", "AcAd2h2s3c3dKd"])
def test_H5_four_low_ranks_or_a_nine_are_no_low(hand: str) -> None:
    assert RANKINGS["eight_or_better"].best(parse(hand), ()) is None
    assert RANKINGS["eight_or_better"].describe(parse(hand), ()) == "no low"


# Case EVAL-06: players, hands, winner.
@pytest.mark.parametrize(
    ("deck", "better", "worse"),
    [
        (32, "Ah Kh Qh 9h 7h", "8s 8d 8c 8h 7s"),
        (36, "8s 8d 8c 8h 7s", "Ah Kh Qh 9h 7h"),
        (48, "8s 8d 8c 8h 7s", "Ah Kh Qh 9h 6h"),
        (32, "Ah Kh Qh 9h 7h", "Ks Kd Kc 8s 8d"),
        (48, "Ah Kh Qh 9h 7h", "Ks Kd Kc 8s 8d"),
        (32, "8s 8d 8c 8h 7s", "Ks Kd Kc 8s 8d"),
    ],
)
def test_EVAL_06_H8_the_flush_of_the_club_moves_with_the_deck(deck: int, better: str, worse: str) -> None:
    assert score(f"closed_{deck}", better) > score(f"closed_{deck}", worse)


@pytest.mark.parametrize(
    ("deck", "straight", "next_up"),
    [(32, "AcTd9h8s7c", "JcTd9h8s7c"), (36, "Ac9d8h7s6c", "Tc9d8h7s6c"), (40, "Ac8d7h6s5c", "9c8d7h6s5c")],
)
def test_H8_the_low_ace_of_stripped_decks_is_a_choice(deck: int, straight: str, next_up: str) -> None:
    assert score(f"closed_{deck}", straight) > score(f"closed_{deck}", "AcAdAhKsQc")
    assert score(f"closed_{deck}", straight) < score(f"closed_{deck}", next_up)
    assert score(f"closed_{deck}_high_ace", straight) < score(f"closed_{deck}_high_ace", "KcKdQhJsTc")


def test_a_stripped_deck_does_not_know_the_cards_it_lacks() -> None:
    with pytest.raises(KeyError):
        score("closed_32", "2c3d4h5s7c")
    with pytest.raises(KeyError):
        score("draw32", "6c7d8h9sTc")


WORDS = [
    ("standard", "AsKsQsJsTs", "", "royal flush"),
    ("standard", "AsAd", "AhKcKd2s3s", "full house, aces full of kings"),
    ("standard", "2c2d", "2h2s3c4d5h", "four of a kind, deuces"),
    ("standard", "6c6d", "Ah9c3d", "pair of sixes"),
    ("standard", "6c5d", "4h3c2d", "straight, six high"),
    ("deuce_to_seven", "7c5d4h3s2c", "", "7-5-4-3-2 low"),
    ("deuce_to_seven", "Ac5d4h3s2c", "", "A-5-4-3-2 low"),
    ("deuce_to_seven", "6c5d4h3s2c", "", "straight, six high"),
    ("eight_or_better", "8c6d4h3sAcKdKh", "", "8-6-4-3-A low"),
    ("draw32", "JsJcAhTc9c", "", "pair of jacks, with the ace of hearts"),
    ("draw32", "AhKhQhJhTh", "", "royal flush"),
    ("draw32", "AcAdAhKsKc", "", "full house, aces full of kings"),
    ("soko_four_card", "AhKhQh9h2c", "", "four-card flush, ace high"),
    ("soko_four_card", "4c3d2hAsKc", "", "four-card straight, four high"),
    ("closed_32", "Tc9d8h7sAc", "", "straight, ten high"),
    ("razz", "AcKd2c3d4dQhJh", "", "J-4-3-2-A low"),
    ("razz", "AcAd2c2d3d3hJh", "", "A-A-J-3-2 low"),
    ("badugi", "4c3d2hAs", "", "4-3-2-A badugi"),
    ("badugi", "3d2hAsAc", "", "3-2-A, three cards"),
]


@pytest.mark.parametrize(("ranking", "hole", "board", "text"), WORDS)
def test_hands_are_described_in_the_words_of_the_field(ranking: str, hole: str, board: str, text: str) -> None:
    assert RANKINGS[ranking].describe(parse(hole), parse(board)) == text


def test_every_game_names_rankings_that_exist() -> None:
    for game in GAMES.values():
        for showdown in filter(None, (game.high, game.low)):
            for name in filter(None, (showdown.ranking, showdown.four_card, showdown.no_low_ace)):
                for deck in (32, 36, 40, 44, 48, 52):
                    assert name.format(deck=deck) in RANKINGS


def test_badugi_needs_a_card() -> None:
    with pytest.raises(ValueError, match="at least one card"):
        RANKINGS["badugi"].best((), ())
