"""Credits of the club: passes, and refills that are granted later (V1-V3).

A grant is a row first. The row says what is due and when; a worker takes due rows that no other replica has taken and
makes the transfer under the row's own key. Whatever dies in between, the row is still there and the key still the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.runtime import database
from relance.runtime.clock import Clock
from relance.runtime.database import Connection, Pool
from relance.runtime.errors import Refused
from relance.wallet import accounts
from relance.wallet.ledger import Answer, Ledger, LedgerFull, Order

log = structlog.get_logger(__name__)

PASS = 1000
REFILL, REFILL_FREE_PLAN = 300, 150
UNDER = 50
"""A refill is due when all that a player has is less than this."""
REFILLS_A_DAY = 2

DAY_US = 86_400_000_000
BATCH = 64
POLL_SECONDS = 1.0

_MEMBER = """
INSERT INTO wallet.member (player) VALUES ($1) ON CONFLICT (player) DO UPDATE SET player = excluded.player
RETURNING pass_until
"""
_EXTEND = "UPDATE wallet.member SET pass_until = $2 WHERE player = $1"
_STANDING = """
WITH ends AS (
    SELECT own.id AS own, source.id AS source
    FROM wallet.account AS own, wallet.account AS source WHERE own.name = $2 AND source.name = 'issuance/credit'
)
SELECT
    coalesce((SELECT pass_until FROM wallet.member WHERE player = $1), 0) AS pass_until,
    coalesce((SELECT balance FROM wallet.account WHERE name = $2), 0) AS balance,
    coalesce((SELECT excluded_until FROM wallet.account WHERE name = $2), 0) AS excluded_until,
    coalesce((SELECT credit FROM wallet.winnings WHERE player = $1), 0) AS won,
    (SELECT coalesce(sum(amount), 0) FROM wallet.transfer, ends
        WHERE payee = own AND payer = source AND refusal IS NULL)
    - (SELECT coalesce(sum(amount), 0) FROM wallet.transfer, ends
        WHERE payer = own AND payee = source AND refusal IS NULL)
        AS given
"""
_TODAY = """
SELECT * FROM wallet.credit_grant
WHERE player = $1 AND purpose = 'REFILL' AND (asked_at >= $2 OR state = 'pending') ORDER BY asked_at
"""
_KNOWN = "SELECT * FROM wallet.credit_grant WHERE key = $1"
_ASK = """
INSERT INTO wallet.credit_grant (key, player, purpose, amount, actor, asked_at, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *
"""
_SOLD = "SELECT player, days FROM wallet.pass WHERE key = $1"
_SELL = "INSERT INTO wallet.pass (key, player, days, until) VALUES ($1, $2, $3, $4)"
_TAKE = """
SELECT * FROM wallet.credit_grant WHERE state = 'pending' AND due_at <= $1
ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
"""
_SETTLE = """
UPDATE wallet.credit_grant SET state = $2, settled_at = $3, refusal = $4 WHERE key = $1 AND state = 'pending'
"""

_STATES = {
    "pending": wallet_pb2.REFILL_STATE_PENDING,
    "granted": wallet_pb2.REFILL_STATE_GRANTED,
    "refused": wallet_pb2.REFILL_STATE_REFUSED,
}
_CONDITIONS = {
    "BALANCE": f"A refill is for who has less than {UNDER} in all, on the account and at tables.",
    "PENDING": "A refill was asked for and is not granted yet.",
    "DAY": f"There are at most {REFILLS_A_DAY} refills a UTC day.",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a player stands. `total`: account, chips at tables and in pots, and transfers under way."""

    total: int
    balance: int
    pass_until: int
    excluded_until: int
    refills: list[asyncpg.Record]
    """Refills that were asked for on this UTC day, and one of yesterday that is still pending."""
    today: int

    @property
    def not_due(self) -> str:
        """The condition of V3 that a refill would not meet now; empty: none."""
        if any(refill["state"] == "pending" for refill in self.refills):
            return "PENDING"
        if sum(refill["asked_at"] >= self.today for refill in self.refills) >= REFILLS_A_DAY:
            return "DAY"
        return "BALANCE" if self.total >= UNDER else ""


class Credits:
    """Sells passes, takes requests for refills, and grants both.

    `delay_seconds`: from the request of a refill to its grant, 0 to 7200.
    """

    def __init__(self, pool: Pool, ledger: Ledger, clock: Clock, delay_seconds: float) -> None:
        self._pool, self._ledger, self._clock = pool, ledger, clock
        self._delay_us = round(delay_seconds * 1_000_000)
        self._wake = asyncio.Event()

    async def standing(self, player: str) -> Standing:
        """How a player stands now."""
        async with self._pool.acquire() as connection, connection.transaction(isolation="repeatable_read"):
            return await self._standing(connection, player, self._clock.now_us())

    async def request_refill(self, player: str, request_id: str) -> wallet_pb2.Refill:
        """Ask for a refill; a repeat has the same answer. Raises Refused REFILL_NOT_DUE, SELF_EXCLUDED.

        What it gives is decided now, by the plan that the player has now.
        """
        key, now = f"refill/{player}/{request_id}", self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            pass_until = await connection.fetchval(_MEMBER, player)  # locks the player's row
            row = await connection.fetchrow(_KNOWN, key)
            if row is None:
                standing = await self._standing(connection, player, now)
                if standing.excluded_until > now:
                    raise excluded(standing.excluded_until)
                if standing.not_due:
                    raise Refused(
                        reason_pb2.REASON_REFILL_NOT_DUE,
                        _CONDITIONS[standing.not_due],
                        condition=standing.not_due,
                        total=standing.total,
                    )
                amount = REFILL if pass_until > now else REFILL_FREE_PLAN
                row = await connection.fetchrow(_ASK, key, player, "REFILL", amount, player, now, now + self._delay_us)
        assert row is not None
        self._wake.set()
        return refill_message(row)

    async def buy_pass(self, player: str, days: int, operator: str, request_id: str) -> tuple[Order, Answer]:
        """Record a bought pass and add its credits (V2); a repeat has the same answer.

        Raises Refused KEY_REUSED; the ledger's answer says whether the credits were added.
        """
        key, now = f"pass/{operator}/{request_id}", self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            pass_until = await connection.fetchval(_MEMBER, player)
            sold = await connection.fetchrow(_SOLD, key)
            if sold is None:
                until = max(pass_until, now) + days * DAY_US
                await connection.fetchrow(_ASK, key, player, "PASS", PASS, operator, now, now)
                await connection.execute(_SELL, key, player, days, until)
                await connection.execute(_EXTEND, player, until)
            elif (sold["player"], sold["days"]) != (player, days):
                raise Refused(
                    reason_pb2.REASON_KEY_REUSED, "The request_id was used before, for another pass.", key=request_id
                )
            row = await connection.fetchrow(_KNOWN, key)
        assert row is not None
        order = _order(row)
        answer = await self._ledger.transfer(order)
        await self._settled(self._pool, [row], [answer])
        return order, answer

    async def run(self) -> None:
        """Grant what is due, for ever."""
        while True:
            self._wake.clear()
            granted = 0
            try:
                granted = await self.grant()
            except (*database.OUTAGE, LedgerFull) as error:
                log.info("nothing granted", error=type(error).__name__)
            if granted < BATCH:
                try:
                    await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
                except TimeoutError:
                    continue

    async def grant(self) -> int:
        """Make the transfers that are due; how many that were. Rows stay locked meanwhile: others pass them over."""
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(_TAKE, self._clock.now_us(), BATCH)
            if rows:
                answers = await self._ledger.transfer_many([_order(row) for row in rows])
                await self._settled(connection, rows, answers)
            return len(rows)

    async def _settled(
        self, connection: Connection | Pool, rows: Sequence[asyncpg.Record], answers: Sequence[Answer]
    ) -> None:
        now = self._clock.now_us()
        for row, answer in zip(rows, answers, strict=True):
            if not answer.settled:
                log.warning("grant refused", player=row["player"], purpose=row["purpose"], refusal=answer.refusal)
            await connection.execute(
                _SETTLE, row["key"], "granted" if answer.settled else "refused", now, answer.refusal
            )

    async def _standing(self, connection: Connection, player: str, now: int) -> Standing:
        today = now - now % DAY_US
        row = await connection.fetchrow(_STANDING, player, accounts.player(player, "credit"))
        assert row is not None
        return Standing(
            total=int(row["given"]) + row["won"],
            balance=row["balance"],
            pass_until=row["pass_until"],
            excluded_until=row["excluded_until"],
            refills=await connection.fetch(_TODAY, player, today),
            today=today,
        )


def excluded(until: int) -> Refused:
    """The refusal of a player who is excluded until a time, microseconds since 1970 UTC."""
    return Refused(reason_pb2.REASON_SELF_EXCLUDED, "The player is excluded, by their own wish.", until=until)


def refill_message(row: asyncpg.Record) -> wallet_pb2.Refill:
    """A row of wallet.credit_grant as a message."""
    return wallet_pb2.Refill(
        amount=row["amount"], asked_us=row["asked_at"], due_us=row["due_at"], state=_STATES[row["state"]]
    )


def _order(row: asyncpg.Record) -> Order:
    payee = accounts.player(row["player"], "credit")
    return Order(row["key"], "issuance/credit", payee, row["amount"], "credit", row["purpose"], row["actor"])
