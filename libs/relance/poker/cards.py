"""Cards: whole numbers inside, text such as ``AsTd`` at the edges.

A card is ``rank * 4 + suit``: ranks 0 to 12 are deuce to ace, suits 0 to 3 are clubs, diamonds, hearts, spades. That is
the order of G9 too: of two cards the smaller number is the lower card, ties of rank broken by suit.
"""

from collections.abc import Iterable

RANKS = "23456789TJQKA"
SUITS = "cdhs"
NAMES: tuple[str, ...] = tuple(rank + suit for rank in RANKS for suit in SUITS)
FULL_DECK: tuple[int, ...] = tuple(range(52))

_NUMBERS = {name: number for number, name in enumerate(NAMES)}
_RANK_WORDS = ("deuce", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king", "ace")
_SUIT_WORDS = ("clubs", "diamonds", "hearts", "spades")


def parse(text: str) -> list[int]:
    """Cards of a text: ``AsTd``, blanks between cards allowed, ``""`` = no cards.

    Raises ValueError for what is not a card and for a card that stands twice.
    """
    compact = text.replace(" ", "")
    cards: list[int] = []
    for at in range(0, len(compact), 2):
        name = compact[at : at + 2]
        card = _NUMBERS.get(name)
        if card is None:
            raise ValueError(f"{name!r} in {text!r} is no card; a card is one of {RANKS} and one of {SUITS}, as in As")
        if card in cards:
            raise ValueError(f"{name} stands twice in {text!r}")
        cards.append(card)
    return cards


def render(cards: Iterable[int]) -> str:
    """Text of cards, concatenated: ``[51, 33]`` is ``AsTd``."""
    return "".join([NAMES[card] for card in cards])


def rank_of(card: int) -> int:
    """Rank of a card, 0 (deuce) to 12 (ace)."""
    return card >> 2


def suit_of(card: int) -> int:
    """Suit of a card, 0 to 3: clubs, diamonds, hearts, spades."""
    return card & 3


def rank_word(rank: int) -> str:
    """The rank in words: ``ace``."""
    return _RANK_WORDS[rank]


def rank_words(rank: int) -> str:
    """The rank in words, plural: ``aces``, ``sixes``."""
    word = _RANK_WORDS[rank]
    return word + ("es" if word.endswith("x") else "s")


def suit_words(suit: int) -> str:
    """The suit in words: ``spades``."""
    return _SUIT_WORDS[suit]


def stripped_deck(size: int) -> tuple[int, ...]:
    """The deck of 32, 36, 40, 44, 48 or 52 cards: the highest ranks (D1, D2). Raises ValueError for other sizes."""
    if size not in {32, 36, 40, 44, 48, 52}:
        raise ValueError(f"no deck has {size} cards; 32, 36, 40, 44, 48 and 52 are known")
    return FULL_DECK[52 - size :]
