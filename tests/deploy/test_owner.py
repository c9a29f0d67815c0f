"""The owner's login that migrations need is no superuser's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from relance.room.credentials import LOGINS, Servers, logins, make
from relance.room.embedded import Postgres
from relance.room.services import SERVICES, let_log_in, with_login
from relance.runtime.migrations import migrate

PACKAGES = ("relance.wallet", "relance.rake", "relance.lobby", "relance.eventlog", "relance.table")


async def test_an_owner_who_may_create_roles_migrates_twice_and_lets_roles_log_in(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "postgres")  # of its own: roles belong to the whole server
    await asyncio.to_thread(server.start)
    try:
        admin = await asyncpg.connect(server.url)
        await admin.execute("CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'owner'")
        await admin.execute("CREATE DATABASE relance OWNER owner")
        await admin.close()
        url = with_login(server.url, "owner", "owner", "relance")
        for package in (*PACKAGES, *PACKAGES):
            await migrate(url, package)
        folder = tmp_path / "secrets"
        make(folder, Servers(url, "nats://nats:4222"))
        passwords = logins(folder / "logins")
        assert set(passwords) == set(LOGINS)
        await let_log_in(url, passwords)
        for service in SERVICES:
            connection = await asyncpg.connect((folder / service / "database-url").read_text())
            schema = "log" if service == "table" else service
            assert await connection.fetchval("SELECT has_schema_privilege($1, 'USAGE')", schema)
            others = [s for s in ("log", "wallet", "rake", "lobby") if s != schema]
            for other in others:
                assert not await connection.fetchval("SELECT has_schema_privilege($1, 'USAGE')", other)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("CREATE TABLE public.mine (x int)")
            await connection.close()
        audit = await asyncpg.connect((folder / "audit" / "database-url").read_text())
        assert await audit.fetchval("SELECT count(*) FROM log.event") == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await audit.execute("DELETE FROM log.event")
        await audit.close()
        assert urlsplit((folder / "migrate" / "database-url").read_text()).username == "owner"
    finally:
        server.stop()
