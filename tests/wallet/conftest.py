"""A migrated wallet database, its connections by role, and a ledger on it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import grpc
import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.wallet.support import Wallet

from relance.room.embedded import Nats
from relance.runtime.auth import TokenSigner
from relance.wallet.ledger import Ledger, Order
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

Connect: TypeAlias = Callable[[], Awaitable["asyncpg.Connection[asyncpg.Record]"]]


def deposit(key: str, player: str, amount: int, currency: str = "eur") -> Order:
    """An order that brings money in from outside."""
    source = "issuance/credit" if currency == "credit" else f"world/{currency}"
    return Order(key, source, f"players/{player}/{currency}", amount, currency, "DEPOSIT", "operator")


def buy_in(key: str, player: str, table: str, amount: int, currency: str = "eur") -> Order:
    """An order from a player to a table's escrow."""
    return Order(key, f"players/{player}/{currency}", f"tables/{table}", amount, currency, "BUY_IN", "table")


def cash_out(key: str, player: str, table: str, amount: int, currency: str = "eur") -> Order:
    """An order from a table's escrow to a player."""
    return Order(key, f"tables/{table}", f"players/{player}/{currency}", amount, currency, "CASH_OUT", "table")


@pytest_asyncio.fixture
async def wallet_url(migrated: Migrated) -> str:
    """Superuser URL of a database with the wallet's schema."""
    return await migrated("relance.wallet")


@pytest_asyncio.fixture
async def owner(wallet_url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A superuser's connection."""
    connection = await asyncpg.connect(wallet_url)
    yield connection
    await connection.close()


@pytest_asyncio.fixture
async def as_wallet(wallet_url: str) -> Connect:
    """Makes connections that may do what the wallet service may do."""

    async def connect() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(wallet_url, server_settings={"role": "relance_wallet"})

    return connect


@pytest_asyncio.fixture
async def ledger(as_wallet: Connect) -> AsyncIterator[Ledger]:
    """A running ledger."""
    async with Ledger(as_wallet) as running:
        yield running


@pytest_asyncio.fixture
async def settings(wallet_url: str, nats_server: Nats, tmp_path: Path) -> tuple[WalletSettings, TokenSigner]:
    """Settings of a wallet with a login of its own role, and the signer of every kind of token."""
    owner = await asyncpg.connect(wallet_url)
    await owner.execute("ALTER ROLE relance_wallet LOGIN PASSWORD 'wallet'")
    await owner.close()
    parts = urlsplit(wallet_url)
    host = parts.netloc.rpartition("@")[2]
    signer = TokenSigner.generate("service-1")
    roles = ("player", "viewer", "floor", "cashier", "auditor", "service")
    (tmp_path / "keys.json").write_text(json.dumps({"keys": {"service-1": signer.entry(*roles)}}))
    (tmp_path / "key.pem").write_bytes(signer.pem())
    made = WalletSettings(
        database_url=SecretStr(urlunsplit(parts._replace(netloc=f"relance_wallet:wallet@{host}"))),
        nats_url=SecretStr(nats_server.url),
        keyring=tmp_path / "keys.json",
        signing_key=tmp_path / "key.pem",
        faucet_limit=500,
    )
    return made, signer


@pytest_asyncio.fixture
async def wallet(settings: tuple[WalletSettings, TokenSigner]) -> AsyncIterator[Wallet]:
    """A running wallet."""
    async with started(settings[0]) as server, grpc.aio.insecure_channel(server.address) as channel:
        yield Wallet(channel, settings[1])
