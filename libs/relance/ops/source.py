"""Where operators' commands read the log: PostgreSQL as a role that may only read, or an archive.

Rows come with their fence and the id of their append, which the port of the services does not give out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol, TypeAlias

import asyncpg

from relance.eventlog import Snapshot, StreamInfo
from relance.ops.errors import NoAnswer
from relance.runtime.database import checked_url

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PAGE = 4_000
"""Rows fetched at a time."""
_END = 2**63 - 1


class Row(NamedTuple):
    """One event as it is stored. `append_id`: the same for all events of one append."""

    version: int
    fence: int
    append_id: str
    hand: int
    type: str
    time_us: int
    body: bytes


class LogSource(Protocol):
    """A log that can be read. `connection`: to the room's database, where there is one: the lobby has the names."""

    @property
    def connection(self) -> Connection | None:
        """The room's database."""

    async def streams(self, names: Sequence[str] = ()) -> list[StreamInfo]:
        """All streams by name, or those named. Raises NoAnswer for a name that is not there."""

    def rows(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[Row]]:
        """Events after a version, page by page."""

    async def bounds(self, stream: str, hand: int) -> tuple[int, int] | None:
        """First and last version of a hand; None: there is no such hand."""

    async def snapshot(self, stream: str, at: int | None = None) -> Snapshot | None:
        """The newest state that was kept, not after `at`; None: replay from the first event."""


_ROWS = """
SELECT version, fence, append_id::text, hand, type, time_us, body FROM log.event
WHERE stream = $1 AND version > $2 AND version <= $3 ORDER BY version LIMIT $4
"""
_STREAMS = """
SELECT s.stream, s.head, s.fence, s.writer, coalesce(p.address, '') AS address
FROM log.stream s LEFT JOIN log.process p ON p.id = s.writer ORDER BY s.stream
"""
_BOUNDS = "SELECT min(version) AS first, max(version) AS last FROM log.event WHERE stream = $1 AND hand = $2"
_SNAPSHOT = """
SELECT version, body FROM log.snapshot WHERE stream = $1 AND version <= $2 ORDER BY version DESC LIMIT 1
"""


class PostgresSource:
    """The log of a room, on one connection that only reads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def streams(self, names: Sequence[str] = ()) -> list[StreamInfo]:
        """See LogSource."""
        found = [StreamInfo(*row) for row in await self.connection.fetch(_STREAMS)]
        return named(found, names)

    async def rows(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[Row]]:
        """See LogSource."""
        last = _END if upto is None else upto
        while page := await self.connection.fetch(_ROWS, stream, after, last, PAGE):
            after = page[-1]["version"]
            yield list(map(Row._make, page))
            if len(page) < PAGE:
                return

    async def bounds(self, stream: str, hand: int) -> tuple[int, int] | None:
        """See LogSource."""
        row = await self.connection.fetchrow(_BOUNDS, stream, hand) if hand > 0 else None
        return None if row is None or row["first"] is None else (row["first"], row["last"])

    async def snapshot(self, stream: str, at: int | None = None) -> Snapshot | None:
        """See LogSource."""
        row = await self.connection.fetchrow(_SNAPSHOT, stream, _END if at is None else at)
        return None if row is None else Snapshot(row["version"], row["body"])


def named(streams: list[StreamInfo], names: Sequence[str]) -> list[StreamInfo]:
    """Those of the streams that are named; all, where none is. Raises NoAnswer for a name that is not there."""
    if not names:
        return streams
    by_name = {stream.stream: stream for stream in streams}
    for name in names:
        if name not in by_name:
            known = ", ".join(list(by_name)[:8]) or "none"
            raise NoAnswer(f"there is no table {name!r}; tables are {known}{' …' if len(by_name) > 8 else ''}")
    return [by_name[name] for name in names]


def known(url: str) -> str:
    """The database's URL. Raises NoAnswer where it is none."""
    try:
        return checked_url(url)
    except ValueError as error:
        raise NoAnswer(f"the database's URL {error}") from None


@asynccontextmanager
async def connected(url: str, *, write: bool = False) -> AsyncIterator[Connection]:
    """A connection, closed afterwards. Raises NoAnswer where the database does not answer or is no room's."""
    settings = {"application_name": "relance-operator", "jit": "off"}
    if not write:
        settings["default_transaction_read_only"] = "on"
    try:
        connection: Connection = await asyncpg.connect(known(url), timeout=10, server_settings=settings)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise NoAnswer(f"the database does not answer: {error or type(error).__name__}") from error
    try:
        if await connection.fetchval("SELECT to_regclass('log.event') IS NULL"):
            raise NoAnswer("this database has no log: it is no room's, or its tables were not migrated yet")
        yield connection
    finally:
        await connection.close(timeout=5)
