"""Limits on tries to sign in, kept in the database so that replicas share them (lobby.throttle).

Each try is charged to leaking buckets before the password is looked at, and given back when it was right. So guessing
is slow however many guess at once, and signing in rightly costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from relance.api.common.v1 import reason_pb2
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused


@dataclass(frozen=True, slots=True)
class Limit:
    """So many wrong tries at once, and one more each `seconds`."""

    tries: int
    seconds: float


# One name from one peer; one peer, whatever names; one name, from everywhere (it must not lock its owner out easily).
NAME_AND_PEER = Limit(tries=5, seconds=30)
PEER = Limit(tries=50, seconds=5)
NAME = Limit(tries=100, seconds=10)

# Charges one try where the level, leaked until now, leaves room; answers the level that it found.
_CHARGE = """
INSERT INTO lobby.throttle AS t (key, level, at, empty_at) VALUES ($1, 1, $2::bigint, $2::bigint + $3::bigint)
ON CONFLICT (key) DO UPDATE SET
    level = lobby.leaked(t, $2, $3) + 1,
    at = $2,
    empty_at = $2 + ceil((lobby.leaked(t, $2, $3) + 1) * $3::bigint)
WHERE lobby.leaked(t, $2, $3) + 1 <= $4
RETURNING level
"""
_LEVEL = "SELECT lobby.leaked(t, $2, $3) FROM lobby.throttle t WHERE key = $1"
_GIVE_BACK = "UPDATE lobby.throttle SET level = greatest(0, level - 1) WHERE key = ANY($1)"
_CLEAN = "DELETE FROM lobby.throttle WHERE empty_at < $1"


class Throttle:
    """The buckets."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def charge(self, name: str, peer: str) -> list[str]:
        """Charge one try of `name` (folded) from `peer`; returns the keys to give back.

        Raises Refused TOO_MANY_REQUESTS with the seconds to wait.
        """
        charged: list[str] = []
        for key, limit in ((f"{name}@{peer}", NAME_AND_PEER), (f"@{peer}", PEER), (name, NAME)):
            wait = await self._charge(key, limit)
            if wait > 0:
                await self.give_back(charged)
                raise Refused(
                    reason_pb2.REASON_TOO_MANY_REQUESTS, f"Too many wrong passwords; try again in {wait} seconds.",
                    retry_after_seconds=wait,
                )  # fmt: skip
            charged.append(key)
        return charged

    async def give_back(self, keys: list[str]) -> None:
        """The try was right."""
        if keys:
            await self._pool.execute(_GIVE_BACK, keys)

    async def clean(self) -> None:
        """Forget buckets that are empty."""
        await self._pool.execute(_CLEAN, self._clock.now_us())

    async def _charge(self, key: str, limit: Limit) -> int:
        """0, or the seconds to wait."""
        now, leak = self._clock.now_us(), round(limit.seconds * 1e6)
        if await self._pool.fetchval(_CHARGE, key, now, leak, float(limit.tries)) is not None:
            return 0
        level = await self._pool.fetchval(_LEVEL, key, now, leak) or 0.0
        return max(1, round((level + 1 - limit.tries) * limit.seconds))
