"""Migrations: each file once, whoever runs them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from relance.runtime.migrations import MigrationError, migrate


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "shop_of_the_test" / "migrations"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    (folder / "0001_first.sql").write_text("CREATE TABLE a (n int); INSERT INTO a VALUES (1);")
    yield folder
    sys.modules.pop("shop_of_the_test", None)


NAME = "shop_of_the_test"


async def test_files_are_applied_in_order_and_once_though_many_start_together(database_url: str, package: Path) -> None:
    (package / "0002_second.sql").write_text("ALTER TABLE a ADD COLUMN m int; INSERT INTO a VALUES (2, 2);")
    done = await asyncio.gather(*(migrate(database_url, NAME) for _ in range(5)))
    assert sorted(map(len, done)) == [0, 0, 0, 0, 2]
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM a") == 2
    assert await connection.fetchval("SELECT count(*) FROM relance_migration") == 2
    await connection.close()


async def test_a_file_that_was_changed_after_it_had_been_applied_is_refused(database_url: str, package: Path) -> None:
    await migrate(database_url, NAME)
    (package / "0001_first.sql").write_text("CREATE TABLE b (n int);")
    (package / "0002_second.sql").write_text("CREATE TABLE c (n int);")
    with pytest.raises(MigrationError, match="0001_first was changed"):
        await migrate(database_url, NAME)
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT to_regclass('c')") is None
    await connection.close()


async def test_an_older_version_does_not_touch_a_newer_database(database_url: str, package: Path) -> None:
    (package / "0002_second.sql").write_text("CREATE TABLE c (n int);")
    await migrate(database_url, NAME)
    (package / "0002_second.sql").unlink()
    with pytest.raises(MigrationError, match="0002_second, which this version does not know"):
        await migrate(database_url, NAME)


async def test_a_file_that_fails_leaves_nothing_of_itself(database_url: str, package: Path) -> None:
    (package / "0002_second.sql").write_text("CREATE TABLE c (n int); SELECT 1/0;")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(database_url, NAME)
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT to_regclass('c')") is None
    assert await connection.fetchval("SELECT array_agg(name) FROM relance_migration") == ["0001_first"]
    await connection.close()
