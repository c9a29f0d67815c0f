"""Limits that hold a player back. They are set here; the ledger's own function refuses what is above them."""

from __future__ import annotations

from relance.api.wallet.v1 import wallet_pb2
from relance.api.wallet.v1.wallet_pb2 import LimitPeriod
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.wallet import accounts

FOR_GOOD = 2**63 - 1

DAYS: dict[int, int] = {
    wallet_pb2.LIMIT_PERIOD_DAY: 1,
    wallet_pb2.LIMIT_PERIOD_WEEK: 7,
    wallet_pb2.LIMIT_PERIOD_MONTH: 30,
}
_PERIODS: dict[int, LimitPeriod.ValueType] = {
    1: wallet_pb2.LIMIT_PERIOD_DAY,
    7: wallet_pb2.LIMIT_PERIOD_WEEK,
    30: wallet_pb2.LIMIT_PERIOD_MONTH,
}

# In force: the last one set of those whose time has come. Waiting: one that was set after it.
_SET = """
SELECT DISTINCT ON (days) days, id, amount FROM wallet.deposit_limit WHERE player = $1 AND holds_from <= $2
ORDER BY days, id DESC
"""
_WAITING = """
SELECT DISTINCT ON (days) days, id, amount, holds_from FROM wallet.deposit_limit
WHERE player = $1 AND holds_from > $2 ORDER BY days, id DESC
"""
_DEPOSITED = "SELECT days, deposited FROM wallet.deposit_limits($1, $2)"
_INSERT = """
INSERT INTO wallet.deposit_limit (player, days, amount, set_at, holds_from) VALUES ($1, $2, $3, $4, $5)
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_ROOM = "SELECT wallet.deposit_room($1, $2)"
_EXCLUDED = "SELECT coalesce(max(excluded_until), 0)::bigint FROM wallet.account WHERE name = ANY ($1::text[])"
_EXCLUDE = "SELECT wallet.exclude($1, $2, $3, $4)"


class PlayerLimits:
    """Deposit limits and self-exclusion. `cooling_off_seconds`: how long a higher deposit limit waits."""

    def __init__(self, pool: Pool, clock: Clock, cooling_off_seconds: float) -> None:
        self._pool, self._clock = pool, clock
        self._cooling_us = round(cooling_off_seconds * 1_000_000)

    async def get(self, player: str) -> wallet_pb2.Limits:
        """All limits of a player."""
        now, account = self._clock.now_us(), accounts.player(player, "eur")
        async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
            in_force = {row["days"]: row for row in await connection.fetch(_SET, player, now)}
            waiting = {row["days"]: row for row in await connection.fetch(_WAITING, player, now)}
            deposited = {row["days"]: row["deposited"] for row in await connection.fetch(_DEPOSITED, account, now)}
        limits = wallet_pb2.Limits()
        for days in sorted(in_force.keys() | waiting.keys()):
            limit = limits.deposits.add(period=_PERIODS[days])
            holds, waits = in_force.get(days), waiting.get(days)
            if holds is not None and holds["amount"] is not None:
                limit.amount = holds["amount"]
                limit.remaining = max(0, limit.amount - deposited.get(days, 0))
            if waits is not None and (holds is None or waits["id"] > holds["id"]):
                limit.pending_amount = waits["amount"] or 0
                limit.pending_from_us = waits["holds_from"]
        until = await self.excluded_until(player)
        limits.excluded_for_good = until == FOR_GOOD
        limits.excluded_until_us = until if now < until < FOR_GOOD else 0
        return limits

    async def set_deposit_limit(self, player: str, days: int, amount: int) -> wallet_pb2.Limits:
        """A limit in euro cents; 0: none. A lower one holds at once, a higher one after the cooling-off."""
        now = self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, f"deposit limits of {player}")
            rows = {row["days"]: row["amount"] for row in await connection.fetch(_SET, player, now)}
            old = rows.get(days)
            lower = amount > 0 and (old is None or amount <= old)
            holds_from = now if lower or old is None else now + self._cooling_us
            await connection.execute(_INSERT, player, days, amount or None, now, holds_from)
        return await self.get(player)

    async def exclude(self, player: str, until: int, actor: str) -> wallet_pb2.Limits:
        """Exclude a player until a time; what was asked for before and lasts longer stays."""
        await self._pool.fetchval(_EXCLUDE, player, until, self._clock.now_us(), actor)
        return await self.get(player)

    async def excluded_until(self, player: str) -> int:
        """Microseconds since 1970 UTC; 0: never excluded; FOR_GOOD."""
        names = [accounts.player(player, currency) for currency in accounts.CURRENCIES]
        until: int = await self._pool.fetchval(_EXCLUDED, names)
        return until

    async def room(self, player: str) -> int:
        """What may still be deposited now, euro cents."""
        room: int = await self._pool.fetchval(_ROOM, accounts.player(player, "eur"), self._clock.now_us())
        return max(0, room)
