"""The log in memory, for simulations: the contract of EventLog on a store that several logs may share."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog.errors import Fenced, StreamExists, Unavailable
from relance.eventlog.port import (
    Appended,
    Load,
    Ownership,
    ProcessInfo,
    Silence,
    Snapshot,
    StreamInfo,
    check_append,
    check_name,
)


@dataclass(slots=True)
class _Stream:
    writer: str
    fence: int = 1
    bodies: list[bytes] = field(default_factory=list)
    appends: list[Appended] = field(default_factory=list)

    def add(self, bodies: list[bytes]) -> int:
        self.appends.append(Appended(len(self.bodies) + 1, bodies))
        self.bodies += bodies
        return len(self.bodies)


class MemoryStore:
    """What the logs of one simulated room share: streams, snapshots, marks, heartbeats, and whether it answers."""

    def __init__(self, keep_every: int = 10) -> None:
        self.streams: dict[str, _Stream] = {}
        self.snapshots: dict[str, dict[int, bytes]] = {}
        self.marks: dict[str, int] = {}
        self.processes: dict[str, ProcessInfo] = {}
        self.keep_every = keep_every
        self.connected = True
        self.changed: list[Callable[[bool], None]] = []

    def set_connected(self, connected: bool) -> None:
        """Begin or end an outage."""
        if connected is not self.connected:
            self.connected = connected
            for changed in list(self.changed):
                changed(connected)

    def address(self, process: str) -> str:
        """Where a process is reached; '' for one without a row."""
        return self.processes[process].address if process in self.processes else ""

    def check(self) -> None:
        """Raises Unavailable during an outage."""
        if not self.connected:
            raise Unavailable("the simulated store is away")


class MemoryLog:
    """An EventLog in memory. Logs of several simulated processes share a `store`."""

    def __init__(self, writer: str, store: MemoryStore | None = None) -> None:
        self.writer = writer
        self._store = store or MemoryStore()
        self._queue: deque[tuple[str, int, int, list[bytes], asyncio.Future[int]]] = deque()
        self._up = asyncio.Event()
        self._callbacks: list[Callable[[bool], None]] = []
        self._store.changed.append(self._changed)
        if self._store.connected:
            self._up.set()
        self.snapshots = MemorySnapshots(self._store)
        self.marks = MemoryMarks(self._store)
        self.beats = MemoryBeats(self._store)

    def append(self, stream: str, expected: int, fence: int, events: Sequence[TableEvent]) -> asyncio.Future[int]:
        """See EventLog. Written in the loop's next turn, or when an outage is over."""
        check_append(stream, expected, events)
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[int] = loop.create_future()
        bodies = [event.SerializeToString() for event in events]
        self._queue.append((stream, expected, fence, bodies, outcome))
        loop.call_soon(self._commit)
        return outcome

    def _commit(self) -> None:
        while self._queue and self._store.connected:
            stream, expected, fence, bodies, outcome = self._queue.popleft()
            row = self._store.streams.get(stream)
            if row is None or row.fence != fence or len(row.bodies) != expected:
                if not outcome.done():
                    outcome.set_exception(Fenced(stream, "another fence or head"))
                continue
            head = row.add(bodies)
            if not outcome.done():
                outcome.set_result(head)

    async def create(self, stream: str, events: Sequence[TableEvent]) -> Ownership:
        """See EventLog."""
        check_name(stream)
        check_append(stream, 0, events)
        await self._up.wait()
        if stream in self._store.streams:
            raise StreamExists(stream)
        row = self._store.streams[stream] = _Stream(self.writer)
        return Ownership(1, row.add([event.SerializeToString() for event in events]))

    async def take_over(self, stream: str, seen_fence: int) -> Ownership:
        """See EventLog."""
        taken = await self.take_over_all({stream: seen_fence})
        if stream not in taken:
            raise Fenced(stream, f"its fence is not {seen_fence} any more, or there is no such stream")
        return taken[stream]

    async def take_over_all(self, seen: Mapping[str, int]) -> dict[str, Ownership]:
        """See EventLog."""
        await self._up.wait()
        taken = {}
        for stream, fence in seen.items():
            row = self._store.streams.get(stream)
            if row is not None and row.fence == fence:
                row.fence, row.writer = fence + 1, self.writer
                taken[stream] = Ownership(row.fence, len(row.bodies))
        return taken

    async def release(self, stream: str, fence: int) -> None:
        """See EventLog."""
        await self._up.wait()
        row = self._store.streams.get(stream)
        if row is None or row.fence != fence:
            raise Fenced(stream, f"its fence is not {fence}")
        row.writer = ""

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[TableEvent]:
        """See EventLog."""
        return [TableEvent.FromString(body) for body in await self.read_raw(stream, after, limit)]

    async def read_raw(self, stream: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See EventLog."""
        self._store.check()
        row = self._store.streams.get(stream)
        return [] if row is None else row.bodies[after : None if limit is None else after + limit]

    async def replay(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[bytes]]:
        """See EventLog."""
        page = await self.read_raw(stream, after, None if upto is None else max(upto - after, 0))
        if page:
            yield page

    async def read_all(self, after: Mapping[str, int]) -> dict[str, list[bytes]]:
        """See EventLog."""
        return {stream: await self.read_raw(stream, version) for stream, version in after.items()}

    async def read_appends(self, stream: str, after: int, limit: int) -> list[Appended]:
        """See EventLog."""
        self._store.check()
        row = self._store.streams.get(stream)
        return [] if row is None else [a for a in row.appends if after < a.last and a.first <= after + max(limit, 1)]

    async def heads(self, streams: Collection[str] | None = None) -> dict[str, int]:
        """See EventLog."""
        return {info.stream: info.head for info in await self.streams(streams)}

    async def streams(self, streams: Collection[str] | None = None) -> list[StreamInfo]:
        """See EventLog."""
        self._store.check()
        return [
            StreamInfo(name, len(row.bodies), row.fence, row.writer, self._store.address(row.writer))
            for name, row in sorted(self._store.streams.items())
            if streams is None or name in streams
        ]

    @property
    def connected(self) -> bool:
        """See EventLog."""
        return self._up.is_set()

    async def wait_connected(self) -> None:
        """See EventLog."""
        await self._up.wait()

    def on_connection(self, changed: Callable[[bool], None]) -> None:
        """See EventLog."""
        self._callbacks.append(changed)

    def _changed(self, connected: bool) -> None:
        if connected:
            self._up.set()
            asyncio.get_running_loop().call_soon(self._commit)
        else:
            self._up.clear()
        for callback in self._callbacks:
            callback(connected)


class MemorySnapshots:
    """See Snapshots."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._numbers: dict[str, int] = {}

    async def save(self, stream: str, version: int, body: bytes) -> None:
        """See Snapshots."""
        self._store.check()
        kept = self._store.snapshots.setdefault(stream, {})
        last = max(kept, default=0)
        if version <= last:
            return
        number = self._numbers.get(stream, 0)
        if last and number % self._store.keep_every:
            del kept[last]
        kept[version] = body
        self._numbers[stream] = number + 1

    async def latest(self, stream: str, at: int | None = None) -> Snapshot | None:
        """See Snapshots."""
        self._store.check()
        kept = self._store.snapshots.get(stream, {})
        version = max((v for v in kept if at is None or v <= at), default=None)
        return None if version is None else Snapshot(version, kept[version])

    async def latest_of(self, streams: Collection[str]) -> dict[str, Snapshot]:
        """See Snapshots."""
        found = {stream: await self.latest(stream) for stream in streams}
        return {stream: snapshot for stream, snapshot in found.items() if snapshot is not None}

    async def delete_all(self, stream: str | None = None) -> None:
        """See Snapshots."""
        self._store.check()
        for name in list(self._store.snapshots) if stream is None else [stream]:
            self._store.snapshots.pop(name, None)
            self._numbers.pop(name, None)


class MemoryMarks:
    """See Marks."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def read(self, streams: Collection[str]) -> dict[str, int]:
        """See Marks."""
        self._store.check()
        return {stream: self._store.marks.get(stream, 0) for stream in streams}

    async def write(self, marks: Mapping[str, int]) -> None:
        """See Marks."""
        self._store.check()
        for stream, version in marks.items():
            self._store.marks[stream] = max(version, self._store.marks.get(stream, 0))


class MemoryBeats:
    """See Beats."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def beat(self, process: str, address: str, load: Load | None = None) -> None:
        """See Beats."""
        self._store.check()
        before = self._store.processes.get(process)
        beat = 1 if before is None else before.beat + 1
        self._store.processes[process] = ProcessInfo(process, address, beat, load)

    async def retire(self, process: str) -> None:
        """See Beats."""
        self._store.check()
        self._store.processes.pop(process, None)

    async def beats(self) -> dict[str, int]:
        """See Beats."""
        self._store.check()
        return {row.id: row.beat for row in self._store.processes.values()}

    async def processes(self) -> list[ProcessInfo]:
        """See Beats."""
        self._store.check()
        return [row for _, row in sorted(self._store.processes.items())]

    async def silent(self, alive: Collection[str]) -> list[Silence]:
        """See Beats."""
        self._store.check()
        return [
            Silence(name, row.fence, row.writer, self._beat(row.writer))
            for name, row in sorted(self._store.streams.items())
            if row.writer not in alive
        ]

    def _beat(self, process: str) -> int | None:
        row = self._store.processes.get(process)
        return None if row is None else row.beat
