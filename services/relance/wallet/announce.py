"""Telling NATS of settled transfers, after their commit: news for whoever likes to know, nothing depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import nats.errors
import structlog
from nats.aio.client import Client

from relance.api.wallet.v1 import wallet_pb2
from relance.wallet.ledger import Answer, Order
from relance.wallet.messages import transfer_message

SUBJECT = "relance.wallet.transfers"
MOST_WAITING = 4096

log = structlog.get_logger(__name__)


class Announcer:
    """Publishes each settled transfer as one wallet.v1.Transfer. Never holds a commit up: news may be dropped."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: asyncio.Queue[wallet_pb2.Transfer] = asyncio.Queue(MOST_WAITING)

    def settled(self, batch: Sequence[tuple[Order, Answer]]) -> None:
        """Announce these soon."""
        for order, answer in batch:
            if self._waiting.full():
                log.info("news dropped", transfers=len(batch))
                return
            self._waiting.put_nowait(transfer_message(order, answer.id, answer.at))

    async def run(self) -> None:
        """Publish, for ever. What comes while NATS is away is dropped."""
        while True:
            transfer = await self._waiting.get()
            if not self._client.is_connected:
                continue
            try:
                await self._client.publish(SUBJECT, transfer.SerializeToString())
            except (nats.errors.Error, OSError) as error:
                log.info("news dropped", error=type(error).__name__)
