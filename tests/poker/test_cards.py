"""Cards, decks and amounts at their edges."""

from __future__ import annotations

import pytest

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.cards import FULL_DECK, NAMES, parse, rank_words, render, stripped_deck
from relance.poker.money import MAX_AMOUNT, check_amount, show
from relance.poker.rejected import Rejected


def test_every_card_survives_the_way_to_text_and_back() -> None:
    assert parse(render(FULL_DECK)) == list(FULL_DECK)
    assert len(set(NAMES)) == 52
    assert parse("") == []
    assert render(parse("As Td")) == "AsTd"


@pytest.mark.parametrize("text", ["A", "1s", "as", "AS", "AsA", "10s", "Xx", "AsTdA♠"])
def test_text_that_is_no_card_is_refused_with_what_a_card_is(text: str) -> None:
    with pytest.raises(ValueError, match="a card is one of"):
        parse(text)


def test_a_card_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="As stands twice"):
        parse("AsKdAs")


def test_G9_the_lower_number_is_the_lower_card_ties_by_clubs_diamonds_hearts_spades() -> None:
    assert sorted(parse("5s5h5d5c2sAc")) == parse("2s5c5d5h5sAc")


@pytest.mark.parametrize(("size", "lowest"), [(32, "7c"), (36, "6c"), (40, "5c"), (44, "4c"), (48, "3c"), (52, "2c")])
def test_D1_D2_stripped_decks_keep_the_highest_ranks(size: int, lowest: str) -> None:
    deck = stripped_deck(size)
    assert len(deck) == size
    assert render(deck[:1]) == lowest
    assert render(deck[-1:]) == "As"


def test_D2_there_is_no_deck_of_other_sizes() -> None:
    with pytest.raises(ValueError, match="32, 36, 40, 44, 48 and 52"):
        stripped_deck(50)


def test_words_of_ranks_have_their_plural() -> None:
    assert [rank_words(rank) for rank in (0, 4, 12)] == ["deuces", "sixes", "aces"]


def test_amounts_are_shown_in_whole_minor_units() -> None:
    assert show(1_234_567) == "€12,345.67"
    assert show(5) == "€0.05"
    assert show(-5) == "-€0.05"
    assert show(1_000, game_pb2.CURRENCY_CREDIT) == "V$ 1,000"


@pytest.mark.parametrize("amount", [0, -1, MAX_AMOUNT + 1])
def test_an_amount_out_of_bounds_is_refused_with_the_bounds(amount: int) -> None:
    with pytest.raises(Rejected) as refusal:
        check_amount(amount, "bet")
    assert refusal.value.reason == reason_pb2.REASON_INVALID_AMOUNT
    assert refusal.value.metadata == {"field": "bet", "min": "1", "max": str(MAX_AMOUNT)}
    assert str(refusal.value).startswith("INVALID_AMOUNT: bet is")
