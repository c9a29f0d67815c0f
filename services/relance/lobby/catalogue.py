"""Reading the catalogue: one table, or pages of them, with the statistics of the last hour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.lobby.projection import MINUTE_US
from relance.runtime import filters
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused
from relance.runtime.filters import Field
from relance.runtime.paging import PageTokens, order_of

_HOUR = 60  # minutes

# $1: the first minute of the last hour; $2: now, microseconds. A table younger than an hour is measured by its age.
_TABLES = """
SELECT * FROM (
    SELECT t.id, t.version, t.config, t.closed, t.last_hand, t.created_at,
        t.display_name, t.house, t.game, t.betting, t.currency, t.big_blind, t.turbo, t.micro, t.low_limit, t.ante,
        t.min_buy_in, t.max_buy_in, t.private, t.paused, t.seats, t.seats = 2 AS heads_up,
        coalesce(h.maintenance, false) AS maintenance,
        (SELECT count(*) FROM lobby.wait w WHERE NOT t.closed AND w.target = ANY(t.targets))::integer AS waiting,
        cardinality(t.seated) AS players,
        CASE WHEN t.closed THEN 0 ELSE t.seats - cardinality(t.seated) - cardinality(t.held) END AS seats_free,
        coalesce(s.pots / nullif(s.hands, 0), 0)::bigint AS average_pot,
        coalesce(s.hands, 0) / greatest(1.0 / 60, least(1, ($2::bigint - t.created_at) / 3.6e9))::float8
            AS hands_per_hour,
        coalesce(s.flop_players::float8 / nullif(s.flops, 0), 0) AS players_per_flop
    FROM lobby.game_table t
    LEFT JOIN lobby.house h ON h.id = t.house
    CROSS JOIN LATERAL (
        SELECT sum(p.hands) AS hands, sum(p.pots) AS pots, sum(p.flops) AS flops, sum(p.flop_players) AS flop_players
        FROM lobby.played p WHERE p."table" = t.id AND p.minute >= $1
    ) s
    WHERE t.version > 0
) t
"""

_VERSIONS = """
SELECT t.id, t.version, coalesce(h.round, 0), (SELECT count(*) FROM lobby.wait w WHERE w.target = ANY(t.targets))
FROM lobby.game_table t LEFT JOIN lobby.house h ON h.id = t.house WHERE t.version > 0 AND NOT t.closed
"""

Version = tuple[int, ...]

_LIMITS = {name.removeprefix("LIMIT_"): number for name, number in game_pb2.Limit.items() if number}
_CURRENCIES = {name.removeprefix("CURRENCY_"): number for name, number in game_pb2.Currency.items() if number}
_NUMBERS = (
    "big_blind", "low_limit", "ante", "min_buy_in", "max_buy_in", "seats", "seats_free", "players", "waiting",
    "average_pot", "hands_per_hour", "players_per_flop",
)  # fmt: skip
_FIELDS = {
    **{name: Field(name, "text") for name in ("display_name", "house", "game")},
    "limit": Field("betting", "word", _LIMITS),
    "currency": Field("currency", "word", _CURRENCIES),
    **{name: Field(name, "number") for name in _NUMBERS},
    **{
        name: Field(name, "bool")
        for name in ("turbo", "heads_up", "micro", "private", "paused", "maintenance", "closed")
    },
}
_ORDERS = {
    "create_time": "created_at",
    "limit": "betting",
    **{name: name for name in ("display_name", "house", "game", "currency", *_NUMBERS)},
}
_NAMES_CLOSED = re.compile(r"\bclosed\b")


@dataclass(frozen=True, slots=True)
class Page:
    """Tables, and the token of those after them (empty: none)."""

    tables: list[lobby_pb2.Table]
    next_page_token: str


class Catalogue:
    """The tables of the room as far as they have been followed."""

    def __init__(self, pool: Pool, tokens: PageTokens, clock: Clock) -> None:
        self._pool, self._tokens, self._clock = pool, tokens, clock

    async def get(self, table: str) -> lobby_pb2.Table:
        """One table. Raises Refused TABLE_NOT_FOUND."""
        row = await self._pool.fetchrow(f"{_TABLES} WHERE id = $3", *self._since(), table)
        if row is None:
            raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=f"tables/{table}")
        return _table(row)

    async def changed(self, filter: str, tables: Sequence[str] | None) -> list[lobby_pb2.Table]:
        """Of these tables (None: of all) those that the filter lets through, without paging. As `page` otherwise."""
        condition, arguments = _condition(filter, 4)
        rows = await self._pool.fetch(
            f"{_TABLES} WHERE ($3::text[] IS NULL OR id = ANY($3)) AND {condition} ORDER BY created_at, id",
            *self._since(), tables, *arguments,
        )  # fmt: skip
        return [_table(row) for row in rows]

    async def versions(self) -> dict[str, Version]:
        """What there is to compare of each open table, to find those that changed: cheap."""
        return {row["id"]: tuple(row)[1:] for row in await self._pool.fetch(_VERSIONS)}

    async def page(self, *, filter: str, order_by: str, size: int, token: str) -> Page:
        """A page of tables. Closed ones only where the filter names `closed`.

        Raises Refused INVALID_FILTER, FIELD_INVALID (order_by), INVALID_PAGE_TOKEN.
        """
        order = order_of(order_by, _ORDERS, usual="create_time", unique="id")
        position = self._tokens.read(token, "tables", filter, order.by()) or []
        values: list[object] = [*self._since(), *position]
        conditions = [order.after(3)] if position else []
        wanted, arguments = _condition(filter, len(values) + 1)
        values += arguments
        conditions.append(wanted)
        rows = await self._pool.fetch(
            f"{_TABLES} WHERE {' AND '.join(conditions)} ORDER BY {order.by()} LIMIT {size + 1}", *values
        )
        more = ""
        if len(rows) > size:
            last = rows[size - 1]
            more = self._tokens.make([last[sql] for sql, _ in order.columns], "tables", filter, order.by())
        return Page([_table(row) for row in rows[:size]], more)

    def _since(self) -> tuple[int, int]:
        now = self._clock.now_us()
        return now // MINUTE_US - _HOUR + 1, now


def check_filter(filter: str) -> None:
    """Raises Refused INVALID_FILTER."""
    _condition(filter, 1)


def _condition(filter: str, first: int) -> tuple[str, list[filters.Value]]:
    """The condition of a filter with parameters from $`first` on. Closed tables only where it names `closed`."""
    wanted, arguments = filters.to_sql(filter, _FIELDS, first)
    return (wanted if _NAMES_CLOSED.search(filter) else f"({wanted}) AND NOT closed"), arguments


def _table(row: asyncpg.Record) -> lobby_pb2.Table:
    return lobby_pb2.Table(
        name=f"tables/{row['id']}",
        config=game_pb2.TableConfig.FromString(row["config"]),
        players=row["players"],
        seats_free=row["seats_free"],
        average_pot=row["average_pot"],
        hands_per_hour=row["hands_per_hour"],
        players_per_flop=row["players_per_flop"],
        closed=row["closed"],
        last_hand=row["last_hand"],
        create_time_us=row["created_at"],
        version=row["version"],
        waiting=row["waiting"],
        paused=row["paused"],
        maintenance=row["maintenance"],
    )
