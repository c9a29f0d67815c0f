"""The games that PokerKit knows too, as both are told to play them.

What is a setting there is set as the house rules say: no burn cards (D5), the big blind counts as the first of four
fixed-limit bets (B3), high bets in the second round of five-card draw (B3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pokerkit import (
    Automation,
    Card,
    Deck,
    FixedLimitBadugi,
    FixedLimitDeuceToSevenLowballTripleDraw,
    FixedLimitOmahaHoldemHighLowSplitEightOrBetter,
    FixedLimitRazz,
    FixedLimitSevenCardStud,
    FixedLimitSevenCardStudHighLowSplitEightOrBetter,
    FixedLimitTexasHoldem,
    Lookup,
    NoLimitTexasHoldem,
    Opening,
    PotLimitOmahaHoldem,
    State,
    Suit,
)
from pokerkit.games import (
    FixedLimitPokerMixin,
    NoLimitPokerMixin,
    Poker,
    PotLimitPokerMixin,
    SingleDraw,
    TexasHoldemMixin,
    UnfixedLimitHoldem,
)
from pokerkit.hands import StandardHighHand
from pokerkit.state import _HighHandOpeningLookup, _LowHandOpeningLookup

from relance.api.common.v1 import game_pb2

AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.RUNOUT_COUNT_SELECTION,
)
_HIGH_SHOWING, _LOW_SHOWING = _HighHandOpeningLookup(), _LowHandOpeningLookup()
SMALL, LOW, HIGH, BRING_IN = 50, 100, 200, 30


class PotLimitTexasHoldem(PotLimitPokerMixin, TexasHoldemMixin, UnfixedLimitHoldem):
    """Pot-limit hold'em from PokerKit's parts."""


class NoLimitFiveCardDraw(NoLimitPokerMixin, SingleDraw):
    """Five-card draw from PokerKit's parts."""

    deck = Deck.STANDARD
    hand_types = (StandardHighHand,)
    hole_dealing_count = 5


class FixedLimitFiveCardDraw(FixedLimitPokerMixin, SingleDraw):
    """The same in fixed limit."""

    deck = Deck.STANDARD
    hand_types = (StandardHighHand,)
    hole_dealing_count = 5


class FixedLimitOmahaEight(FixedLimitPokerMixin, FixedLimitOmahaHoldemHighLowSplitEightOrBetter):
    """PokerKit's class of that name plays pot limit; this one plays what the name says."""


@dataclass(frozen=True)
class OracleGame:
    """A game and limit that both know. sizes: the bets of fixed limit, empty in the others."""

    name: str
    id: str
    limit: game_pb2.Limit.ValueType
    build: Callable[[int], Poker]
    players: int
    antes: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = ()
    stud: bool = False
    low: bool = False

    def stakes(self, ante: int) -> game_pb2.Stakes:
        """The stakes at our table."""
        if self.stud:
            return game_pb2.Stakes(ante=ante, bring_in=BRING_IN, low_limit=LOW, high_limit=HIGH)
        return game_pb2.Stakes(blinds=(SMALL, LOW), ante=ante, high_limit=HIGH if self.sizes else 0)

    def opener(self, state: State, able: Sequence[int]) -> int:
        """Who opens a stud round there, if only these players are looked at (G9, G10)."""
        street = state.street
        assert street is not None
        up = {at: tuple(state.get_up_cards(at)) for at in able}
        match street.opening:
            case Opening.LOW_CARD:
                return min(able, key=lambda at: _rank_and_suit(_HighHandOpeningLookup, up[at][0]))
            case Opening.HIGH_CARD:
                return max(able, key=lambda at: _rank_and_suit(_LowHandOpeningLookup, up[at][0]))
            case Opening.HIGH_HAND:
                return max(able, key=lambda at: (_HIGH_SHOWING.get_entry(up[at]), -at))
            case _:
                return min(able, key=lambda at: (_LOW_SHOWING.get_entry(up[at]), at))

    def state(self, ante: int, stacks: Sequence[int]) -> State:
        """The hand there, before the first card."""
        poker = self.build(ante)
        streets = [replace(street, card_burning_status=False) for street in poker.streets]
        if self.sizes and not self.stud:
            streets[0] = replace(streets[0], max_completion_betting_or_raising_count=3)
        if self.sizes and len(streets) == 2:
            streets[1] = replace(streets[1], min_completion_betting_or_raising_amount=HIGH)
        poker.streets = tuple(streets)
        return poker(tuple(stacks), len(stacks))


def _rank_and_suit(lookup: type[Lookup], card: Card) -> tuple[int, Suit]:
    return lookup.rank_order.index(card.rank), card.suit


def _blinds(kind: Callable[..., Poker], *sizes: int) -> Callable[[int], Poker]:
    return lambda ante: kind(AUTOMATIONS, True, ante, (SMALL, LOW), *sizes)


def _stud(kind: Callable[..., Poker]) -> Callable[[int], Poker]:
    return lambda ante: kind(AUTOMATIONS, True, ante, BRING_IN, LOW, HIGH)


_NL, _PL, _FL = game_pb2.LIMIT_NO_LIMIT, game_pb2.LIMIT_POT, game_pb2.LIMIT_FIXED
_SIZES = (LOW, HIGH)

GAMES = (
    OracleGame("nl-holdem", "holdem", _NL, _blinds(NoLimitTexasHoldem, LOW), 9, (0, 0, 10)),
    OracleGame("pl-holdem", "holdem", _PL, _blinds(PotLimitTexasHoldem, LOW), 9),
    OracleGame("fl-holdem", "holdem", _FL, _blinds(FixedLimitTexasHoldem, LOW, HIGH), 9, sizes=_SIZES),
    OracleGame("pl-omaha", "omaha", _PL, _blinds(PotLimitOmahaHoldem, LOW), 9, (0, 0, 10)),
    OracleGame(
        "fl-omaha8",
        "omaha8",
        _FL,
        _blinds(FixedLimitOmahaEight, LOW, HIGH),
        9,
        sizes=_SIZES,
        low=True,
    ),
    OracleGame("fl-stud7", "stud7", _FL, _stud(FixedLimitSevenCardStud), 8, (10,), _SIZES, stud=True),
    OracleGame(
        "fl-stud8",
        "stud8",
        _FL,
        _stud(FixedLimitSevenCardStudHighLowSplitEightOrBetter),
        8,
        (10,),
        _SIZES,
        stud=True,
        low=True,
    ),
    OracleGame("fl-razz", "razz", _FL, _stud(FixedLimitRazz), 8, (10,), _SIZES, stud=True),
    OracleGame("fl-td27", "td27", _FL, _blinds(FixedLimitDeuceToSevenLowballTripleDraw, LOW, HIGH), 6, sizes=_SIZES),
    OracleGame("fl-badugi", "badugi", _FL, _blinds(FixedLimitBadugi, LOW, HIGH), 6, sizes=_SIZES),
    OracleGame("nl-draw5", "draw5", _NL, _blinds(NoLimitFiveCardDraw, LOW), 6),
    OracleGame("fl-draw5", "draw5", _FL, _blinds(FixedLimitFiveCardDraw, LOW), 6, sizes=_SIZES),
)
"""Every game of the comparison."""
