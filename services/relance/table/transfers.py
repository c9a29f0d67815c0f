"""Asking the wallet: every transfer that a table requested is asked for until the answer is definite.

One worker a process sends batches of what is open; actors never wait. The transfer's id is its key, so asking again
moves nothing twice. Only a settled transfer and a recorded refusal are answers; a timeout never is.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable

import grpc
import structlog

from relance.api.common.v1.game_pb2 import CURRENCY_CREDIT, Currency
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TransferPurpose
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.poker import Transfer
from relance.poker.commands import TransferAnswered
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock
from relance.table.metrics import TableMetrics

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
        self._open: dict[str, tuple[str, wallet_pb2.TransferOrder]] = {}
        self._parked: set[str] = set()
        self._wake = asyncio.Event()

    def ask(self, table: str, currency: Currency.ValueType, asked: Iterable[Transfer]) -> None:
        """Ask for these from now on."""
        for each in asked:
            if each.id not in self._open:
                self._open[each.id] = (table, order(table, currency, each))
        self._metrics.transfers.set(len(self._open))
        self._wake.set()

    def cash_out(self, account: str) -> str:
        """Id of a transfer from a table of this process that is on its way to a player's account; empty: there is none.

        One that is parked is not on its way.
        """
        for key, (_, asked) in self._open.items():
            if asked.to == account and key not in self._parked:
                return key
        return ""

    def forget(self, table: str) -> None:
        """The table is another process's now, which asks for what is open there."""
        for key in [key for key, (owner, _) in self._open.items() if owner == table]:
            del self._open[key]
            self._parked.discard(key)
        self._metrics.transfers.set(len(self._open))

    async def run(self) -> None:
        """Ask, for ever."""
        pause = FIRST_PAUSE
        while True:
            batch = [(key, *each) for key, each in self._open.items() if key not in self._parked][:BATCH]
            if not batch:
                self._wake.clear()
                await self._wake.wait()
                continue
            if await self._ask(batch):
                pause = FIRST_PAUSE
            else:
                await self._clock.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _ask(self, batch: list[tuple[str, str, wallet_pb2.TransferOrder]]) -> bool:
        """One batch; False: the wallet gave no answer."""
        request = wallet_pb2.BatchTransferRequest(orders=[each for _, _, each in batch])
        try:
            response = await self._stub.BatchTransfer(
                request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata()
            )
        except grpc.aio.AioRpcError as error:
            log.warning("wallet gave no answer", code=error.code().name, open=len(self._open))
            return False
        for (key, table, asked), answer in zip(batch, response.answers, strict=False):
            if answer.key == key and key in self._open:
                self._answered(table, asked, answer)
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


def _nobody(_table: str, _answer: TransferAnswered) -> None:
    raise RuntimeError("transfers are asked for before somebody waits for the answers")
