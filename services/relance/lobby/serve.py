"""Putting the lobby together, serving, and taking it apart again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from argon2 import PasswordHasher

from relance.api.lobby.v1 import (
    houses_pb2_grpc,
    lobby_pb2_grpc,
    private_pb2_grpc,
    templates_pb2_grpc,
    waiting_pb2_grpc,
)
from relance.lobby.accounts import Accounts
from relance.lobby.background import confirm, follow, keep_clean
from relance.lobby.board import TableBoard
from relance.lobby.catalogue import Catalogue
from relance.lobby.commands import TableCommands
from relance.lobby.handlers import PUBLIC, LobbyService, ProtectionService
from relance.lobby.maintenance import Maintenance
from relance.lobby.offer_board import OfferBoard
from relance.lobby.offers import Offers
from relance.lobby.openings import Openings
from relance.lobby.operator_services import HouseService, TemplateService
from relance.lobby.passwords import Passwords
from relance.lobby.player_services import PrivateTableService, WaitingService
from relance.lobby.private import PrivateTables
from relance.lobby.protections import Protections
from relance.lobby.seating import Seating
from relance.lobby.settings import LobbySettings
from relance.lobby.tables import TableProcesses
from relance.lobby.templates import Templates
from relance.lobby.throttle import Throttle
from relance.lobby.waits import Waits
from relance.lobby.watching import Streams
from relance.runtime import database, metrics
from relance.runtime.auth import KeyRing, KeyRingError, ServiceToken, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.nats import link
from relance.runtime.paging import PageTokens
from relance.runtime.server import Server

_POOL_SIZE = 10
_DEADLINE = 30.0
"""Longest time of a call, seconds: in a crowd those who sign in wait their turn."""


async def serve(settings: LobbySettings, stop: asyncio.Event) -> None:
    """Serve until `stop`, then drain."""
    streams = Streams()
    async with started(settings, SystemClock(), streams=streams) as server:
        await stop.wait()
        await server.unready()
        streams.end()
        await server.drain(settings.drain_timeout)


@asynccontextmanager
async def started(
    settings: LobbySettings, clock: Clock, *, streams: Streams | None = None, hasher: PasswordHasher | None = None
) -> AsyncIterator[Server]:
    """The lobby, serving. Nothing outside is needed to start: it is ready once its database answers.

    `streams`: to end those that are open; `hasher`: of passwords, where the usual one is not wanted.
    """
    keyring = KeyRing(settings.keyring)
    signer = TokenSigner.from_file(settings.player_signing_key, settings.player_signing_kid)
    if settings.signing_key is None:
        raise KeyRingError("RELANCE_SIGNING_KEY: is missing; the lobby reads tables' events with a service's token")
    token = ServiceToken(TokenSigner.from_file(settings.signing_key, settings.signing_kid), "lobby")
    streams = Streams() if streams is None else streams
    tick = settings.tick_seconds
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.exposed(settings.metrics))
        pool = await stack.enter_async_context(
            database.pool(settings.database_url.get_secret_value(), name="relance-lobby", max_size=_POOL_SIZE)
        )
        nats = await stack.enter_async_context(
            link(settings.nats_url.get_secret_value(), name="relance-lobby", tls=settings.nats_tls)
        )
        passwords = await stack.enter_async_context(Passwords() if hasher is None else Passwords(hasher))
        tables = TableProcesses(settings.table_addresses, settings.open_channel, token, clock)
        stack.push_async_callback(tables.close)
        commands = TableCommands(tables, token)
        throttle = Throttle(pool, clock)
        catalogue = Catalogue(pool, PageTokens(signer.secret("page tokens")), clock)
        board = TableBoard(catalogue, clock, tick)
        offers = Offers(pool, clock)
        offer_board = OfferBoard(offers, clock, tick)
        seating = Seating(
            offers, commands, clock, tick_seconds=tick, offer_seconds=settings.offer_seconds,
            buy_in_seconds=settings.buy_in_seconds,
        )  # fmt: skip
        private = PrivateTables(pool, passwords, throttle, commands, signer, clock)
        maintenance = Maintenance(pool, commands, clock, tick)
        openings = Openings(pool, commands, clock, look_seconds=2 * tick, empty_seconds=settings.empty_seconds)
        server = await stack.enter_async_context(
            Server(
                settings, keyring=keyring, checks={"database": lambda: database.answers(pool)}, public=PUBLIC,
                deadline=_DEADLINE,
            )
        )  # fmt: skip
        lobby = LobbyService(
            settings, Accounts(pool, passwords, throttle, clock), catalogue, tables, board, streams, signer, clock
        )
        waiting = WaitingService(Waits(pool, private, clock), offers, seating, offer_board, streams, clock)
        server.add(lobby_pb2_grpc.add_LobbyServiceServicer_to_server, lobby)
        server.add(lobby_pb2_grpc.add_ProtectionServiceServicer_to_server, ProtectionService(Protections(pool, clock)))
        server.add(waiting_pb2_grpc.add_WaitingServiceServicer_to_server, waiting)
        friends = PrivateTableService(private, settings.public_table_address)
        server.add(private_pb2_grpc.add_PrivateTableServiceServicer_to_server, friends)
        server.add(templates_pb2_grpc.add_TemplateServiceServicer_to_server, TemplateService(Templates(pool, clock)))
        server.add(houses_pb2_grpc.add_HouseServiceServicer_to_server, HouseService(maintenance))
        async with asyncio.TaskGroup() as group:
            work = [
                confirm(pool), tables.keep_probing(), follow(pool, tables, nats.client), board.run(), offer_board.run(),
                seating.run(), maintenance.run(), openings.run(), keep_clean(pool, throttle, offers, clock),
            ]  # fmt: skip
            tasks = [group.create_task(each) for each in work]
            await server.start()
            yield server
            for task in tasks:
                task.cancel()
