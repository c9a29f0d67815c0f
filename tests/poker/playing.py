"""Tables for tests: opened, seated and played through the public API alone, every event applied and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Context, Prompt, Table, advance, apply, decide, initial, prompt
from relance.poker import commands as cmd
from relance.poker.cards import parse
from relance.poker.deck import CardSource, ScriptedDeck

NO_LIMIT = game_pb2.LIMIT_NO_LIMIT
FIXED = game_pb2.LIMIT_FIXED
SPREAD = game_pb2.LIMIT_SPREAD
POT = game_pb2.LIMIT_POT
HALF_POT = game_pb2.LIMIT_HALF_POT

FOLD = table_pb2.ACTION_KIND_FOLD
CHECK = table_pb2.ACTION_KIND_CHECK
CALL = table_pb2.ACTION_KIND_CALL
BET = table_pb2.ACTION_KIND_BET
RAISE = table_pb2.ACTION_KIND_RAISE
ALL_IN = table_pb2.ACTION_KIND_ALL_IN
BRING_IN = table_pb2.ACTION_KIND_BRING_IN
COMPLETE = table_pb2.ACTION_KIND_COMPLETE
DISCARD = table_pb2.ACTION_KIND_DISCARD
OFFER_SPLIT = table_pb2.ACTION_KIND_OFFER_SPLIT
ACCEPT_SPLIT = table_pb2.ACTION_KIND_ACCEPT_SPLIT
REFUSE_SPLIT = table_pb2.ACTION_KIND_REFUSE_SPLIT
SHOW = table_pb2.ACTION_KIND_SHOW
MUCK = table_pb2.ACTION_KIND_MUCK
POST = table_pb2.ACTION_KIND_POST


def config(
    game: str = "holdem",
    limit: game_pb2.Limit.ValueType = NO_LIMIT,
    *,
    seats: int = 0,
    stakes: game_pb2.Stakes | None = None,
    rules: game_pb2.TableRules | None = None,
    min_buy_in: int = 1,
    max_buy_in: int = 0,
    currency: game_pb2.Currency.ValueType = game_pb2.CURRENCY_EUR,
) -> game_pb2.TableConfig:
    """A table's configuration; blinds 50/100 unless stakes are given."""
    return game_pb2.TableConfig(
        game=game,
        limit=limit,
        seats=seats or 9,
        stakes=stakes or game_pb2.Stakes(blinds=[50, 100]),
        rules=rules,
        min_buy_in=min_buy_in,
        max_buy_in=max_buy_in,
        currency=currency,
    )


class Room:
    """One table played by a test. Seat n is held by player `p{n}`."""

    def __init__(self, table_config: game_pb2.TableConfig, rake: game_pb2.RakeSchedule | None = None) -> None:
        self.table: Table = initial("t")
        self.log: list[pb.TableEvent] = []
        self.cards: CardSource = ScriptedDeck([])
        self.at = 1_000_000
        self.adopt = False
        self.do(cmd.OpenTable(table_config, rake, "test"))

    def do(self, command: cmd.Command, **context: object) -> list[pb.TableEvent]:
        """Decide and apply; the events decided."""
        given = Context(at=self.at, cards=self.cards, **context)  # type: ignore[arg-type]
        before = self.table.version
        events = decide(self.table, command, given)
        assert self.table.version == before
        if self.adopt:
            advance(self.table, events)
            self.table.conservation()
        else:
            for event in events:
                apply(self.table, event)
                self.table.conservation()
        self.log += events
        return events

    def sit(self, seat: int, stack: int, *, wait: bool = False) -> None:
        """Buy in and let the wallet agree."""
        events = self.do(cmd.TakeSeat(f"p{seat}", seat, stack, wait))
        self.settle(events)

    def settle(self, events: Sequence[pb.TableEvent] | None = None) -> None:
        """Let the wallet agree to every transfer that is open."""
        for transfer in list(self.table.transfers.values()):
            self.do(cmd.TransferAnswered(transfer.id, settled=True))

    def start(self, deck: str | CardSource = "", **context: object) -> list[pb.TableEvent]:
        """Start a hand with cards in this order from the top."""
        self.cards = ScriptedDeck(parse(deck)) if isinstance(deck, str) else deck
        return self.do(cmd.StartHand(), **context)

    def button_at(self, seat: int) -> None:
        """Arrange that the next hand has its button at a seat, and that nobody owes an entry post."""
        others = [number for number in self.table.seats if number != seat]
        self.table.button = max((n for n in others if n < seat), default=max(others))
        self.table.last_dealt = 0

    def act(
        self, seat: int, kind: table_pb2.ActionKind.ValueType, amount: int = 0, cards: str = "", turn: int = 0
    ) -> list[pb.TableEvent]:
        """One action of a seat."""
        return self.do(cmd.Act(f"p{seat}", turn, kind, amount, cards))

    def asked(self) -> Prompt:
        """The prompt; there must be one."""
        asked = prompt(self.table)
        assert asked is not None
        return asked

    def passive(self) -> None:
        """Check or call to the end of the hand, bring in and stand pat where that is asked."""
        while (asked := prompt(self.table)) is not None:
            for kind in (CHECK, CALL, BRING_IN, DISCARD, REFUSE_SPLIT, MUCK, POST, FOLD):
                if kind in asked.offer.actions:
                    self.act(asked.seat, kind)
                    break

    def stacks(self) -> dict[int, int]:
        """Chips behind of every seat."""
        return {number: self.table.stack(number) for number in self.table.seats}

    def of(self, kind: str) -> list[Any]:
        """Payloads of one kind, from the whole log."""
        return [getattr(event, kind) for event in self.log if event.WhichOneof("payload") == kind]


def room(
    stacks: dict[int, int] | Sequence[int],
    game: str = "holdem",
    limit: game_pb2.Limit.ValueType = NO_LIMIT,
    *,
    button: int | None = 1,
    rake: game_pb2.RakeSchedule | None = None,
    stakes: game_pb2.Stakes | None = None,
    rules: game_pb2.TableRules | None = None,
    seats: int = 0,
) -> Room:
    """A table with players seated (seat 1 on, or by number); `button`: of the next hand (None: as it comes)."""
    by_seat = dict(stacks) if isinstance(stacks, dict) else {n + 1: stack for n, stack in enumerate(stacks)}
    made = Room(config(game, limit, stakes=stakes, rules=rules, seats=seats or max(by_seat)), rake)
    for seat, stack in by_seat.items():
        made.sit(seat, stack)
    if button is not None:
        made.button_at(button)
    return made
