"""Keeping templates' tables open: one with a free seat, no surplus of empty ones.

Each look at a template is one replica's alone: it moves the row's time on before it looks. What it decides to open is
a row with the whole request before the table service is asked, so a crash at any point opens no second table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.lobby.commands import TableCommands
from relance.lobby.templates import COLUMNS, Template
from relance.poker.config import LONGEST_TABLE_NAME
from relance.runtime import database, logging
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused, reason_name

log = structlog.get_logger(__name__)

_AT_ONCE = 20

_LEASE_US = 60_000_000
"""How long one look may take at most, before another replica looks."""

_CLAIM = f"""
UPDATE lobby.template SET due_at = $1::bigint + {_LEASE_US} WHERE id IN (
    SELECT id FROM lobby.template WHERE due_at <= $1::bigint ORDER BY due_at LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
) RETURNING {COLUMNS}
"""
_NEXT = "UPDATE lobby.template SET due_at = $2 WHERE id = $1 AND due_at = $3"
# A table that the catalogue does not know (it is new, or the catalogue is being read again) counts as there and free.
_OWN = """
SELECT o.number, o.request, o."table", o.closing, coalesce(t.closed, false) AS closed,
    coalesce(t.empty_since, 0) AS empty_since, coalesce(cardinality(t.seated) + cardinality(t.held), 0) AS taken,
    coalesce(t.seats, 1) AS seats,
    EXISTS (SELECT FROM lobby.wait w WHERE w.target = ANY (t.targets))
        OR EXISTS (SELECT FROM lobby.offer f WHERE f."table" = t.id AND f.state IN (0, 1, 2)) AS wanted
FROM lobby.template_table o LEFT JOIN lobby.game_table t ON t.id = o."table" AND t.version > 0
WHERE o.template = $1 ORDER BY o.number
"""
# Tables of the same kind that somebody else opened serve as well.
_OTHERS = """
SELECT count(*) AS open, count(*) FILTER (WHERE cardinality(t.seated) + cardinality(t.held) < t.seats) AS free
FROM lobby.game_table t
WHERE t.kind = $1 AND NOT t.closed AND NOT EXISTS (SELECT FROM lobby.template_table o WHERE o."table" = t.id)
"""
_MAINTENANCE = "SELECT maintenance FROM lobby.house WHERE id = $1"
_NUMBER = "UPDATE lobby.template SET opened = opened + 1 WHERE id = $1 RETURNING opened"
_ADD = """
INSERT INTO lobby.template_table (template, number, request, "table", closing) VALUES ($1, $2, $3, NULL, false)
"""
_OPENED = 'UPDATE lobby.template_table SET "table" = $3 WHERE template = $1 AND number = $2'
_CLOSING = "UPDATE lobby.template_table SET closing = true WHERE template = $1 AND number = $2"
_FORGET = "DELETE FROM lobby.template_table WHERE template = $1 AND number = $2"
_PROBLEM = "UPDATE lobby.template SET problem = $2 WHERE id = $1 AND problem <> $2"
_GONE = """
DELETE FROM lobby.template t WHERE id = $1 AND deleted
    AND NOT EXISTS (SELECT FROM lobby.template_table o WHERE o.template = t.id)
"""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a template."""

    number: int
    request: bytes
    table: str | None
    closing: bool
    closed: bool
    empty_since: int
    taken: int
    seats: int
    wanted: bool

    @property
    def free(self) -> bool:
        """Whether somebody can sit down."""
        return self.taken < self.seats


class Openings:
    """Opens and closes."""

    def __init__(
        self, pool: Pool, commands: TableCommands, clock: Clock, *, look_seconds: float, empty_seconds: float
    ) -> None:
        """`look_seconds`: between two looks at one template; `empty_seconds`: how long surplus stays open empty."""
        self._pool, self._commands, self._clock = pool, commands, clock
        self._look_us, self._empty_us = round(look_seconds * 1e6), round(empty_seconds * 1e6)

    async def run(self) -> None:
        """Work, for ever."""
        while True:
            await self._clock.sleep(self._look_us / 1e6)
            try:
                with logging.request():
                    await self.work()
            except database.OUTAGE as error:
                log.info("templates not looked at", error=type(error).__name__)

    async def work(self) -> None:
        """Look at the templates that nobody has looked at for a while."""
        now = self._clock.now_us()
        rows = await self._pool.fetch(_CLAIM, now)
        await asyncio.gather(*(self._look_alone(Template(*row), now + _LEASE_US) for row in rows))

    async def _look_alone(self, template: Template, lease: int) -> None:
        await self._look(template)
        # Unless an operator has changed it meanwhile: then it is due at once.
        await self._pool.execute(_NEXT, template.id, self._clock.now_us() + self._look_us, lease)

    async def _look(self, template: Template) -> None:
        tables = []
        for table in [_Table(*row) for row in await self._pool.fetch(_OWN, template.id)]:
            if table.closed:
                await self._pool.execute(_FORGET, template.id, table.number)
            elif table.table is None:
                await self._open(template, table.number, table.request)
                tables.append(table)
            elif table.closing:
                await self._close(template, table)
            else:
                tables.append(table)
        if await self._pool.fetchval(_MAINTENANCE, template.house):
            return
        ended = template.stopped or template.deleted
        if not ended:
            await self._open_more(template, tables)
        await self._close_surplus(template, tables, ended=ended)
        if template.deleted:
            await self._pool.execute(_GONE, template.id)

    async def _open_more(self, template: Template, tables: Sequence[_Table]) -> None:
        others = await self._pool.fetchrow(_OTHERS, template.kind)
        assert others is not None  # an aggregate
        there, free = len(tables) + others["open"], sum(table.free for table in tables) + others["free"]
        wanted = max(template.min_open - there, 1 - free)
        for _ in range(min(wanted, template.max_open - there)):
            request = table_pb2.OpenTableRequest.FromString(template.request)
            async with self._pool.acquire() as connection, connection.transaction():
                number: int = await connection.fetchval(_NUMBER, template.id)
                request.request_id = f"template-{template.id}-{number}"
                request.display_name = _numbered(template.title, number)
                raw = request.SerializeToString(deterministic=True)
                await connection.execute(_ADD, template.id, number, raw)
            if not await self._open(template, number, raw):
                return

    async def _open(self, template: Template, number: int, request: bytes) -> bool:
        """Ask for a table until it is there. Whether it is."""
        try:
            opened = await self._commands.open(table_pb2.OpenTableRequest.FromString(request))
        except Refused as refused:
            log.warning("no table opened", template=template.id, reason=reason_name(refused.reason))
            await self._pool.execute(_PROBLEM, template.id, refused.message)
            if refused.reason != reason_pb2.REASON_UNAVAILABLE:
                await self._pool.execute(_FORGET, template.id, number)  # it will be refused again
            return False
        table = opened.table.removeprefix("tables/")
        await self._pool.execute(_OPENED, template.id, number, table)
        await self._pool.execute(_PROBLEM, template.id, "")
        log.info("table opened", template=template.id, table=table)
        return True

    async def _close_surplus(self, template: Template, tables: Sequence[_Table], *, ended: bool) -> None:
        """Close empty tables, the newest first, as long as enough are left, one of them with a free seat."""
        least = 0 if ended else template.min_open
        there, free = len(tables), sum(table.free for table in tables)
        long_ago = self._clock.now_us() - (0 if ended else self._empty_us)
        for table in reversed(tables):
            if there <= least or (not ended and free <= 1):
                return
            if table.empty_since and table.empty_since <= long_ago and not (table.wanted and not ended):
                await self._pool.execute(_CLOSING, template.id, table.number)
                await self._close(template, table)
                there, free = there - 1, free - 1

    async def _close(self, template: Template, table: _Table) -> None:
        assert table.table is not None  # one that is closing was opened
        try:
            await self._commands.close(
                table.table, f"template-{template.id}-{table.number}-close", f"empty; template {template.id}"
            )
        except Refused as refused:
            if refused.reason == reason_pb2.REASON_TABLE_CLOSED:
                await self._pool.execute(_FORGET, template.id, table.number)
            elif refused.reason != reason_pb2.REASON_UNAVAILABLE:
                log.warning("table not closed", table=table.table, reason=reason_name(refused.reason))


def _numbered(title: str, number: int) -> str:
    """'Hold'em' 3: 'Hold'em 3', with the title cut where a name may not be that long."""
    suffix = f" {number}"
    return title[: LONGEST_TABLE_NAME - len(suffix)].rstrip() + suffix
