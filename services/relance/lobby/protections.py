"""Protections against disconnection (C2), counted over all tables of the room (lobby.protection)."""

from __future__ import annotations

from dataclasses import dataclass

from relance.runtime.clock import Clock
from relance.runtime.database import Connection, Pool

WINDOW_US = 24 * 3600 * 1_000_000

# One count a player at a time, whichever replica and table asks.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('lobby.protection ' || $1, 0))"
_KNOWN = 'SELECT granted FROM lobby.protection WHERE "table" = $1 AND hand = $2 AND seat = $3'
_USED = "SELECT count(*) FROM lobby.protection WHERE player = $1 AND granted AND NOT given_back AND at > $2"
_INSERT = """
INSERT INTO lobby.protection ("table", hand, seat, player, granted, at) VALUES ($1, $2, $3, $4, $5, $6)
"""
_BOOK = """
INSERT INTO lobby.protection ("table", hand, seat, player, granted, at) VALUES ($1, $2, $3, $4, true, $5)
ON CONFLICT ("table", hand, seat) DO UPDATE SET granted = true
"""
_GIVE_BACK = 'UPDATE lobby.protection SET given_back = true WHERE "table" = $1 AND hand = $2'


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the player is protected, and how many protections are left."""

    granted: bool
    left: int


class Protections:
    """What has been used in the last 24 hours."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def use(self, table: str, hand: int, seat: int, player: str, limit: int) -> Answer:
        """Use one of `limit`, where one is left. The same table, hand and seat has the same answer again."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, player)
            now = self._clock.now_us()
            granted = await connection.fetchval(_KNOWN, table, hand, seat)
            used = await connection.fetchval(_USED, player, now - WINDOW_US)
            if granted is None:
                granted = used < limit
                await connection.execute(_INSERT, table, hand, seat, player, granted, now)
                used += granted
            return Answer(granted, max(0, limit - used))


async def book(connection: Connection, table: str, hand: int, seat: int, player: str, at: int) -> None:
    """A protection was used, as the table's events say: it counts even where nobody answered the table in time."""
    await connection.execute(_BOOK, table, hand, seat, player, at)


async def give_back(connection: Connection, table: str, hand: int) -> None:
    """The hand is void: protections used in it count no more."""
    await connection.execute(_GIVE_BACK, table, hand)
