"""A migrated wallet database, its connections by role, and a ledger on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import asyncpg
import pytest_asyncio
from tests.conftest import Migrated

from relance.wallet.ledger import Ledger, Order

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
