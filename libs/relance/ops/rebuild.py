"""`relance rebuild`: throws a projection away and lets its service build it from the log again, while the room runs.

Table by table in a transaction of its own, a function of the service's schema forgets what follows from the table's
events and how far they were followed. The service's follower finds its position gone, reads the table from its first
event, and is done when it has reached the head. So an interruption leaves nothing half done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import asyncpg

from relance.ops.errors import NoAnswer
from relance.ops.lag import FOLLOWERS
from relance.ops.output import Out, Progress
from relance.ops.source import Connection
from relance.ops.words import counted

PROJECTIONS: Final = ("lobby", "rake")
PATIENCE = 120.0
"""Seconds without any progress after which the service is taken to be away."""
POLL = 0.5

_HEADS = "SELECT stream, head FROM log.stream ORDER BY stream"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A projection. `kept`: tables that were not forgotten, because people decided something about them."""

    projection: str
    tables: int
    events: int
    kept: int
    seconds: float


async def rebuild(connection: Connection, projections: Sequence[str], out: Out) -> None:
    """Rebuild and print. `connection`: of the role relance_operator. Raises NoAnswer."""
    rebuilt = [await _rebuild(connection, name) for name in projections]
    if out.json:
        out.document([asdict(each) for each in rebuilt])
        return
    for each in rebuilt:
        kept = f"; kept as before: {counted(each.kept, 'table')}" if each.kept else ""
        read = f"{counted(each.tables, 'table')}, {counted(each.events, 'event')}"
        out.line(f"{each.projection}: {read} read again in {each.seconds:.1f} s{kept}")


async def _rebuild(connection: Connection, projection: str) -> Rebuilt:
    begun = time.monotonic()
    heads: dict[str, int] = {row["stream"]: row["head"] for row in await connection.fetch(_HEADS)}
    forgotten: dict[str, int] = {}
    for stream, head in heads.items():
        try:
            if await connection.fetchval(f"SELECT {projection}.forget($1)", stream):
                forgotten[stream] = head
        except (asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError) as error:
            raise NoAnswer(f"this room has no {projection} that can forget: run its migrate first") from error
        except asyncpg.InsufficientPrivilegeError as error:
            raise NoAnswer(f"rebuilding needs the role relance_operator: {error}") from error
    total = sum(forgotten.values())
    await _follow(connection, projection, forgotten, Progress(f"rebuilding {projection}", total))
    kept = len(heads) - len(forgotten)
    return Rebuilt(projection, len(forgotten), total, kept, time.monotonic() - begun)


async def _follow(connection: Connection, projection: str, wanted: dict[str, int], progress: Progress) -> None:
    """Wait until the service has read everything again. Raises NoAnswer when it does not go on."""
    done, changed = 0, time.monotonic()
    try:
        while True:
            rows = await connection.fetch(FOLLOWERS[projection])
            positions = {row["stream"]: row["version"] for row in rows}
            now = sum(min(positions.get(stream, 0), head) for stream, head in wanted.items())
            if now != done:
                progress.advance(now - done)
                done, changed = now, time.monotonic()
            if done == sum(wanted.values()):
                return
            if time.monotonic() - changed > PATIENCE:
                raise NoAnswer(
                    f"the {projection} service does not go on ({done} of {sum(wanted.values())} events); "
                    "it reads the rest by itself once it is back"
                )
            await asyncio.sleep(POLL)
    finally:
        progress.close()
