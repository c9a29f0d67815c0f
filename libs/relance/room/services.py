"""What the four services are told: addresses, keys, and a database role each with a password of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from relance.room.folder import DataFolder
from relance.room.ports import free_block, is_free
from relance.room.processes import RoomError

SERVICES = ("wallet", "rake", "lobby", "table")
# Offsets from the base port; servers of the data folder follow the services.
OFFSETS = {"lobby": 0, "wallet": 1, "rake": 2, "table": 3, "postgres": 4, "nats": 5}
METRICS_OFFSET = 6
BLOCK = 10
FAUCET_LIMIT = 1_000_000
# The only table process of a room that died has nobody to wait for but its own successor.
LEASE_SECONDS = 3
AUDIT_ROLE = "relance_audit"
OPERATOR_ROLE = "relance_operator"
# The name under which the data folder tells where the database is.
DATABASE = "database"
_OF_SERVERS_ELSEWHERE = frozenset({"RELANCE_PLAINTEXT", "RELANCE_NATS_CA", "RELANCE_NATS_CERT", "RELANCE_NATS_KEY"})


@dataclass(frozen=True, slots=True)
class Ports:
    """A block of loopback ports: one for each service and server, four for metrics."""

    base: int

    def of(self, name: str) -> int:
        """Port of a service or server."""
        return self.base + OFFSETS[name]

    def address(self, service: str) -> str:
        """gRPC address of a service."""
        return f"127.0.0.1:{self.of(service)}"

    def metrics(self, service: str) -> str:
        """Where Prometheus reads a service."""
        return f"127.0.0.1:{self.base + METRICS_OFFSET + OFFSETS[service]}"

    @staticmethod
    def choose(folder: DataFolder, base: int | None) -> Ports:
        """The ports from `base` on. None: those of the last start where they are free, else others.

        Raises RoomError where a port from `base` on is taken.
        """
        kept = folder.run / "ports"
        if base is None:
            last = int(kept.read_text()) if kept.exists() else 0
            ports = Ports(last if last and not Ports(last).taken() else free_block(BLOCK))
        else:
            ports = Ports(base)
            taken = ports.taken()
            if taken:
                raise RoomError(
                    f"port {taken[0]} is taken; a room needs {base} to {base + BLOCK - 1}: "
                    "give another --port, or none to have free ones chosen"
                )
        kept.write_text(str(ports.base))
        return ports

    def taken(self) -> list[int]:
        """Those of the block that somebody listens on."""
        return [port for port in range(self.base, self.base + BLOCK) if not is_free(port)]


def with_login(url: str, role: str, password: str, database: str | None = None) -> str:
    """`url` for another role, and another database where one is given."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if database is None else f"/{database}"
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{host}", path=path))


def without_login(url: str) -> str:
    """`url` without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def audit_url(folder: DataFolder, url: str) -> str:
    """`url` for the role that may only read."""
    return with_login(url, AUDIT_ROLE, folder.secret("database-" + AUDIT_ROLE.removeprefix("relance_")))


def operator_url(folder: DataFolder, url: str) -> str:
    """`url` for the role that may also rebuild projections and remove what is archived."""
    return with_login(url, OPERATOR_ROLE, folder.secret("database-" + OPERATOR_ROLE.removeprefix("relance_")))


def migrate_environment(migrate_url: str) -> dict[str, str]:
    """Environment of `python -m relance.<service> migrate`."""
    return {**inherited(), "RELANCE_MIGRATE_URL": migrate_url, "RELANCE_LOG_FORMAT": "console"}


def environment(
    service: str, folder: DataFolder, ports: Ports, urls: tuple[str, str], drain_seconds: float
) -> dict[str, str]:
    """Environment of `python -m relance.<service> serve`. `urls`: the database's owner's, and NATS's."""
    database_url, nats_url = urls
    settings = {
        "DATABASE_URL": with_login(database_url, f"relance_{service}", folder.secret(f"database-{service}")),
        "NATS_URL": nats_url,
        "LISTEN": ports.address(service),
        "METRICS": ports.metrics(service),
        "KEYRING": str(folder.keyring),
        "SIGNING_KEY": str(folder.key_file("service-1")),
        "SIGNING_KID": "service-1",
        "PLAYER_SIGNING_KEY": str(folder.key_file("lobby-1")) if service == "lobby" else "",
        "PLAYER_SIGNING_KID": "lobby-1" if service == "lobby" else "",
        "DRAIN_TIMEOUT": str(drain_seconds),
        "LOBBY_ADDRESS": ports.address("lobby"),
        "WALLET_ADDRESS": ports.address("wallet"),
        "RAKE_ADDRESS": ports.address("rake"),
        "TABLE_ADDRESSES": ports.address("table"),
        "FAUCET_LIMIT": str(FAUCET_LIMIT),
        "LEASE": str(LEASE_SECONDS),
        "LOG_FORMAT": "json",
        "LOG_LEVEL": os.environ.get("RELANCE_LOG_LEVEL", "info"),
    }
    return {**inherited(), **{f"RELANCE_{name}": value for name, value in settings.items() if value}}


async def make_database(admin_url: str, name: str) -> str:
    """Make database `name` where it is not there yet. Its URL."""
    admin = await asyncpg.connect(admin_url)
    try:
        if await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name) is None:
            await admin.execute(f'CREATE DATABASE "{name}"')
    finally:
        await admin.close()
    parts = urlsplit(admin_url)
    return urlunsplit(parts._replace(path=f"/{name}"))


async def allow_logins(owner_url: str, folder: DataFolder) -> None:
    """Let each service's role, the auditors' and the operators' log in with the passwords of this folder."""
    roles = (*(f"relance_{service}" for service in SERVICES), AUDIT_ROLE, OPERATOR_ROLE)
    await let_log_in(owner_url, {role: folder.secret("database-" + role.removeprefix("relance_")) for role in roles})


async def let_log_in(owner_url: str, passwords: Mapping[str, str]) -> None:
    """Let roles log in, each with its password. Raises asyncpg.PostgresError where there is no such role."""
    owner = await asyncpg.connect(owner_url)
    try:
        for role, password in passwords.items():
            # ALTER ROLE takes no parameters.
            await owner.execute(
                await owner.fetchval(
                    "SELECT format('ALTER ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)", role, password
                )
            )
    finally:
        await owner.close()


def serve_command(service: str) -> list[str]:
    """Command line of a service."""
    return [sys.executable, "-m", f"relance.{service}", "serve"]


def migrate_command(service: str) -> list[str]:
    """Command line of a service's migrations."""
    return [sys.executable, "-m", f"relance.{service}", "migrate"]


def inherited() -> dict[str, str]:
    """This process's environment without the settings of services: those come from the room alone.

    How servers elsewhere are reached is nothing that the room could know.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RELANCE_") or name in _OF_SERVERS_ELSEWHERE
    }
