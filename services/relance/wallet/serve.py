"""Putting the wallet together, serving, and taking it apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import structlog

from relance.api.wallet.v1 import wallet_pb2_grpc
from relance.eventlog import Follower
from relance.eventlog.remote import RemoteLog
from relance.runtime import database, metrics
from relance.runtime.auth import KeyRing, ServiceToken, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.nats import following, link
from relance.runtime.paging import PageTokens
from relance.runtime.server import MAX_ANSWER_BYTES, Server
from relance.wallet.announce import Announcer
from relance.wallet.credits import Credits
from relance.wallet.figures import SETTLED, keep_summing
from relance.wallet.handlers import LedgerService, WalletService
from relance.wallet.ledger import Answer, Ledger, Order
from relance.wallet.limits import PlayerLimits
from relance.wallet.settings import WalletSettings
from relance.wallet.statements import Statements
from relance.wallet.winnings import POSITIONS, TYPES, Winnings

log = structlog.get_logger(__name__)

_POOL_SIZE = 8


async def serve(settings: WalletSettings, stop: asyncio.Event) -> None:
    """Serve until `stop`, then drain."""
    async with started(settings, SystemClock()) as server:
        await stop.wait()
        await server.drain(settings.drain_timeout)


@asynccontextmanager
async def started(settings: WalletSettings, clock: Clock | None = None) -> AsyncIterator[Server]:
    """The wallet, serving. Nothing outside is needed to start: it is ready once its database answers."""
    clock = clock or SystemClock()
    keyring = KeyRing(settings.keyring)
    signer = TokenSigner.from_file(settings.signing_key, settings.signing_kid)
    url = settings.database_url.get_secret_value()
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.exposed(settings.metrics))
        pool = await stack.enter_async_context(database.pool(url, name="relance-wallet", max_size=_POOL_SIZE))
        nats = await stack.enter_async_context(
            link(settings.nats_url.get_secret_value(), name="relance-wallet", tls=settings.nats_tls)
        )
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
        limits = PlayerLimits(pool, clock, settings.limit_cooling_off)
        credits = Credits(pool, ledger, clock, settings.refill_delay) if settings.table_addresses else None
        server.add(
            wallet_pb2_grpc.add_WalletServiceServicer_to_server,
            WalletService(ledger, Statements(pool), tokens, credits, limits, settings.faucet_limit),
        )
        server.add(wallet_pb2_grpc.add_LedgerServiceServicer_to_server, LedgerService(ledger, credits, limits))
        async with asyncio.TaskGroup() as group:
            working = [
                group.create_task(announcer.run()),
                group.create_task(ledger.failed()),
                group.create_task(keep_summing(pool, clock)),
            ]
            if credits is not None:
                token = ServiceToken(signer, "wallet")
                source = RemoteLog(
                    settings.table_addresses, settings.open_channel, token.metadata, max_answer_bytes=MAX_ANSWER_BYTES
                )
                stack.push_async_callback(source.close)
                winnings = Winnings(source)
                follower = Follower(
                    pool, POSITIONS, winnings, nats.client, winnings.take_in, alarm=_alarm, types=TYPES, workers=2,
                    around=following,
                )  # fmt: skip
                metrics.watch_follower(follower)
                working += [group.create_task(follower.run()), group.create_task(credits.run())]
            await server.start()
            yield server
            for task in working:
                task.cancel()


def _alarm(table: str, error: Exception) -> None:
    log.error("table cannot be followed", table=table, error=repr(error))
