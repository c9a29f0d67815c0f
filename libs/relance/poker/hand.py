"""A hand in progress.

Players stand in lists by *position*: 0 is the player dealt in who is nearest to the left of the button, and so on
clockwise; a player on the button is last. "First to the left of the button" is therefore the lowest position.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Final

from relance.api.table.v1 import table_pb2
from relance.poker.games import Game, Street
from relance.poker.rake import MOST_PLAYERS
from relance.poker.terms import Terms

ACTIVE: Final = 0
"""Dealt in, not folded, chips behind."""
ALL_IN: Final = 1
"""Dealt in, not folded, nothing behind."""
FROZEN: Final = 2
"""Artificially all-in (C2): not folded, never asked again in this hand, the rest of the stack out of reach."""
FOLDED: Final = 3

DEALING: Final = 0
DRAWING: Final = 1
BETTING: Final = 2
SHOWDOWN: Final = 3
POSTING: Final = 4

NOBODY: Final = -1

BET: Final = table_pb2.PROMPT_KIND_BET
DRAW: Final = table_pb2.PROMPT_KIND_DRAW
SPLIT: Final = table_pb2.PROMPT_KIND_SPLIT
POST: Final = table_pb2.PROMPT_KIND_POST
SHOW: Final = table_pb2.PROMPT_KIND_SHOW


@dataclass
class Hand:
    """State of a hand. Chips are minor units; `bet` counts for the round, `put` for the hand (live chips only).

    Not slotted: every closed round decides on a copy, and a dict copies at once where slots copy one by one.
    """

    number: int
    terms: Terms
    game: Game
    streets: tuple[Street, ...]
    seats: tuple[int, ...]
    players: tuple[str, ...]
    start: tuple[int, ...]
    button: int
    small_blind: int
    big_blind: int
    dead_small_blind: int
    deck: int
    index: dict[int, int]
    rake_label: str
    head: bytes
    """Table and number of the hand as every event of it has them, serialised."""

    stack: list[int]
    bet: list[int]
    put: list[int]
    dead: list[int]
    status: list[int]
    faced: list[int]
    """By position: what the player had matched when they last spoke in this round; -1: has not spoken."""
    posted: list[bool]

    down: list[tuple[int, ...]]
    up: list[tuple[int, ...]]
    gone: list[tuple[int, ...]]
    """By position: cards that the player discarded in this hand."""
    places: list[tuple[int, ...]]
    salts: list[tuple[bytes, ...]]
    """Deck positions and salts of the down cards, kept where the deck is committed to."""

    stub: list[int]
    """Deck positions not dealt yet, top first. What lies there is unknown to the state."""
    deck_end: int
    muck: list[int]
    """Discards that may be shuffled into a new stub (D6)."""

    board: tuple[int, ...] = ()
    pot: int = 0
    phase: int = DEALING
    street: int = 0
    round: int = 0
    received: int = 0
    burnt: bool = False
    """Whether the next burn card lies there already (D5, F1, F5)."""
    silent: bool = False
    """Whether this street has no betting (D7)."""

    asked: int = NOBODY
    asks: table_pb2.PromptKind.ValueType = BET
    turn: int = 0

    current: int = 0
    """The bet to match."""
    floor: int = 0
    """What is to be matched even if nobody could post it in full (B9, G9)."""
    level: int = 0
    """The last bet that counts as one (B8)."""
    step: int = 0
    """The last full bet or raise (B2)."""
    bets: int = 0
    raised: bool = False
    sizes: tuple[int, ...] = ()
    bring_in: bool = False
    """Whether the player asked must bring in or complete."""
    aggressor: int = NOBODY
    last_aggressor: int = NOBODY
    """Aggressor of the final betting round, once it is over (G14)."""
    barred: int = 0
    """Bit mask of positions that may not bet or raise in this round (G12)."""
    barred_next: int = 0

    drawer: int = NOBODY
    owed: int = 0
    """Cards that the drawer must still get."""

    offering: bool = False
    """Whether a split offer is being answered (P1)."""
    answerer: int = NOBODY
    accepted: int = 0
    refused: int = 0
    """Bit masks of positions that accepted (or offered) and refused the split."""
    offer_over: bool = False
    agreed: tuple[int, ...] = ()
    """Numbers of the pots that are split by agreement."""

    asks_to_post: int = 0
    """Bit mask of positions that are asked before they post (S7)."""
    asks_to_muck: int = 0
    """Bit mask of positions that want to be asked before a beaten hand is mucked (G14)."""
    absent: int = 0
    """Bit mask of positions whose players have left (S6)."""
    turned_up: bool = False
    shown: int = 0
    mucked: int = 0
    missed: tuple[tuple[int, bool, bool], ...] = ()
    rake: int = 0
    players_flop: int = 0
    set_aside: tuple[int, ...] = ()
    """Cards that go back into the stub at the next reshuffle (F3, F4)."""
    restock_at: int = NOBODY
    """Street before which the stub is reshuffled (F3, F4)."""
    awarded: int = 0

    @classmethod
    def begun(cls, **given: object) -> Hand:
        """A hand of these fields; the others have their defaults. What the class's own constructor makes, sooner."""
        new = object.__new__(cls)
        new.__dict__ = _DEFAULTS | given
        return new

    def live(self) -> int:
        """How many players have not folded."""
        return len(self.status) - self.status.count(FOLDED)

    def able(self) -> int:
        """How many players can still act: not folded and not all-in, really or artificially."""
        return self.status.count(ACTIVE)

    def is_live(self, position: int) -> bool:
        """Whether the player has not folded."""
        return self.status[position] != FOLDED

    def hole(self, position: int) -> tuple[int, ...]:
        """All cards of a player, down cards first."""
        return self.down[position] + self.up[position]

    def next_to_act(self, after: int) -> int:
        """Position of the next player who must act in this round; NOBODY: betting is over (B16)."""
        status, bet, faced, current = self.status, self.bet, self.faced, self.current
        for at in _ROUND[len(status)][after]:
            if status[at] == ACTIVE and (bet[at] < current or (faced[at] < 0 and status.count(ACTIVE) > 1)):
                return at
        return NOBODY

    def copy(self) -> Hand:
        """A hand that can be played on without touching this one."""
        new = object.__new__(Hand)
        state = self.__dict__.copy()
        for name in _LISTS:
            state[name] = state[name].copy()
        new.__dict__ = state
        return new


_ROUND: Final[list[list[list[int]]]] = [
    [[*range(at + 1, size), *range(at + 1)] for at in range(size)] for size in range(MOST_PLAYERS + 1)
]
"""By how many players there are and a position: the positions clockwise from the next one round to it."""
_DEFAULTS: Final = {field.name: field.default for field in fields(Hand) if field.default is not MISSING}
_LISTS: Final = (
    *("stack", "bet", "put", "dead", "status", "faced", "posted"),
    *("down", "up", "gone", "places", "salts", "stub", "muck"),
)
