"""The lobby as a process: settings, migrations, health, outages, an end in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.room.embedded import Postgres
from relance.room.ports import free_port

from .conftest import PASSWORD, Keys

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def environment(keys: Keys, **settings: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RELANCE_")}
    return inherited | {
        "RELANCE_KEYRING": str(keys.ring),
        "RELANCE_SIGNING_KEY": str(keys.folder / "service-1.pem"),
        "RELANCE_PLAYER_SIGNING_KEY": str(keys.folder / "lobby-1.pem"),
        "RELANCE_NATS_URL": "nats://127.0.0.1:1",
        "RELANCE_ADDRESS_FILE": str(keys.folder / "address"),
        **settings,
    }


def command(name: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "relance.lobby", name],
        env=variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def serving(keys: Keys, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], grpc.Channel]]:
    """A lobby in a process of its own, and a channel to it."""
    (keys.folder / "address").unlink(missing_ok=True)
    with (keys.folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "relance.lobby", "serve"],
            env=environment(keys, **settings), stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        until(lambda: (keys.folder / "address").exists() or process.poll() is not None)
        with grpc.insecure_channel((keys.folder / "address").read_text()) as channel:
            yield process, channel
    finally:
        process.kill()
        process.wait()


def health(channel: grpc.Channel, service: str) -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    return int(stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5).status)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A database server that a test may stop."""
    made = Postgres(tmp_path_factory.mktemp("stoppable") / "postgres")
    made.start()
    yield made
    made.stop(fast=False)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "RELANCE_DATABASE_URL: is missing"),
        ({"RELANCE_DATABASE_URL": "postgresql://h", "RELANCE_LISTEN": "x"}, "RELANCE_LISTEN: must be host:port"),
    ],
)
def test_a_bad_setting_is_one_line_and_exit_code_2(keys: Keys, settings: dict[str, str], text: str) -> None:
    ended = command("serve", environment(keys, **settings))
    assert ended.returncode == 2
    assert text in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_key_file_that_is_missing_is_exit_code_2_without_a_traceback(keys: Keys) -> None:
    (keys.folder / "lobby-1.pem").unlink()
    ended = command("serve", environment(keys, RELANCE_DATABASE_URL="postgresql://127.0.0.1:1/h"))
    assert ended.returncode == 2
    assert "lobby-1.pem" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_database_that_was_not_migrated_is_exit_code_2_and_says_what_is_missing(
    keys: Keys, postgres: Postgres
) -> None:
    ended = command("serve", environment(keys, RELANCE_DATABASE_URL=postgres.url))
    assert ended.returncode == 2
    assert 'relation \\"lobby.' in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_password_that_is_wrong_is_exit_code_2_and_does_not_show(keys: Keys, postgres: Postgres) -> None:
    url = postgres.url.replace("://relance:", "://relance:hunter2")
    ended = command("serve", environment(keys, RELANCE_DATABASE_URL=url))
    assert ended.returncode == 2
    assert "authentication failed" in ended.stdout
    assert "hunter2" not in ended.stdout + ended.stderr


def test_the_database_may_be_away_at_the_start_and_later(keys: Keys, server: Postgres) -> None:
    url = server.url
    assert command("migrate", environment(keys, RELANCE_MIGRATE_URL=url)).returncode == 0
    assert command("migrate", environment(keys, RELANCE_MIGRATE_URL=url)).returncode == 0
    server.stop(fast=False)
    with serving(keys, RELANCE_DATABASE_URL=url, RELANCE_METRICS=f"127.0.0.1:{free_port()}") as (process, channel):
        assert [health(channel, name) for name in ("", "liveness", "readiness")] == [SERVING, SERVING, NOT_SERVING]
        server.start()
        until(lambda: health(channel, "readiness") == SERVING)
        lobby = lobby_pb2_grpc.LobbyServiceStub(channel)
        lobby.Register(lobby_pb2.RegisterRequest(request_id="r", display_name="Ann", password=PASSWORD), timeout=10)
        server.stop(fast=False)
        until(lambda: health(channel, "readiness") == NOT_SERVING)
        assert [health(channel, name) for name in ("", "liveness")] == [SERVING, SERVING]
        with pytest.raises(grpc.RpcError) as caught:
            lobby.SignIn(lobby_pb2.SignInRequest(display_name="Ann", password=PASSWORD), timeout=10)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        server.start()
        until(lambda: health(channel, "readiness") == SERVING)
        assert lobby.SignIn(lobby_pb2.SignInRequest(display_name="Ann", password=PASSWORD), timeout=10).token
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_in_time_whoever_watches_it(keys: Keys, number: signal.Signals) -> None:
    port = free_port()
    settings = {"RELANCE_DATABASE_URL": "postgresql://u:p@127.0.0.1:1/x", "RELANCE_METRICS": f"127.0.0.1:{port}"}
    with serving(keys, **settings) as (process, channel):
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service="readiness"))
        assert next(watch).status == NOT_SERVING
        page = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        assert 'relance_grpc_open{method="/grpc.health.v1.Health/Watch"} 1.0' in page
        process.send_signal(number)
        assert process.wait(10) == 0
    log = Path(keys.folder / "log").read_text()
    assert "Traceback" not in log
    assert '"ended"' in log
