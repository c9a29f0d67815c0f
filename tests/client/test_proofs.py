"""Deck proofs: what the client checks is what the deck commits to."""

from __future__ import annotations

import random

import pytest

from relance.api.events.v1 import events_pb2
from relance.client.events import Event, event_of
from relance.client.proofs import ProofFailed, Proofs, verify_card, verify_hand
from relance.poker.cards import NAMES
from relance.poker.deck import VirtualDeck


def dealt_hand() -> tuple[list[events_pb2.TableEvent], VirtualDeck]:
    """A hand's events with the cards of one seat and a flop."""
    rng = random.Random(7)
    deck = VirtualDeck(rng.shuffle, rng.randbytes)
    commitments = deck.begin(range(52), commit=True)

    def of(*positions: int) -> tuple[str, bytes]:
        return "".join(NAMES[deck.card(at)] for at in positions), b"".join(deck.salt(at) for at in positions)

    own, own_salts = of(0, 2)
    flop, flop_salts = of(4, 5, 6)
    payloads = [
        {"hand_started": events_pb2.HandStarted(deck_commitments=commitments, deck_size=52)},
        {"cards_dealt": events_pb2.CardsDealt(seat=1, down=own, down_count=2, positions=[0, 2], down_salts=own_salts)},
        {"cards_dealt": events_pb2.CardsDealt(seat=2, down_count=2, positions=[1, 3])},
        {"board_dealt": events_pb2.BoardDealt(cards=flop, positions=[4, 5, 6], salts=flop_salts)},
    ]
    events = [
        events_pb2.TableEvent(table="t1", version=version, hand=1, **payload)  # type: ignore[arg-type]
        for version, payload in enumerate(payloads, 1)
    ]
    return events, deck


def as_seen(events: list[events_pb2.TableEvent]) -> list[Event]:
    return [event_of(event) for event in events]


def test_every_card_that_a_player_saw_is_proven_and_hidden_ones_are_not_counted() -> None:
    events, _ = dealt_hand()
    assert verify_hand(as_seen(events)) == 5


def test_another_card_another_position_or_another_salt_fails() -> None:
    events, deck = dealt_hand()
    commitment = events[0].hand_started.deck_commitments[:32]
    card, salt = NAMES[deck.card(0)], deck.salt(0)
    assert verify_card(commitment, 0, card, salt)
    assert not verify_card(commitment, 1, card, salt)
    assert not verify_card(commitment, 0, NAMES[deck.card(1)], salt)
    assert not verify_card(commitment, 0, card, deck.salt(1))


def test_a_swapped_card_is_found_in_the_hand() -> None:
    events, deck = dealt_hand()
    events[3].board_dealt.cards = NAMES[deck.card(9)] + events[3].board_dealt.cards[2:]
    with pytest.raises(ProofFailed, match="position 4"):
        verify_hand(as_seen(events))


def test_a_shown_hand_is_proven_too_and_what_does_not_fit_is_kept_in_words() -> None:
    events, deck = dealt_hand()
    other = "".join(NAMES[deck.card(at)] for at in (1, 3))
    shown = events_pb2.HandShown(seat=2, cards=other, positions=[1, 3], salts=deck.salt(1) + deck.salt(3))
    proofs = Proofs()
    for event in as_seen([*events, events_pb2.TableEvent(table="t1", version=5, hand=1, hand_shown=shown)]):
        proofs.check(event)
    assert (proofs.proven, proofs.unproven, proofs.broken) == (7, 0, [])
    shown.cards = other[2:] + other[:2]
    with pytest.raises(ProofFailed):
        proofs.check(event_of(events_pb2.TableEvent(table="t1", version=6, hand=1, hand_shown=shown)))
    assert len(proofs.broken) == 1


def test_cards_of_a_hand_whose_beginning_was_not_seen_prove_nothing_and_cards_without_salts_are_counted() -> None:
    events, _ = dealt_hand()
    proofs = Proofs()
    for event in as_seen(events[1:]):
        proofs.check(event)
    assert (proofs.proven, proofs.unproven) == (0, 0)
    events[3].board_dealt.salts = b""
    for event in as_seen([*events]):
        proofs.check(event)
    assert (proofs.proven, proofs.unproven) == (2, 3)
