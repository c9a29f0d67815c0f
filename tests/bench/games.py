"""Hands a second of five games, everyone checking or calling to the showdown, against the same hands in PokerKit."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pokerkit import (
    Automation,
    FixedLimitDeuceToSevenLowballTripleDraw,
    FixedLimitOmahaHoldemHighLowSplitEightOrBetter,
    FixedLimitSevenCardStud,
    NoLimitTexasHoldem,
    PotLimitOmahaHoldem,
    State,
)

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Context, Table, advance, decide, initial
from relance.poker import commands as cmd
from relance.poker.config import table_config
from relance.poker.deck import VirtualDeck, shuffled_by
from relance.poker.hand import BET, NOBODY

SEATS, STACK = 6, 10_000
SMALL, LOW, HIGH, ANTE, BRING_IN = 50, 100, 200, 10, 30
SECONDS = 2.5
WARM_UP = 20
HANDS_A_TABLE, TABLES_A_TURN, THEIR_HANDS_A_TURN = 20, 5, 10

_AUTOMATIONS = (
    Automation.ANTE_POSTING,
    Automation.BET_COLLECTION,
    Automation.BLIND_OR_STRADDLE_POSTING,
    Automation.CARD_BURNING,
    Automation.HOLE_DEALING,
    Automation.BOARD_DEALING,
    Automation.RUNOUT_COUNT_SELECTION,
    Automation.HOLE_CARDS_SHOWING_OR_MUCKING,
    Automation.HAND_KILLING,
    Automation.CHIPS_PUSHING,
    Automation.CHIPS_PULLING,
)
_CHECK, _CALL = table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL
_BRING_IN, _DISCARD = table_pb2.ACTION_KIND_BRING_IN, table_pb2.ACTION_KIND_DISCARD


@dataclass(frozen=True, slots=True)
class Pair:
    """A game as both are told to play it. `target`: how many times PokerKit's hands."""

    name: str
    what: str
    target: float
    game: str
    limit: game_pb2.Limit.ValueType
    theirs: Callable[[], State]

    def setup(self, *, commitments: bool) -> tuple[game_pb2.TableConfig, game_pb2.RakeSchedule | None]:
        """Our table."""
        request = table_pb2.OpenTableRequest(
            house="boulevard",
            game=self.game,
            limit=self.limit,
            seats=SEATS,
            currency=game_pb2.CURRENCY_EUR,
        )
        if self.game == "stud7":
            request.stakes.ante, request.stakes.bring_in, request.stakes.low_limit = ANTE, BRING_IN, LOW
        else:
            request.stakes.blinds.extend((SMALL, LOW))
        made = table_config(request)
        made.config.rules.deck_commitments = commitments
        return made.config, made.rake


class OurTable:
    """A table of the rules, played from memory: every event is decided, applied and serialised.

    Without commitments, as PokerKit has none, either.
    """

    def __init__(self, pair: Pair, *, commitments: bool = False) -> None:
        rng = random.Random(1)
        self._deck = VirtualDeck(shuffled_by(rng.randbytes), rng.randbytes)
        self.table: Table = initial("bench")
        self.now = 1_790_000_000_000_000
        self.log: list[bytes] = []
        self.do(cmd.OpenTable(*pair.setup(commitments=commitments), "bench"))
        self.do(cmd.TakeOver(1, "bench", events_pb2.OWNER_REASON_OPENED))
        for number in range(1, SEATS + 1):
            self.do(cmd.TakeSeat(f"p{number}", 0, STACK))
        for transfer in list(self.table.transfers):
            self.do(cmd.TransferAnswered(transfer, settled=True))

    def do(self, command: cmd.Command) -> None:
        """One command."""
        self.now += 1000
        events = decide(self.table, command, Context(self.now, self._deck))
        for event in events:
            self.log.append(event.SerializeToString())
        advance(self.table, events)

    def hand(self) -> None:
        """One hand, everyone checking, calling or standing pat."""
        table, do, act = self.table, self.do, cmd.Act
        do(cmd.StartHand())
        while (hand := table.hand) is not None and (at := hand.asked) != NOBODY:
            if hand.asks != BET:
                kind = _DISCARD
            elif hand.bet[at] < hand.current:
                kind = _CALL
            else:
                kind = _BRING_IN if hand.bring_in else _CHECK
            do(act(hand.players[at], hand.turn, kind))


def theirs(pair: Pair) -> None:
    """The same hand in PokerKit."""
    state = pair.theirs()
    while state.status:
        if state.can_post_bring_in():
            state.post_bring_in()
        elif state.can_stand_pat_or_discard():
            state.stand_pat_or_discard()
        else:
            state.check_or_call()


async def measure(pair: Pair) -> dict[str, float]:
    """ours, limit: hands a second of processor time; both in turn, so that other programs slow both down alike."""
    table = OurTable(pair)
    for _ in range(WARM_UP):
        table.hand()
        theirs(pair)
    hands = their_hands = events = 0
    spent = their_spent = 0.0
    while their_spent < SECONDS:
        # A table at a time: as in the other hand nobody comes near to being all-in.
        for _ in range(TABLES_A_TURN):
            table = OurTable(pair)
            made, start = len(table.log), time.process_time()
            for _ in range(HANDS_A_TABLE):
                table.hand()
            spent += time.process_time() - start
            events += len(table.log) - made
            hands += HANDS_A_TABLE
        start = time.process_time()
        for _ in range(THEIR_HANDS_A_TURN):
            theirs(pair)
        their_spent += time.process_time() - start
        their_hands += THEIR_HANDS_A_TURN
    ours, limit = hands / spent, their_hands / their_spent
    figures = {"ours": ours, "limit": limit, "ratio": ours / limit, "target": pair.target}
    return {**figures, "events a hand": events / hands}


def _blinds(kind: Callable[..., State], *sizes: int) -> Callable[[], State]:
    return lambda: kind(_AUTOMATIONS, True, 0, (SMALL, LOW), *sizes, STACK, SEATS)


def _stud() -> State:
    return FixedLimitSevenCardStud.create_state(_AUTOMATIONS, True, ANTE, BRING_IN, LOW, HIGH, STACK, SEATS)


_FIXED = game_pb2.LIMIT_FIXED
HOLDEM = Pair(
    "rules",
    "No-limit Hold'em",
    25.0,
    "holdem",
    game_pb2.LIMIT_NO_LIMIT,
    _blinds(NoLimitTexasHoldem.create_state, LOW),
)
PAIRS = (
    HOLDEM,
    Pair(
        "hands-omaha",
        "Pot-limit Omaha",
        40.0,
        "omaha",
        game_pb2.LIMIT_POT,
        _blinds(PotLimitOmahaHoldem.create_state, LOW),
    ),
    Pair(
        "hands-omaha8",
        "Fixed-limit Omaha Hi/Lo 8",
        40.0,
        "omaha8",
        _FIXED,
        # PokerKit's class of that name plays pot limit: the least bet is all that it is told.
        _blinds(FixedLimitOmahaHoldemHighLowSplitEightOrBetter.create_state, LOW, HIGH),
    ),
    Pair("hands-stud7", "Fixed-limit 7-card stud", 20.0, "stud7", _FIXED, _stud),
    Pair(
        "hands-td27",
        "Fixed-limit 2-7 triple draw, all pat",
        5.0,
        "td27",
        _FIXED,
        _blinds(FixedLimitDeuceToSevenLowballTripleDraw.create_state, LOW, HIGH),
    ),
)
_WHAT = "six players to the showdown, hands a second: decided, applied, serialised; PokerKit's; times"
BENCHMARKS: list[tuple[str, str, Callable[[], Awaitable[Mapping[str, float]]]]] = [
    (pair.name, f"{pair.what}, {_WHAT}", partial(measure, pair)) for pair in PAIRS
]
"""Name, what, measure."""
