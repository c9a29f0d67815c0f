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
INSERT INTO lobby.protection ("table", hand, seat, player, granted, used, at) VALUES ($1, $2, $3, $4, true, true, $5)
ON CONFLICT ("table", hand, seat) DO UPDATE SET granted = true, used = true
"""
_GIVE_BACK = """
UPDATE lobby.protection SET given_back = true
WHERE "table" = $1 AND (hand = ANY($2) OR hand = ANY($3) AND NOT used) AND NOT given_back
"""


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


@dataclass(frozen=True, slots=True)
class Use:
    """A protection that was used, as the table's events say."""

    hand: int
    seat: int
    player: str
    at: int
    """Microseconds since 1970 UTC."""


async def settle(connection: Connection, table: str, uses: list[Use], voided: list[int], ended: list[int]) -> None:
    """Take in what became of a table's hands.

    A use counts even where nobody answered the table in time. In a void hand none counts; in one that ended, none that
    was asked for and not used.
    """
    if uses:
        await connection.executemany(_BOOK, [(table, use.hand, use.seat, use.player, use.at) for use in uses])
    if voided or ended:
        await connection.execute(_GIVE_BACK, table, voided, ended)
