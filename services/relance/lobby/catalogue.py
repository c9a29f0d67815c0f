"""Reading the catalogue: one table, or pages of them, with the statistics of the last hour."""

from __future__ import annotations

import re
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
        t.display_name, t.house, t.game, t.betting, t.currency, t.big_blind, t.turbo, t.micro,
        cardinality(t.seated) AS players,
        CASE WHEN t.closed THEN 0 ELSE t.seats - cardinality(t.seated) - cardinality(t.held) END AS seats_free,
        coalesce(s.pots / nullif(s.hands, 0), 0)::bigint AS average_pot,
        coalesce(s.hands, 0) / greatest(1.0 / 60, least(1, ($2::bigint - t.created_at) / 3.6e9))::float8
            AS hands_per_hour,
        coalesce(s.flop_players::float8 / nullif(s.flops, 0), 0) AS players_per_flop
    FROM lobby.game_table t
    CROSS JOIN LATERAL (
        SELECT sum(p.hands) AS hands, sum(p.pots) AS pots, sum(p.flops) AS flops, sum(p.flop_players) AS flop_players
        FROM lobby.played p WHERE p."table" = t.id AND p.minute >= $1
    ) s
    WHERE t.version > 0
) t
"""

_FIELDS = {
    "house": Field("house", "text"),
    "game": Field("game", "text"),
    "limit": Field(
        "betting", "word", {name.removeprefix("LIMIT_"): number for name, number in game_pb2.Limit.items() if number}
    ),
    "currency": Field(
        "currency", "word", {name.removeprefix("CURRENCY_"): n for name, n in game_pb2.Currency.items() if n}
    ),
    "big_blind": Field("big_blind", "number"),
    "seats_free": Field("seats_free", "number"),
    "players": Field("players", "number"),
    "turbo": Field("turbo", "bool"),
    "micro": Field("micro", "bool"),
    "closed": Field("closed", "bool"),
}
_ORDERS = {
    "create_time": "created_at",
    **{name: name for name in ("display_name", "house", "game", "big_blind", "players", "seats_free", "average_pot")},
    "hands_per_hour": "hands_per_hour",
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

    async def page(self, *, filter: str, order_by: str, size: int, token: str) -> Page:
        """A page of tables. Closed ones only where the filter names `closed`.

        Raises Refused INVALID_FILTER, FIELD_INVALID (order_by), INVALID_PAGE_TOKEN.
        """
        order = order_of(order_by, _ORDERS, usual="create_time", unique="id")
        position = self._tokens.read(token, "tables", filter, order.by()) or []
        values: list[object] = [*self._since(), *position]
        conditions = [order.after(3)] if position else []
        wanted, arguments = filters.to_sql(filter, _FIELDS, len(values) + 1)
        values += arguments
        conditions.append(wanted)
        if not _NAMES_CLOSED.search(filter):
            conditions.append("NOT closed")
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
    )
