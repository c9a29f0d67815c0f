"""The data folder of a room: where everything lies, and whose it is while a room runs on it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from pathlib import Path

from relance.room.processes import RoomError, stop_leftover, write_private
from relance.runtime.auth import AUDITOR, CASHIER, FLOOR, PLAYER, SERVICE, VIEWER, TokenSigner

OPERATOR_ROLES = (VIEWER, FLOOR, CASHIER, AUDITOR)
# Which key may grant what: nobody but the lobby makes players, nobody but `relance token` operators.
KEYS = {"lobby-1": (PLAYER,), "operator-1": OPERATOR_ROLES, "service-1": (SERVICE,)}


class DataFolder:
    """Paths below the data folder, its lock, its secrets (made once, mode 0600)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.postgres = self.path / "postgres"
        self.nats = self.path / "nats"
        self.run = self.path / "run"
        self.logs = self.path / "logs"
        self.keys = self.path / "keys"
        self.keyring = self.keys / "keyring.json"
        self._lock: int | None = None

    def take(self) -> None:
        """Make the folder and lock it for this process. Raises RoomError where another room runs on it."""
        try:
            for folder, mode in ((self.path, 0o755), (self.run, 0o755), (self.logs, 0o755), (self.keys, 0o700)):
                folder.mkdir(mode=mode, parents=True, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RoomError(f"the data folder {self.path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 20).decode().strip()
            os.close(lock)
            raise RoomError(
                f"a room is already running on {self.path} (process {holder}); stop it, or choose another --data"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            (self.run / "room.json").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def stop_leftovers(self) -> list[str]:
        """Stop the processes of an earlier supervisor that was killed: clients first, servers last. Their names."""
        files = sorted(self.run.glob("*.pid"), key=lambda file: (file.stem != "bots", file.stem))
        stopped = [stop_leftover(file) for file in files]
        servers = {"postgres": self.postgres / "pid", "nats": self.nats / "pid"}
        stopped += [name for name, file in servers.items() if stop_leftover(file)]
        return [name for name in stopped if name]

    def make_keys(self) -> None:
        """Make the signing keys and the key ring where they are not there yet."""
        entries: dict[str, object] = {}
        for kid, roles in KEYS.items():
            file = self.key_file(kid)
            if not file.exists():
                write_private(file, TokenSigner.generate(kid).pem().decode())
            entries[kid] = TokenSigner.from_file(file, kid).entry(*roles)
        ring = json.dumps({"keys": entries}, indent=1)
        if not self.keyring.exists() or self.keyring.read_text() != ring:
            write_private(self.keyring, ring)

    def key_file(self, kid: str) -> Path:
        """Private key of `kid`, PEM."""
        return self.keys / f"{kid}.pem"

    def operator_token(self, name: str, roles: tuple[str, ...], seconds: int) -> str:
        """A token for an operator. Raises RoomError where no room was ever started here."""
        file = self.key_file("operator-1")
        if not file.exists():
            raise RoomError(
                f"no room was started on {self.path} yet: there is no {file}; run relance up, or give --data"
            )
        token, _ = TokenSigner.from_file(file, "operator-1").sign(f"operators/{name}", roles, seconds=seconds)
        return token

    def secret(self, name: str) -> str:
        """A random secret that stays the same for this folder."""
        file = self.keys / f"{name}.secret"
        if not file.exists():
            write_private(file, secrets.token_urlsafe(24))
        return file.read_text()

    def write_addresses(self, addresses: dict[str, str]) -> None:
        """Tell other programs on this machine where the running room's services are."""
        (self.run / "room.json").write_text(json.dumps(addresses, indent=1))

    def addresses(self) -> dict[str, str]:
        """Where the running room's services are. Raises RoomError where none runs."""
        try:
            read: dict[str, str] = json.loads((self.run / "room.json").read_text())
            running = self._is_taken()
        except OSError:
            running = False
        if not running:
            raise RoomError(f"no room is running on {self.path}; run relance up, or give --data")
        return read

    def _is_taken(self) -> bool:
        """Whether a room runs on the folder: what a killed one wrote is still there. Raises OSError."""
        with (self.path / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
