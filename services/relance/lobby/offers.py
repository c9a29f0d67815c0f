"""Seats offered to players who wait (lobby.offer): what players do with them, and what becomes of them in time."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import waiting_pb2
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused

ASKED, IN_VAIN = 0, 7
"""States that players do not see: the table is asked to hold a seat; it had none."""
OPEN, ACCEPTED = waiting_pb2.OFFER_STATE_OPEN, waiting_pb2.OFFER_STATE_ACCEPTED
_DECLINED, _EXPIRED = waiting_pb2.OFFER_STATE_DECLINED, waiting_pb2.OFFER_STATE_EXPIRED

LEASE_US = 10_000_000
"""For how long the next thing is left to who took it up."""
IN_VAIN_US = 3_000_000
"""How long a table that had no seat is left alone: the catalogue runs a little behind the tables."""
_KEEP_US = 24 * 3600 * 1_000_000
_AT_ONCE = 50

_COLUMNS = 'id, wait, player, "table", seat, state, expires_at'

# For every table with a seat that nobody has and nobody is asked for, who waits longest. Two replicas that do this at
# once get in each other's way only at the unique indexes. Who leaves the list at this moment is passed over.
_MATCH = f"""
WITH seated AS (
    SELECT t.id, t.targets, t.seats - cardinality(t.seated) - cardinality(t.held) - (
        SELECT count(*) FROM lobby.offer o
        WHERE o."table" = t.id AND o.state IN (1, 2) AND o.seat <> ALL (t.seated || t.held)
    ) AS free
    FROM lobby.game_table t LEFT JOIN lobby.house h ON h.id = t.house
    WHERE t.version > 0 AND NOT t.closed AND NOT t.paused AND NOT coalesce(h.maintenance, false)
        AND EXISTS (SELECT FROM lobby.wait w WHERE w.target = ANY (t.targets))
), picked AS (
    SELECT DISTINCT ON (t.id) t.id AS "table", w.id AS wait
    FROM seated t JOIN lobby.wait w ON w.target = ANY (t.targets)
    WHERE t.free > 0
        AND NOT EXISTS (
            SELECT FROM lobby.offer o
            WHERE o."table" = t.id
                AND (o.state = {ASKED} OR o.state = {IN_VAIN} AND o.changed_at > $1::bigint - {IN_VAIN_US})
        )
        AND NOT EXISTS (SELECT FROM lobby.offer o WHERE o.wait = w.id AND o.state IN (0, 1, 2))
        -- Nor while the seat of an earlier offer is given back: that would take away the new one.
        AND NOT EXISTS (
            SELECT FROM lobby.offer o WHERE o."table" = t.id AND o.player = w.player AND o.due_at IS NOT NULL
        )
        AND NOT EXISTS (SELECT FROM lobby.seat s WHERE s."table" = t.id AND s.player = w.player)
    ORDER BY t.id, w.number
), there AS (
    SELECT w.id AS wait, w.player, p."table" FROM picked p JOIN lobby.wait w ON w.id = p.wait
    FOR KEY SHARE OF w SKIP LOCKED
)
INSERT INTO lobby.offer (id, wait, player, "table", seat, state, created_at, changed_at, expires_at, due_at)
SELECT left(encode(sha256(convert_to($2::text || "table", 'UTF8')), 'hex'), 24), wait, player, "table", 0, {ASKED},
    $1, $1, 0, $1::bigint + {LEASE_US}
FROM there ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
"""
_CLAIM = f"""
UPDATE lobby.offer SET due_at = $1::bigint + {LEASE_US} WHERE id IN (
    SELECT id FROM lobby.offer WHERE due_at <= $1::bigint ORDER BY due_at LIMIT {_AT_ONCE} FOR UPDATE SKIP LOCKED
) RETURNING {_COLUMNS}
"""
_GIVEN = f"""
UPDATE lobby.offer SET state = {OPEN}, seat = $2, changed_at = $3, expires_at = $4, due_at = $4
WHERE id = $1 AND state = {ASKED}
"""
_IN_VAIN = f"UPDATE lobby.offer SET state = {IN_VAIN}, changed_at = $2, due_at = $3 WHERE id = $1 AND state = {ASKED}"
_DROP_WAIT = "DELETE FROM lobby.wait WHERE id = $1"
_EXPIRE = f"""
UPDATE lobby.offer SET state = {_EXPIRED}, changed_at = $2
WHERE id = $1 AND state IN ({OPEN}, {ACCEPTED}) AND expires_at <= $2
"""
_DONE = "UPDATE lobby.offer SET due_at = NULL WHERE id = $1 AND state NOT IN (0, 1, 2)"
_ACCEPT = f"""
UPDATE lobby.offer SET state = {ACCEPTED}, changed_at = $3, expires_at = $4, due_at = $4, seat = $5
WHERE id = $1 AND player = $2 AND state = {OPEN} AND expires_at > $3 RETURNING {_COLUMNS}
"""
_DECLINE = f"""
UPDATE lobby.offer SET state = {_DECLINED}, changed_at = $3, due_at = $3
WHERE id = $1 AND player = $2 AND state IN ({OPEN}, {ACCEPTED}) RETURNING {_COLUMNS}
"""
_ONE = f"SELECT {_COLUMNS} FROM lobby.offer WHERE id = $1 AND player = $2 AND state NOT IN ({ASKED}, {IN_VAIN})"
_LIVE = f"""
SELECT {_COLUMNS} FROM lobby.offer
WHERE player = ANY ($1) AND state IN ({OPEN}, {ACCEPTED}) OR id = ANY ($2) ORDER BY created_at, id
"""
_CLEAN = f"DELETE FROM lobby.offer WHERE changed_at < $1::bigint - {_KEEP_US} AND due_at IS NULL"


@dataclass(frozen=True, slots=True)
class Offer:
    """A row."""

    id: str
    wait: str
    player: str
    table: str
    seat: int
    state: int
    expires_at: int
    """Microseconds since 1970 UTC."""

    @property
    def live(self) -> bool:
        """Whether it waits for the player: to answer, or to sit down."""
        return self.state in {OPEN, ACCEPTED}

    def proto(self, now_us: int) -> waiting_pb2.Offer:
        """As players see it."""
        return waiting_pb2.Offer(
            name=f"offers/{self.id}",
            player=f"players/{self.player}",
            table=f"tables/{self.table}",
            seat=self.seat,
            state=waiting_pb2.OfferState.ValueType(self.state),
            expire_time_us=self.expires_at,
            remaining_ms=max(0, (self.expires_at - now_us) // 1000) if self.live else 0,
            wait=f"waits/{self.wait}",
        )


class Offers:
    """The offers of the room."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    # In time

    async def match(self) -> list[Offer]:
        """New offers for seats that are free and players who wait: the tables must be asked to hold the seats."""
        return _offers(await self._pool.fetch(_MATCH, self._clock.now_us(), secrets.token_hex(16)))

    async def claim(self) -> list[Offer]:
        """Offers with which something is to be done now, by the caller alone for the next LEASE_US."""
        return _offers(await self._pool.fetch(_CLAIM, self._clock.now_us()))

    async def given(self, offer: Offer, seat: int, seconds: float) -> bool:
        """The table holds a seat: the player has that long to answer. False: they have left the list."""
        now = self._clock.now_us()
        done = await self._pool.execute(_GIVEN, offer.id, seat, now, now + round(seconds * 1e6))
        return done == "UPDATE 1"

    async def in_vain(self, offer: Offer, *, drop_wait: bool, release: bool) -> None:
        """The table gave no seat. `drop_wait`: it never will give this player one; `release`: it may have."""
        now = self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_IN_VAIN, offer.id, now, now if release else None)
            if drop_wait:
                await connection.execute(_DROP_WAIT, offer.wait)

    async def expire(self, offer: Offer) -> bool:
        """The time is up, and the place on the list is gone; False: the offer was answered meanwhile."""
        async with self._pool.acquire() as connection, connection.transaction():
            done = await connection.execute(_EXPIRE, offer.id, self._clock.now_us())
            if done == "UPDATE 1":
                await connection.execute(_DROP_WAIT, offer.wait)
        return done == "UPDATE 1"

    async def done(self, offer: Offer) -> None:
        """The seat was given back: nothing is left to do."""
        await self._pool.execute(_DONE, offer.id)

    async def clean(self) -> None:
        """Forget offers that are long over."""
        await self._pool.execute(_CLEAN, self._clock.now_us())

    # For players

    async def find(self, player: str, offer: str) -> Offer:
        """A player's offer. Raises Refused OFFER_OVER where they have none by this id."""
        row = await self._pool.fetchrow(_ONE, offer, player)
        if row is None:
            raise Refused(reason_pb2.REASON_OFFER_OVER, "You have no such offer.", state="")
        return Offer(*row)

    async def accept(self, player: str, offer: Offer, seat: int, seconds: float) -> Offer:
        """Accept; the seat is the player's to take for that long. Again: the same. Raises Refused OFFER_OVER."""
        now = self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_ACCEPT, offer.id, player, now, now + round(seconds * 1e6), seat)
            if row is not None:
                await connection.execute(_DROP_WAIT, offer.wait)
                return Offer(*row)
        found = await self.find(player, offer.id)
        if found.state != ACCEPTED:
            raise over(found)
        return found

    async def decline(self, player: str, offer: Offer) -> Offer:
        """Refuse. Again: the same. Raises Refused OFFER_OVER where something else became of it."""
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_DECLINE, offer.id, player, self._clock.now_us())
            if row is not None:
                await connection.execute(_DROP_WAIT, offer.wait)
                return Offer(*row)
        found = await self.find(player, offer.id)
        if found.state != _DECLINED:
            raise over(found)
        return found

    async def live(self, players: Sequence[str], also: Sequence[str] = ()) -> list[Offer]:
        """Offers of players that are not over, and those with the ids `also`, whatever became of them."""
        return _offers(await self._pool.fetch(_LIVE, players, also))


def over(offer: Offer) -> Refused:
    """The refusal of an answer that comes too late."""
    state = waiting_pb2.OfferState.Name(waiting_pb2.OfferState.ValueType(offer.state)).removeprefix("OFFER_STATE_")
    return Refused(reason_pb2.REASON_OFFER_OVER, f"The offer is over: {state.lower()}.", state=state)


def _offers(rows: Sequence[asyncpg.Record]) -> list[Offer]:
    return [Offer(*row) for row in rows]
