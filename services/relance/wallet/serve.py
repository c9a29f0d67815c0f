"""Putting the wallet together, serving, and taking it apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
from prometheus_client import Counter

from relance.api.wallet.v1 import wallet_pb2_grpc
from relance.runtime import database, metrics
from relance.runtime.auth import KeyRing, TokenSigner
from relance.runtime.nats import link
from relance.runtime.paging import PageTokens
from relance.runtime.server import Server
from relance.wallet.announce import Announcer
from relance.wallet.handlers import LedgerService, WalletService
from relance.wallet.ledger import Answer, Ledger, Order
from relance.wallet.settings import WalletSettings
from relance.wallet.statements import Statements

_POOL_SIZE = 6

SETTLED = Counter("relance_wallet_settled", "Transfers that moved money.", ["purpose"])


async def serve(settings: WalletSettings, stop: asyncio.Event) -> None:
    """Serve until `stop`, then drain."""
    async with started(settings) as server:
        await stop.wait()
        await server.drain(settings.drain_timeout)


@asynccontextmanager
async def started(settings: WalletSettings) -> AsyncIterator[Server]:
    """The wallet, serving. Nothing outside is needed to start: it is ready once its database answers."""
    keyring = KeyRing(settings.keyring)
    signer = TokenSigner.from_file(settings.signing_key, settings.signing_kid)
    url = settings.database_url.get_secret_value()
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.exposed(settings.metrics))
        pool = await stack.enter_async_context(database.pool(url, name="relance-wallet", max_size=_POOL_SIZE))
        nats = await stack.enter_async_context(link(settings.nats_url.get_secret_value(), name="relance-wallet"))
        announcer = Announcer(nats.client)

        async def connect() -> asyncpg.Connection[asyncpg.Record]:
            connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(
                url,
                timeout=5.0,
                server_settings={"application_name": "relance-wallet-ledger", "timezone": "UTC", "jit": "off"},
            )
            await database.check_server(connection)
            return connection

        def listener(batch: Sequence[tuple[Order, Answer]]) -> None:
            for order, _ in batch:
                SETTLED.labels(order.purpose).inc()
            announcer.settled(batch)

        ledger = await stack.enter_async_context(Ledger(connect, listener=listener))
        server = await stack.enter_async_context(
            Server(settings, keyring=keyring, checks={"database": lambda: database.answers(pool)})
        )
        tokens = PageTokens(signer.secret("wallet page tokens"))
        server.add(
            wallet_pb2_grpc.add_WalletServiceServicer_to_server,
            WalletService(ledger, Statements(pool), tokens, settings.faucet_limit),
        )
        server.add(wallet_pb2_grpc.add_LedgerServiceServicer_to_server, LedgerService(ledger))
        async with asyncio.TaskGroup() as group:
            announcing = group.create_task(announcer.run())
            failing = group.create_task(ledger.failed())
            await server.start()
            yield server
            announcing.cancel()
            failing.cancel()
