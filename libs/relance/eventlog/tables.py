"""The tables beside the log: snapshots, publication marks, heartbeats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol, TypeVar

from relance.eventlog.commit import Connection
from relance.eventlog.port import Load, ProcessInfo, Silence, Snapshot

T = TypeVar("T")


class Query(Protocol):
    """Runs a query on some connection. Raises Unavailable."""

    async def __call__(self, query: Callable[[Connection], Awaitable[T]], /) -> T:
        """Answer what `query` answers."""


_SAVE = """
WITH last AS (
    SELECT version, number FROM log.snapshot WHERE stream = $1 ORDER BY version DESC LIMIT 1
), put AS (
    INSERT INTO log.snapshot (stream, version, number, body)
    SELECT $1, $2, coalesce((SELECT number FROM last), 0) + 1, $3
    WHERE $2 > coalesce((SELECT version FROM last), 0)
    ON CONFLICT DO NOTHING RETURNING 1
)
DELETE FROM log.snapshot USING last
WHERE log.snapshot.stream = $1 AND log.snapshot.version = last.version
    AND last.number % $4 <> 0 AND EXISTS (SELECT FROM put)
"""
_LATEST = """
SELECT version, body FROM log.snapshot
WHERE stream = $1 AND version <= coalesce($2, 9223372036854775807) ORDER BY version DESC LIMIT 1
"""
_LATEST_OF = """
SELECT w.stream, s.version, s.body FROM unnest($1::text[]) AS w (stream)
CROSS JOIN LATERAL (
    SELECT version, body FROM log.snapshot WHERE stream = w.stream ORDER BY version DESC LIMIT 1
) AS s
"""


class PostgresSnapshots:
    """See Snapshots."""

    def __init__(self, query: Query, keep_every: int) -> None:
        self._query, self._keep_every = query, keep_every

    async def save(self, stream: str, version: int, body: bytes) -> None:
        """See Snapshots."""
        await self._query(lambda c: c.execute(_SAVE, stream, version, body, self._keep_every))

    async def latest(self, stream: str, at: int | None = None) -> Snapshot | None:
        """See Snapshots."""
        row = await self._query(lambda c: c.fetchrow(_LATEST, stream, at))
        return None if row is None else Snapshot(row["version"], row["body"])

    async def latest_of(self, streams: Collection[str]) -> dict[str, Snapshot]:
        """See Snapshots."""
        names = list(streams)
        rows = await self._query(lambda c: c.fetch(_LATEST_OF, names))
        return {stream: Snapshot(version, body) for stream, version, body in rows}

    async def delete_all(self, stream: str | None = None) -> None:
        """See Snapshots."""
        await self._query(
            lambda c: c.execute("DELETE FROM log.snapshot WHERE stream = coalesce($1::text, stream)", stream)
        )


_WRITE_MARKS = """
INSERT INTO log.mark AS m (stream, version) SELECT * FROM unnest($1::text[], $2::bigint[]) ORDER BY 1
ON CONFLICT (stream) DO UPDATE SET version = excluded.version WHERE m.version < excluded.version
"""


class PostgresMarks:
    """See Marks."""

    def __init__(self, query: Query) -> None:
        self._query = query

    async def read(self, streams: Collection[str]) -> dict[str, int]:
        """See Marks."""
        names = list(streams)
        rows = await self._query(
            lambda c: c.fetch("SELECT stream, version FROM log.mark WHERE stream = ANY($1::text[])", names)
        )
        return dict.fromkeys(names, 0) | {stream: version for stream, version in rows}  # noqa: C416

    async def write(self, marks: Mapping[str, int]) -> None:
        """See Marks."""
        streams, versions = list(marks), list(marks.values())
        await self._query(lambda c: c.execute(_WRITE_MARKS, streams, versions))


_BEAT = """
INSERT INTO log.process AS p (id, address, beat, tables, seats) VALUES ($1, $2, 1, $3, $4)
ON CONFLICT (id) DO UPDATE
    SET beat = p.beat + 1, address = excluded.address, tables = excluded.tables, seats = excluded.seats
"""
_PROCESSES = "SELECT id, address, beat, tables, seats FROM log.process ORDER BY id"
_SILENT = """
SELECT s.stream, s.fence, s.writer, p.beat FROM log.stream s LEFT JOIN log.process p ON p.id = s.writer
WHERE NOT (s.writer = ANY($1::text[])) ORDER BY s.stream
"""


class PostgresBeats:
    """See Beats."""

    def __init__(self, query: Query) -> None:
        self._query = query

    async def beat(self, process: str, address: str, load: Load | None = None) -> None:
        """See Beats."""
        carried = (None, None) if load is None else (load.tables, load.seats)
        await self._query(lambda c: c.execute(_BEAT, process, address, *carried))

    async def retire(self, process: str) -> None:
        """See Beats."""
        await self._query(lambda c: c.execute("DELETE FROM log.process WHERE id = $1", process))

    async def beats(self) -> dict[str, int]:
        """See Beats."""
        rows = await self._query(lambda c: c.fetch("SELECT id, beat FROM log.process"))
        return {process: beat for process, beat in rows}  # noqa: C416

    async def processes(self) -> list[ProcessInfo]:
        """See Beats."""
        rows = await self._query(lambda c: c.fetch(_PROCESSES))
        return [
            ProcessInfo(process, address, beat, None if tables is None else Load(tables, seats))
            for process, address, beat, tables, seats in rows
        ]

    async def silent(self, alive: Collection[str]) -> list[Silence]:
        """See Beats."""
        names = list(alive)
        return [Silence(*row) for row in await self._query(lambda c: c.fetch(_SILENT, names))]
