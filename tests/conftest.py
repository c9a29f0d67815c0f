"""Fixtures that every test may use: one PostgreSQL and one NATS server a test run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from relance.room.embedded import Nats, Postgres


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL server for the whole test run."""
    server = Postgres(_reachable(tmp_path_factory) / "postgres")
    server.start()
    yield server
    server.stop(fast=False)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    """A NATS server with JetStream for the whole test run."""
    server = Nats(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest_asyncio.fixture
async def database_url(postgres: Postgres, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Superuser URL of an empty database of the test's own, dropped afterwards."""
    name = f"test_{abs(hash(request.node.nodeid)):x}"
    admin = await asyncpg.connect(postgres.url)
    await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    await admin.execute(f'CREATE DATABASE "{name}"')
    yield postgres.url.rsplit("/", 1)[0] + "/" + name
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()


def _reachable(factory: pytest.TempPathFactory) -> Path:
    """A fresh folder that PostgreSQL's own user can reach: pytest's base folders are private to root."""
    folder = factory.mktemp("data")
    for parent in (folder, *list(folder.parents)[:3]):
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(0o711)
    return folder
