"""Collecting: each ended hand becomes a row with the position that passes it; a worker settles what is outstanding.

The row's key at the wallet names the table and the hand, so however often it is asked the rake moves once. Several
processes may work at once: rows that one has taken are skipped by the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Protocol

import asyncpg
import grpc
import structlog
from prometheus_client import Counter, Gauge

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.rake.recount import Paid, Seen, new_schedule
from relance.runtime import database, logging
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock
from relance.runtime.database import Connection, Pool
from relance.runtime.errors import Refused

log = structlog.get_logger(__name__)

MISMATCHES = Counter("relance_rake_mismatches", "Hands whose rake in the log is not what the schedule says.")
REFUSED = Counter("relance_rake_refused", "Collections that the wallet refused for good.")
OUTSTANDING = Gauge("relance_rake_outstanding", "Hands whose rake is not collected yet.")

BATCH = 128
DEADLINE_SECONDS = 5.0
LONGEST_PAUSE_US = 30_000_000
POLL_SECONDS = 0.5

TYPES = ("hand_ended",)

_LOAD = "SELECT state FROM rake.game_table WHERE id = $1"
_SAVE = """
INSERT INTO rake.game_table (id, state) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = excluded.state
"""
_INSERT = """
INSERT INTO rake.hand (table_id, hand, ended_at, currency, house, game, betting, schedule, players, pot, rake, expected,
    mismatch, state, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
"""
_INSERT_SHARE = "INSERT INTO rake.share (table_id, hand, player, contributed, rake) VALUES ($1, $2, $3, $4, $5)"
_TAKE = """
SELECT table_id, hand, attempt, currency, rake, attempts FROM rake.hand WHERE state = 'open' AND due_at <= $1
ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED
"""
_SETTLE = """
UPDATE rake.hand SET state = $3, refusal = $4, settled_at = $5 WHERE table_id = $1 AND hand = $2
"""
_LATER = "UPDATE rake.hand SET attempts = attempts + 1, due_at = $3 WHERE table_id = $1 AND hand = $2"
_LOOK = "SELECT state, rake, attempt FROM rake.hand WHERE table_id = $1 AND hand = $2 FOR UPDATE"
_RELEASE = """
UPDATE rake.hand SET state = 'open', attempt = $3, released_by = $4, attempts = 0, due_at = $5, refusal = ''
WHERE table_id = $1 AND hand = $2
"""
_RECORD = "INSERT INTO rake.release (table_id, hand, attempt, operator, reason, at) VALUES ($1, $2, $3, $4, $5, $6)"
_COUNT = "SELECT count(*) FROM rake.hand WHERE state = 'open'"


def key(table: str, hand: int, attempt: int = 1) -> str:
    """The wallet's key of a hand's rake. No table's own transfers have a slash in their key.

    attempt: above 1 where an operator released the collection after the wallet had refused it for good.
    """
    return f"rake/{table}/{hand}" if attempt == 1 else f"rake/{table}/{hand}/{attempt}"


class Published(Protocol):
    """Knows what was published (relance.rake.schedules)."""

    async def fault(self, schedule: RakeSchedule) -> str:
        """How a schedule differs from what was published under its name; empty: it does not."""


class Collector:
    """Turns events into rows and rows into transfers."""

    def __init__(
        self,
        pool: Pool,
        wallet: wallet_pb2_grpc.LedgerServiceAsyncStub,
        token: ServiceToken,
        clock: Clock,
        schedules: Published,
    ) -> None:
        self._pool, self._wallet, self._token, self._clock = pool, wallet, token, clock
        self._schedules = schedules
        self._wake = asyncio.Event()

    async def take_in(self, connection: Connection, events: Sequence[TableEvent]) -> None:
        """The effect of a table's next events, in the transaction of `connection`. Raises recount.Gap."""
        table = events[0].table
        stored = await connection.fetchval(_LOAD, table)
        seen = Seen(table) if stored is None else Seen.load(json.loads(stored))
        paid = []
        for event in events:
            schedule = new_schedule(event)
            if schedule is not None:
                seen.unpublished = await self._schedules.fault(schedule)
            hand = seen.take(event)
            if hand is not None:
                paid.append(hand)
        await connection.execute(_SAVE, table, json.dumps(seen.dump()))
        now = self._clock.now_us()
        await connection.executemany(_INSERT, [(*astuple(hand)[:-1], _state(hand), now) for hand in paid])
        await connection.executemany(
            _INSERT_SHARE, [(table, hand.hand, *astuple(share)) for hand in paid for share in hand.shares]
        )
        for hand in paid:
            if hand.mismatch:
                MISMATCHES.inc()
                log.error("rake mismatch", table=table, hand=hand.hand, fault=hand.mismatch)
        if paid:
            self._wake.set()

    async def run(self) -> None:
        """Settle what is outstanding, for ever."""
        while True:
            self._wake.clear()
            try:
                with logging.request():
                    taken = await self.settle()
                OUTSTANDING.set(await self._pool.fetchval(_COUNT))
            except database.OUTAGE as error:
                log.info("nothing collected", error=type(error).__name__)
                taken = 0
            if taken < BATCH:
                try:
                    await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
                except TimeoutError:
                    continue

    async def settle(self) -> int:
        """Ask the wallet for what is due; how many hands that were.

        The rows stay locked meanwhile, so no other process asks for the same. Should this one die, they are open still.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(_TAKE, self._clock.now_us(), BATCH)
            if not rows:
                return 0
            request = wallet_pb2.BatchTransferRequest(orders=[_order(row) for row in rows])
            try:
                response = await self._wallet.BatchTransfer(
                    request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata()
                )
            except grpc.aio.AioRpcError as error:
                log.warning("wallet gave no answer", code=error.code().name, hands=len(rows))
                for row in rows:
                    await self._later(connection, row)
                return len(rows)
            for row, answer in zip(rows, response.answers, strict=True):
                await self._answered(connection, row, answer)
            return len(rows)

    async def release(self, table: str, hand: int, operator: str, reason: str) -> int:
        """Collect a hand's rake after all, which was stopped or refused; the rake. Asked again it changes nothing more.

        Raises Refused HAND_NOT_FOUND where there is no such hand whose collection waits for people.
        """
        now = self._clock.now_us()
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_LOOK, table, hand)
            if row is None or row["state"] not in {"stopped", "refused"}:
                state = "unknown" if row is None else row["state"]
                raise Refused(
                    reason_pb2.REASON_HAND_NOT_FOUND,
                    f"No collection waits for hand {hand} of table {table}: it is {state}.",
                    hand=hand, last=0 if row is None else hand,
                )  # fmt: skip
            attempt = row["attempt"] + (row["state"] == "refused")
            await connection.execute(_RECORD, table, hand, attempt, operator, reason, now)
            await connection.execute(_RELEASE, table, hand, attempt, operator, now)
        log.warning("collection released", table=table, hand=hand, rake=row["rake"], operator=operator, reason=reason)
        self._wake.set()
        rake: int = row["rake"]
        return rake

    async def _answered(self, connection: Connection, row: asyncpg.Record, answer: wallet_pb2.TransferAnswer) -> None:
        name = row["table_id"], row["hand"]
        if answer.settled:
            await connection.execute(_SETTLE, *name, "collected", "", self._clock.now_us())
            return
        log.error("rake refused", table=name[0], hand=name[1], refusal=answer.refusal, recorded=answer.recorded)
        if answer.recorded:
            REFUSED.inc()
            await connection.execute(_SETTLE, *name, "refused", answer.refusal, None)
        else:
            await self._later(connection, row)

    async def _later(self, connection: Connection, row: asyncpg.Record) -> None:
        pause = min(50_000 * 2 ** min(row["attempts"], 20), LONGEST_PAUSE_US)
        await connection.execute(_LATER, row["table_id"], row["hand"], self._clock.now_us() + pause)


def _state(hand: Paid) -> str:
    if hand.mismatch:
        return "stopped"
    return "open" if hand.rake else "none"


def _order(row: asyncpg.Record) -> wallet_pb2.TransferOrder:
    currency = "credit" if row["currency"] == game_pb2.CURRENCY_CREDIT else "eur"
    return wallet_pb2.TransferOrder(
        key=key(row["table_id"], row["hand"], row["attempt"]),
        to=f"house/{currency}",
        amount=row["rake"],
        currency=row["currency"],
        purpose="RAKE",
        **{"from": f"tables/{row['table_id']}"},
    )
