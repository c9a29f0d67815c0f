"""The secrets of a room on several machines, as files: one folder a Secret, one file a key.

    lobby/ table/ wallet/ rake/   database-url, nats-url, signing.pem, signing-kid; the lobby: player.pem, player-kid
    migrate/                      database-url of the owner, for migrations and logins
    audit/                        database-url of the role that may only read
    logins/                       a password a database role
    postgres/, nats/              what servers of our own are started with
    keyring/                      keyring.json: public keys, no secret
    keys/                         operator-1.pem, with which `relance token --data` signs; belongs on no server

What is there stays. A key whose file was removed is made anew under another id; the ring keeps the old one until it is
retired.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from relance.room.folder import OPERATOR_ROLES
from relance.room.processes import RoomError, write_private
from relance.room.services import AUDIT_ROLE, OPERATOR_ROLE, SERVICES, with_login
from relance.runtime.auth import PLAYER, SERVICE, TokenSigner

LOGINS = (*(f"relance_{service}" for service in SERVICES), AUDIT_ROLE, OPERATOR_ROLE)
"""Database roles that log in."""

_KEYS = {f"{service}/signing": (service, (SERVICE,)) for service in SERVICES} | {"lobby/player": ("player", (PLAYER,))}
_OPERATOR_KEY = "operator-1"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where PostgreSQL and NATS are. A URL without a password gets one that is made here."""

    database_url: str
    """Of a role that owns the schemas and may create roles."""
    nats_url: str


def make(folder: Path, servers: Servers, retired: Collection[str] = ()) -> list[str]:
    """Write what is missing, and every URL; the files that are new. Raises RoomError.

    `retired`: ids of keys that are taken out of the ring.
    """
    before = {path for path in folder.rglob("*") if path.is_file()}
    ring = _ring(folder)
    for kid in retired:
        if ring.pop(kid, None) is None:
            raise RoomError(f"the key ring has no {kid}; it has {', '.join(sorted(ring))}")
    for path, (name, roles) in _KEYS.items():
        _key(folder / f"{path}.pem", folder / f"{path}-kid", name, roles, ring)
    _operator_key(folder / "keys" / f"{_OPERATOR_KEY}.pem", ring)
    _write(folder / "keyring" / "keyring.json", json.dumps({"keys": ring}, indent=1, sort_keys=True))
    passwords = {role: _secret(folder / "logins" / role) for role in LOGINS}
    nats = {service: _secret(folder / "nats" / service) for service in SERVICES}
    owner = urlsplit(servers.database_url)
    if owner.username is None:
        raise RoomError("the database URL must name the owner: postgresql://owner@host:5432/relance")
    password = owner.password or _secret(folder / "postgres" / "password")
    _write(folder / "migrate" / "database-url", with_login(servers.database_url, owner.username, password))
    _write(folder / "audit" / "database-url", with_login(servers.database_url, AUDIT_ROLE, passwords[AUDIT_ROLE]))
    for service in SERVICES:
        url = with_login(servers.database_url, f"relance_{service}", passwords[f"relance_{service}"])
        _write(folder / service / "database-url", url)
        _write(folder / service / "nats-url", with_login(servers.nats_url, service, nats[service]))
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path not in before)


def logins(folder: Path) -> dict[str, str]:
    """Passwords by role, from a folder with a file a role. Raises RoomError."""
    found = {path.name: path.read_text().strip() for path in folder.iterdir() if not path.name.startswith(".")}
    unknown = found.keys() - set(LOGINS)
    if unknown or not found:
        raise RoomError(f"{folder} must hold files named like roles: {', '.join(LOGINS)}")
    return found


def _key(pem: Path, kid_file: Path, name: str, roles: tuple[str, ...], ring: dict[str, object]) -> None:
    if not pem.exists():
        last = max((int(kid.removeprefix(f"{name}-")) for kid in ring if re.fullmatch(rf"{name}-\d+", kid)), default=0)
        kid = f"{name}-{last + 1}"
        _write(pem, TokenSigner.generate(kid).pem().decode())
        _write(kid_file, kid)
    kid = kid_file.read_text()
    ring[kid] = TokenSigner.from_file(pem, kid).entry(*roles)


def _operator_key(pem: Path, ring: dict[str, object]) -> None:
    if not pem.exists():
        _write(pem, TokenSigner.generate(_OPERATOR_KEY).pem().decode())
    ring[_OPERATOR_KEY] = TokenSigner.from_file(pem, _OPERATOR_KEY).entry(*OPERATOR_ROLES)


def _ring(folder: Path) -> dict[str, object]:
    file = folder / "keyring" / "keyring.json"
    ring: dict[str, object] = json.loads(file.read_text())["keys"] if file.exists() else {}
    return ring


def _secret(file: Path) -> str:
    if not file.exists():
        # A letter first: NATS reads what looks like a number as one.
        _write(file, "s" + secrets.token_hex(24))
    return file.read_text()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(file, text)
