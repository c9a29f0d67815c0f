"""Make golden logs: `python -m tests.golden.make [NAME …]` writes those that are missing.

A log that is there is never made again: it is what some version of the room wrote. A change of the rules that decides
otherwise raises RULES_VERSION and adds logs beside the old ones.
"""

from __future__ import annotations

import random
import sys
from hashlib import sha256

from tests.golden.recording import SeededDeck, Step, names, write

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Context, Prompt, Request, Table, apply, decide, initial, prompt, ready_to_start
from relance.poker import commands as cmd
from relance.poker.cards import render
from relance.poker.config import table_config
from relance.poker.games import GAMES, Forced
from relance.poker.houses import HOUSES, load
from relance.poker.rejected import Rejected
from relance.poker.terms import RULES_VERSION

HANDS, PLAYERS = 6, 5
STEPS = 7
"""Of the hands that a crash or the end of the log cuts short."""
SECOND = 1_000_000
START = 1_790_000_000 * SECOND
SIZED = (table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_COMPLETE)
SPLITS = (table_pb2.ACTION_KIND_OFFER_SPLIT, table_pb2.ACTION_KIND_ACCEPT_SPLIT)
FOLD, DISCARD = table_pb2.ACTION_KIND_FOLD, table_pb2.ACTION_KIND_DISCARD


class Recorder:
    """A table that is played at random, and what was asked of it."""

    def __init__(self, name: str, config: game_pb2.TableConfig, rake: game_pb2.RakeSchedule | None) -> None:
        self.name = name
        self.random = random.Random(name)
        self.table: Table = initial(f"golden-{name}")
        self.steps: list[Step] = []
        self.events: list[pb.TableEvent] = []
        self.at = START
        self.guests = 0
        self.cards = SeededDeck(name)
        self.do(cmd.OpenTable(config, rake, "operators/ann"))
        self.do(cmd.TakeOver(1, "table-1", pb.OWNER_REASON_OPENED))

    def do(self, command: cmd.Command, *, player: str = "", deck: str = "") -> bool:
        """Give a command; whether it was not refused. Refused ones leave no trace."""
        self.at += self.random.randint(1, 3 * SECOND)
        request = None
        if player:
            identity = f"{self.name}-{len(self.steps)}"
            request = Request(identity, sha256(identity.encode()).digest()[:16], player)
        try:
            events = list(decide(self.table, command, Context(self.at, cards=self.cards, request=request)))
        except Rejected:
            return False
        self.steps.append(Step(self.at, command, request, deck))
        self.events += events
        for event in events:
            apply(self.table, event)
        return True

    def settle(self) -> None:
        """Let the wallet answer everything; it refuses one in twenty buy-ins."""
        for transfer in list(self.table.transfers.values()):
            settled = transfer.purpose != pb.TRANSFER_PURPOSE_BUY_IN or self.random.random() > 0.05
            self.do(cmd.TransferAnswered(transfer.id, settled, "" if settled else "NO_MONEY"))

    def sit(self, player: str) -> None:
        """A player buys in."""
        config = self.table.config
        assert config is not None
        most = config.max_buy_in or 3 * config.min_buy_in
        wait = self.random.random() < 0.3
        amount = self.random.randint(config.min_buy_in, most)
        self.do(cmd.TakeSeat(player, 0, amount, wait), player=player)
        self.settle()

    def gather(self, players: int) -> None:
        """Fill the table up; who sits out sits in again, some with wishes of their own, some with more chips."""
        rnd = self.random
        while len(self.table.seats) < players:
            self.guests += 1
            self.sit(f"player-{self.guests}")
        for seat in list(self.table.seats.values()):
            if seat.sitting_out:
                self.do(cmd.SitIn(seat.player), player=seat.player)
            if rnd.random() < 0.2:
                wish = cmd.SetPreferences(seat.player, rnd.random() < 0.5, rnd.random() < 0.5)
                self.do(wish, player=seat.player)
            if rnd.random() < 0.1:
                self.do(cmd.AddChips(seat.player, 100), player=seat.player)
        self.settle()

    def floor(self) -> None:
        """What operators may do between hands."""
        ann = "operators/ann"
        self.do(cmd.PauseTable(ann, "a look at the last hand"))
        self.do(cmd.RecordRuling(ann, self.table.last_hand, "The pot was awarded rightly."))
        self.do(cmd.WarnPlayer("player-1", ann, "slow"))
        self.do(cmd.BanPlayer("player-2", ann, "abuse", self.at + 3600 * SECOND))
        self.do(cmd.Drain())
        self.do(cmd.TakeOver(1, "table-1", pb.OWNER_REASON_HANDOVER))
        self.do(cmd.ResumeTable(ann))
        self.settle()

    def hand(self, steps: int = 1000) -> None:
        """Start a hand and play it, at most so many steps of it."""
        deck = f"{self.name}/{self.table.last_hand + 1}"
        self.cards = SeededDeck(deck)
        self.do(cmd.StartHand(), deck=deck)
        for _ in range(steps):
            asked = prompt(self.table)
            if asked is None:
                break
            self.step(asked)
        self.settle()

    def step(self, asked: Prompt) -> None:
        """One thing that happens in a hand."""
        rnd, chance = self.random, self.random.random()
        if chance < 0.02:
            seat = rnd.choice(list(self.table.seats.values()))
            self.do(cmd.LeaveSeat(seat.player), player=seat.player)
        elif chance < 0.05:
            self.do(cmd.Timeout(asked.turn, rnd.random() < 0.5, rnd.random() < 0.7))
        elif chance < 0.07:
            if self.do(cmd.ConnectionLost(asked.player)):
                self.do(cmd.ConnectionRestored(asked.player))
        elif chance < 0.25 and self.table.terms is not None and self.table.terms.burn:
            faults = rnd.sample(pb.DealingFault.values()[1:], 9)
            any(self.do(cmd.ReportDealingFault(fault, asked.seat, "operators/ann")) for fault in faults)
        else:
            self.act(asked)

    def act(self, asked: Prompt) -> None:
        """A legal action, folding less than the others."""
        rnd, offer = self.random, asked.offer
        kind = rnd.choice(offer.actions)
        if kind == FOLD or any(split in offer.actions for split in SPLITS):
            kind = rnd.choice([split for split in SPLITS if split in offer.actions] or offer.actions)
        amount, cards = 0, ""
        if kind in SIZED:
            low, high = offer.min_raise_to, offer.max_raise_to
            amount = rnd.choice(offer.raise_sizes or (low, low, rnd.randint(low, high), high))
        elif kind == DISCARD and self.table.hand is not None:
            down = self.table.hand.down[self.table.hand.asked]
            cards = render(rnd.sample(down, rnd.randint(0, min(offer.max_discards, len(down)))))
        self.do(cmd.Act(asked.player, asked.turn, kind, amount, cards), player=asked.player)


def request_of(house: str, game: str, limit: game_pb2.Limit.ValueType) -> table_pb2.OpenTableRequest:
    """A table of a house, with stakes that fit its game's forced bets."""
    request = table_pb2.OpenTableRequest(house=house, game=game, limit=limit, currency=game_pb2.CURRENCY_EUR)
    if house == "club":
        request.currency = game_pb2.CURRENCY_CREDIT
    match GAMES[game].forced:
        case Forced.BLINDS:
            request.stakes.blinds.extend((50, 100))
        case Forced.BRING_IN:
            request.stakes.ante, request.stakes.bring_in, request.stakes.low_limit = 10, 20, 100
        case Forced.ANTES:
            request.stakes.ante = 10
    return request


def chosen() -> dict[str, tuple[game_pb2.TableConfig, game_pb2.RakeSchedule | None]]:
    """Name of the log -> its table: every game of every house with one of its limits, and the two that prove rows."""
    tables: dict[str, tuple[game_pb2.TableConfig, game_pb2.RakeSchedule | None]] = {}
    for number, house in enumerate(HOUSES):
        for turn, (game, offer) in enumerate(load(house).games.items()):
            limit = offer.limits[(number + turn) % len(offer.limits)]
            made = table_config(request_of(house, game, limit))
            tables[f"{house}-{game}-{RULES_VERSION}"] = (made.config, made.rake)
    for game, like in (("razz", "stud7"), ("badugi", "td27")):
        made = table_config(request_of("boulevard", like, game_pb2.LIMIT_FIXED))
        made.config.game = game
        tables[f"row-{game}-{RULES_VERSION}"] = (made.config, made.rake)
    return tables


def make(name: str, config: game_pb2.TableConfig, rake: game_pb2.RakeSchedule | None) -> None:
    """Play some hands, crash in one, let the floor do what it may, and leave the last one running."""
    recorder = Recorder(name, config, rake)
    for number in range(1, HANDS + 1):
        recorder.gather(min(config.seats, PLAYERS))
        if number == 2:
            recorder.floor()
        if ready_to_start(recorder.table):
            recorder.hand(STEPS if number in {HANDS // 2, HANDS} else 1000)
        if number == HANDS // 2:
            recorder.do(cmd.TakeOver(2, "table-2", pb.OWNER_REASON_CRASH))
            recorder.settle()
    write(name, recorder.steps, recorder.events, recorder.table)


def main() -> None:
    """Make what is missing."""
    wanted = sys.argv[1:]
    there = set(names())
    for name, (config, rake) in chosen().items():
        if name not in there and (not wanted or name in wanted):
            make(name, config, rake)
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
