"""The embedded PostgreSQL that stands in for the overlay's PostgreSQL pod."""

from __future__ import annotations

import signal
from pathlib import Path

import asyncpg

from relance.cluster.relay import Place
from relance.room.embedded import Postgres
from relance.room.processes import RoomError
from relance.room.room import until
from relance.room.services import with_login

STOP_SECONDS = 30.0


class Database:
    """PostgreSQL with a user, a password and a database as the image postgres would have made them."""

    def __init__(self, folder: Path, user: str, password: str, name: str) -> None:
        self._server = Postgres(folder)
        self._user, self._password, self._name = user, password, name
        self._keeps_running = False

    @property
    def place(self) -> Place:
        """Where it listens."""
        return "127.0.0.1", self._server.port

    @property
    def url(self) -> str:
        """For the owner, past every wire."""
        return self.url_for(self._user, self._password)

    def url_for(self, role: str, password: str) -> str:
        """For another role."""
        host, port = self.place
        return with_login(f"postgresql://{host}:{port}/{self._name}", role, password)

    async def start(self) -> None:
        """Start it and make user and database. Raises RoomError."""
        await self._run()
        # Pods come from addresses of their own; the server lets 127.0.0.1 alone in.
        with (self._server.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 127.0.0.0/8 scram-sha-256\n")
        self._server.child.send(signal.SIGHUP)
        admin = await asyncpg.connect(self._server.url)
        try:
            there = await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", self._user)
            verb = "ALTER" if there else "CREATE"
            login = f"SELECT format('{verb} ROLE %I LOGIN SUPERUSER PASSWORD %L', $1::text, $2::text)"
            await admin.execute(await admin.fetchval(login, self._user, self._password))
            database = "SELECT format('CREATE DATABASE %I OWNER %I', $1::text, $2::text)"
            await admin.execute(await admin.fetchval(database, self._name, self._user))
        finally:
            await admin.close()

    async def restart(self) -> None:
        """Stop it as an orderly shutdown does, which ends every session, and start it again. Raises RoomError."""
        self._server.child.send(signal.SIGINT)
        if not await until(lambda: not self._server.child.running, STOP_SECONDS):
            raise RoomError(f"PostgreSQL did not stop within {STOP_SECONDS:.0f} s; see {self._server.child.log}")
        await self._run()

    def kill(self) -> None:
        """End it at once."""
        self._server.child.send(signal.SIGQUIT)
        if not self._server.child.wait(STOP_SECONDS):
            self._server.kill()

    async def _run(self) -> None:
        self._server.spawn()
        await until(self._server.ready)
