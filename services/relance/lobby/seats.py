"""Who sits where, as the tables' events say (lobby.seat), and what that means for those who wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relance.api.lobby.v1 import waiting_pb2
from relance.runtime.database import Connection

_FREE = 'DELETE FROM lobby.seat WHERE "table" = $1 AND seat = $2'
_TAKE = """
INSERT INTO lobby.seat ("table", seat, player, held) VALUES ($1, $2, $3, $4)
ON CONFLICT ("table", seat) DO UPDATE SET player = excluded.player, held = excluded.held
"""
# Who sits down does not wait any more, for this table or for any of its kind. What came later than the event stays:
# the events may be read again from the first one.
_STOP_WAITING = """
DELETE FROM lobby.wait w USING lobby.game_table t
WHERE t.id = $1 AND w.player = $2 AND w.created_at <= $3 AND w.target = ANY(t.targets)
"""
_TAKEN = f"""
UPDATE lobby.offer SET state = {waiting_pb2.OFFER_STATE_TAKEN}, changed_at = $3, due_at = NULL
WHERE "table" = $1 AND player = $2 AND created_at <= $3 AND state IN (0, 1, 2)
"""
_NO_TABLE = "DELETE FROM lobby.wait WHERE target = 'tables/' || $1"
_WITHDRAWN = f"""
UPDATE lobby.offer SET state = {waiting_pb2.OFFER_STATE_WITHDRAWN}, changed_at = expires_at, due_at = NULL
WHERE "table" = $1 AND state IN (0, 1, 2)
"""


@dataclass(frozen=True, slots=True)
class SeatChange:
    """A seat is a player's, held for one, or (no player) free."""

    seat: int
    player: str
    held: bool
    at: int
    """Microseconds since 1970 UTC."""


async def settle(connection: Connection, table: str, changes: Sequence[SeatChange], *, closed: bool) -> None:
    """Take in what became of a table's seats; it is in lobby.game_table already."""
    for change in changes:
        if not change.player:
            await connection.execute(_FREE, table, change.seat)
            continue
        await connection.execute(_TAKE, table, change.seat, change.player, change.held)
        if not change.held:
            await connection.execute(_STOP_WAITING, table, change.player, change.at)
            await connection.execute(_TAKEN, table, change.player, change.at)
    if closed:
        await connection.execute(_NO_TABLE, table)
        await connection.execute(_WITHDRAWN, table)
