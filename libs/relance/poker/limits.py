"""The five limits (B2-B8): how much a bet or raise may be.

A limit is a row: whether bet sizes are fixed, and a function from the hand to the least and largest total of the round
that a raise may make. Stacks are cut off here too: who has less than the least raise may still go all-in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from relance.api.common.v1 import game_pb2

if TYPE_CHECKING:
    from relance.poker.hand import Hand

Bounds = tuple[int, int, tuple[int, ...]]
"""Least total, largest total, and the exact totals where only those are legal. (0, 0, ()): no raise."""

NO_RAISE: Final[Bounds] = (0, 0, ())
FIXED_CAP: Final = 4
"""Bets a round in fixed limit: a bet and three raises (B3)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A betting structure. `fixed`: sizes are fixed, half a bet all-in counts as a raise (B8)."""

    id: str
    name: str
    bounds: Callable[[Hand, int], Bounds]
    fixed: bool = False


def _least(hand: Hand) -> int:
    """The least full bet or raise, as a total for the round (B2, B5, G9)."""
    if hand.bets == 0:
        return hand.terms.min_bet
    return hand.current + hand.step


def _no_limit(hand: Hand, seat: int) -> Bounds:
    """B5, B14."""
    terms = hand.terms
    least = _least(hand)
    if hand.bets == 0 and terms.opening_exact:
        return least, least, ()
    most = hand.bet[seat] + hand.stack[seat]
    if terms.max_bet:
        most = min(most, hand.current + max(terms.max_bet, hand.step))
    return least, most, ()


def _pot_limit(hand: Hand, seat: int) -> Bounds:
    """B6: at most the pot after calling."""
    least = _least(hand)
    return least, max(least, 2 * hand.current - hand.bet[seat] + hand.pot), ()


def _half_pot(hand: Hand, seat: int) -> Bounds:
    """B7: at most half of the pot after calling, rounded down, and never less than the least raise."""
    least = _least(hand)
    return least, max(least, hand.current + (hand.pot + hand.current - hand.bet[seat]) // 2), ()


def _spread(hand: Hand, seat: int) -> Bounds:
    """B4: from the minimum or the last raise to the round's maximum."""
    terms = hand.terms
    if terms.bets_cap and hand.bets >= terms.bets_cap:
        return NO_RAISE
    largest = terms.spread_max[min(hand.round, len(terms.spread_max)) - 1] if terms.spread_max else terms.high
    least = _least(hand)
    if terms.raise_equal and hand.raised:
        return least, least, ()
    base = hand.current if hand.bets else 0
    return least, max(least, base + largest), ()


def _fixed(hand: Hand, seat: int) -> Bounds:
    """B3, B8, G11: one size, or two where an open pair allows them."""
    if hand.bets >= FIXED_CAP:
        return NO_RAISE
    totals = tuple(hand.level + size for size in hand.sizes)
    return totals[0], totals[-1], totals


_ROWS: Final[dict[game_pb2.Limit.ValueType, Limit]] = {
    game_pb2.LIMIT_FIXED: Limit("fixed", "fixed limit", _fixed, fixed=True),
    game_pb2.LIMIT_SPREAD: Limit("spread", "spread limit", _spread),
    game_pb2.LIMIT_POT: Limit("pot", "pot limit", _pot_limit),
    game_pb2.LIMIT_HALF_POT: Limit("half_pot", "half-pot limit", _half_pot),
    game_pb2.LIMIT_NO_LIMIT: Limit("no_limit", "no limit", _no_limit),
}
LIMITS: Final[dict[int, Limit]] = {int(number): row for number, row in _ROWS.items()}
"""Every limit by the number of `relance.api.common.v1.Limit`."""


def raise_bounds(hand: Hand, seat: int) -> Bounds:
    """What the player at position `seat` may bet or raise to (B2-B8, B16); NO_RAISE if nothing."""
    total = hand.bet[seat] + hand.stack[seat]
    if total <= hand.current or hand.barred >> seat & 1 or hand.able() < 2:
        return NO_RAISE
    faced = hand.faced[seat]
    if faced >= 0:
        reopened = hand.level > faced if hand.terms.limit.fixed else hand.current - faced >= hand.step
        if not reopened:
            return NO_RAISE
    least, most, totals = hand.terms.limit.bounds(hand, seat)
    if most <= hand.current:
        return NO_RAISE
    if totals and total < most:
        totals = (*(size for size in totals if size < total), total)
        least = totals[0]
    most = min(most, total)
    least = min(least, most)
    return least, most, totals
