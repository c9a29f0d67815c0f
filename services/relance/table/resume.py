"""What a returning watcher missed, as that watcher may see it."""

from __future__ import annotations

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import EventLog, Unavailable
from relance.poker import has_secret, redact
from relance.runtime.errors import Refused
from relance.table import wire
from relance.table.actor import Actor
from relance.table.hands import hand_events, seat_in

MAX_MISSED = 5_000
"""Events that a resumed stream may have missed; who missed more begins anew."""
_IN_ONE_UPDATE = 200


async def missed(log: EventLog, actor: Actor, player: str, seen: int) -> list[bytes]:
    """Play messages with the events after version `seen` up to the actor's, redacted for the player; 0: none.

    The list is complete at the moment of the return: use it before anything else runs. Raises Refused
    RESUME_IMPOSSIBLE, TABLE_UNAVAILABLE.
    """
    if seen == 0:
        return []
    head = actor.table.version
    if not 0 < seen <= head or head - seen > MAX_MISSED:
        raise Refused(
            reason_pb2.REASON_RESUME_IMPOSSIBLE,
            f"The table is at version {head}; at most {MAX_MISSED} events are sent again. Join with version 0.",
            version=seen,
            head=head,
        )
    events: list[TableEvent] = []
    shown: list[bytes] = []
    seats: dict[int, int] = {}
    try:
        while seen + len(events) < actor.table.version:
            page = await log.read(actor.id, seen + len(events), actor.table.version - seen - len(events))
            if not page:
                raise actor.host.unavailable(actor.id)
            events += page
            for event in page:
                seat = await _seat(log, actor, player, event, seats) if player else 0
                shown.append(redact(event, seat).SerializeToString())
    except Unavailable:
        raise actor.host.unavailable(actor.id) from None
    return [
        wire.update(wire.events_body(shown[start : start + _IN_ONE_UPDATE]), b"")
        for start in range(0, len(shown), _IN_ONE_UPDATE)
    ]


async def _seat(log: EventLog, actor: Actor, player: str, event: TableEvent, seats: dict[int, int]) -> int:
    """Whose eyes an event is read with: the player's seat in its hand, for a seat may have been another's before."""
    if event.WhichOneof("payload") == "hand_started":
        seats[event.hand] = seat_in([event], player)
    if not has_secret(event):
        return 0
    if event.hand not in seats:
        seats[event.hand] = seat_in(await hand_events(log, actor.id, event.hand, event.version), player)
    return seats[event.hand]
