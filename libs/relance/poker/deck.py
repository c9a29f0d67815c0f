"""Where cards come from. The order of the undealt cards lives here and nowhere else; it is never written anywhere.

A source answers for *positions*: the same position has the same card however often it is asked, so deciding twice deals
the same cards. With commitments every position has a salt, and the hash of position, card and salt is public before the
first card is dealt; a dealt card comes with its salt (see `commitment`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol

from relance.poker.cards import NAMES

SALT_BYTES = 16
_LETTERS = [name.encode() for name in NAMES]


class CardSource(Protocol):
    """The cards of one hand."""

    def begin(self, deck: Sequence[int], *, commit: bool) -> bytes:
        """Shuffle `deck` to positions 0, 1, 2 … Returns the commitments, 32 bytes a position; b"" without."""
        ...

    def card(self, position: int) -> int:
        """The card at a position."""
        ...

    def salt(self, position: int) -> bytes:
        """The salt of a position, 16 bytes; b"" without commitments."""
        ...

    def restock(self, first: int, cards: Sequence[int], undealt: Sequence[int]) -> bytes:
        """Shuffle `cards` and the cards at the `undealt` positions to positions from `first` on.

        Returns the commitments to them; b"" without. Asking again with the same `first` changes nothing.
        """
        ...


def commitment(position: int, card: int, salt: bytes) -> bytes:
    """SHA-256 over the salt (16 bytes), the position (2 bytes, big endian) and the card as two letters: ``As``."""
    return sha256(salt + position.to_bytes(2, "big") + _LETTERS[card]).digest()


def shuffled_by(random_bytes: Callable[[int], bytes]) -> Callable[[list[int]], None]:
    """A shuffle after Fisher and Yates; `random_bytes` makes n random bytes.

    Every order is as likely as any other: the remainder of 64 random bits by 52 or less prefers no card by more than
    one part in 10^17.
    """

    def shuffle(cards: list[int]) -> None:
        left = len(cards)
        for number in memoryview(random_bytes(8 * left)).cast("Q"):
            at = number % left
            left -= 1
            cards[at], cards[left] = cards[left], cards[at]

    return shuffle


class VirtualDeck:
    """A deck shuffled by a function from outside: `shuffle` puts a list into random order in place.

    `salts` makes n random bytes; both must be of cryptographic quality in a real room.
    """

    def __init__(self, shuffle: Callable[[list[int]], None], salts: Callable[[int], bytes]) -> None:
        self._shuffle = shuffle
        self._salts = salts
        self._commit = False
        self._cards: list[int] = []
        self._salt = b""
        self._restocked: dict[int, bytes] = {}

    def begin(self, deck: Sequence[int], *, commit: bool) -> bytes:
        """Shuffle a whole deck."""
        self._cards, self._salt, self._commit, self._restocked = [], b"", commit, {}
        return self._add(list(deck))

    def card(self, position: int) -> int:
        """The card at a position."""
        return self._cards[position]

    def salt(self, position: int) -> bytes:
        """The salt of a position; b"" without commitments."""
        return self._salt[position * SALT_BYTES : (position + 1) * SALT_BYTES]

    def restock(self, first: int, cards: Sequence[int], undealt: Sequence[int]) -> bytes:
        """Shuffle cards that came back, and what is left of the stub, to new positions."""
        if first not in self._restocked:
            self._restocked[first] = self._add([*cards, *(self._cards[position] for position in undealt)])
        return self._restocked[first]

    def _add(self, cards: list[int]) -> bytes:
        self._shuffle(cards)
        first = len(self._cards)
        self._cards += cards
        if not self._commit:
            return b""
        salts = self._salts(SALT_BYTES * len(cards))
        self._salt += salts
        return b"".join(
            [
                commitment(first + at, card, salts[at * SALT_BYTES : (at + 1) * SALT_BYTES])
                for at, card in enumerate(cards)
            ]
        )


class ScriptedDeck(VirtualDeck):
    """A deck in an order that is written down: for tests, simulations and cards dealt by hand.

    `order` comes first, from the top; the rest of the deck follows in rank order. Each restocked stub takes the next
    list of `restocks` the same way.
    """

    def __init__(self, order: Sequence[int], restocks: Sequence[Sequence[int]] = ()) -> None:
        scripts = iter([list(order), *(list(cards) for cards in restocks)])

        def arrange(cards: list[int]) -> None:
            wanted = [card for card in next(scripts, []) if card in cards]
            rest = sorted(set(cards) - set(wanted))
            cards[:] = wanted + rest

        super().__init__(arrange, bytes)
