"""Places on waiting lists (lobby.wait)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import asyncpg

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.lobby.v1 import waiting_pb2
from relance.lobby.kinds import target_of
from relance.lobby.offers import ASKED, LEASE_US
from relance.lobby.private import PrivateTables
from relance.poker.games import GAMES
from relance.poker.houses import HOUSES
from relance.runtime import validation
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused

MOST_WAITS = 20
"""Places that one player may have."""
_MOST_LISTED = 1_000
_MOST_SEATS = 10

# One player's places are counted by one transaction at a time.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('lobby.wait ' || $1, 0))"
_COUNT = "SELECT count(*) FROM lobby.wait WHERE player = $1 AND target <> $2"
_INSERT = """
INSERT INTO lobby.wait (id, player, target, kind, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (player, target) DO NOTHING
"""
_SHOW = """
SELECT w.id, w.player, w.target, w.kind, w.created_at,
    (SELECT count(*) FROM lobby.wait o WHERE o.target = w.target AND o.number <= w.number) AS position,
    coalesce((SELECT o.id FROM lobby.offer o WHERE o.wait = w.id AND o.state IN (1, 2)), '') AS offer
FROM lobby.wait w
"""
_ONE = f"{_SHOW} WHERE w.player = $1 AND w.target = $2"
_OF_PLAYER = f"{_SHOW} WHERE w.player = $1 ORDER BY w.number"
_OF_TARGET = f"{_SHOW} WHERE w.target = $1 ORDER BY w.number LIMIT {_MOST_LISTED}"
_TABLE = "SELECT closed, private FROM lobby.game_table WHERE id = $1 AND version > 0"
_SEATED = 'SELECT seat FROM lobby.seat WHERE "table" = $1 AND player = $2 AND NOT held'
_LEAVE = "DELETE FROM lobby.wait WHERE id = $1 AND player = $2"
# A seat that is still being asked for is given back when the table has surely answered.
_DECLINE = f"""
UPDATE lobby.offer SET state = {waiting_pb2.OFFER_STATE_DECLINED}, changed_at = $3,
    due_at = $3::bigint + CASE state WHEN {ASKED} THEN {LEASE_US} ELSE 0 END
WHERE wait = $1 AND player = $2 AND state IN (0, 1)
"""


@dataclass(frozen=True, slots=True)
class _Target:
    text: str
    kind: bytes | None


class Waits:
    """The lists."""

    def __init__(self, pool: Pool, private: PrivateTables, clock: Clock) -> None:
        self._pool, self._private, self._clock = pool, private, clock

    async def join(self, player: str, request: waiting_pb2.JoinWaitlistRequest) -> waiting_pb2.Wait:
        """A place for what the request says; the same again is the same place.

        Raises Refused TABLE_NOT_FOUND, TABLE_CLOSED, NOT_INVITED, ALREADY_SEATED, LIMIT_REACHED, FIELD_MISSING,
        FIELD_INVALID.
        """
        if request.HasField("table"):
            target = await self._table(validation.table_id(request.table), player)
        elif request.HasField("kind"):
            _check(request.kind)
            target = _Target(target_of(request.kind), request.kind.SerializeToString(deterministic=True))
        else:
            raise validation.missing("target")
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, player)
            if await connection.fetchval(_COUNT, player, target.text) >= MOST_WAITS:
                raise Refused(
                    reason_pb2.REASON_LIMIT_REACHED, f"You wait for {MOST_WAITS} things already.", limit=MOST_WAITS
                )
            now = self._clock.now_us()
            await connection.execute(_INSERT, secrets.token_hex(10), player, target.text, target.kind, now)
            row = await connection.fetchrow(_ONE, player, target.text)
        assert row is not None  # inserted above, or there before
        return _wait(row)

    async def leave(self, player: str, wait: str) -> None:
        """Give up a place and the offer that it led to. Raises Refused WAIT_NOT_FOUND."""
        async with self._pool.acquire() as connection, connection.transaction():
            gone = await connection.execute(_LEAVE, wait, player)
            declined = await connection.execute(_DECLINE, wait, player, self._clock.now_us())
        if gone == "DELETE 0" and declined == "UPDATE 0":
            raise Refused(
                reason_pb2.REASON_WAIT_NOT_FOUND, "You have no such place on a waiting list.", wait=f"waits/{wait}"
            )

    async def of_player(self, player: str) -> list[waiting_pb2.Wait]:
        """A player's places, the oldest first."""
        return [_wait(row) for row in await self._pool.fetch(_OF_PLAYER, player)]

    async def of_table(self, table: str) -> list[waiting_pb2.Wait]:
        """A table's own list."""
        return [_wait(row) for row in await self._pool.fetch(_OF_TARGET, f"tables/{table}")]

    async def _table(self, table: str, player: str) -> _Target:
        found = await self._pool.fetchrow(_TABLE, table)
        name = f"tables/{table}"
        if found is None:
            raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=name)
        if found["closed"]:
            raise Refused(reason_pb2.REASON_TABLE_CLOSED, f"Table {table} is closed.", table=name)
        if found["private"] and not await self._private.admits(table, player):
            raise Refused(reason_pb2.REASON_NOT_INVITED, "The table is private and you are not invited.")
        seat = await self._pool.fetchval(_SEATED, table, player)
        if seat is not None:
            raise Refused(reason_pb2.REASON_ALREADY_SEATED, f"You have seat {seat} there.", seat=seat)
        return _Target(name, None)


def _check(kind: waiting_pb2.TableKind) -> None:
    if kind.house not in HOUSES:
        raise validation.invalid("kind.house", ", ".join(HOUSES))
    if kind.game not in GAMES:
        raise validation.invalid("kind.game", ", ".join(GAMES))
    validation.enum(kind.limit, game_pb2.Limit, "kind.limit")
    validation.enum(kind.currency, game_pb2.Currency, "kind.currency")
    validation.amount(kind.low_limit, "kind.low_limit")
    if kind.seats:
        validation.whole(kind.seats, "kind.seats", least=2, most=_MOST_SEATS)


def _wait(row: asyncpg.Record) -> waiting_pb2.Wait:
    wait = waiting_pb2.Wait(
        name=f"waits/{row['id']}",
        player=f"players/{row['player']}",
        position=row["position"],
        create_time_us=row["created_at"],
        offer=row["offer"] and f"offers/{row['offer']}",
    )
    if row["kind"] is None:
        wait.table = row["target"]
    else:
        wait.kind.ParseFromString(row["kind"])
    return wait
