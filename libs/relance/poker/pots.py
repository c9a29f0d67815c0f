"""Side pots and shares (B10-B13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from relance.poker.hand import FOLDED, Hand


class Pot(NamedTuple):
    """Chips, and the positions of the players with a claim to them, clockwise from the left of the button."""

    amount: int
    eligible: tuple[int, ...]


def pots_of(hand: Hand) -> list[Pot]:
    """The pots from the main pot up (B10).

    Levels are the live stakes of the players still in. Folded players' chips stay in the pots that they reached, what
    exceeds the highest level goes to the last pot; dead chips go to the main pot.
    """
    put = hand.put
    live = [at for at, status in enumerate(hand.status) if status != FOLDED]
    levels = sorted({put[at] for at in live})
    if len(levels) == 1:
        return [Pot(sum(put) + sum(hand.dead), tuple(live))]
    pots: list[Pot] = []
    below = 0
    for level in levels:
        amount = sum(min(chips, level) - below for chips in put if chips > below)
        pots.append(Pot(amount, tuple(at for at in live if put[at] >= level)))
        below = level
    above = sum(chips - below for chips in put if chips > below)
    if above:
        pots[-1] = Pot(pots[-1].amount + above, pots[-1].eligible)
    dead = sum(hand.dead)
    if dead:
        pots[0] = Pot(pots[0].amount + dead, pots[0].eligible)
    return [pot for pot in pots if pot.amount]


def uncalled(hand: Hand) -> tuple[int, int]:
    """Position of the highest bettor of the round and by how much they exceed the second highest (B11); 0: nothing."""
    bets = hand.bet
    highest = max(bets)
    if not highest or bets.count(highest) > 1:
        return 0, 0
    at = bets.index(highest)
    return at, highest - max((bet for other, bet in enumerate(bets) if other != at), default=0)


def shares(amount: int, winners: Sequence[int], unit: int) -> dict[int, int]:
    """An amount split evenly; odd units go one each to the first winners clockwise from the button (B13).

    winners: positions, lowest first. What is less than a unit goes to the first winner.
    """
    count = len(winners)
    if count == 1:
        return {winners[0]: amount}
    units, rest = divmod(amount, unit)
    each, odd = divmod(units, count)
    result = {at: (each + (number < odd)) * unit for number, at in enumerate(winners)}
    result[winners[0]] += rest
    return result


def halves(amount: int, unit: int) -> tuple[int, int]:
    """High and low half of a pot; the odd unit, and what is less than a unit, goes to the high half (B13)."""
    low = amount // unit // 2 * unit
    return amount - low, low
