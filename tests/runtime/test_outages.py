"""The database and NATS come and go; what stands on them stays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from relance.room.embedded import Nats
from relance.runtime import database
from relance.runtime.nats import link


async def test_a_pool_of_a_server_that_is_away_is_there_all_the_same() -> None:
    async with database.pool("postgresql://u:p@127.0.0.1:1/x", name="test") as pool:
        assert not await database.answers(pool)
        with pytest.raises(database.OUTAGE):
            await pool.fetchval("SELECT 1")


async def test_a_pool_knows_its_name_and_serves_after_its_connections_were_cut(database_url: str) -> None:
    async with database.pool(database_url, name="relance-test") as pool:
        await database.wait(pool)
        assert await pool.fetchval("SHOW application_name") == "relance-test"
        assert await pool.fetchval("SHOW timezone") == "UTC"
        admin = await asyncpg.connect(database_url)
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await admin.close()
        await database.wait(pool)
        assert await pool.fetchval("SELECT 1") == 1


@pytest.mark.parametrize(
    "raised",
    [
        ConnectionResetError(),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress"),
        asyncpg.CannotConnectNowError(),
        asyncpg.AdminShutdownError(),
        asyncpg.CrashShutdownError(),
    ],
    ids=repr,
)
def test_whatever_asyncpg_raises_when_the_server_dies_under_it_is_an_outage(raised: Exception) -> None:
    assert isinstance(raised, database.OUTAGE)


async def test_a_database_that_may_lose_what_it_committed_is_refused(database_url: str) -> None:
    async with database.pool(database_url + "?synchronous_commit=off", name="test") as pool:
        with pytest.raises(database.UnfitDatabase, match="synchronous_commit"):
            await database.answers(pool)


async def test_nats_may_come_late_and_come_back_and_is_prepared_each_time(tmp_path: Path) -> None:
    server = Nats(tmp_path / "nats")
    prepared: list[Client] = []
    times: asyncio.Queue[int] = asyncio.Queue()

    async def prepare(client: Client) -> None:
        prepared.append(client)
        times.put_nowait(len(prepared))
        if len(prepared) == 1:
            raise TimeoutError  # tried again

    async with link(server.url, name="test", on_connect=prepare) as made:
        assert not made.connected
        await asyncio.to_thread(server.start)
        try:
            await asyncio.wait_for(made.wait_connected(), 10)
            assert [await asyncio.wait_for(times.get(), 10) for _ in range(2)] == [1, 2]
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            assert await asyncio.wait_for(times.get(), 20) == 3
            await made.client.publish("somewhere", b"")
            await made.client.flush(5)
        finally:
            await asyncio.to_thread(server.stop)
    assert prepared == [made.client] * 3


async def test_leaving_a_link_is_no_outage(nats_server: Nats) -> None:
    with capture_logs() as lines:
        async with link(nats_server.url, name="test") as made:
            await asyncio.wait_for(made.wait_connected(), 10)
    assert [line["event"] for line in lines] == ["nats connected"]


async def test_leaving_a_link_to_nobody_takes_no_time() -> None:
    async with asyncio.timeout(5):
        async with link("nats://127.0.0.1:1", name="test") as made:
            assert not made.connected
