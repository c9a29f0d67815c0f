"""Fixtures that every test may use: one PostgreSQL and one NATS server a test run.

They are embedded; with RELANCE_TEST_BACKEND=containers they are containers, and a missing engine is an error.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias
from zlib import crc32

import asyncpg
import pytest
import pytest_asyncio
from tests.client.live import live
from tests.containers import NatsContainer, PostgresContainer, require_engine

from relance.room.embedded import Nats, Postgres
from relance.runtime.migrations import migrate

__all__ = ["live"]
Migrated: TypeAlias = Callable[..., Awaitable[str]]
_templates: dict[tuple[str, ...], str] = {}

BACKEND = os.environ.get("RELANCE_TEST_BACKEND", "embedded")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown or unreachable backend before the first test: never a silent pass."""
    if BACKEND not in ("embedded", "containers"):
        raise pytest.UsageError(f"RELANCE_TEST_BACKEND is {BACKEND!r}; it may be embedded or containers")
    if BACKEND == "containers" and not hasattr(config, "workerinput"):
        require_engine()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole rooms first: they are the longest, and the end of a run would wait for the last of them.

    What uses the clients' room stays in one process, so that there is one.
    """
    items.sort(key=lambda item: "/system/" not in item.nodeid)
    for item in items:
        if "live" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("live"))


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
    name = _name(request)
    await _statements(postgres.url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', f'CREATE DATABASE "{name}"')
    yield _url(postgres, name)
    await _statements(postgres.url, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest_asyncio.fixture
async def migrated(postgres: Postgres, request: pytest.FixtureRequest) -> AsyncIterator[Migrated]:
    """Makes the test's own database with the schemas of some packages; its superuser URL. Dropped afterwards.

    Each set of packages is migrated once a test run; the tests get copies.
    """
    name = _name(request)

    async def make(*packages: str) -> str:
        template = _templates.get(packages)
        if template is None:
            template = _templates[packages] = f"template_{os.getpid()}_{len(_templates)}"
            await _statements(postgres.url, f'CREATE DATABASE "{template}"')
            for package in packages:
                await migrate(_url(postgres, template), package)
        await _statements(
            postgres.url,
            f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)',
            f'CREATE DATABASE "{name}" TEMPLATE "{template}"',
        )
        return _url(postgres, name)

    yield make
    await _statements(postgres.url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _name(request: pytest.FixtureRequest) -> str:
    return f"test_{os.getpid()}_{crc32(request.node.nodeid.encode()):x}"


def _url(postgres: Postgres, database: str) -> str:
    return postgres.url.rsplit("/", 1)[0] + "/" + database


async def _statements(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()
