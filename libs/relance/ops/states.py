"""The state of a table at any version: the newest snapshot before it, and the events since."""

from __future__ import annotations

from relance.api.events.v1.events_pb2 import TableEvent
from relance.ops.errors import NoAnswer
from relance.ops.source import LogSource
from relance.poker import Table, apply, initial
from relance.poker.snapshot import UnknownSnapshot, load


async def state_at(source: LogSource, stream: str, version: int | None = None) -> Table:
    """The table after event `version` (None: the last). Raises NoAnswer where the log does not reach it or is broken.

    A snapshot that cannot be used is passed over: it is a cache.
    """
    if version is not None and version < 0:
        raise NoAnswer(f"version {version}: versions count from 1; 0 is before the first event")
    kept = await source.snapshot(stream, version)
    table = initial(stream)
    if kept is not None:
        try:
            table = load(kept.body)
        except (UnknownSnapshot, LookupError, TypeError, ValueError):
            table = initial(stream)
    try:
        await _replay(source, table, version)
    except NoAnswer:
        if kept is None:
            raise
        table = initial(stream)
        await _replay(source, table, version)
    if version is not None and table.version != version:
        raise NoAnswer(f"table {stream} has no version {version}; the last is {table.version}")
    return table


async def _replay(source: LogSource, table: Table, version: int | None) -> None:
    async for page in source.rows(table.id, table.version, version):
        for row in page:
            try:
                apply(table, TableEvent.FromString(row.body))
            except Exception as error:
                raise NoAnswer(
                    f"table {table.id}: version {row.version} cannot be applied: {error or type(error).__name__}; "
                    f"see relance verify {table.id}"
                ) from error
