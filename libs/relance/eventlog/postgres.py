"""The log on PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

import asyncpg

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import sql
from relance.eventlog.commit import (
    RECONNECT_PAUSE,
    UNKNOWN_OUTCOME,
    Append,
    AppendIds,
    Committer,
    Connection,
    outcome_unknown,
)
from relance.eventlog.errors import Fenced, StreamExists, Unavailable, UnsafeDatabase
from relance.eventlog.port import Appended, Ownership, StreamInfo, check_append, check_name
from relance.eventlog.tables import PostgresBeats, PostgresMarks, PostgresSnapshots

T = TypeVar("T")

PAGE = 5_000
"""Events in a page of a replay."""
READ_TOGETHER = 200
"""Streams read by one statement, which has to keep within the timeout."""
_END = 2**63 - 1


class _Plain(asyncpg.Connection):
    """A connection whose session no statement of the log changes: nothing to reset before it is used again."""

    def get_reset_query(self) -> str:
        return ""


class PostgresLog:
    """An EventLog whose truth is a PostgreSQL database with the schema `log`.

    `url`: connection URL of a member of the role relance_table. `writer`: id of this process, unique for each of
    its runs. `timeout`: seconds after which a statement counts as lost. `readers`: connections beside the one
    that appends. Every `keep_every`th snapshot of a stream is kept.

    Use it as an async context manager; entering raises UnsafeDatabase, Unavailable.
    """

    def __init__(self, url: str, writer: str, *, timeout: float = 5.0, readers: int = 4, keep_every: int = 10) -> None:
        self.writer = writer
        self._url, self._timeout, self._readers = url, timeout, readers
        self._ids = AppendIds()
        self._callbacks: list[Callable[[bool], None]] = []
        self._up = asyncio.Event()
        self._committer: Committer | None = None
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._writes: set[asyncio.Task[object]] = set()
        self.snapshots = PostgresSnapshots(self._reading, keep_every)
        self.marks = PostgresMarks(self._reading)
        self.beats = PostgresBeats(self._reading)

    async def __aenter__(self) -> Self:
        committer = Committer(self._connect, self._changed, self._timeout)
        try:
            await committer.start()
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._readers,
                command_timeout=self._timeout,
                connection_class=_Plain,
                server_settings=sql.CONNECTION_SETTINGS,
            )
        except UNKNOWN_OUTCOME as error:
            await committer.close(0)
            raise Unavailable(f"the log's database cannot be opened: {error!r}") from error
        self._committer = committer
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, patience: float = 5.0) -> None:
        """Stop, once the appends under way have their outcome or after `patience` seconds."""
        if self._committer is not None:
            await self._committer.close(patience)
        for task in list(self._writes):
            task.cancel()
        if self._writes:
            await asyncio.wait(self._writes)
        if self._pool is not None:
            self._pool.terminate()

    # ---- writing

    def append(self, stream: str, expected: int, fence: int, events: Sequence[TableEvent]) -> asyncio.Future[int]:
        """See EventLog."""
        if self._committer is None:
            raise RuntimeError("the log is not open")
        check_append(stream, expected, events)
        outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._committer.submit(Append(stream, expected, fence, events, append_id=self._ids(), outcome=outcome))
        return outcome

    async def create(self, stream: str, events: Sequence[TableEvent]) -> Ownership:
        """See EventLog."""
        check_name(stream)
        check_append(stream, 0, events)
        claim = self._ids()
        hands = [event.hand for event in events]
        types = [event.WhichOneof("payload") or "" for event in events]
        times = [event.time_us for event in events]
        bodies = [event.SerializeToString() for event in events]

        async def attempt(connection: Connection) -> bool:
            made = await connection.fetchval(sql.CREATE, stream, self.writer, claim, hands, types, times, bodies)
            return made is not None or await connection.fetchval(sql.CREATED, stream, claim) is not None

        try:
            made = await self._writing(attempt)
        except asyncpg.UniqueViolationError:  # the stream of that name was archived
            made = False
        if not made:
            raise StreamExists(stream)
        return Ownership(1, len(events))

    async def take_over(self, stream: str, seen_fence: int) -> Ownership:
        """See EventLog."""
        taken = await self.take_over_all({stream: seen_fence})
        if stream not in taken:
            raise Fenced(stream, f"its fence is not {seen_fence} any more, or there is no such stream")
        return taken[stream]

    async def take_over_all(self, seen: Mapping[str, int]) -> dict[str, Ownership]:
        """See EventLog. One statement for all: it waits for appends in flight, which takes milliseconds."""
        claim = self._ids()
        streams, fences = list(seen), list(seen.values())

        async def attempt(connection: Connection) -> dict[str, Ownership]:
            rows = await connection.fetch(sql.TAKE_OVER, streams, fences, self.writer, claim)
            if len(rows) < len(streams):  # perhaps taken by an attempt of this call whose answer was lost
                rows = await connection.fetch(sql.CLAIMED, streams, claim)
            return {stream: Ownership(fence, head) for stream, fence, head in rows}

        return await self._writing(attempt)

    async def release(self, stream: str, fence: int) -> None:
        """See EventLog."""

        async def attempt(connection: Connection) -> bool:
            return await connection.fetchval(sql.RELEASE, stream, fence) is not None

        if not await self._writing(attempt):
            raise Fenced(stream, f"its fence is not {fence}")

    # ---- reading

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[TableEvent]:
        """See EventLog."""
        return [TableEvent.FromString(body) for body in await self.read_raw(stream, after, limit)]

    async def read_raw(self, stream: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See EventLog."""
        return await self._page(stream, after, _END, limit)

    async def replay(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[bytes]]:
        """See EventLog. The next page is fetched while the caller works on the last one."""
        last = _END if upto is None else upto
        following = asyncio.ensure_future(self._page(stream, after, last, PAGE))
        try:
            while page := await following:
                after += len(page)
                following = asyncio.ensure_future(self._page(stream, after, last, PAGE))
                yield page
        finally:
            following.cancel()
            await asyncio.wait([following])

    async def read_all(self, after: Mapping[str, int]) -> dict[str, list[bytes]]:
        """See EventLog."""
        found: dict[str, list[bytes]] = {stream: [] for stream in after}
        wanted = list(after.items())
        for start in range(0, len(wanted), READ_TOGETHER):
            some = wanted[start : start + READ_TOGETHER]
            for stream, body in await self._read_together(*zip(*some, strict=True)):
                found[stream].append(body)
        return found

    async def _read_together(self, streams: Sequence[str], after: Sequence[int]) -> list[asyncpg.Record]:
        return await self._reading(lambda c: c.fetch(sql.READ_ALL, streams, after))

    async def read_appends(self, stream: str, after: int, limit: int) -> list[Appended]:
        """See EventLog."""
        appends: list[Appended] = []
        last: uuid.UUID | None = None
        for version, append_id, body in await self._reading(
            lambda c: c.fetch(sql.READ_APPENDS, stream, after, max(limit, 1))
        ):
            if append_id != last:
                appends.append(Appended(version, []))
                last = append_id
            appends[-1].bodies.append(body)
        return appends

    async def heads(self, streams: Collection[str] | None = None) -> dict[str, int]:
        """See EventLog."""
        if streams is None:
            rows = await self._reading(lambda c: c.fetch(sql.HEADS))
        else:
            names = list(streams)
            rows = await self._reading(lambda c: c.fetch(sql.HEADS + " WHERE stream = ANY($1::text[])", names))
        return {stream: head for stream, head in rows}  # noqa: C416 - a Record is no tuple to mypy

    async def streams(self, streams: Collection[str] | None = None) -> list[StreamInfo]:
        """See EventLog."""
        if streams is None:
            rows = await self._reading(lambda c: c.fetch(sql.STREAMS + " ORDER BY s.stream"))
        else:
            names = list(streams)
            query = sql.STREAMS + " WHERE s.stream = ANY($1::text[]) ORDER BY s.stream"
            rows = await self._reading(lambda c: c.fetch(query, names))
        return [StreamInfo(*row) for row in rows]

    async def _page(self, stream: str, after: int, upto: int, limit: int | None) -> list[bytes]:
        rows = await self._reading(lambda c: c.fetch(sql.READ, stream, after, upto, limit))
        return [row[0] for row in rows]

    # ---- the connection

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
        else:
            self._up.clear()
        loop = asyncio.get_running_loop()
        for callback in self._callbacks:
            loop.call_soon(callback, connected)  # what a callback raises is not the committer's

    async def _connect(self) -> asyncpg.Connection[asyncpg.Record]:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(
            self._url, timeout=self._timeout, server_settings=sql.CONNECTION_SETTINGS
        )
        try:
            await _refuse_unsafe(connection)
        except (UnsafeDatabase, *UNKNOWN_OUTCOME):
            connection.terminate()
            raise
        return connection

    async def _reading(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a query; once more on a fresh connection when the first turns out dead. Raises Unavailable."""
        try:
            return await self._with_connection(query)
        except UNKNOWN_OUTCOME as error:
            if not outcome_unknown(error):
                raise
            try:
                return await self._with_connection(query)
            except UNKNOWN_OUTCOME as again:
                if not outcome_unknown(again):
                    raise
                raise Unavailable(f"the log's database does not answer: {again!r}") from again

    async def _writing(self, attempt: Callable[[Connection], Awaitable[T]]) -> T:
        """Repeat an attempt that recognises its own earlier tries until its outcome is known, whoever stops waiting."""

        async def until_known() -> T:
            while True:
                try:
                    return await self._with_connection(attempt)
                except UNKNOWN_OUTCOME as error:
                    if not outcome_unknown(error):
                        raise
                await asyncio.sleep(RECONNECT_PAUSE)
                await self._up.wait()

        return await asyncio.shield(self._keep(until_known()))

    def _keep(self, write: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(write)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    async def _with_connection(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        if self._pool is None:
            raise RuntimeError("the log is not open")
        async with self._pool.acquire(timeout=self._timeout) as connection:
            try:
                return await query(connection)
            except TimeoutError:
                with contextlib.suppress(*UNKNOWN_OUTCOME):
                    connection.terminate()
                raise


async def _refuse_unsafe(connection: Connection) -> None:
    """Raises UnsafeDatabase when an acknowledged commit could be lost, or the log is not there."""
    row = await connection.fetchrow(sql.SAFETY)
    if row is None:
        raise UnsafeDatabase("the server does not tell its settings")
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        if row[setting] == "off":
            raise UnsafeDatabase(f"{setting} is off: the server may lose what it acknowledged; turn it on")
    if row["standby"]:
        raise UnsafeDatabase("the server is a standby and takes no appends; give the primary's address")
    if not row["migrated"]:
        raise UnsafeDatabase("the schema log is missing; run the table service's migrate first")
