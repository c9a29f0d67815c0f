"""Best high and low of four hole and five board cards (Omaha Hi/Lo) a second, against PokerKit's two evaluators."""

from __future__ import annotations

import random
import time

from pokerkit import Card, OmahaEightOrBetterLowHand, OmahaHoldemHand

from relance.poker.cards import FULL_DECK, render
from relance.poker.ranking import RANKINGS

NAME = "omaha-eight"
WHAT = "Best high and low of 4 + 5 cards (Omaha Hi/Lo) a second; PokerKit's two evaluators; times"
TARGET = 60.0

HANDS = 4_000
OUR_ROUNDS, THEIR_HANDS = 25, 1_000


def deals() -> list[tuple[list[int], list[int]]]:
    """Hole cards and board of random hands, the same in every run."""
    rng = random.Random(8)
    cards = [rng.sample(FULL_DECK, 9) for _ in range(HANDS)]
    return [(nine[:4], nine[4:]) for nine in cards]


def our_rate(hands: list[tuple[list[int], list[int]]]) -> float:
    """Hands a second of processor time."""
    high, low = RANKINGS["omaha"].best, RANKINGS["omaha_eight"].best
    start = time.process_time()
    for _ in range(OUR_ROUNDS):
        for hole, board in hands:
            high(hole, board)
            low(hole, board)
    return OUR_ROUNDS * len(hands) / (time.process_time() - start)


def their_rate(hands: list[tuple[list[int], list[int]]]) -> float:
    """Hands a second of processor time, cards parsed beforehand."""
    parsed = [(tuple(Card.parse(render(hole))), tuple(Card.parse(render(board)))) for hole, board in hands]
    start = time.process_time()
    for hole, board in parsed:
        OmahaHoldemHand.from_game(hole, board)
        OmahaEightOrBetterLowHand.from_game_or_none(hole, board)
    return len(parsed) / (time.process_time() - start)


async def measure() -> dict[str, float]:
    """ours, limit: hands a second of processor time."""
    hands = deals()
    our_rate(hands[:100])
    ours, limit = our_rate(hands), their_rate(hands[:THEIR_HANDS])
    return {"ours": ours, "limit": limit, "ratio": ours / limit, "target": TARGET}
