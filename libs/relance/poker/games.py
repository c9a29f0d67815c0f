"""The games: one row each. Streets say what is dealt, who opens and which bet size counts; showdowns say what wins.

Nothing else in the program knows which games exist: adding one is adding a row, and a ranking if it needs a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Opener(Enum):
    """Who is first to act in a betting round (G1-G10)."""

    LEFT_OF_BIG_BLIND = "left of the big blind"
    LEFT_OF_BUTTON = "left of the button"
    BRING_IN = "lowest card showing brings in"
    HIGH_CARD_BRINGS_IN = "highest card showing brings in"
    HIGHEST_SHOWING = "highest hand showing"
    LOWEST_SHOWING = "lowest hand showing"


class Forced(Enum):
    """What makes players put chips in before they have a choice."""

    BLINDS = "blinds"
    BRING_IN = "ante and bring-in"
    ANTES = "antes"


LOW: Final = 0
HIGH: Final = 1


@dataclass(frozen=True, slots=True)
class Street:
    """Cards, then a draw if there is one, then a betting round.

    `down`, `up`: cards to each live player; `board`: cards to the middle; `draw`: most cards that each player may
    exchange (-1: no draw); `opens`: first to act; `size`: LOW or HIGH bet in fixed limit.
    """

    name: str
    opens: Opener
    size: int = LOW
    down: int = 0
    up: int = 0
    board: int = 0
    draw: int = -1
    open_pair: bool = False


@dataclass(frozen=True, slots=True)
class Showdown:
    """How hands are compared: the name of a ranking. `{deck}` in it stands for the number of cards in the deck."""

    ranking: str
    four_card: str = ""
    no_low_ace: str = ""


@dataclass(frozen=True, slots=True)
class Game:
    """A game. `seats`: most players; `rules`: ids in the house rules.

    `deck`: cards in the deck, 0 = by number of players (D2); `checks`: whether a round that nobody opened can be
    checked (G13); `turn_up`: whether hands are turned up when no more betting is possible (G14); `restock_folded`:
    whether folded hands are shuffled in with the discards (D6); `split_offers`: section P; `bust_leaves`: who loses
    the whole stack is out (S7); `shows_first`: who shows first when the last round had no bet (G14).
    """

    id: str
    name: str
    seats: int
    rules: str
    streets: tuple[Street, ...]
    high: Showdown
    low: Showdown | None = None
    forced: Forced = Forced.BLINDS
    deck: int = 52
    checks: bool = True
    turn_up: bool = True
    two_round_draw: bool = False
    restock_folded: bool = False
    split_offers: bool = False
    bust_leaves: bool = False
    shows_first: Opener = Opener.LEFT_OF_BUTTON


_BLIND = Opener.LEFT_OF_BIG_BLIND
_BUTTON = Opener.LEFT_OF_BUTTON
_HIGHEST = Opener.HIGHEST_SHOWING


def _board_streets(hole: int) -> tuple[Street, ...]:
    return (
        Street("preflop", _BLIND, LOW, down=hole),
        Street("flop", _BUTTON, LOW, board=3),
        Street("turn", _BUTTON, HIGH, board=1),
        Street("river", _BUTTON, HIGH, board=1),
    )


def _stud_streets(first: Opener, later: Opener, *, open_pair: bool = False) -> tuple[Street, ...]:
    return (
        Street("third", first, LOW, down=2, up=1),
        Street("fourth", later, LOW, up=1, open_pair=open_pair),
        Street("fifth", later, HIGH, up=1),
        Street("sixth", later, HIGH, up=1),
        Street("seventh", later, HIGH, down=1),
    )


def _five_card_stud_streets(*, open_pair: bool = False) -> tuple[Street, ...]:
    return (
        Street("second", Opener.BRING_IN, LOW, down=1, up=1),
        Street("third", _HIGHEST, LOW, up=1, open_pair=open_pair),
        Street("fourth", _HIGHEST, HIGH, up=1),
        Street("fifth", _HIGHEST, HIGH, up=1),
    )


def _triple_draw_streets(cards: int) -> tuple[Street, ...]:
    return (
        Street("deal", _BLIND, LOW, down=cards),
        Street("first draw", _BUTTON, LOW, draw=cards),
        Street("second draw", _BUTTON, HIGH, draw=cards),
        Street("third draw", _BUTTON, HIGH, draw=cards),
    )


_STANDARD = Showdown("standard")

_ROWS = (
    Game("holdem", "Hold'em", 10, "G1 H1 H4", _board_streets(2), _STANDARD),
    Game("omaha", "Omaha", 10, "G2 H1 H4", _board_streets(4), Showdown("omaha")),
    Game("omaha8", "Omaha Hi/Lo 8", 10, "G2 H4 H5", _board_streets(4), Showdown("omaha"), Showdown("omaha_eight")),
    Game(
        "soko",
        "Soko",
        8,
        "G3 H9",
        _five_card_stud_streets(),
        Showdown("standard", four_card="soko_four_card"),
        forced=Forced.BRING_IN,
    ),
    Game(
        "stud5",
        "5-card stud",
        10,
        "G3 G11 H1",
        _five_card_stud_streets(open_pair=True),
        _STANDARD,
        forced=Forced.BRING_IN,
    ),
    Game(
        "stud7",
        "7-card stud",
        8,
        "G4 G11 D7 H1",
        _stud_streets(Opener.BRING_IN, _HIGHEST, open_pair=True),
        _STANDARD,
        forced=Forced.BRING_IN,
    ),
    Game(
        "stud8",
        "7-card stud Hi/Lo 8",
        8,
        "G4 D7 H1 H5",
        _stud_streets(Opener.BRING_IN, _HIGHEST),
        _STANDARD,
        Showdown("eight_or_better"),
        forced=Forced.BRING_IN,
    ),
    Game(
        "draw5",
        "5-card draw",
        6,
        "G5 D6 D8 H1",
        (Street("deal", _BLIND, LOW, down=5), Street("draw", _BUTTON, HIGH, draw=5)),
        _STANDARD,
        turn_up=False,
        two_round_draw=True,
    ),
    Game(
        "td27",
        "2-7 triple draw",
        6,
        "G6 D6 D8 H6",
        _triple_draw_streets(5),
        Showdown("deuce_to_seven"),
        turn_up=False,
    ),
    Game(
        "draw32",
        "32-card draw",
        5,
        "G7 D1 D6 D8 H7 P1",
        (Street("deal", _BLIND, LOW, down=5), Street("draw", _BLIND, HIGH, draw=4)),
        Showdown("draw32"),
        deck=32,
        turn_up=False,
        two_round_draw=True,
        restock_folded=True,
        split_offers=True,
        shows_first=_BLIND,
    ),
    Game(
        "closed",
        "Closed poker",
        8,
        "G8 G13 D2 H8 B14 S7",
        (Street("deal", _BUTTON, LOW, down=5), Street("exchange", _BUTTON, HIGH, draw=5)),
        Showdown("closed_{deck}", no_low_ace="closed_{deck}_high_ace"),
        forced=Forced.ANTES,
        deck=0,
        checks=False,
        two_round_draw=True,
        bust_leaves=True,
    ),
    # Proof that a game is a row: nothing else was needed for these two but a ranking each.
    Game(
        "razz",
        "Razz",
        8,
        "G4",
        _stud_streets(Opener.HIGH_CARD_BRINGS_IN, Opener.LOWEST_SHOWING),
        Showdown("razz"),
        forced=Forced.BRING_IN,
    ),
    Game("badugi", "Badugi", 6, "G6", _triple_draw_streets(4), Showdown("badugi"), turn_up=False),
)

GAMES: Final[dict[str, Game]] = {row.id: row for row in _ROWS}
"""Every game by its id."""
