"""Putting the rake service together, serving, and taking it apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from relance.api.rake.v1 import rake_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2_grpc
from relance.eventlog import Follower
from relance.eventlog.remote import RemoteLog
from relance.rake.collect import TYPES, Collector
from relance.rake.handlers import RakeService
from relance.rake.schedules import Schedules
from relance.rake.settings import RakeSettings
from relance.runtime import database, metrics
from relance.runtime.auth import KeyRing, ServiceToken, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.nats import following, link
from relance.runtime.server import MAX_ANSWER_BYTES, Server

log = structlog.get_logger(__name__)

_POOL_SIZE = 8
_CHANNEL = [("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 2_000)]


async def serve(settings: RakeSettings, stop: asyncio.Event) -> None:
    """Serve until `stop`, then drain."""
    async with started(settings, SystemClock()) as server:
        await stop.wait()
        await server.drain(settings.drain_timeout)


@asynccontextmanager
async def started(settings: RakeSettings, clock: Clock) -> AsyncIterator[Server]:
    """The rake service, serving and collecting once its database answers."""
    keyring = KeyRing(settings.keyring)
    token = ServiceToken(TokenSigner.from_file(settings.signing_key, settings.signing_kid), "rake")
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.exposed(settings.metrics))
        pool = await stack.enter_async_context(
            database.pool(settings.database_url.get_secret_value(), name="relance-rake", max_size=_POOL_SIZE)
        )
        nats = await stack.enter_async_context(
            link(settings.nats_url.get_secret_value(), name="relance-rake", tls=settings.nats_tls)
        )
        source = RemoteLog(
            settings.table_addresses, settings.open_channel, token.metadata, max_answer_bytes=MAX_ANSWER_BYTES
        )
        stack.push_async_callback(source.close)
        channel = await stack.enter_async_context(settings.open_channel(settings.wallet_address, _CHANNEL))
        server = await stack.enter_async_context(
            Server(settings, keyring=keyring, checks={"database": lambda: database.answers(pool)})
        )
        schedules = Schedules(pool, clock)
        collector = Collector(pool, wallet_pb2_grpc.LedgerServiceStub(channel), token, clock, schedules)
        follower = Follower(
            pool,
            "rake.followed",
            source,
            nats.client,
            collector.take_in,
            alarm=_alarm,
            types=TYPES,
            workers=2,
            around=following,
        )
        metrics.watch_follower(follower)
        server.add(rake_pb2_grpc.add_RakeServiceServicer_to_server, RakeService(pool, schedules, collector))
        async with asyncio.TaskGroup() as group:
            await server.start()
            working = [group.create_task(follower.run()), group.create_task(collector.run())]
            yield server
            for task in working:
                task.cancel()


def _alarm(table: str, error: Exception) -> None:
    log.error("table cannot be followed", table=table, error=repr(error))
