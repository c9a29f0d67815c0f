"""What a decision works on: a fork of the table that each new event is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.evolve import APPLIERS, apply, remember
from relance.poker.hand import Hand
from relance.poker.table import Request, Table

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import RakeSchedule
    from relance.poker.deck import CardSource


class Context(NamedTuple):
    """What a decision needs to know that is not in the table.

    at: time, microseconds since 1970. cards: of the running hand (for StartHand: of the new one). request: who asks.
    draining: whether the table is to be given up when the hand ends. rake: schedule that StartHand may adopt.
    """

    at: int
    cards: CardSource | None = None
    request: Request | None = None
    draining: bool = False
    rake: RakeSchedule | None = None


_IN_HAND: Final = frozenset(
    {
        *(
            "hand_started",
            "blind_missed",
            "ante_posted",
            "blind_posted",
            "bring_in_posted",
            "cards_dealt",
            "board_dealt",
            "card_burnt",
        ),
        *("checked", "called", "bet_made", "raised", "folded", "protection_used", "cards_discarded"),
        *("cards_drawn", "deck_reshuffled", "dealing_fault_ruled", "split_offered", "split_answered"),
        *("uncalled_returned", "round_ended", "hand_shown", "hand_mucked", "rake_taken", "pot_awarded"),
    }
)
"""Events that change the running hand and nothing that a fork shares with the table."""


class Decision(list[pb.TableEvent]):
    """Events decided, with the state that they lead to: `advance` takes it over instead of applying them once more."""

    __slots__ = ("after",)

    def __init__(self, events: list[pb.TableEvent], after: Table) -> None:
        super().__init__(events)
        self.after = after


def advance(table: Table, events: list[pb.TableEvent]) -> None:
    """Change the table by what was just decided on it: the same as applying the events one by one, only faster.

    For the owner that decided; a log is replayed with `apply`. The decision must not be used again.
    """
    if not isinstance(events, Decision):
        for event in events:
            apply(table, event)
    elif events:
        first = events[0]
        assert first.version == table.version + 1, f"{table.id}: decided on version {first.version - 1}"
        table.__dict__ = events.after.__dict__
        if first.request_id:
            remember(table, first)


class Draft:
    """Events decided so far, and the table as they leave it. The table given is never touched."""

    __slots__ = ("_at", "_owned", "context", "events", "table")

    def __init__(self, table: Table, context: Context) -> None:
        self.table = table.fork()
        self.context = context
        self.events: list[pb.TableEvent] = []
        self._at = context.at
        self._owned = False

    def decision(self) -> Decision:
        """All events, once nothing more is to be decided. The first of them carries the request."""
        if self.events:
            sign(self.events[0], self.context)
        return Decision(self.events, self.table)

    @property
    def hand(self) -> Hand:
        """The running hand."""
        hand = self.table.hand
        assert hand is not None
        return hand

    @property
    def cards(self) -> CardSource:
        """The source of the running hand's cards."""
        cards = self.context.cards
        if cards is None:
            raise ValueError("a running hand needs the source of its cards in the context")
        return cards

    def emit(self, name: str, /, **fields: object) -> None:
        """Decide one more event: the name of its payload and the payload's fields."""
        table = self.table
        if name not in _IN_HAND and not self._owned:
            table.own()
            self._owned = True
        event = envelope(table, self._at, name, fields)
        self.events.append(event)
        table.version += 1
        APPLIERS[name](table, getattr(event, name), event)

    def emit_each(self, name: str, several: Sequence[dict[str, object]]) -> None:
        """Decide several events of one kind within a hand, each with its fields."""
        table, hand, at, events, applier = self.table, self.hand.number, self._at, self.events, APPLIERS[name]
        stream, version = table.id, table.version
        for fields in several:
            version += 1
            payload: dict[str, Any] = {name: fields}
            event = pb.TableEvent(table=stream, version=version, hand=hand, time_us=at, **payload)
            events.append(event)
            table.version = version
            applier(table, getattr(event, name), event)


def envelope(table: Table, at: int, name: str, fields: dict[str, Any]) -> pb.TableEvent:
    """The next event of the table, at a time."""
    hand = table.hand
    number = hand.number if hand is not None else (table.last_hand + 1 if name == "hand_started" else 0)
    payload: dict[str, Any] = {name: fields}
    return pb.TableEvent(table=table.id, version=table.version + 1, hand=number, time_us=at, **payload)


def sign(event: pb.TableEvent, context: Context) -> None:
    """Put the request on the first event of a decision."""
    if context.request is not None:
        event.request_id, event.request_hash, event.request_player = context.request
