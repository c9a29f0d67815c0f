"""A connection to NATS that comes back for ever. Nothing here waits for NATS unless it is asked to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import nats.errors
import structlog
from nats.aio.client import Client

from relance.runtime import logging, metrics
from relance.transport import Tls, tracing

log = structlog.get_logger(__name__)

OnConnect = Callable[[Client], Awaitable[None]]
OnChange = Callable[[], Awaitable[None]]
OnError = Callable[[Exception], Awaitable[None]]


class Link:
    """The connection: there, or not there yet."""

    def __init__(self) -> None:
        self.client = Client()
        """The client; publishing on it while it is away is buffered by it or raises nats.errors.Error."""
        self._up = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether NATS answers now."""
        return self.client.is_connected

    async def wait_connected(self) -> None:
        """Return once NATS answers."""
        while not self.connected:
            self._up.clear()
            await self._up.wait()


@asynccontextmanager
async def link(
    url: str, *, name: str, tls: Tls | None = None, on_connect: OnConnect | None = None
) -> AsyncIterator[Link]:
    """Connect in the background and stay connected until the context ends. With `tls` each connection, the first and
    every one after it, uses the certificates that its files hold then.

    `on_connect` is awaited after the first connection and after each reconnection: streams and consumers are made
    there, for a NATS that was wiped has none. When it fails it is tried again.
    """
    made = Link()
    changed = asyncio.Event()

    async def up() -> None:
        made._up.set()
        changed.set()
        log.info("nats connected")

    async def down() -> None:
        if not task.done():  # not where it is us who close
            log.warning("nats away")

    async def failed(error: Exception) -> None:
        if isinstance(error, ssl.SSLError):
            log.error("the certificate of nats does not do, or ours does not", text=str(error))
        else:
            log.debug("nats error", error=type(error).__name__)

    async def stay() -> None:
        await _connect(made.client, url, name, tls, up=up, down=down, failed=failed)
        await up()
        while True:
            await changed.wait()
            changed.clear()
            if on_connect is not None and not await _prepared(on_connect, made.client):
                await asyncio.sleep(0.5)
                changed.set()

    task = asyncio.create_task(stay())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if made.client.is_connected or made.client.is_reconnecting:
            await _close(made.client)


@contextmanager
def following(stream: str, headers: Mapping[str, str]) -> Iterator[None]:
    """What a follower does about a table's news (relance.eventlog.Follower): a request of its own, whose span is linked
    to that of the message.
    """
    with logging.request() as request:
        if not tracing.on():
            yield
            return
        sender = tracing.sender(headers)
        links = () if sender is None else (sender,)
        with tracing.span("relance/follow", "consumer", links=links, apart=True, table=stream, request=request):
            yield


async def _connect(
    client: Client, url: str, name: str, tls: Tls | None, *, up: OnChange, down: OnChange, failed: OnError
) -> None:
    context = None
    if tls is not None:
        metrics.watch_certificate("nats", tls)
        context = tls.context()
    while True:
        try:
            await client.connect(
                url, name=name, tls=context, allow_reconnect=True, max_reconnect_attempts=-1, reconnect_time_wait=1,
                connect_timeout=2, ping_interval=10, max_outstanding_pings=2,
                reconnected_cb=up, disconnected_cb=down, error_cb=failed,
            )  # fmt: skip
        except (nats.errors.Error, OSError, TimeoutError) as error:
            await failed(error)
            await asyncio.sleep(0.25)
        else:
            return


async def _prepared(on_connect: OnConnect, client: Client) -> bool:
    if not client.is_connected:
        return True  # it is called again on the next connection
    try:
        await on_connect(client)
    except (nats.errors.Error, OSError, TimeoutError) as error:
        log.warning("nats set-up failed", error=type(error).__name__, text=str(error))
        return False
    return True


async def _close(client: Client) -> None:
    try:
        await asyncio.wait_for(client.close(), 2)
    except (nats.errors.Error, OSError, TimeoutError) as error:
        log.debug("nats close", error=type(error).__name__)
