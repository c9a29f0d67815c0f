"""Fixtures that every test may use: one PostgreSQL and one NATS server a test run.

They are embedded; with RELANCE_TEST_BACKEND=containers they are containers, and a missing engine is an error.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from zlib import crc32

import asyncpg
import pytest
import pytest_asyncio
from tests.containers import NatsContainer, PostgresContainer, require_engine

from relance.room.embedded import Nats, Postgres

BACKEND = os.environ.get("RELANCE_TEST_BACKEND", "embedded")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown or unreachable backend before the first test: never a silent pass."""
    if BACKEND not in ("embedded", "containers"):
        raise pytest.UsageError(f"RELANCE_TEST_BACKEND is {BACKEND!r}; it may be embedded or containers")
    if BACKEND == "containers" and not hasattr(config, "workerinput"):
        require_engine()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres | PostgresContainer]:
    """A PostgreSQL server for the whole test run."""
    containers = BACKEND == "containers"
    server = PostgresContainer() if containers else Postgres(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.stop(fast=False)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats | NatsContainer]:
    """A NATS server with JetStream for the whole test run."""
    server = NatsContainer() if BACKEND == "containers" else Nats(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest_asyncio.fixture
async def database_url(postgres: Postgres, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Superuser URL of an empty database of the test's own, dropped afterwards."""
    name = f"test_{os.getpid()}_{crc32(request.node.nodeid.encode()):x}"
    admin = await asyncpg.connect(postgres.url)
    await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    await admin.execute(f'CREATE DATABASE "{name}"')
    await admin.close()
    yield postgres.url.rsplit("/", 1)[0] + "/" + name
    admin = await asyncpg.connect(postgres.url)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()
