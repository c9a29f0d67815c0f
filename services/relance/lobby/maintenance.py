"""Houses in maintenance (lobby.house): their tables are paused, and resumed afterwards.

What is wanted is a row; any replica brings the tables to it, again and again until they are there, new tables too.
"""

from __future__ import annotations

import asyncio

import asyncpg
import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import houses_pb2
from relance.lobby.commands import TableCommands
from relance.poker.houses import HOUSES
from relance.runtime import database, logging
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused, reason_name

log = structlog.get_logger(__name__)

_AT_ONCE = 100

_SET = """
INSERT INTO lobby.house AS h (id, maintenance, operator, reason, changed_at, round) VALUES ($1, $2, $3, $4, $5, 1)
ON CONFLICT (id) DO UPDATE SET maintenance = $2, operator = $3, reason = $4, changed_at = $5, round = h.round + 1
WHERE h.maintenance <> $2
"""
_SHOW = """
SELECT n.id, coalesce(h.maintenance, false) AS maintenance, coalesce(h.operator, '') AS operator,
    coalesce(h.reason, '') AS reason, coalesce(h.changed_at, 0) AS changed_at,
    count(t.id)::integer AS tables, (count(t.id) FILTER (WHERE t.paused))::integer AS paused
FROM unnest($1::text[]) WITH ORDINALITY n (id, place)
LEFT JOIN lobby.house h ON h.id = n.id
LEFT JOIN lobby.game_table t ON t.house = n.id AND t.version > 0 AND NOT t.closed
GROUP BY n.id, n.place, h.maintenance, h.operator, h.reason, h.changed_at ORDER BY n.place
"""
_TO_PAUSE = f"""
SELECT t.id, h.id AS house, h.round, h.operator, h.reason FROM lobby.house h
JOIN lobby.game_table t ON t.house = h.id AND t.version > 0 AND NOT t.closed
LEFT JOIN lobby.paused_table p ON p."table" = t.id AND p.round = h.round
WHERE h.maintenance AND p."table" IS NULL LIMIT {_AT_ONCE}
"""
_PAUSED = """
INSERT INTO lobby.paused_table AS p ("table", house, round, by_others) VALUES ($1, $2, $3, $4)
ON CONFLICT ("table") DO UPDATE SET round = $3, by_others = $4 WHERE p.round < $3
"""
_TO_RESUME = f"""
SELECT p."table" AS id, p.round, p.by_others FROM lobby.paused_table p JOIN lobby.house h ON h.id = p.house
WHERE NOT h.maintenance LIMIT {_AT_ONCE}
"""
_RESUMED = 'DELETE FROM lobby.paused_table WHERE "table" = $1 AND round = $2'

# The table needs no more of it.
_SETTLED = frozenset(
    {reason_pb2.REASON_NOTHING_TO_CHANGE, reason_pb2.REASON_TABLE_CLOSED, reason_pb2.REASON_TABLE_NOT_FOUND}
)


class Maintenance:
    """Houses in and out of it."""

    def __init__(self, pool: Pool, commands: TableCommands, clock: Clock, tick_seconds: float) -> None:
        self._pool, self._commands, self._clock, self._tick = pool, commands, clock, tick_seconds

    async def set(self, house: str, maintenance: bool, operator: str, reason: str) -> houses_pb2.House:
        """Begin or end maintenance; where that is so already nothing changes."""
        await self._pool.execute(_SET, house, maintenance, operator, reason, self._clock.now_us())
        return (await self.houses(house))[0]

    async def houses(self, *names: str) -> list[houses_pb2.House]:
        """Houses, all of them unless some are named."""
        return [_house(row) for row in await self._pool.fetch(_SHOW, names or HOUSES)]

    async def run(self) -> None:
        """Bring tables to what is wanted, for ever."""
        while True:
            await self._clock.sleep(self._tick)
            try:
                with logging.request():
                    await self.work()
            except database.OUTAGE as error:
                log.info("maintenance not looked at", error=type(error).__name__)

    async def work(self) -> None:
        """Pause and resume what is to be paused and resumed now."""
        await asyncio.gather(*map(self._pause, await self._pool.fetch(_TO_PAUSE)))
        await asyncio.gather(*map(self._resume, await self._pool.fetch(_TO_RESUME)))

    async def _pause(self, row: asyncpg.Record) -> None:
        by_others = False
        reason = f"maintenance of {row['house']} by {row['operator']}: {row['reason']}"
        try:
            await self._commands.pause(row["id"], f"maintenance-{row['round']}-pause", reason)
        except Refused as refused:
            if refused.reason not in _SETTLED:
                log.info("table not paused", table=row["id"], reason=reason_name(refused.reason))
                return
            by_others = True
        await self._pool.execute(_PAUSED, row["id"], row["house"], row["round"], by_others)

    async def _resume(self, row: asyncpg.Record) -> None:
        if not row["by_others"]:
            try:
                await self._commands.resume(row["id"], f"maintenance-{row['round']}-resume")
            except Refused as refused:
                if refused.reason not in _SETTLED:
                    log.info("table not resumed", table=row["id"], reason=reason_name(refused.reason))
                    return
        await self._pool.execute(_RESUMED, row["id"], row["round"])


def _house(row: asyncpg.Record) -> houses_pb2.House:
    return houses_pb2.House(
        name=f"houses/{row['id']}",
        maintenance=row["maintenance"],
        operator=row["operator"],
        reason=row["reason"],
        change_time_us=row["changed_at"],
        tables=row["tables"],
        tables_paused=row["paused"],
    )
