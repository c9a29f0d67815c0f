"""What a decision works on: a fork of the table that each new event is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import Message

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


_PLAIN: Final = frozenset({int, str, bool, bytes})
from_head: Final = pb.TableEvent.FromString
"""From the head of a hand an event of it that the caller fills in."""


class Single(list[pb.TableEvent]):
    """One event decided within a hand that changes nothing else, with the name of its payload and the payload."""

    __slots__ = ("name", "payload")

    name: str
    payload: Any


class Step(list[pb.TableEvent]):
    """One event that says no more than who acted: what it does to the hand, and the position."""

    __slots__ = ("at", "step")

    at: int
    step: Callable[[Hand, int, int], None]


class Decision(list[pb.TableEvent]):
    """Events decided, with the state that they lead to: `advance` takes it over instead of applying them once more."""

    __slots__ = ("after",)

    after: Table


def advance(table: Table, events: list[pb.TableEvent]) -> None:
    """Change the table by what was just decided on it: the same as applying the events one by one, only faster.

    For the owner that decided; a log is replayed with `apply`. The decision must not be used again.
    """
    if type(events) is Step:
        event, hand = events[0], table.hand
        version = table.version + 1
        assert event.version == version, f"{table.id}: decided on version {event.version - 1}"
        assert hand is not None
        table.version = version
        events.step(hand, events.at, version)
        if event.request_id:
            remember(table, event)
    elif type(events) is Single:
        event = events[0]
        version = table.version + 1
        assert event.version == version, f"{table.id}: decided on version {event.version - 1}"
        table.version = version
        APPLIERS[events.name](table, events.payload, event)
        if event.request_id:
            remember(table, event)
    elif type(events) is not Decision:
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
        self.events = Decision()
        self._at = context.at
        self._owned = False

    def decision(self) -> Decision:
        """All events, once nothing more is to be decided. The first of them carries the request."""
        events = self.events
        if events:
            sign(events[0], self.context)
        events.after = self.table
        return events

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
        if name not in _IN_HAND:
            self.own()
        table = self.table
        hand = table.hand
        version = table.version + 1
        if hand is not None:
            event = from_head(hand.head)
        else:
            event = pb.TableEvent(table=table.id, hand=table.last_hand + 1 if name == "hand_started" else 0)
        event.version, event.time_us = version, self._at
        payload = getattr(event, name)
        payload.SetInParent()
        _fill(payload, fields)
        self.events.append(event)
        table.version = version
        APPLIERS[name](table, payload, event)

    def own(self) -> None:
        """Make all that events outside a hand change the draft's own."""
        if not self._owned:
            self.table.own()
            self._owned = True

    def take(self, event: pb.TableEvent, name: str, payload: Any) -> None:
        """Decide an event that was filled in before; `payload` is the one of that name.

        It changes nothing but the hand, or the draft is on its own already.
        """
        table = self.table
        table.version += 1
        event.version, event.time_us = table.version, self._at
        self.events.append(event)
        APPLIERS[name](table, payload, event)

    def blank(self, hand: Hand) -> pb.TableEvent:
        """One more event of the running hand, for the caller to fill in and to apply."""
        event = from_head(hand.head)
        self.table.version = event.version = self.table.version + 1
        event.time_us = self._at
        self.events.append(event)
        return event

    def blanks(self, hand: Hand, count: int) -> list[pb.TableEvent]:
        """So many more events, as `blank` makes them."""
        head, time, first = hand.head, self._at, self.table.version + 1
        made = []
        for version in range(first, first + count):
            event = from_head(head)
            event.version, event.time_us = version, time
            made.append(event)
        self.table.version += count
        self.events += made
        return made


def _fill(message: Any, fields: Mapping[str, object]) -> None:
    """Set fields one by one, rows of lists as well: half the time of giving them as keywords."""
    for field, value in fields.items():
        if type(value) in _PLAIN:
            setattr(message, field, value)
        elif isinstance(value, (list, tuple)):
            several = getattr(message, field)
            if value and type(value[0]) is dict:
                for row in value:
                    entry = several.add()
                    for key, cell in row.items():
                        setattr(entry, key, cell)
            else:
                several.extend(value)
        elif isinstance(value, Message):
            getattr(message, field).CopyFrom(value)
        elif value is not None:
            setattr(message, field, value)


def sign(event: pb.TableEvent, context: Context) -> None:
    """Put the request on the first event of a decision."""
    if context.request is not None:
        event.request_id, event.request_hash, event.request_player = context.request
