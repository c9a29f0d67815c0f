"""Connections to PostgreSQL: a pool with sane settings, and a server that keeps what it has committed."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import structlog

log = structlog.get_logger(__name__)

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]
    Connection = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
else:  # asyncpg's classes are generic for type checkers alone
    Pool, Connection = asyncpg.Pool, asyncpg.Connection

OUTAGE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that dies while its pool takes it back
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
"""What asyncpg raises when the server is away, stopping, starting or full: ask again later."""


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^][:@]*)(?::([0-9]{1,5}))?")


def checked_url(url: str) -> str:
    """The URL, which is one of PostgreSQL. Raises ValueError, which tells nothing of it: a character that is not
    written as it must be makes a part of the password look like a host or a port.
    """
    fault = ValueError(
        "is no URL such as postgresql://role:password@host:5432/database (in role and password, characters other than "
        "letters and digits are written as %XX)"
    )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise fault from None
    login, _, hosts = parts.netloc.rpartition("@")
    found = [_HOST.fullmatch(host) for host in hosts.split(",")]
    right = all(each is not None and int(each[2] or 0) < 2**16 for each in found)
    astray = not login and "@" in parts.path + parts.fragment
    if parts.scheme not in {"postgresql", "postgres"} or not right or astray:
        raise fault
    return url


class UnfitDatabase(Exception):
    """The server would lose committed data, or is too old."""


@asynccontextmanager
async def pool(
    url: str, *, name: str, max_size: int = 10, command_timeout: float = 30.0, idle_seconds: float = 300.0
) -> AsyncIterator[Pool]:
    """A pool of at most `max_size` connections, made when they are first needed: a server that is away does not fail
    here but where it is asked. Each new connection is checked as `check_server` says.

    TLS is as `url` says: sslmode, sslrootcert, sslcert, sslkey. The files are read for each new connection.
    """
    made = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=max_size,
        command_timeout=command_timeout,
        timeout=5.0,
        max_inactive_connection_lifetime=idle_seconds,
        init=check_server,
        server_settings={
            "application_name": name,
            "timezone": "UTC",
            "jit": "off",
            "idle_in_transaction_session_timeout": "30s",
        },
    )
    try:
        yield made
    finally:
        try:
            await asyncio.wait_for(made.close(), 5)
        except TimeoutError:
            made.terminate()


async def check_server(connection: Connection) -> None:
    """Raises UnfitDatabase where a crash of the server could lose or tear what it has committed."""
    rows = await connection.fetch(
        "SELECT name, setting FROM pg_settings"
        " WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'server_version_num')"
    )
    settings = {row["name"]: row["setting"] for row in rows}
    for name in ("fsync", "full_page_writes"):
        if settings[name] != "on":
            raise UnfitDatabase(
                f"PostgreSQL runs with {name} = {settings[name]}; a crash would lose money. Turn it on."
            )
    if settings["synchronous_commit"] == "off":
        raise UnfitDatabase("PostgreSQL runs with synchronous_commit = off; a crash would lose money. Turn it on.")
    if int(settings["server_version_num"]) < 140000:
        raise UnfitDatabase(f"PostgreSQL is version {settings['server_version_num']}; 14 or newer is needed.")


async def wait(pool: Pool) -> None:
    """Return once the database answers, however long it takes. Raises UnfitDatabase."""
    pause = 0.05
    while not await answers(pool):
        await asyncio.sleep(pause)
        pause = min(pause * 2, 2.0)


async def answers(pool: Pool, timeout: float = 2.0) -> bool:
    """Whether the database answers now: the readiness check. Raises UnfitDatabase."""
    try:
        async with asyncio.timeout(timeout):
            await pool.fetchval("SELECT 1")
    except ssl.SSLError as error:
        log.error("the database's certificate does not do, or ours does not", text=str(error))
        return False
    except OUTAGE as error:
        log.debug("database away", error=type(error).__name__)
        return False
    return True
