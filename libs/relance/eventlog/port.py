"""The port: what an event log is, whatever keeps it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from relance.api.events.v1.events_pb2 import TableEvent

STREAM_NAME = re.compile(r"[a-z0-9-]{1,40}")
MAX_APPEND = 1_000
"""Most events in one append."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to write to a stream: the fence to append with, and the version of its last event."""

    fence: int
    head: int


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream and who writes it; `writer` is '' after a release, `address` '' when its process has no heartbeat."""

    stream: str
    head: int
    fence: int
    writer: str
    address: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State after the event `version`, as its maker serialised it."""

    version: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Appended:
    """The events of one append, serialised, in order."""

    first: int
    bodies: list[bytes]

    @property
    def last(self) -> int:
        """Version of the last event."""
        return self.first + len(self.bodies) - 1


@dataclass(frozen=True, slots=True)
class Silence:
    """A stream that some other process should write: its owner's beat, None when that process has no row."""

    stream: str
    fence: int
    writer: str
    beat: int | None


@dataclass(frozen=True, slots=True)
class Load:
    """What a process carries: tables that it runs, and seats taken at them."""

    tables: int
    seats: int


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A process's row: its beat, and what it carries; None: it takes no more, or does not say."""

    id: str
    address: str
    beat: int
    load: Load | None


class Snapshots(Protocol):
    """A cache of states. Every Nth is kept; of the others only the newest."""

    async def save(self, stream: str, version: int, body: bytes) -> None:
        """Keep the state after event `version`. Saving it twice changes nothing."""

    async def latest(self, stream: str, at: int | None = None) -> Snapshot | None:
        """The newest snapshot, or the newest not after version `at`."""

    async def latest_of(self, streams: Collection[str]) -> dict[str, Snapshot]:
        """The newest snapshot of each stream that has one."""

    async def delete_all(self, stream: str | None = None) -> None:
        """Forget the snapshots of one stream, or all."""


class Marks(Protocol):
    """Per stream, a lower bound of what has been published."""

    async def read(self, streams: Collection[str]) -> dict[str, int]:
        """Marks of these streams; 0 where there is none."""

    async def write(self, marks: Mapping[str, int]) -> None:
        """Raise the marks; a mark never goes back."""


class Beats(Protocol):
    """Heartbeats of the processes that write streams."""

    async def beat(self, process: str, address: str, load: Load | None = None) -> None:
        """Durably count this process's beat up, and say what it carries. Raises Unavailable."""

    async def retire(self, process: str) -> None:
        """Remove the process's row. Raises Unavailable."""

    async def beats(self) -> dict[str, int]:
        """Beat of each process. Raises Unavailable."""

    async def processes(self) -> list[ProcessInfo]:
        """The row of each process. Raises Unavailable."""

    async def silent(self, alive: Collection[str]) -> list[Silence]:
        """Streams whose writer is not among `alive`. Raises Unavailable."""


class EventLog(Protocol):
    """Streams of TableEvent, each written by one owner at a time.

    Writing calls ride out an outage of the store and answer when the outcome is certain; they go on when their
    caller stops waiting, who then does not know it. Reading calls raise Unavailable instead. Nothing is acknowledged
    before it is durable.
    """

    @property
    def writer(self) -> str:
        """Id of this process, unique for each of its runs."""

    @property
    def snapshots(self) -> Snapshots:
        """The cache of states."""

    @property
    def marks(self) -> Marks:
        """How far each stream is published."""

    @property
    def beats(self) -> Beats:
        """Heartbeats of the processes."""

    async def create(self, stream: str, events: Sequence[TableEvent]) -> Ownership:
        """Begin a stream with its first append. Raises StreamExists."""

    def append(self, stream: str, expected: int, fence: int, events: Sequence[TableEvent]) -> asyncio.Future[int]:
        """Add events (versions expected+1, …) and answer the new head once they are durable; all of them or none.

        It is under way when the call returns: who stops waiting for it does not stop it. Appends of one stream
        keep their order. The future raises Fenced.
        """

    async def take_over(self, stream: str, seen_fence: int) -> Ownership:
        """Become the owner of a stream that has this fence. Raises Fenced."""

    async def take_over_all(self, seen: Mapping[str, int]) -> dict[str, Ownership]:
        """Become the owner of those of the streams that still have the fence seen (stream -> fence)."""

    async def release(self, stream: str, fence: int) -> None:
        """Leave a stream without an owner, so that it may be taken at once. Raises Fenced."""

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[TableEvent]:
        """Events after a version, in order."""

    async def read_raw(self, stream: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """The same, serialised."""

    def replay(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[bytes]]:
        """Serialised events of a long stream, page by page."""

    async def read_all(self, after: Mapping[str, int]) -> dict[str, list[bytes]]:
        """Serialised events of many streams (stream -> version read already), for a process that takes many over."""

    async def read_appends(self, stream: str, after: int, limit: int) -> list[Appended]:
        """Events after a version as they were appended; about `limit` events, whole appends only, at least one."""

    async def heads(self, streams: Collection[str] | None = None) -> dict[str, int]:
        """Version of the last event of each stream, or of those named that exist."""

    async def streams(self, streams: Collection[str] | None = None) -> list[StreamInfo]:
        """All streams, or those named that exist, by name."""

    @property
    def connected(self) -> bool:
        """Whether the store answers, as far as is known."""

    async def wait_connected(self) -> None:
        """Wait until the store answers."""

    def on_connection(self, changed: Callable[[bool], None]) -> None:
        """Have `changed(connected)` called on every loss and return of the store."""


def check_name(stream: str) -> None:
    """Hold a new stream to the form of names. Raises ValueError."""
    if not STREAM_NAME.fullmatch(stream):
        raise ValueError(f"stream name {stream!r}: 1 to 40 of a-z, 0-9 and - are accepted")


def check_append(stream: str, expected: int, events: Sequence[TableEvent]) -> None:
    """Hold an append to the stream's numbering. Raises ValueError: a bug of the caller."""
    if not 1 <= len(events) <= MAX_APPEND:
        raise ValueError(f"append of {len(events)} events to {stream}: 1 to {MAX_APPEND} are accepted")
    version = expected
    for event in events:
        version += 1
        if event.version != version or event.table != stream:
            raise ValueError(
                f"event {event.version} of table {event.table!r} in the place of {stream} version {version}: "
                "versions follow one another and belong to the stream"
            )
