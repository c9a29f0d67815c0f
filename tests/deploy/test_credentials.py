"""relance secrets and relance logins: what a room on several machines needs before it starts."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.conftest import Migrated

from relance.room import credentials
from relance.room.credentials import Servers
from relance.room.processes import RoomError
from relance.room.services import let_log_in
from relance.runtime.auth import KeyRing, TokenSigner

SERVERS = Servers("postgresql://owner@db.example:5432/relance?sslmode=verify-full", "nats://nats.example:4222")


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_is_there_stays_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    made = credentials.make(tmp_path, SERVERS)
    before = files(tmp_path)
    assert sorted(before) == made
    assert credentials.make(tmp_path, SERVERS) == []
    assert files(tmp_path) == before
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")} == {0}


def test_urls_name_each_service_and_keep_what_the_url_asks_for(tmp_path: Path) -> None:
    credentials.make(tmp_path, SERVERS)
    url = urlsplit((tmp_path / "wallet" / "database-url").read_text())
    assert (url.username, url.hostname, url.path, url.query) == (
        "relance_wallet", "db.example", "/relance", "sslmode=verify-full",
    )  # fmt: skip
    assert url.password == (tmp_path / "logins" / "relance_wallet").read_text()
    nats = urlsplit((tmp_path / "wallet" / "nats-url").read_text())
    assert (nats.username, nats.password) == ("wallet", (tmp_path / "nats" / "wallet").read_text())


def test_a_key_is_rotated_and_the_old_one_believed_until_it_is_retired(tmp_path: Path) -> None:
    credentials.make(tmp_path, SERVERS)
    ring = tmp_path / "keyring" / "keyring.json"

    def token() -> str:
        kid = (tmp_path / "table" / "signing-kid").read_text()
        signer = TokenSigner.from_file(tmp_path / "table" / "signing.pem", kid)
        return signer.sign("services/table", ("service",), seconds=60, service="table")[0]

    old = token()
    (tmp_path / "table" / "signing.pem").unlink()
    assert credentials.make(tmp_path, SERVERS) == ["table/signing.pem"]
    assert KeyRing(ring).verify(old).service == KeyRing(ring).verify(token()).service == "table"
    credentials.make(tmp_path, SERVERS, ["table-1"])
    assert "table-1" not in json.loads(ring.read_text())["keys"]
    assert KeyRing(ring).verify(token())
    with pytest.raises(RoomError, match="no table-1"):
        credentials.make(tmp_path, SERVERS, ["table-1"])


async def test_roles_log_in_with_what_the_files_say(migrated: Migrated, tmp_path: Path) -> None:
    owner = await migrated("relance.wallet")
    (tmp_path / "relance_wallet").write_text('it\'s "odd" %s\n')
    await let_log_in(owner, credentials.logins(tmp_path))
    parts = urlsplit(owner)
    connection = await asyncpg.connect(
        host=parts.hostname, port=parts.port, database=parts.path[1:], user="relance_wallet",
        password="it's \"odd\" %s",
    )  # fmt: skip
    assert await connection.fetchval("SELECT count(*) FROM wallet.transfer") == 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("DELETE FROM wallet.transfer")
    await connection.close()
    (tmp_path / "postgres").write_text("no")
    with pytest.raises(RoomError, match="files named like roles"):
        credentials.logins(tmp_path)
