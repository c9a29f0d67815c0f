"""Tables that are closed for good: nobody runs them, and their players may still ask how it went."""

from __future__ import annotations

from relance.eventlog import EventLog
from relance.poker import Table
from relance.table.recovery import replay


async def last_state(log: EventLog, table: str) -> Table:
    """The state in which a closed table was left, read back from the log: a snapshot and what follows it.

    Raises Unavailable.
    """
    snapshot = (await log.snapshots.latest_of([table])).get(table)
    bodies = (await log.read_all({table: snapshot.version if snapshot is not None else 0}))[table]
    return replay(table, snapshot, bodies)
