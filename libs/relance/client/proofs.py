"""Proofs that a card was fixed before the deal.

HandStarted carries one commitment for each position of the deck: SHA-256 over the salt (16 bytes), the position (two
bytes, big endian) and the card as two letters ("As"). A dealt card comes with its salt. Cards that come back into the
stub (DeckReshuffled) get new positions after the last ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from relance.api.events.v1 import events_pb2
from relance.client.events import Event
from relance.client.view import cards

DIGEST_BYTES = 32
SALT_BYTES = 16


class ProofFailed(Exception):
    """A card is not the one that was committed to."""


def verify_card(commitment: bytes, position: int, card: str, salt: bytes) -> bool:
    """Whether a commitment is to this card at this position."""
    digest = hashlib.sha256(salt + position.to_bytes(2, "big") + card.encode()).digest()
    return hmac.compare_digest(digest, commitment)


def verify_hand(events: Iterable[Event]) -> int:
    """Check every card of a hand that comes with its salt against the hand's commitments; how many were proven.

    Raises ProofFailed. Cards without a salt (other players', mucked) cannot be checked and do not count; a hand
    without commitments proves nothing: 0.
    """
    deck = b""
    proven = 0
    for event in events:
        match event.data:
            case events_pb2.HandStarted(deck_commitments=commitments):
                deck = commitments
            case events_pb2.DeckReshuffled(deck_commitments=commitments):
                deck += commitments
            case events_pb2.CardsDealt() as dealt:
                down, positions = cards(dealt.down), list(dealt.positions)
                proven += _check(deck, positions[: dealt.down_count], down, dealt.down_salts)
                proven += _check(deck, positions[dealt.down_count :], cards(dealt.up), dealt.up_salts)
            case events_pb2.BoardDealt() as board:
                proven += _check(deck, list(board.positions), cards(board.cards), board.salts)
            case events_pb2.CardsDrawn() as drawn:
                proven += _check(deck, list(drawn.positions), cards(drawn.cards), drawn.salts)
            case _:
                pass
    return proven


def _check(deck: bytes, positions: list[int], dealt: list[str], salts: bytes) -> int:
    if not deck or not salts or not dealt:
        return 0
    for place, (position, card) in enumerate(zip(positions, dealt, strict=True)):
        commitment = deck[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]
        salt = salts[place * SALT_BYTES : (place + 1) * SALT_BYTES]
        if not verify_card(commitment, position, card, salt):
            raise ProofFailed(f"position {position} was not committed to {card}")
    return len(dealt)
