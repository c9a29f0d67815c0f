"""Proofs that a card was fixed before the deal. The scheme is described in PROOFS.md beside this file.

A `TableStream` checks every card that it sees (`seat.proofs`); `verify_hand` checks a hand that was read from the
history; `verify_card` is one card, for authors of other clients.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Final

from relance.api.events.v1 import events_pb2
from relance.client.applying import cards
from relance.client.events import Event

DIGEST_BYTES = 32
SALT_BYTES = 16
KINDS: Final = frozenset({"hand_started", "deck_reshuffled", "cards_dealt", "board_dealt", "cards_drawn", "hand_shown"})
"""Events that bring commitments or cards."""


class ProofFailed(Exception):
    """A card is not the one that was committed to."""


def verify_card(commitment: bytes, position: int, card: str, salt: bytes) -> bool:
    """Whether a commitment is to this card at this position."""
    digest = hashlib.sha256(salt + position.to_bytes(2, "big") + card.encode()).digest()
    return hmac.compare_digest(digest, commitment)


class Proofs:
    """What was committed to in the running hand, and the cards checked against it.

    `proven`: cards that were as committed to. `unproven`: cards that were seen without a salt though the hand has
    commitments. `broken`: what did not fit, in words; empty in an honest room.
    """

    def __init__(self) -> None:
        self.proven = 0
        self.unproven = 0
        self.broken: list[str] = []
        self._deck = b""
        self._hand = 0

    def check(self, event: Event) -> None:
        """Take an event in. Raises ProofFailed where a card is not the one that was committed to.

        Cards of a hand whose beginning was not seen, or that has no commitments, prove nothing and are not counted.
        """
        try:
            self._check(event)
        except ProofFailed as failure:
            self.broken.append(f"hand {event.hand}: {failure}")
            raise

    def _check(self, event: Event) -> None:
        if event.hand != self._hand:
            self._hand, self._deck = event.hand, b""
        match event.data:
            case events_pb2.HandStarted(deck_commitments=commitments):
                self._deck = commitments
            case events_pb2.DeckReshuffled(deck_commitments=commitments) if self._deck:
                self._deck += commitments
            case events_pb2.CardsDealt() as dealt:
                positions = list(dealt.positions)
                self._cards(positions[: dealt.down_count], cards(dealt.down), dealt.down_salts)
                self._cards(positions[dealt.down_count :], cards(dealt.up), dealt.up_salts)
            case events_pb2.BoardDealt() as board:
                self._cards(board.positions, cards(board.cards), board.salts)
            case events_pb2.CardsDrawn() as drawn:
                self._cards(drawn.positions, cards(drawn.cards), drawn.salts)
            case events_pb2.HandShown() as shown:
                # The down cards come first; those face up were proven when they were dealt.
                self._cards(shown.positions, cards(shown.cards)[: len(shown.positions)], shown.salts)
            case _:
                pass

    def _cards(self, positions: Sequence[int], seen: Sequence[str], salts: bytes) -> None:
        if not self._deck or not seen:
            return
        if len(salts) != SALT_BYTES * len(seen) or len(positions) != len(seen):
            self.unproven += len(seen)
            return
        for place, (position, card) in enumerate(zip(positions, seen, strict=True)):
            commitment = self._deck[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES]
            salt = salts[place * SALT_BYTES : (place + 1) * SALT_BYTES]
            if not verify_card(commitment, position, card, salt):
                raise ProofFailed(f"position {position} was not committed to {card}")
            self.proven += 1


def verify_hand(events: Iterable[Event]) -> int:
    """Check every card of a hand that comes with its salt against the hand's commitments; how many were proven.

    Raises ProofFailed. Cards without a salt cannot be checked and do not count; a hand without commitments proves
    nothing: 0. A card that is shown after it was dealt counts twice.
    """
    proofs = Proofs()
    for event in events:
        proofs.check(event)
    return proofs.proven
