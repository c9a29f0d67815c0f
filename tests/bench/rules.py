"""Hands a second through the rules, events made, applied and serialised, against the same hand in PokerKit."""

from __future__ import annotations

import random
import time

from pokerkit import Automation, NoLimitTexasHoldem

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Context, Table, apply, decide, initial
from relance.poker import commands as cmd
from relance.poker.config import table_config
from relance.poker.deck import VirtualDeck
from relance.poker.hand import NOBODY

NAME = "rules"
WHAT = "Six-max no-limit hands a second, check/call to showdown: decided, applied, serialised; PokerKit's; times"
TARGET = 25.0

SEATS, BLINDS, STACK = 6, (50, 100), 10_000
OUR_SECONDS = THEIR_SECONDS = 4.0
WARM_UP = 20
HANDS_A_TABLE = 20

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


class OurTable:
    """A table of the rules, played from memory."""

    def __init__(self, *, commitments: bool = False) -> None:
        rng = random.Random(1)
        self._deck = VirtualDeck(rng.shuffle, rng.randbytes)
        self.table: Table = initial("bench")
        self.now = 1_790_000_000_000_000
        setup = table_config(
            table_pb2.OpenTableRequest(
                house="boulevard",
                game="holdem",
                limit=game_pb2.LIMIT_NO_LIMIT,
                stakes=game_pb2.Stakes(blinds=BLINDS),
                seats=SEATS,
                currency=game_pb2.CURRENCY_EUR,
                min_buy_in=STACK,
                max_buy_in=STACK,
            )
        )
        setup.config.rules.deck_commitments = commitments
        self.log: list[bytes] = []
        self.do(cmd.OpenTable(setup.config, setup.rake, "bench"))
        self.do(cmd.TakeOver(1, "bench", events_pb2.OWNER_REASON_OPENED))
        for number in range(1, SEATS + 1):
            self.sit(f"p{number}")

    def sit(self, player: str) -> None:
        """A player sits down with a full stack."""
        for event in self.do(cmd.TakeSeat(player, 0, STACK)):
            if event.WhichOneof("payload") == "transfer_requested":
                self.do(cmd.TransferAnswered(event.transfer_requested.transfer, settled=True))

    def do(self, command: cmd.Command) -> list[events_pb2.TableEvent]:
        """Decide, apply and serialise."""
        self.now += 1000
        events = decide(self.table, command, Context(self.now, cards=self._deck))
        for event in events:
            apply(self.table, event)
            self.log.append(event.SerializeToString())
        return events

    def hand(self) -> None:
        """Play one hand, everyone checking or calling."""
        self.do(cmd.StartHand())
        while (hand := self.table.hand) is not None and hand.asked != NOBODY:
            at = hand.asked
            kind = table_pb2.ACTION_KIND_CHECK if hand.bet[at] == hand.current else table_pb2.ACTION_KIND_CALL
            self.do(cmd.Act(hand.players[at], hand.turn, kind))


def theirs() -> None:
    """The same hand in PokerKit."""
    state = NoLimitTexasHoldem.create_state(_AUTOMATIONS, True, 0, BLINDS, BLINDS[-1], STACK, SEATS)
    while state.status:
        state.check_or_call()


def our_rate() -> tuple[float, float]:
    """Hands a second of processor time, and events a hand."""
    hands = events = 0
    spent = 0.0
    while spent < OUR_SECONDS:
        # A table at a time: as in the other hand nobody comes near to being all-in.
        table = OurTable()
        made, start = len(table.log), time.process_time()
        for _ in range(HANDS_A_TABLE):
            table.hand()
        spent += time.process_time() - start
        events += len(table.log) - made
        hands += HANDS_A_TABLE
    return hands / spent, events / hands


def their_rate() -> float:
    """Hands a second of processor time."""
    hands, start = 0, time.process_time()
    while (spent := time.process_time() - start) < THEIR_SECONDS:
        theirs()
        hands += 1
    return hands / spent


async def measure() -> dict[str, float]:
    """ours, limit: hands a second of processor time, so that other programs do not matter."""
    table = OurTable()
    for _ in range(WARM_UP):
        table.hand()
        theirs()
    ours, events = our_rate()
    limit = their_rate()
    return {"ours": ours, "limit": limit, "ratio": ours / limit, "target": TARGET, "events a hand": events}
