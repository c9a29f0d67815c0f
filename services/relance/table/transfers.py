"""Asking the wallet: every transfer that a table requested is asked for until the answer is definite.

One worker a process sends batches of what is open; actors never wait. The transfer's id is its key, so asking again
moves nothing twice. Only a settled transfer and a recorded refusal are answers; a timeout never is.

A call for transfers of one request is a part of that request, in the log and in its trace; one for transfers of several
is a request of its own, whose span is linked to theirs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import NamedTuple

import grpc
import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.common.v1.game_pb2 import CURRENCY_CREDIT, Currency
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TransferPurpose
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.poker import Transfer
from relance.poker.commands import TransferAnswered
from relance.runtime import logging
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock
from relance.runtime.errors import Refused
from relance.table.metrics import TableMetrics
from relance.transport import tracing

log = structlog.get_logger(__name__)

BATCH = 256
DEADLINE_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0

_TO_ESCROW = frozenset({events_pb2.TRANSFER_PURPOSE_BUY_IN, events_pb2.TRANSFER_PURPOSE_TOP_UP})


def account(player: str, currency: Currency.ValueType) -> str:
    """The wallet's name of a player's account."""
    return f"players/{player}/{'credit' if currency == CURRENCY_CREDIT else 'eur'}"


def order(table: str, currency: Currency.ValueType, asked: Transfer) -> wallet_pb2.TransferOrder:
    """The wallet's order for a transfer that a table asks for."""
    player = account(asked.player, currency)
    escrow = f"tables/{table}"
    source, target = (player, escrow) if asked.purpose in _TO_ESCROW else (escrow, player)
    return wallet_pb2.TransferOrder(
        key=asked.id,
        to=target,
        amount=asked.amount,
        currency=currency,
        purpose=TransferPurpose.Name(asked.purpose).removeprefix("TRANSFER_PURPOSE_"),
        **{"from": source},
    )


def on_its_way(transfer: str) -> Refused:
    """The refusal of a buy-in or top-up while a cash-out of the player's is under way."""
    text = "Your money is on its way from a table; ask again when it is there."
    return Refused(reason_pb2.REASON_CASH_OUT_PENDING, text, pending=transfer)


class Asked(NamedTuple):
    """A transfer that is asked for, the context that it was first asked for in, and since when (monotonic seconds)."""

    table: str
    order: wallet_pb2.TransferOrder
    context: Context
    since: float

    @property
    def request(self) -> str:
        """Id of the request that it comes from."""
        found: str = self.context.get(logging.request_id, "")
        return found


class Transfers:
    """The transfers that are open at this process's tables, and the worker that asks for them."""

    def __init__(
        self,
        stub: wallet_pb2_grpc.LedgerServiceAsyncStub,
        token: ServiceToken,
        clock: Clock,
        metrics: TableMetrics,
    ) -> None:
        self._stub = stub
        self._token = token
        self._clock = clock
        self._metrics = metrics
        self.tell: Callable[[str, TransferAnswered], None] = _nobody
        """Gets the definite answers: table and command. Set before `run`."""
        self._open: dict[str, Asked] = {}
        self._parked: set[str] = set()
        self._wake = asyncio.Event()

    def ask(self, table: str, currency: Currency.ValueType, asked: Iterable[Transfer]) -> None:
        """Ask for these from now on."""
        for each in asked:
            if each.id not in self._open:
                self._open[each.id] = Asked(
                    table, order(table, currency, each), copy_context(), self._clock.monotonic()
                )
        self._metrics.transfers.set(len(self._open))
        self._wake.set()

    def oldest(self) -> float:
        """Seconds for which the oldest of the open transfers has been asked for here; 0: none is open."""
        return max((self._clock.monotonic() - asked.since for asked in list(self._open.values())), default=0.0)

    def cash_out(self, account: str) -> str:
        """Id of a transfer from a table of this process that is on its way to a player's account; empty: there is none.

        One that is parked is not on its way.
        """
        for key, asked in self._open.items():
            if asked.order.to == account and key not in self._parked:
                return key
        return ""

    def forget(self, table: str) -> None:
        """The table is another process's now, which asks for what is open there."""
        for key in [key for key, asked in self._open.items() if asked.table == table]:
            del self._open[key]
            self._parked.discard(key)
        self._metrics.transfers.set(len(self._open))

    async def run(self) -> None:
        """Ask, for ever."""
        pause = FIRST_PAUSE
        while True:
            batch = [each for key, each in self._open.items() if key not in self._parked][:BATCH]
            if not batch:
                self._wake.clear()
                await self._wake.wait()
                continue
            if await asyncio.create_task(self._ask(batch), context=batch[0].context.copy()):
                pause = FIRST_PAUSE
            else:
                await self._clock.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _ask(self, batch: list[Asked]) -> bool:
        """One batch, in the context of its first; False: the wallet gave no answer."""
        request = wallet_pb2.BatchTransferRequest(orders=[asked.order for asked in batch])
        with _together(batch):
            try:
                response = await self._stub.BatchTransfer(
                    request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata()
                )
            except grpc.aio.AioRpcError as error:
                log.warning("wallet gave no answer", code=error.code().name, open=len(self._open))
                return False
        for asked, answer in zip(batch, response.answers, strict=False):
            if answer.key == asked.order.key and answer.key in self._open:
                asked.context.copy().run(self._answered, asked.table, asked.order, answer)
        self._metrics.transfers.set(len(self._open))
        return True

    def _answered(self, table: str, asked: wallet_pb2.TransferOrder, answer: wallet_pb2.TransferAnswer) -> None:
        if not answer.settled and (not answer.recorded or not asked.to.startswith("tables/")):
            # A cash-out is never refused for a business reason, and an order that the wallet will not record is a
            # fault: the chips stay in escrow, accounted for, until people have looked.
            log.error("transfer parked", table=table, transfer=asked.key, why=asked.purpose, refusal=answer.refusal)
            self._parked.add(asked.key)
            self._metrics.parked.inc()
        if answer.settled or answer.recorded:
            del self._open[asked.key]
            self.tell(table, TransferAnswered(asked.key, answer.settled, answer.refusal))


@contextmanager
def _together(batch: list[Asked]) -> Iterator[None]:
    """What the call for a batch is a part of."""
    if len({asked.request for asked in batch}) == 1:
        yield
        return
    with logging.request():
        log.debug("transfers of several requests", requests=sorted({asked.request for asked in batch}))
        if not tracing.on():
            yield
            return
        origins = [found for asked in batch if (found := asked.context.run(tracing.present)) is not None]
        with tracing.span("relance.table/transfers", links=origins, apart=True, request=logging.request_id.get()):
            yield


def _nobody(_table: str, _answer: TransferAnswered) -> None:
    raise RuntimeError("transfers are asked for before somebody waits for the answers")
