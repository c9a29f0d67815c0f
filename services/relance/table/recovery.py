"""Reading tables back from the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import structlog
from google.protobuf.message import Message

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import EventLog, Ownership, Snapshot, Unavailable
from relance.poker import Table, UnknownEvent, apply, initial
from relance.poker.snapshot import load

log = structlog.get_logger(__name__)

CHUNK = 100
"""Tables that are read at once: one query each for snapshots and events, while the chunk before is replayed."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A table read back, or why it could not be."""

    stream: str
    ownership: Ownership
    table: Table | None
    error: Exception | None = None


def replay(stream: str, snapshot: Snapshot | None, bodies: Sequence[bytes]) -> Table:
    """The state after the events of `bodies`, which follow the snapshot. Raises UnknownEvent and what apply raises.

    A field or value that this version does not know is as good as an event that it does not know: a newer version
    wrote it, and the state may depend on it.
    """
    table = initial(stream) if snapshot is None else load(snapshot.body)
    for body in bodies:
        event = TableEvent.FromString(body)
        event.DiscardUnknownFields()
        if event.ByteSize() != len(body):
            raise UnknownEvent(f"{stream}@{table.version + 1} has fields that this version does not know")
        try:
            apply(table, event)
        except UnknownEvent:
            raise
        except Exception as error:
            if has_unknown_value(event):
                raise UnknownEvent(f"{stream}@{event.version} has a value that this version does not know") from error
            raise
    table.conservation()
    return table


def has_unknown_value(message: Message) -> bool:
    """Whether some enum in a message has a number that this version has no name for."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.enum_type is not None:
            if any(value not in field.enum_type.values_by_number for value in values):
                return True
        elif field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        elif any(map(has_unknown_value, values)):
            return True
    return False


async def recover(events: EventLog, taken: Mapping[str, Ownership]) -> AsyncIterator[list[Recovered]]:
    """Read tables that were taken over, chunk by chunk. Raises Unavailable, which says nothing about any table."""
    names = list(taken)  # the caller may take out of `taken` what it has dealt with
    owned = dict(taken)
    chunks = [names[start : start + CHUNK] for start in range(0, len(names), CHUNK)]
    following = asyncio.ensure_future(_read(events, chunks[0])) if chunks else None
    try:
        for number, chunk in enumerate(chunks):
            assert following is not None
            snapshots, bodies = await following
            if number + 1 < len(chunks):
                following = asyncio.ensure_future(_read(events, chunks[number + 1]))
            found = []
            for stream in chunk:
                found.append(await _recovered(events, stream, owned[stream], snapshots.get(stream), bodies[stream]))
                await asyncio.sleep(0)  # a long replay must not hold up the tables that run
            yield found
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait([following])


async def _read(events: EventLog, chunk: Sequence[str]) -> tuple[dict[str, Snapshot], dict[str, list[bytes]]]:
    snapshots = await events.snapshots.latest_of(chunk)
    after = {stream: snapshots[stream].version if stream in snapshots else 0 for stream in chunk}
    return snapshots, await events.read_all(after)


async def _recovered(
    events: EventLog, stream: str, ownership: Ownership, snapshot: Snapshot | None, bodies: Sequence[bytes]
) -> Recovered:
    try:
        try:
            table = replay(stream, snapshot, bodies)
        except UnknownEvent:
            raise
        except Exception as error:
            if snapshot is None:
                raise
            log.warning("snapshot is of no use", table=stream, version=snapshot.version, error=repr(error))
            table = replay(stream, None, await events.read_raw(stream))
        if table.version != ownership.head:
            raise ValueError(f"{stream} replays to version {table.version}, its head is {ownership.head}")
    except Unavailable:
        raise  # the table is as sound as it was: it is read again
    except Exception as error:  # noqa: BLE001  one table that cannot be replayed must not hold up the others
        return Recovered(stream, ownership, None, error)
    return Recovered(stream, ownership, table)
