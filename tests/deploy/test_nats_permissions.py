"""NATS by the configuration that we ship: each service may do what it does, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.deploy.rendering import DEPLOY

from relance.eventlog.publish import SUBJECT, ensure_stream
from relance.room.embedded import nats_bin
from relance.room.ports import free_port
from relance.room.services import SERVICES
from relance.wallet.announce import SUBJECT as TRANSFERS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server on the shipped configuration, but for its port and folder; its port."""
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    text = (DEPLOY / "k8s" / "overlays" / "dev" / "nats.conf").read_text()
    for ours, here in (("port: 4222", f"port: {port}"), ("http: 0.0.0.0:8222", ""), ("/data", str(folder / "data"))):
        assert ours in text
        text = text.replace(ours, here)
    config = folder / "nats.conf"
    config.write_text(f'host: "127.0.0.1"\n{text}')
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [nats_bin(), "-c", config], stdout=log, stderr=log,
            env={f"NATS_{service.upper()}": f"s{service}" for service in SERVICES},
        )  # fmt: skip
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.02)
    yield port
    process.send_signal(signal.SIGINT)
    process.wait(10)


@asynccontextmanager
async def connected(port: int, service: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A connection of a service, and what the server refused it."""
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(f"nats://{service}:s{service}@127.0.0.1:{port}", error_cb=note, allow_reconnect=False)
    try:
        yield client, refused
    finally:
        await client.close()


async def first_of(refused: list[str]) -> str:
    """What was refused; it is told some time after."""
    async with asyncio.timeout(10):
        while not refused:  # noqa: ASYNC110 - the client's callback is not ours to signal from
            await asyncio.sleep(0.01)
    return refused[0]


async def test_tables_publish_through_jetstream_and_the_others_hear_it(server: int) -> None:
    async with connected(server, "table") as (table, refused):
        await ensure_stream(table)
        await ensure_stream(table)  # once more, as after a reconnection
        for service in ("lobby", "rake", "wallet"):
            async with connected(server, service) as (listener, not_allowed):
                heard: asyncio.Queue[Msg] = asyncio.Queue()
                await listener.subscribe(SUBJECT + "*", cb=heard.put)
                # The client's flush does not wait for a subscription: news come again until they are heard.
                async with asyncio.timeout(10):
                    while heard.empty():
                        acknowledged = await table.request(SUBJECT + "t1", b"news", timeout=5)
                        assert b"RELANCE_TABLES" in acknowledged.data
                assert (await heard.get()).data == b"news"
                assert not_allowed == []
        assert refused == []


@pytest.mark.parametrize(
    ("service", "subject"),
    [
        ("lobby", SUBJECT + "t1"),
        ("rake", SUBJECT + "t1"),
        ("wallet", SUBJECT + "t1"),
        ("lobby", TRANSFERS),
        ("table", TRANSFERS),
        ("table", "$JS.API.STREAM.DELETE.RELANCE_TABLES"),
        ("rake", "$JS.API.STREAM.PURGE.RELANCE_TABLES"),
    ],
)
async def test_nobody_publishes_what_is_not_theirs(server: int, service: str, subject: str) -> None:
    async with connected(server, service) as (client, refused):
        await client.publish(subject, b"forged")
        assert "permissions violation" in await first_of(refused)


@pytest.mark.parametrize(
    ("service", "subject"), [("lobby", "_INBOX.>"), ("rake", TRANSFERS), ("wallet", ">"), ("table", SUBJECT + "*")]
)
async def test_nobody_listens_to_what_is_not_theirs(server: int, service: str, subject: str) -> None:
    async with connected(server, service) as (client, refused):
        await client.subscribe(subject)
        assert "permissions violation" in await first_of(refused)


async def test_a_wallet_tells_of_transfers(server: int) -> None:
    async with connected(server, "wallet") as (client, refused):
        await client.publish(TRANSFERS, b"news")
        await client.subscribe("nothing.of.his")  # what is answered after it
        assert "nothing.of.his" in (await first_of(refused)).lower()


async def test_nobody_comes_in_without_a_password(server: int) -> None:
    async with connected(server, "wallet"):  # it runs
        with pytest.raises((nats.errors.Error, OSError)):
            await nats.connect(
                f"nats://127.0.0.1:{server}", allow_reconnect=False, max_reconnect_attempts=0, connect_timeout=2
            )
