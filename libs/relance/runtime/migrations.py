"""Bringing a schema to the newest version: SQL files, each applied once.

A package keeps them as `migrations/NNNN_name.sql`. Roles belong to the whole server, so a file that needs one makes it
guarded against another that does the same:

    DO $$ BEGIN
        CREATE ROLE relance_audit NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$;
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

import asyncpg
import structlog

log = structlog.get_logger(__name__)

_NAME = re.compile(r"\d{4}_[a-z0-9_]+\.sql")
_LOCK = 0x52454C41  # one migration at a time in a database, whatever the package


class MigrationError(Exception):
    """A file was changed after it had been applied, or the database has one that the package lacks."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of its text, in hexadecimal."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations_of(package: str) -> list[Migration]:
    """The package's files in order. Raises MigrationError on a file with another kind of name."""
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            if _NAME.fullmatch(entry.name) is None:
                raise MigrationError(f"{package}: {entry.name} is not NNNN_name.sql")
            found.append(Migration(entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.name)


async def migrate(url: str, package: str) -> list[str]:
    """Apply what is missing and return its names. Safe to run from many processes at once, and again.

    `url` belongs to a role that owns the schemas and may create roles. Each file is one transaction. Raises
    MigrationError when an applied file differs from the package's: then nothing is applied.
    """
    connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS public.relance_migration (package text, name text, checksum text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (package, name))"
        )
        return await _apply(connection, package)
    finally:
        await connection.close()


async def _apply(connection: asyncpg.Connection[asyncpg.Record], package: str) -> list[str]:
    rows = await connection.fetch("SELECT name, checksum FROM public.relance_migration WHERE package = $1", package)
    applied = {row["name"]: row["checksum"] for row in rows}
    wanted = migrations_of(package)
    for name in applied.keys() - {migration.name for migration in wanted}:
        raise MigrationError(f"{package}: the database has {name}, which this version does not know")
    for migration in wanted:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationError(f"{package}: {migration.name} was changed after it had been applied")
    done = []
    for migration in wanted:
        if migration.name in applied:
            continue
        async with connection.transaction():
            await connection.execute(migration.sql)
            await connection.execute(
                "INSERT INTO public.relance_migration (package, name, checksum) VALUES ($1, $2, $3)",
                package, migration.name, migration.checksum,
            )  # fmt: skip
        log.info("migration applied", package=package, migration=migration.name)
        done.append(migration.name)
    return done
