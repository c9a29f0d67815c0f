"""Templates: kinds of tables that are kept open (lobby.template). What operators do with them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import templates_pb2
from relance.api.table.v1 import table_pb2
from relance.lobby.kinds import kind_of
from relance.poker.config import table_config
from relance.poker.houses import load
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused

MOST_OPEN = 100
USUAL_MOST_OPEN = 10

_COLUMNS = (
    "id, house, request, title, kind, min_open, max_open, stopped, deleted, created_by, created_at, problem, opened"
)
_INSERT = f"""
INSERT INTO lobby.template ({_COLUMNS}, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, false, false, $8, $9, '', 0, $9)
ON CONFLICT (kind) DO UPDATE SET deleted = false, stopped = false, min_open = $6, max_open = $7, due_at = $9
WHERE template.deleted RETURNING id
"""
_BY_KIND = "SELECT id FROM lobby.template WHERE kind = $1"
_SHOW = f"""
SELECT {_COLUMNS}, coalesce((
    SELECT array_agg('tables/' || o."table" ORDER BY o.number) FROM lobby.template_table o
    WHERE o.template = t.id AND o."table" IS NOT NULL
), '{{}}') AS tables
FROM lobby.template t WHERE NOT deleted
"""
_LIST = f"{_SHOW} AND ($1 = '' OR house = $1) ORDER BY house, number"
_SOME = f"{_SHOW} AND id = ANY ($1) ORDER BY house, number"
_UPDATE = """
UPDATE lobby.template SET min_open = coalesce($2, min_open), max_open = coalesce($3, max_open),
    stopped = coalesce($4, stopped), due_at = $5
WHERE id = $1 AND NOT deleted RETURNING min_open, max_open
"""
_DELETE = "UPDATE lobby.template SET deleted = true, due_at = $2 WHERE id = $1 AND NOT deleted"


@dataclass(frozen=True, slots=True)
class Template:
    """A row, and the tables that it has open."""

    id: str
    house: str
    request: bytes
    title: str
    kind: str
    min_open: int
    max_open: int
    stopped: bool
    deleted: bool
    created_by: str
    created_at: int
    problem: str
    opened: int
    tables: Sequence[str] = ()

    def proto(self) -> templates_pb2.Template:
        """As operators see it."""
        return templates_pb2.Template(
            name=f"templates/{self.id}",
            table=table_pb2.OpenTableRequest.FromString(self.request),
            min_open=self.min_open,
            max_open=self.max_open,
            stopped=self.stopped,
            tables=self.tables,
            created_by=self.created_by,
            create_time_us=self.created_at,
            problem=self.problem,
        )


COLUMNS = ", ".join(field.name for field in fields(Template) if field.name != "tables")
"""What a Template is made of, in order, without its tables."""


class Templates:
    """The templates of the room."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def create(
        self, wanted: table_pb2.OpenTableRequest, min_open: int, max_open: int, operator: str
    ) -> templates_pb2.Template:
        """Make one. Raises Refused TEMPLATE_EXISTS; Rejected where no house opens such a table."""
        made = await self._insert(wanted, min_open, max_open, operator)
        if made is None:
            kind = kind_of(table_config(wanted).config)
            name = f"templates/{await self._pool.fetchval(_BY_KIND, kind)}"
            raise Refused(reason_pb2.REASON_TEMPLATE_EXISTS, f"{name} keeps such tables open.", template=name)
        return (await self._some([made]))[0]

    async def seed(self, house: str, operator: str) -> list[templates_pb2.Template]:
        """Make those of a house's preset that are not there; all of them."""
        ids = []
        for wanted in load(house).tables:
            made = await self._insert(wanted, 1, USUAL_MOST_OPEN, operator)
            ids.append(made or await self._pool.fetchval(_BY_KIND, kind_of(table_config(wanted).config)))
        return await self._some(ids)

    async def of_house(self, house: str) -> list[templates_pb2.Template]:
        """Those of a house ('': all)."""
        return [Template(*row).proto() for row in await self._pool.fetch(_LIST, house)]

    async def update(
        self, template: str, *, min_open: int | None, max_open: int | None, stopped: bool | None
    ) -> templates_pb2.Template:
        """Change what is given. Raises Refused TEMPLATE_NOT_FOUND, FIELD_INVALID (min_open above max_open)."""
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_UPDATE, template, min_open, max_open, stopped, self._clock.now_us())
            if row is None:
                raise _not_found(template)
            check_bounds(row["min_open"], row["max_open"])
        return (await self._some([template]))[0]

    async def delete(self, template: str) -> None:
        """Keep no such tables open any more. Raises Refused TEMPLATE_NOT_FOUND."""
        if await self._pool.execute(_DELETE, template, self._clock.now_us()) == "UPDATE 0":
            raise _not_found(template)

    async def _insert(
        self, wanted: table_pb2.OpenTableRequest, min_open: int, max_open: int, operator: str
    ) -> str | None:
        """Id of a new template; None where there is one for the same kind."""
        check_bounds(min_open, max_open)
        request = table_pb2.OpenTableRequest()
        request.CopyFrom(wanted)
        request.ClearField("request_id")
        request.private = False
        config = table_config(request).config
        made: str | None = await self._pool.fetchval(
            _INSERT, secrets.token_hex(6), config.house, request.SerializeToString(deterministic=True),
            config.display_name, kind_of(config), min_open, max_open, operator, self._clock.now_us(),
        )  # fmt: skip
        return made

    async def _some(self, ids: Sequence[str]) -> list[templates_pb2.Template]:
        return [Template(*row).proto() for row in await self._pool.fetch(_SOME, ids)]


def check_bounds(min_open: int, max_open: int) -> None:
    """Raises Refused FIELD_INVALID."""
    for name, value, least in (("min_open", min_open, 0), ("max_open", max_open, max(1, min_open))):
        if not least <= value <= MOST_OPEN:
            raise Refused(
                reason_pb2.REASON_FIELD_INVALID, f"{name} is {value}; {least} to {MOST_OPEN} would do.",
                field=name, allowed=f"{least} to {MOST_OPEN}",
            )  # fmt: skip


def _not_found(template: str) -> Refused:
    name = f"templates/{template}"
    return Refused(reason_pb2.REASON_TEMPLATE_NOT_FOUND, f"There is no template {template}.", template=name)
