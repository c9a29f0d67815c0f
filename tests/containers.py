"""PostgreSQL and NATS in containers, for RELANCE_TEST_BACKEND=containers: same outside as the embedded servers."""

from __future__ import annotations

import secrets
import socket
import time

import psycopg
import pytest
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from relance.room.ports import free_port

POSTGRES_IMAGE = "postgres:18-alpine"
NATS_IMAGE = "nats:2.11-alpine"
START_TIMEOUT = 60.0


def require_engine() -> None:
    """Raise pytest.UsageError where no container engine answers."""
    try:
        DockerClient()
    except DockerException as error:
        raise pytest.UsageError(f"RELANCE_TEST_BACKEND=containers, but no container engine answers: {error}") from error


class PostgresContainer:
    """A PostgreSQL server in a container, on a loopback port that it keeps over stop and start."""

    def __init__(self) -> None:
        self.port = free_port()
        password = secrets.token_urlsafe(24)
        self.url = f"postgresql://relance:{password}@127.0.0.1:{self.port}/postgres"
        self._container = (
            DockerContainer(POSTGRES_IMAGE)
            .with_env("POSTGRES_USER", "relance")
            .with_env("POSTGRES_PASSWORD", password)
            .with_env("POSTGRES_DB", "postgres")
            .with_command("postgres -c max_connections=200")
            .with_bind_ports("5432/tcp", self.port)
        )
        self._made = False

    def start(self) -> None:
        """Start and wait until it answers a query."""
        if self._made:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._made = True
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self, *, fast: bool = True) -> None:
        """Stop: fast shutdown (SIGINT), or immediate (SIGQUIT: as after a power cut)."""
        self._end("SIGINT" if fast else "SIGQUIT")

    def kill(self) -> None:
        """SIGKILL the server."""
        self._end("SIGKILL")

    def _end(self, signal: str) -> None:
        container = self._container.get_wrapped_container()
        container.kill(signal=signal)
        container.wait(timeout=30)


class NatsContainer:
    """A NATS server with JetStream in a container, on a loopback port that it keeps over stop and start."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._container = DockerContainer(NATS_IMAGE).with_command("-js").with_bind_ports("4222/tcp", self.port)
        self._made = False

    def start(self) -> None:
        """Start and wait until it greets."""
        if self._made:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._made = True
        deadline = time.monotonic() + START_TIMEOUT
        while not self._greets():
            if time.monotonic() > deadline:
                raise TimeoutError("the NATS container does not answer")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server (SIGTERM)."""
        container = self._container.get_wrapped_container()
        container.kill(signal="SIGTERM")
        container.wait(timeout=15)

    def kill(self) -> None:
        """SIGKILL the server."""
        container = self._container.get_wrapped_container()
        container.kill(signal="SIGKILL")
        container.wait(timeout=15)

    def _greets(self) -> bool:
        # The engine's proxy accepts connections before the server does; only the server says INFO.
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False
