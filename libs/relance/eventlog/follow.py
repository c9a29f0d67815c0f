"""Following: a consumer's effects happen once for every event of every stream, in the order of each stream.

The position of each stream is stored in the transaction of the effect. Messages only wake the follower up; what it
acts on it reads from the log, and what it lacks it finds by comparing its positions with the heads.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias

import asyncpg
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog.commit import UNKNOWN_OUTCOME, Connection, outcome_unknown
from relance.eventlog.errors import LogError, Unavailable
from relance.eventlog.publish import SUBJECT, TYPES, VERSION

COMPARE_EVERY = 30.0
"""Seconds between two comparisons of all positions with all heads."""
TICK = 0.5
"""Seconds between two looks at the connection to NATS, and before a failed read or transaction is tried again."""
PAGE = 500
"""Most events in one transaction."""

_STREAM = re.compile(r"[a-z0-9-]{1,40}")
_VERSION = re.compile(r"[0-9]{1,19}")

_logger = structlog.get_logger("relance.eventlog")


class Source(Protocol):
    """Where a follower reads events; an EventLog is one. Both calls raise Unavailable while it cannot be reached."""

    async def heads(self) -> Mapping[str, int]:
        """Version of the last event of each stream."""

    async def read(self, stream: str, after: int, limit: int) -> Sequence[TableEvent]:
        """Events after a version, in order, at most `limit`; none of a stream that is not there."""


class OutOfOrder(LogError):
    """A source gave events that do not follow the position."""


Handler = Callable[[Connection, Sequence[TableEvent]], Awaitable[None]]
"""Applies events of one stream, in order, on a connection that is in a transaction: it writes nowhere else."""


Around: TypeAlias = Callable[[str, Mapping[str, str]], AbstractContextManager[None]]


def _nothing(_stream: str, _headers: Mapping[str, str]) -> AbstractContextManager[None]:
    return nullcontext()


class Follower:
    """Applies every event of every stream to the database behind `pool`, with `workers` streams at a time.

    `positions`: name of a table (schema.table) with the columns `stream text PRIMARY KEY, version bigint NOT NULL`,
    in the database that `handler` writes to; several processes may follow with one table. `types`: wake up for events
    of these types only (payload names); the others still come, later. `alarm(stream, error)` is called when the
    handler fails on a stream: that stream is parked until the next comparison, the others go on. `around(stream,
    headers)` makes the context in which a stream is read and applied; the headers are those of the last message that
    said so, if one did.
    """

    def __init__(
        self,
        pool: asyncpg.Pool[asyncpg.Record],
        positions: str,
        source: Source,
        client: Client | None,
        handler: Handler,
        *,
        alarm: Callable[[str, Exception], None],
        types: Collection[str] = (),
        workers: int = 4,
        compare_every: float = COMPARE_EVERY,
        around: Around = _nothing,
    ) -> None:
        if not re.fullmatch(r"[a-z_]+\.[a-z_]+", positions):
            raise ValueError(f"table {positions!r}: schema.table is accepted")
        self._pool, self._source, self._client, self._handler = pool, source, client, handler
        self._alarm, self._types, self._workers = alarm, frozenset(types), workers
        self._compare_every = compare_every
        self._around = around
        self._heard: dict[str, Mapping[str, str]] = {}
        # Locks the row as well, so that of several processes one is at the stream.
        self._lock = (
            f"INSERT INTO {positions} AS p (stream, version) VALUES ($1, 0)"
            " ON CONFLICT (stream) DO UPDATE SET version = p.version RETURNING version"
        )
        self._store = f"UPDATE {positions} SET version = $2 WHERE stream = $1"
        self._load = f"SELECT stream, version FROM {positions}"
        self._positions: dict[str, int] = {}
        self._known: dict[str, int] = {}  # versions that streams have reached, as far as was heard
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._busy: set[str] = set()
        self._repeat: set[str] = set()
        self._retry: set[str] = set()
        self._subscribed = False
        self.parked: dict[str, Exception] = {}
        """Streams on which the handler failed, and how."""

    @property
    def behind(self) -> int:
        """Streams that are known to be ahead of what was applied. From any thread."""
        return sum(version > self._positions.get(stream, 0) for stream, version in list(self._known.items()))

    async def run(self) -> None:
        """Follow. Ends by cancellation."""
        workers = [asyncio.create_task(self._work(), name=f"follower-{i}") for i in range(self._workers)]
        loop = asyncio.get_running_loop()
        connection, due = -1, 0.0
        try:
            while True:
                number = await self._connection()
                if (number != connection or loop.time() >= due) and await self._compare():
                    connection, due = number, loop.time() + self._compare_every
                for stream in self._retry:
                    self._want(stream)
                self._retry.clear()
                await asyncio.sleep(TICK)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)

    def wake(self, stream: str, version: int) -> None:
        """Something says that the stream has reached this version."""
        if version > self._known.get(stream, 0):
            self._known[stream] = version
        if version > self._positions.get(stream, 0) and stream not in self.parked:
            self._want(stream)

    async def _connection(self) -> int:
        """Number of the present connection to NATS, -1 for none. The first one subscribes; the client keeps it up."""
        if self._client is None or not self._client.is_connected:
            return -1
        if not self._subscribed:
            try:
                await self._client.subscribe(SUBJECT + "*", cb=self._message)
            except (nats.errors.Error, OSError) as error:
                _logger.warning("not subscribed", error=repr(error))
                return -1
            self._subscribed = True
        return self._client.stats["reconnects"]

    async def _message(self, message: Msg) -> None:
        headers = message.headers or {}
        if self._types and self._types.isdisjoint(headers.get(TYPES, "").split(",")):
            return
        version, stream = headers.get(VERSION, ""), message.subject.removeprefix(SUBJECT)
        if _VERSION.fullmatch(version) and _STREAM.fullmatch(stream):
            self._heard[stream] = headers
            self.wake(stream, int(version))

    async def _compare(self) -> bool:
        """Want every stream whose head is past its position, parked ones too; whether that could be found out."""
        try:
            heads = await self._source.heads()
            async with self._pool.acquire() as connection:
                rows = await connection.fetch(self._load)
        except (Unavailable, *UNKNOWN_OUTCOME) as error:
            _logger.warning("heads not compared", error=repr(error))
            return False
        self._positions = {row["stream"]: row["version"] for row in rows}
        self.parked.clear()
        for stream, head in heads.items():
            self.wake(stream, head)
        return True

    def _want(self, stream: str) -> None:
        if stream in self._busy:
            self._repeat.add(stream)
        elif stream not in self._queued:
            self._queued.add(stream)
            self._queue.put_nowait(stream)

    async def _work(self) -> None:
        while True:
            stream = await self._queue.get()
            self._queued.discard(stream)
            self._busy.add(stream)
            try:
                with self._around(stream, self._heard.pop(stream, {})):
                    await self._advance(stream)
            except Unavailable as error:
                _logger.info("source_away", stream=stream, error=str(error))
                self._retry.add(stream)
            except Exception as error:  # noqa: BLE001 - the handler is foreign: its failure parks one stream, loudly
                if isinstance(error, UNKNOWN_OUTCOME) and outcome_unknown(error):
                    _logger.info("transaction_lost", stream=stream, error=repr(error))
                    self._retry.add(stream)
                else:
                    self._park(stream, error)
            self._busy.discard(stream)
            if stream in self._repeat:
                self._repeat.discard(stream)
                if stream not in self.parked:
                    self._want(stream)

    def _park(self, stream: str, error: Exception) -> None:
        _logger.error("stream_parked", stream=stream, position=self._positions.get(stream, 0), error=repr(error))
        self.parked[stream] = error
        self._alarm(stream, error)

    async def _advance(self, stream: str) -> None:
        """Apply what the stream has after its position, page by page, as far as is known; there may be more."""
        while (after := self._positions.get(stream, 0)) < self._known.get(stream, 0):
            events = await self._source.read(stream, after, PAGE)
            if not events:
                return
            if [event.version for event in events] != list(range(after + 1, after + 1 + len(events))):
                raise OutOfOrder(f"{stream}: events after {after} begin at {events[0].version} or have a gap")
            self._positions[stream] = await self._apply(stream, after, events)

    async def _apply(self, stream: str, after: int, events: Sequence[TableEvent]) -> int:
        """Effect and position in one transaction; the position afterwards."""
        async with self._pool.acquire() as connection, connection.transaction():
            stored: int = await connection.fetchval(self._lock, stream)
            if stored < after:
                return stored  # the database went back behind what this process remembers
            fresh = events[stored - after :]  # another process may have been here
            if not fresh:
                return stored
            await self._handler(connection, fresh)
            await connection.execute(self._store, stream, fresh[-1].version)
            return fresh[-1].version
