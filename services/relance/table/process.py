"""A table process, put together: the log, the tables, ownership, transfers, publishing and the gRPC server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import structlog

from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.lobby.v1 import lobby_pb2_grpc
from relance.api.rake.v1 import rake_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2_grpc
from relance.eventlog import Load, PostgresLog, Unavailable, UnsafeDatabase
from relance.eventlog.ownership import Heartbeat, Observer
from relance.eventlog.publish import Publisher
from relance.poker import Table, public_bytes
from relance.poker.deck import CardSource, VirtualDeck, shuffled_by
from relance.runtime import database, nats
from relance.runtime.auth import KeyRing, ServiceToken, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.database import UnfitDatabase
from relance.runtime.paging import PageTokens
from relance.runtime.server import Server
from relance.table import wire
from relance.table.admin import TableAdminService
from relance.table.cash_outs import CashOuts
from relance.table.chat import Chat
from relance.table.cluster import Cluster
from relance.table.handover import Handover
from relance.table.host import Host
from relance.table.landing import Landing
from relance.table.links import Links
from relance.table.metrics import TableMetrics
from relance.table.placement import Placement
from relance.table.play import Play
from relance.table.protections import FreeProtections, LobbyProtections, Protections
from relance.table.routing import Router
from relance.table.schedules import Schedules
from relance.table.service import TableService
from relance.table.serving import serve
from relance.table.settings import TableSettings
from relance.table.tables import Tables
from relance.table.timers import Timers
from relance.table.transfers import Transfers
from relance.transport import tracing

log = structlog.get_logger(__name__)

Deck = Callable[[Table], CardSource]
Rake = Callable[[Table], RakeSchedule | None]

OPEN_AGAIN_SECONDS = 0.5
NOWHERE = "127.0.0.1:1"
"""A wallet that is not there: transfers wait for one."""
CHANNEL_OPTIONS = (("grpc.keepalive_time_ms", 20_000), ("grpc.max_reconnect_backoff_ms", 2_000))

_SHUFFLE = shuffled_by(secrets.token_bytes)


def secret_deck(_table: Table) -> CardSource:
    """A deck shuffled with the operating system's randomness."""
    return VirtualDeck(_SHUFFLE, secrets.token_bytes)


def keep_rake(_table: Table) -> None:
    """No newer rake schedule is known."""


def public_body(events: Sequence[TableEvent]) -> bytes:
    """What everybody may see of an append, as a serialised TableUpdate."""
    return wire.events_body(map(public_bytes, events))


class Process:
    """A running table process."""

    def __init__(
        self, tables: Tables, server: Server, heartbeat: Heartbeat, observer: Observer, router: Router, links: Links,
        landing: Landing, work: asyncio.Future[Any],
    ) -> None:  # fmt: skip
        self.tables = tables
        self.server = server
        self.observer = observer
        self.router = router
        self.links = links
        self.landing = landing
        self._heartbeat = heartbeat
        self._work = work

    async def wait(self, stop: asyncio.Event) -> None:
        """Return once told to stop. Raises what ended the work in the background: it must not end."""
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([stopped, self._work], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._work.done():
            self._work.result()

    @property
    def address(self) -> str:
        """host:port of its gRPC server."""
        return self.server.address

    async def drain(self, seconds: float) -> None:
        """Give every table up in order, end the streams, take no more calls."""
        await self.server.unready()
        await self.tables.drain(seconds)
        await _cancelled(self._work)  # no more beats: the row goes with the tables
        try:
            await self._heartbeat.retire()
        except Unavailable:
            log.warning("heartbeat row left behind: the database is away")
        self.router.stop()
        self.landing.close()
        await self.server.drain(2.0)


@asynccontextmanager
async def running(
    settings: TableSettings,
    *,
    clock: Clock | None = None,
    deck: Deck = secret_deck,
    metrics: TableMetrics | None = None,
) -> AsyncIterator[Process]:
    """A table process on the database of the settings, serving until the context ends (without a drain of its own).

    Raises KeyRingError, ListenError, UnfitDatabase.
    """
    clock = clock or SystemClock()
    metrics = metrics or TableMetrics()
    signer = TokenSigner.from_file(settings.signing_key, settings.signing_kid)
    token = ServiceToken(signer, "table")
    keyring = KeyRing(settings.keyring)
    writer = f"{settings.instance}-{secrets.token_hex(4)}"
    timers = Timers(clock)
    work: list[Coroutine[Any, Any, None]] = []
    async with AsyncExitStack() as stack:
        events = await _opened(stack, settings, writer)
        nats_url = settings.nats_url.get_secret_value()
        link = await stack.enter_async_context(
            nats.link(nats_url, name=f"table {settings.instance}", tls=settings.nats_tls)
        )
        publisher = Publisher(events, link.client, public_body, tracing.published if tracing.on() else None)
        work.append(_published(link, publisher))

        ledger = wallet_pb2_grpc.LedgerServiceStub(await _channel(stack, settings, settings.wallet_address or NOWHERE))
        transfers = Transfers(ledger, token, clock, metrics)
        work.append(transfers.run())

        rake: Rake = keep_rake
        if settings.rake_address:
            schedules = Schedules(
                rake_pb2_grpc.RakeServiceStub(await _channel(stack, settings, settings.rake_address)), token, clock
            )
            rake = schedules.newer
            work.append(schedules.run())

        protections: Protections = FreeProtections()
        if settings.lobby_address:
            lobby = lobby_pb2_grpc.ProtectionServiceStub(await _channel(stack, settings, settings.lobby_address))
            protections = LobbyProtections(lobby, token)

        host = Host(
            process=writer, log=events, clock=clock, timers=timers, metrics=metrics, publisher=publisher,
            transfers=transfers, protections=protections, deck=deck, rake=rake,
        )  # fmt: skip
        tables = Tables(host)
        chat = Chat(await stack.enter_async_context(_talk(settings)), clock)
        pages = PageTokens(signer.secret("pages"))
        transfers.tell = tables.tell
        server = await stack.enter_async_context(Server(settings, keyring=keyring, checks={"database": tables.ready}))

        links = Links(lambda address: settings.open_channel(address, CHANNEL_OPTIONS), token.metadata)
        stack.push_async_callback(links.close)
        router = Router(tables, links)
        heartbeat = _MeasuredHeartbeat(events, clock, tables.load)
        observer = Observer(events, heartbeat, lease=settings.lease, monotonic=clock.monotonic)
        placement = Placement(writer, lambda: observer.living, tables.load)
        handover = Handover(links, placement, token.metadata, tables.keep)
        tables.give = handover.give
        tables.cash_outs = CashOuts(handover.ask, lambda: observer.living)
        cluster = Cluster(tables, router, placement, handover, lambda: observer.living)
        service = TableService(
            tables, events, Play(tables, events, keyring, chat), keyring, chat, pages,
            forwards=settings.routing == "forward",
        )  # fmt: skip
        admin = TableAdminService(tables, events, cluster)
        landing = serve(server, tables, router if settings.routing == "forward" else None, service, admin)
        tables.address = heartbeat.address = await server.start()

        work += [
            observer.run(tables.found),
            tables.keep_confirming(settings.lease / 2),
            _kept_to_the_living(links, observer, settings.lease),
        ]
        metrics.mailbox.set_function(tables.waiting)
        metrics.seats.set_function(tables.seats)
        metrics.heartbeat_age.set_function(heartbeat.age)
        metrics.passed_on.set_function(lambda: links.calls)
        metrics.landed.set_function(lambda: landing.calls)
        metrics.publish_lag.set_function(lambda: publisher.lag)
        metrics.running.set_function(tables.hands)
        metrics.transfers_oldest.set_function(transfers.oldest)
        running_work = asyncio.gather(*work)
        stack.callback(timers.stop)
        stack.push_async_callback(_cancelled, running_work)
        yield Process(tables, server, heartbeat, observer, router, links, landing, running_work)


async def _opened(stack: AsyncExitStack, settings: TableSettings, writer: str) -> PostgresLog:
    while True:
        try:
            return await stack.enter_async_context(PostgresLog(settings.database_url.get_secret_value(), writer))
        except Unavailable as error:
            log.warning("database away", error=str(error))
            await asyncio.sleep(OPEN_AGAIN_SECONDS)
        except UnsafeDatabase as error:
            raise UnfitDatabase(str(error)) from error


def _talk(settings: TableSettings) -> AbstractAsyncContextManager[database.Pool]:
    """Connections for the chat: few, and not those of the log."""
    return database.pool(settings.database_url.get_secret_value(), name="table chat", max_size=2)


async def _channel(stack: AsyncExitStack, settings: TableSettings, address: str) -> grpc.aio.Channel:
    return await stack.enter_async_context(settings.open_channel(address, CHANNEL_OPTIONS))


async def _published(link: nats.Link, publisher: Publisher) -> None:
    await link.wait_connected()
    await publisher.run()


async def _cancelled(work: asyncio.Future[Any]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def _kept_to_the_living(links: Links, observer: Observer, lease: float) -> None:
    """Drop links to processes that have not beaten for the lease: whoever hangs holds up nobody's calls."""
    silent: dict[str, int] = {}
    while True:
        await asyncio.sleep(lease / 2)
        living = {row.address for row in observer.living}
        silent = {address: silent.get(address, 0) + 1 for address in links.addresses if address not in living}
        links.drop([address for address, looks in silent.items() if looks > 1])


class _MeasuredHeartbeat(Heartbeat):
    def __init__(self, events: PostgresLog, clock: Clock, load: Callable[[], Load | None]) -> None:
        super().__init__(events, "", load)
        self._clock = clock
        self._beaten = clock.monotonic()

    async def beat(self) -> None:
        await super().beat()
        self._beaten = self._clock.monotonic()

    def age(self) -> float:
        """Seconds since the last durable beat."""
        return self._clock.monotonic() - self._beaten
