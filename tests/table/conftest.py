"""A room with a wallet and no table process yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio
from pydantic import SecretStr
from tests.table.support import Keys, Room

from relance.room.embedded import Nats
from relance.runtime.migrations import migrate
from relance.runtime.settings import ServiceSettings
from relance.wallet.serve import started


@pytest_asyncio.fixture
async def room(database_url: str, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Room]:
    """A room with a wallet; table processes are started by the test."""
    for package in ("relance.eventlog", "relance.wallet"):
        await migrate(database_url, package)
    keys = Keys(tmp_path)
    settings = ServiceSettings(
        database_url=SecretStr(database_url),
        nats_url=SecretStr(nats_server.url),
        keyring=keys.ring,
        signing_key=keys.service_key,
    )
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def wallet() -> None:
        async with started(settings) as server:
            address.set_result(server.address)
            await stop.wait()

    serving = asyncio.create_task(wallet())
    async with AsyncExitStack() as stack:
        yield Room(stack, keys, database_url, nats_server.url, await address)
    stop.set()
    await serving
