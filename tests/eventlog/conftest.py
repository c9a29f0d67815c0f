"""A log of the test's own, on PostgreSQL as the table service's role or in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
import pytest_asyncio

from relance.api.events.v1.events_pb2 import RulingRecorded, TableEvent
from relance.eventlog import EventLog, MemoryLog, MemoryStore, PostgresLog
from relance.room.embedded import Postgres
from relance.runtime.migrations import migrate

LOGIN, PASSWORD = "relance_table_test", "secret-of-the-tests"


class Events(Protocol):
    """Builds events of a stream."""

    def __call__(self, stream: str, after: int, n: int = 1, text: str = "") -> list[TableEvent]:
        """`n` events with the versions after+1, …"""


def make_events(stream: str, after: int, n: int = 1, text: str = "") -> list[TableEvent]:
    """`n` events with the versions after+1, …"""
    return [
        TableEvent(table=stream, version=version, hand=7, time_us=1_000_000 + version,
                   ruling_recorded=RulingRecorded(operator="olga", text=text or f"ruling {version}"))
        for version in range(after + 1, after + n + 1)
    ]  # fmt: skip


@pytest.fixture
def events() -> Events:
    """The builder of events."""
    return make_events


async def migrated(url: str) -> str:
    """Migrate the database behind a superuser's URL and answer the URL of a member of relance_table."""
    await migrate(url, "relance.eventlog")
    admin = await asyncpg.connect(url)
    try:
        if await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", LOGIN) is None:
            await admin.execute(f"CREATE ROLE {LOGIN} LOGIN PASSWORD '{PASSWORD}' IN ROLE relance_table")
    finally:
        await admin.close()
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{LOGIN}:{PASSWORD}@{parts.hostname}:{parts.port}"))


@pytest_asyncio.fixture
async def database_url(postgres: Postgres) -> str:
    """Superuser URL of an empty database. One for all tests here, emptied before each: quicker than a new one."""
    server = await asyncpg.connect(postgres.url)
    if not await server.fetchval("SELECT 1 FROM pg_database WHERE datname = 'log_tests'"):
        await server.execute("CREATE DATABASE log_tests")
    await server.execute("ALTER DATABASE log_tests RESET ALL")
    await server.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'log_tests'")
    await server.close()
    url = postgres.url.rsplit("/", 1)[0] + "/log_tests"
    database = await asyncpg.connect(url)
    await database.execute(
        "SET client_min_messages = warning; DROP SCHEMA IF EXISTS log, stats CASCADE;"
        "DROP TABLE IF EXISTS public.relance_migration"
    )
    await database.close()
    return url


@pytest_asyncio.fixture
async def log_url(database_url: str) -> str:
    """URL of the service's role on a migrated database."""
    return await migrated(database_url)


class OpenLog(Protocol):
    """Opens logs on one store."""

    async def __call__(self, writer: str) -> EventLog:
        """The log of the process `writer`."""


@pytest.fixture(params=["postgres", "memory"])
def store(request: pytest.FixtureRequest) -> str | MemoryStore:
    """What logs share: the URL of a database, or a store in memory."""
    if request.param == "memory":
        return MemoryStore(keep_every=3)
    return str(request.getfixturevalue("log_url"))


@pytest_asyncio.fixture
async def open_log(store: str | MemoryStore) -> AsyncIterator[OpenLog]:
    """Opens logs of several processes on one store: once PostgreSQL, once memory."""
    async with AsyncExitStack() as stack:

        async def opened(writer: str) -> EventLog:
            if isinstance(store, MemoryStore):
                return MemoryLog(writer, store)
            return await stack.enter_async_context(PostgresLog(store, writer, readers=2, keep_every=3))

        yield opened


@pytest_asyncio.fixture
async def log(open_log: OpenLog) -> EventLog:
    """The log of the process `ada`."""
    return await open_log("ada")


def versions(events: Sequence[TableEvent]) -> list[int]:
    """Their versions."""
    return [event.version for event in events]
