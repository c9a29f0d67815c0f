"""A rake service and a wallet on one real database and NATS, and a table process that is nothing but its logs."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import grpc
import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.poker.playing import CALL, FOLD, RAISE, Room, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.rake.v1 import rake_pb2_grpc
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.poker import redact
from relance.poker.deck import VirtualDeck
from relance.poker.houses import load
from relance.poker.rake import schedule_for
from relance.rake.serve import started as rake_started
from relance.rake.settings import RakeSettings
from relance.room.embedded import Nats
from relance.room.ports import free_port
from relance.runtime.auth import SERVICE, Context, KeyRing, TokenSigner, require
from relance.runtime.clock import SystemClock
from relance.runtime.server import Server
from relance.runtime.settings import ServiceSettings
from relance.wallet.serve import started as wallet_started
from relance.wallet.settings import WalletSettings

Metadata = tuple[tuple[str, str], ...]
BOULEVARD = schedule_for(load("boulevard"), game_pb2.LIMIT_NO_LIMIT, 100, game_pb2.CURRENCY_EUR)


def raked_table(name: str, hands: int) -> Room:
    """A table that has paid `hands` hands with a rake of 30 each."""
    made = room([50_000, 50_000, 50_000], rake=BOULEVARD, button=None)
    made.table.id = name
    for number in range(hands):
        rnd = random.Random(number)
        made.start(VirtualDeck(rnd.shuffle, rnd.randbytes))
        for kind, amount in ((RAISE, 250), (CALL, 0), (FOLD, 0)):
            made.act(made.asked().seat, kind, amount)
        made.passive()
    for event in made.log:
        event.table = name
    return made


class Tables(table_pb2_grpc.TableAdminServiceServicer):
    """Serves the logs of tables, redacted; the other methods answer UNIMPLEMENTED."""

    def __init__(self) -> None:
        self.logs: dict[str, list[TableEvent]] = {}

    async def ListHeads(self, request: table_pb2.ListHeadsRequest, context: Context) -> table_pb2.ListHeadsResponse:
        require(context, SERVICE)
        heads = [table_pb2.Head(table=f"tables/{name}", version=len(log)) for name, log in self.logs.items()]
        return table_pb2.ListHeadsResponse(heads=heads)

    async def ReadStream(
        self, request: table_pb2.ReadStreamRequest, context: Context
    ) -> AsyncIterator[table_pb2.ReadStreamResponse]:
        require(context, SERVICE)
        log = self.logs[request.table.removeprefix("tables/")]
        events = log[request.after : request.after + request.limit]
        yield table_pb2.ReadStreamResponse(events=[redact(event) for event in events])


class Rooms:
    """What the tests hold of the running services. Wallet and rake services can be started and stopped."""

    def __init__(self, url: str, nats_url: str, folder: Path, tables: Tables) -> None:
        self.url, self.folder, self.tables, self._nats = url, folder, tables, nats_url
        self.signer = TokenSigner.generate("service-1")
        roles = ("player", "viewer", "floor", "cashier", "auditor", "service")
        (folder / "keys.json").write_text(json.dumps({"keys": {"service-1": self.signer.entry(*roles)}}))
        (folder / "key.pem").write_bytes(self.signer.pem())
        self.wallet_address = f"127.0.0.1:{free_port()}"
        self.table_address = ""
        self.stack = AsyncExitStack()

    def settings(self, role: str) -> dict[str, Any]:
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return {
            "database_url": SecretStr(urlunsplit(parts._replace(netloc=f"{role}:{role}@{host}"))),
            "nats_url": SecretStr(self._nats),
            "keyring": self.folder / "keys.json",
            "signing_key": self.folder / "key.pem",
        }

    def token(self, subject: str, *roles: str, service: str = "") -> Metadata:
        token, _ = self.signer.sign(subject, roles, seconds=60, service=service)
        return (("authorization", f"Bearer {token}"),)

    async def start_wallet(self) -> wallet_pb2_grpc.LedgerServiceAsyncStub:
        settings = WalletSettings(**self.settings("relance_wallet"), listen=self.wallet_address)
        await self.stack.enter_async_context(wallet_started(settings))
        channel = await self.stack.enter_async_context(grpc.aio.insecure_channel(self.wallet_address))
        return wallet_pb2_grpc.LedgerServiceStub(channel)

    def rake_settings(self) -> RakeSettings:
        return RakeSettings(
            **self.settings("relance_rake"), wallet_address=self.wallet_address, table_addresses=(self.table_address,)
        )

    async def start_rake_at(self) -> str:
        server = await self.stack.enter_async_context(rake_started(self.rake_settings(), SystemClock()))
        return server.address

    async def start_rake(self) -> rake_pb2_grpc.RakeServiceAsyncStub:
        address = await self.start_rake_at()
        channel = await self.stack.enter_async_context(grpc.aio.insecure_channel(address))
        return rake_pb2_grpc.RakeServiceStub(channel)

    async def fund(self, wallet: wallet_pb2_grpc.LedgerServiceAsyncStub, table: str, amount: int) -> None:
        """Put chips in a table's escrow, as its players' buy-ins do."""
        deposit = wallet_pb2.DepositRequest(
            request_id=table, player="players/p1", currency=game_pb2.CURRENCY_EUR, amount=amount
        )
        await wallet.Deposit(deposit, metadata=self.token("cash", "cashier"))
        order = wallet_pb2.TransferOrder(
            key=f"{table}-1", to=f"tables/{table}", amount=amount, currency=game_pb2.CURRENCY_EUR, purpose="BUY_IN",
            **{"from": "players/p1/eur"},
        )  # fmt: skip
        batch = wallet_pb2.BatchTransferRequest(orders=[order])
        answer = await wallet.BatchTransfer(batch, metadata=self.token("services/table", "service", service="table"))
        assert answer.answers[0].settled


@pytest_asyncio.fixture
async def rooms(migrated: Migrated, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Rooms]:
    """The database migrated, the table process up; wallet and rake are started by the test."""
    database_url = await migrated("relance.wallet", "relance.rake")
    owner = await asyncpg.connect(database_url)
    for package in ("wallet", "rake"):
        await owner.execute(f"ALTER ROLE relance_{package} LOGIN PASSWORD 'relance_{package}'")
    await owner.close()
    made = Rooms(database_url, nats_server.url, tmp_path, Tables())  # type: ignore[abstract]
    settings = ServiceSettings(**made.settings("relance_rake"))
    async with made.stack:
        server = await made.stack.enter_async_context(Server(settings, keyring=KeyRing(settings.keyring)))
        server.add(table_pb2_grpc.add_TableAdminServiceServicer_to_server, made.tables)
        made.table_address = await server.start()
        yield made


@pytest_asyncio.fixture
async def owner(rooms: Rooms) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A superuser's connection."""
    connection = await asyncpg.connect(rooms.url)
    yield connection
    await connection.close()


async def until(found: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Wait for a condition. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not await found():  # noqa: ASYNC110 - the condition is in another process
            await asyncio.sleep(0.02)
