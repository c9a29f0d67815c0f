"""Finding hands in a table's log, and who sat where in them."""

from __future__ import annotations

from collections.abc import Sequence

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import EventLog
from relance.runtime.errors import Refused

_LOOK = 32
_PAGE = 500


async def hand_events(log: EventLog, table: str, hand: int, head: int) -> list[TableEvent]:
    """The events of a hand, up to version `head`; none: no such hand.

    Hand numbers rise with versions, so the first event is found by halving: about 15 short reads in a log of a million.
    Raises Unavailable.
    """
    low, high = 0, head  # the first event of the hand is after `low` and not after `high`, if there is one
    while low < high:
        middle = (low + high) // 2
        found = await _first_hand_after(log, table, middle, high)
        if found is None or found >= hand:
            high = middle
        else:
            low = middle + 1
    events: list[TableEvent] = []
    after = low
    while after < head:
        page = await log.read(table, after, _PAGE)
        for event in page:
            if event.version > head or event.hand > hand:
                return events
            if event.hand == hand:
                events.append(event)
        if not page or is_over(events):
            break
        after = page[-1].version
    return events


async def _first_hand_after(log: EventLog, table: str, after: int, upto: int) -> int | None:
    """Number of the first hand that has an event after a version and not after another."""
    while after < upto:
        page = await log.read(table, after, _LOOK)
        if not page:
            return None
        for event in page:
            if event.version > upto:
                return None
            if event.hand:
                return event.hand
        after = page[-1].version
    return None


def is_over(events: Sequence[TableEvent]) -> bool:
    """Whether a hand's events hold its end."""
    return any(event.WhichOneof("payload") in {"hand_ended", "hand_voided"} for event in events)


def seat_in(events: Sequence[TableEvent], player: str) -> int:
    """Seat of a player in the hand of these events; 0: not dealt in."""
    for event in events:
        if event.WhichOneof("payload") == "hand_started":
            return next((each.seat for each in event.hand_started.players if each.player == player), 0)
    return 0


def hand_not_found(hand: int, last: int) -> Refused:
    """The refusal of a hand that was not played."""
    return Refused(
        reason_pb2.REASON_HAND_NOT_FOUND, f"Hand {hand} was not played; the last is {last}.", hand=hand, last=last
    )
