"""Moving money: orders queue up while a commit is in flight and go out together as the next one.

Every order is asked until its answer is definite. After a lost connection the outcome of a batch is unknown; the
same batch is then sent again, and the database answers what it knows by key. Callers may go away at any time: the
committer is its own task and is never cancelled by one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import asyncpg
import structlog

MAX_BATCH = 256

_CALL = "SELECT * FROM wallet.transfer_batch($1, $2, $3, $4, $5, $6, $7)"

# Errors after which the same batch is sent again: the connection or the server is gone, or another transaction
# was in the way. Anything else is the fault of an order.
_TRY_AGAIN = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.UniqueViolationError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Order:
    """A movement of `amount` minor units that is asked for under `key`; `actor` asks, for the record."""

    key: str
    payer: str
    payee: str
    amount: int
    currency: str
    purpose: str
    actor: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an order.

    `recorded`: final and the same for ever. `refusal`: ErrorInfo reason, empty when the money moved. `fresh`: this
    call moved or refused it. Balances are those after it; unrecorded answers have no id, time or balances (0).
    """

    id: int
    at: int
    refusal: str
    settled: bool
    recorded: bool
    fresh: bool
    payer_balance: int
    payee_balance: int


Listener: TypeAlias = Callable[[Sequence[tuple[Order, Answer]]], None]


class LedgerFull(Exception):
    """Too many orders wait for the database."""


class Ledger:
    """The ledger's only writer in a process: one connection, one batch in flight.

    connect: makes a connection of the wallet's role. listener: told of each batch's newly settled orders after
    their commit; it must not block. max_waiting: orders that may wait before LedgerFull is raised.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[asyncpg.Record]]],
        *,
        listener: Listener | None = None,
        max_waiting: int = 8192,
        commit_timeout: float = 30.0,
    ) -> None:
        self._connect = connect
        self._listener = listener
        self._max_waiting = max_waiting
        self._commit_timeout = commit_timeout
        self._queue: deque[tuple[Sequence[Order], asyncio.Future[list[Answer]]]] = deque()
        self._waiting = 0
        self._wake = asyncio.Event()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def connected(self) -> bool:
        """Whether the last word from the database was not an error."""
        return self._connection is not None and not self._connection.is_closed()

    async def __aenter__(self) -> Ledger:
        self._task = asyncio.create_task(self._run(), name="ledger")
        return self

    async def __aexit__(self, *reason: object) -> None:
        """Commit what waits, then stop. While the database is away what waits is given up: it is asked again by key."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            if not self.connected:
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for _, future in self._queue:
            future.cancel()
        if self._connection is not None:
            self._connection.terminate()

    async def failed(self) -> None:
        """Wait for ever; raises what ended the committer, should a fault end it."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def transfer(self, order: Order) -> Answer:
        """Make one transfer. See `transfer_many`."""
        return (await self.transfer_many((order,)))[0]

    async def transfer_many(self, orders: Sequence[Order]) -> list[Answer]:
        """Make transfers, each by itself, in this order; at most 256, well-formed.

        Returns when every answer is durable, however long the database is away. Raises LedgerFull, ValueError for
        more than 256 orders, asyncpg.PostgresError when the database finds an order malformed (none was made then).
        """
        if len(orders) > MAX_BATCH:
            raise ValueError(f"{len(orders)} orders at once: at most {MAX_BATCH}")
        if not orders:
            return []
        if self._task is None or self._task.done():
            raise RuntimeError("the ledger does not run")
        if self._waiting + len(orders) > self._max_waiting:
            raise LedgerFull(f"{self._waiting} orders wait for the database: at most {self._max_waiting}")
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._queue.append((orders, future))
        self._waiting += len(orders)
        self._wake.set()
        return await future

    async def _run(self) -> None:
        while True:
            if not self._queue:
                if self._closing:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            batch = self._take()
            try:
                await self._settle(batch)
            except BaseException:
                for _, future in batch:
                    future.cancel()
                raise

    def _take(self) -> list[tuple[Sequence[Order], asyncio.Future[list[Answer]]]]:
        """The requests of the next batch: whole ones, as many as fit. Those whose caller has gone are not begun."""
        batch: list[tuple[Sequence[Order], asyncio.Future[list[Answer]]]] = []
        size = 0
        while self._queue and size + len(self._queue[0][0]) <= MAX_BATCH:
            orders, future = self._queue.popleft()
            self._waiting -= len(orders)
            if not future.cancelled():
                batch.append((orders, future))
                size += len(orders)
        return batch

    async def _settle(self, batch: list[tuple[Sequence[Order], asyncio.Future[list[Answer]]]]) -> None:
        orders = [order for part, _ in batch for order in part]
        if not orders:
            return
        try:
            answers = await self._commit(orders)
        except asyncpg.PostgresError as error:
            if len(batch) == 1:
                log.error("ledger.orders_refused_by_database", error=str(error), keys=[order.key for order in orders])
                if not batch[0][1].done():
                    batch[0][1].set_exception(error)
                return
            for one in batch:  # an order of somebody else must not fail with the malformed one
                await self._settle([one])
            return
        begin = 0
        for part, future in batch:
            if not future.done():
                future.set_result(answers[begin : begin + len(part)])
            begin += len(part)
        if self._listener is not None:
            settled = [(o, a) for o, a in zip(orders, answers, strict=True) if a.fresh and a.settled]
            if settled:
                self._listener(settled)

    async def _commit(self, orders: list[Order]) -> list[Answer]:
        """Ask until the answer is definite."""
        columns = (
            [o.key for o in orders],
            [o.payer for o in orders],
            [o.payee for o in orders],
            [o.amount for o in orders],
            [o.currency for o in orders],
            [o.purpose for o in orders],
            [o.actor for o in orders],
        )
        pause = 0.02
        while True:
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._open()
                rows = await self._connection.fetch(_CALL, *columns, timeout=self._commit_timeout)
            except _TRY_AGAIN as error:
                log.warning("ledger.outcome_unknown", error=repr(error), orders=len(orders), next_try_seconds=pause)
                self._drop_connection(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)
            else:
                return [_answer(row) for row in rows]

    async def _open(self) -> asyncpg.Connection[asyncpg.Record]:
        """A connection, however long it takes: whatever keeps us out may be put right meanwhile."""
        pause = 0.05
        while True:
            try:
                return await self._connect()
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                log.warning("ledger.database_away", error=repr(error), next_try_seconds=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)

    def _drop_connection(self, error: BaseException) -> None:
        in_the_way = (asyncpg.TransactionRollbackError, asyncpg.UniqueViolationError)
        if self._connection is not None and not isinstance(error, in_the_way):
            self._connection.terminate()
            self._connection = None


def _answer(row: asyncpg.Record) -> Answer:
    return Answer(
        id=row["id"] or 0,
        at=row["at"] or 0,
        refusal=row["refusal"] or "",
        settled=row["settled"],
        recorded=row["recorded"],
        fresh=row["fresh"],
        payer_balance=row["payer_balance"] or 0,
        payee_balance=row["payee_balance"] or 0,
    )
