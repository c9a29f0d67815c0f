"""Putting the lobby together, serving, and taking it apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from relance.api.lobby.v1 import lobby_pb2_grpc
from relance.lobby.accounts import Accounts
from relance.lobby.background import confirm, follow, keep_clean
from relance.lobby.catalogue import Catalogue
from relance.lobby.handlers import PUBLIC, LobbyService, ProtectionService
from relance.lobby.passwords import Passwords
from relance.lobby.protections import Protections
from relance.lobby.settings import LobbySettings
from relance.lobby.tables import TableProcesses
from relance.lobby.throttle import Throttle
from relance.runtime import database, metrics
from relance.runtime.auth import KeyRing, KeyRingError, ServiceToken, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.nats import link
from relance.runtime.paging import PageTokens
from relance.runtime.server import Server

_POOL_SIZE = 10


async def serve(settings: LobbySettings, stop: asyncio.Event) -> None:
    """Serve until `stop`, then drain."""
    async with started(settings, SystemClock()) as server:
        await stop.wait()
        await server.drain(settings.drain_timeout)


@asynccontextmanager
async def started(settings: LobbySettings, clock: Clock) -> AsyncIterator[Server]:
    """The lobby, serving. Nothing outside is needed to start: it is ready once its database answers."""
    keyring = KeyRing(settings.keyring)
    signer = TokenSigner.from_file(settings.player_signing_key, settings.player_signing_kid)
    if settings.signing_key is None:
        raise KeyRingError("RELANCE_SIGNING_KEY: is missing; the lobby reads tables' events with a service's token")
    token = ServiceToken(TokenSigner.from_file(settings.signing_key, settings.signing_kid), "lobby")
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.exposed(settings.metrics))
        pool = await stack.enter_async_context(
            database.pool(settings.database_url.get_secret_value(), name="relance-lobby", max_size=_POOL_SIZE)
        )
        nats = await stack.enter_async_context(link(settings.nats_url.get_secret_value(), name="relance-lobby"))
        passwords = await stack.enter_async_context(Passwords())
        tables = TableProcesses(settings.table_addresses, token, clock)
        stack.push_async_callback(tables.close)
        throttle = Throttle(pool, clock)
        catalogue = Catalogue(pool, PageTokens(signer.secret("page tokens")), clock)
        server = await stack.enter_async_context(
            Server(settings, keyring=keyring, checks={"database": lambda: database.answers(pool)}, public=PUBLIC)
        )
        accounts = Accounts(pool, passwords, throttle, clock)
        server.add(
            lobby_pb2_grpc.add_LobbyServiceServicer_to_server,
            LobbyService(settings, accounts, catalogue, tables, signer, clock),
        )
        server.add(lobby_pb2_grpc.add_ProtectionServiceServicer_to_server, ProtectionService(Protections(pool, clock)))
        async with asyncio.TaskGroup() as group:
            confirming = group.create_task(confirm(pool))
            probing = group.create_task(tables.keep_probing())
            following = group.create_task(follow(pool, tables, nats.client))
            cleaning = group.create_task(keep_clean(pool, throttle, clock))
            await server.start()
            yield server
            for task in (confirming, probing, following, cleaning):
                task.cancel()
