"""Group commit: while one statement is in flight the appends of all streams gather and go out as the next.

An append whose answer was lost is sent again, as it was, until the log says what became of it. Comparing heads
would not do: the first try may still be on its way.
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import asyncpg
import structlog
from asyncpg.pgproto.pgproto import UUID
from asyncpg.pool import PoolConnectionProxy
from asyncpg.prepared_stmt import PreparedStatement

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import sql
from relance.eventlog.errors import Fenced, Unavailable, UnsafeDatabase

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

MAX_BATCH_EVENTS = 4_096
"""A batch is closed once it holds this many events."""
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.05
"""Seconds before an append that is still open is sent again: the first time, and at most."""
RECONNECT_PAUSE = 0.1
"""Seconds between attempts to reach the database."""
PROBE = 1.0
"""Seconds without an append after which the connection is tried."""

_logger = structlog.get_logger("relance.eventlog")

# Server errors that say nothing against the statement: connection, resources, intervention, system, conflict,
# and a server that has become a standby.
_PASSING_CLASSES = ("08", "53", "57", "58", "40")
_PASSING_STATES = ("25006", "55P03", "XX000")


def outcome_unknown(error: BaseException) -> bool:
    """Whether the statement that ended with this error may be committed, or could be if it were sent again."""
    if isinstance(error, ValueError):  # asyncpg could not encode an argument: nothing was sent
        return False
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state[:2] in _PASSING_CLASSES or state in _PASSING_STATES
    return isinstance(error, (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.InternalClientError))


UNKNOWN_OUTCOME = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""What to catch before asking `outcome_unknown`."""


class AppendIds:
    """Ids of appends: random for the process, counted within it."""

    def __init__(self) -> None:
        self._process, self._next = secrets.token_bytes(8), 0

    def __call__(self) -> uuid.UUID:
        """An id that nobody else has."""
        self._next += 1
        return UUID(self._process + self._next.to_bytes(8, "big"))


class Append:
    """One append on its way, serialised once. `outcome` becomes the new head."""

    __slots__ = ("bodies", "expected", "fence", "hands", "id", "n", "outcome", "pause", "stream", "times", "types")

    def __init__(
        self,
        stream: str,
        expected: int,
        fence: int,
        events: Sequence[TableEvent],
        *,
        append_id: uuid.UUID,
        outcome: asyncio.Future[int],
    ) -> None:
        self.stream, self.expected, self.fence, self.id = stream, expected, fence, append_id
        self.n = len(events)
        self.hands = [event.hand for event in events]
        self.types = [event.WhichOneof("payload") or "" for event in events]
        self.times = [event.time_us for event in events]
        self.bodies = [event.SerializeToString() for event in events]
        self.outcome = outcome
        self.pause = FIRST_PAUSE

    def won(self) -> None:
        """Answer the caller, if one still waits."""
        if not self.outcome.done():
            self.outcome.set_result(self.expected + self.n)

    def failed(self, error: Exception) -> None:
        """Answer the caller, if one still waits."""
        if not self.outcome.done():
            self.outcome.set_exception(error)


class Committer:
    """Sends appends over one connection that it keeps up, and says when that connection comes and goes."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[asyncpg.Record]]],
        changed: Callable[[bool], None],
        timeout: float,
    ) -> None:
        self._connect, self._changed, self._timeout = connect, changed, timeout
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Append] = deque()
        self._under_way: dict[str, Append] = {}  # by stream
        self._lines: dict[str, deque[Append]] = {}  # those behind them
        self._wake = asyncio.Event()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._statement: PreparedStatement[asyncpg.Record] | None = None
        self._task: asyncio.Task[None] | None = None
        self._idle_since = self._loop.time()
        self._drained = asyncio.Event()
        self._drained.set()
        self._failures = 0  # in a row
        self._announced = False

    async def start(self) -> None:
        """Connect. Raises what the connection raises, UnsafeDatabase too."""
        await self._open()
        self._task = self._loop.create_task(self._run(), name="eventlog-committer")

    async def close(self, patience: float) -> None:
        """Stop once every append has its outcome, or after `patience` seconds: then those left get Unavailable."""
        try:
            async with asyncio.timeout(patience):
                await self._drained.wait()
        except TimeoutError:
            _logger.warning("appends_left_open", streams=sorted(self._under_way))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._give_up()
        connection, self._connection = self._connection, None  # first, so that closing is not taken for a loss
        if connection is not None:
            connection.terminate()

    def submit(self, append: Append) -> None:
        """Queue an append behind those of its stream. Raises RuntimeError once the committer has ended."""
        if self._task is None or self._task.done():
            raise RuntimeError("the log is closed, or its committer has failed")
        if append.stream in self._under_way:
            self._lines.setdefault(append.stream, deque()).append(append)
            return
        self._under_way[append.stream] = append
        self._drained.clear()
        self._ready.append(append)
        self._wake.set()

    def _give_up(self) -> None:
        left = [*self._under_way.values(), *(append for line in self._lines.values() for append in line)]
        for append in left:
            append.failed(Unavailable(f"the log ended before the outcome on {append.stream} was known"))

    async def _run(self) -> None:
        try:
            await self._commit_all()
        except Exception as error:  # a bug: better no answers than wrong ones, and the process is told
            _logger.critical("committer_failed", error=repr(error))
            self._announce(False)
            self._give_up()
            raise

    async def _commit_all(self) -> None:
        probe = self._loop.call_later(PROBE, self._wake.set)
        try:
            while True:
                if not self._ready:
                    self._wake.clear()
                    await self._wake.wait()
                    if probe.when() <= self._loop.time():
                        probe = self._loop.call_later(PROBE, self._wake.set)
                if self._connection is None or self._connection.is_closed():
                    if self._failures > 1:  # it connects but does not commit
                        await asyncio.sleep(RECONNECT_PAUSE)
                    await self._reopen()
                batch = self._next_batch()
                if batch:
                    await self._commit(batch)
                    self._idle_since = self._loop.time()
                    # Who was just answered and has more at once is in the next commit: else the streams fall into two
                    # groups that commit in turn, with twice as many syncs.
                    await asyncio.sleep(0)
                elif self._loop.time() - self._idle_since >= PROBE:
                    await self._probe()
        finally:
            probe.cancel()

    def _next_batch(self) -> list[Append]:
        batch: list[Append] = []
        events = 0
        while self._ready and events < MAX_BATCH_EVENTS:
            append = self._ready.popleft()
            batch.append(append)
            events += append.n
        return batch

    async def _commit(self, batch: list[Append]) -> None:
        """Send a batch; every append in it is settled, or queued again."""
        try:
            won = await self._send(batch)
        except UNKNOWN_OUTCOME as error:
            if outcome_unknown(error):
                self._lost(error)
                self._ready.extendleft(reversed(batch))
            elif len(batch) == 1:
                self._settle(batch[0], error)
            else:  # the statement as a whole was refused: find out whose fault it is
                for append in batch:
                    await self._commit([append])
            return
        self._failures = 0
        if not self._announced:
            self._announce(True)
        if len(won) == len(batch):
            for append in batch:
                self._settle(append, None)
            return
        open_ = [append for i, append in enumerate(batch, 1) if i not in won]
        for i in won:
            self._settle(batch[i - 1], None)
        await self._ask(open_)

    async def _send(self, batch: list[Append]) -> set[int]:
        """Numbers, from 1, of the appends of the batch that were written by this sending."""
        if self._statement is None:
            raise asyncpg.InterfaceError("the connection was lost")
        numbers: list[int] = []
        places: list[int] = []
        hands: list[int] = []
        types: list[str] = []
        times: list[int] = []
        bodies: list[bytes] = []
        for i, a in enumerate(batch, 1):
            numbers += [i] * a.n
            places += range(1, a.n + 1)
            hands += a.hands
            types += a.types
            times += a.times
            bodies += a.bodies
        rows = await self._statement.fetch(
            [a.stream for a in batch],
            [a.expected for a in batch],
            [a.fence for a in batch],
            [a.id for a in batch],
            [a.n for a in batch],
            numbers,
            places,
            hands,
            types,
            times,
            bodies,
            timeout=self._timeout,
        )
        return {row[0] for row in rows}

    async def _ask(self, appends: list[Append]) -> None:
        """Find out what became of appends that were not won by their last sending."""
        try:
            if self._connection is None:
                raise asyncpg.InterfaceError("the connection was lost")
            rows = await self._connection.fetch(
                sql.OUTCOME, [a.stream for a in appends], [a.expected for a in appends], timeout=self._timeout
            )
        except UNKNOWN_OUTCOME as error:
            self._lost(error)
            self._ready.extendleft(reversed(appends))
            return
        for i, head, fence, append_id in rows:
            append = appends[i - 1]
            if append_id == append.id:
                self._settle(append, None)
            elif append_id is not None:
                self._settle(append, Fenced(append.stream, f"version {append.expected + 1} is another append's"))
            elif head is None:
                self._settle(append, Fenced(append.stream, "there is no such stream"))
            elif fence != append.fence:
                self._settle(append, Fenced(append.stream, f"the fence is {fence}, not {append.fence}"))
            elif head != append.expected:
                self._settle(append, Fenced(append.stream, f"the head is {head}, not {append.expected}"))
            else:  # in flight from before, or a take-over holds the row: only this stream waits
                self._loop.call_later(append.pause, self._again, append)
                append.pause = min(append.pause * 2, LONGEST_PAUSE)

    def _again(self, append: Append) -> None:
        self._ready.append(append)
        self._wake.set()

    def _settle(self, append: Append, error: Exception | None) -> None:
        line = self._lines.get(append.stream)
        if line:
            following = self._under_way[append.stream] = line.popleft()
            self._ready.append(following)
            self._wake.set()
        else:
            self._lines.pop(append.stream, None)
            del self._under_way[append.stream]
            if not self._under_way:
                self._drained.set()
        if error is None:
            append.won()
        else:
            append.failed(error)

    async def _probe(self) -> None:
        self._idle_since = self._loop.time()
        try:
            if self._connection is not None:
                await self._connection.execute("SELECT 1", timeout=self._timeout)
        except UNKNOWN_OUTCOME as error:
            self._lost(error)

    async def _open(self) -> None:
        connection = await self._connect()
        self._statement = await connection.prepare(sql.APPEND)
        self._connection = connection
        connection.add_termination_listener(self._terminated)
        if self._failures <= 1:  # else it is up once it commits
            self._announce(True)

    async def _reopen(self) -> None:
        while True:
            try:
                await self._open()
                return
            except (UnsafeDatabase, *UNKNOWN_OUTCOME) as error:
                _logger.warning("database_unreachable", error=repr(error))
                await asyncio.sleep(RECONNECT_PAUSE)

    def _lost(self, error: Exception) -> None:
        _logger.warning("append_outcome_unknown", error=repr(error))
        self._failures += 1
        connection, self._connection, self._statement = self._connection, None, None
        if connection is not None:
            connection.terminate()
        self._announce(False)

    def _terminated(self, connection: object) -> None:
        if connection is self._connection:
            self._connection = self._statement = None
            self._announce(False)
            self._wake.set()

    def _announce(self, connected: bool) -> None:
        if connected is not self._announced:
            self._announced = connected
            self._changed(connected)
