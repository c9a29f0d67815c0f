"""A room with a wallet and no table process yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Keys, Room, beside

from relance.room.embedded import Nats
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings


@pytest_asyncio.fixture
async def room(migrated: Migrated, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Room]:
    """A room with a wallet; table processes are started by the test."""
    database_url = await migrated("relance.eventlog", "relance.table", "relance.wallet")
    keys = Keys(tmp_path)
    settings = WalletSettings(
        database_url=SecretStr(database_url),
        nats_url=SecretStr(nats_server.url),
        keyring=keys.ring,
        signing_key=keys.service_key,
    )
    async with AsyncExitStack() as stack:
        wallet = await beside(stack, started(settings))
        yield Room(stack, keys, database_url, nats_server.url, wallet)
