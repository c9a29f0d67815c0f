"""A wallet's database of its own for the benchmarks: an embedded server, migrated, with funded players."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from relance.room.embedded import Postgres
from relance.runtime.auth import TokenSigner
from relance.runtime.migrations import migrate
from relance.wallet.ledger import MAX_BATCH, Ledger, Order

ACCOUNTS = 1_000
FUNDS = 10**9


@dataclass(frozen=True, slots=True)
class Place:
    """A database server, its superuser's URL, and a folder with a key ring."""

    url: str
    folder: Path
    signer: TokenSigner


@asynccontextmanager
async def ledger_database(*packages: str) -> AsyncIterator[Place]:
    """A fresh server with the schemas of `packages`."""
    with tempfile.TemporaryDirectory(prefix="relance-bench-") as temporary:
        folder = Path(temporary)
        server = Postgres(folder / "postgres")
        server.start()
        try:
            for package in packages:
                await migrate(server.url, package)
            signer = TokenSigner.generate("service-1")
            (folder / "keys.json").write_text(json.dumps({"keys": {"service-1": signer.entry("service")}}))
            (folder / "key.pem").write_bytes(signer.pem())
            yield Place(server.url, folder, signer)
        finally:
            server.stop()


async def fund(url: str) -> None:
    """Give every player p0 … p999 plenty."""
    async with Ledger(lambda: asyncpg.connect(url)) as ledger:
        orders = [
            Order(f"deposit/bench/{n}", "world/eur", f"players/p{n}/eur", FUNDS, "eur", "DEPOSIT", "bench")
            for n in range(ACCOUNTS)
        ]
        for begin in range(0, len(orders), MAX_BATCH):
            await ledger.transfer_many(orders[begin : begin + MAX_BATCH])
