"""Followers on real PostgreSQL and NATS: every event once, whatever happens to the messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
import nats.js.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import Follower, MemoryLog, MemoryStore, Unavailable
from relance.eventlog.commit import Connection
from relance.eventlog.publish import STREAM, ensure_stream
from relance.room.embedded import Nats

from .conftest import Events
from .test_publish import connect, publishing, until

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """The follower's own database: positions, and a list of what was applied."""
    async with asyncpg.create_pool(database_url, min_size=1, max_size=4) as pool:
        await pool.execute(
            "CREATE SCHEMA stats;"
            "CREATE TABLE stats.position (stream text PRIMARY KEY, version bigint NOT NULL);"
            "CREATE TABLE stats.applied (stream text, version bigint, text text)"
        )
        yield pool


@pytest.fixture
def store() -> MemoryStore:
    """The store behind the log."""
    return MemoryStore()


@pytest.fixture
def log(store: MemoryStore) -> MemoryLog:
    """The log followed: its contract is PostgreSQL's."""
    return MemoryLog("ada", store)


@pytest_asyncio.fixture
async def client(nats_server: Nats) -> AsyncIterator[Client]:
    """A connection to NATS."""
    client = await connect(nats_server.url)
    yield client
    await client.close()


async def apply(connection: Connection, events: Sequence[TableEvent]) -> None:
    """The effect: a row an event."""
    await connection.executemany(
        "INSERT INTO stats.applied VALUES ($1, $2, $3)", [(e.table, e.version, e.ruling_recorded.text) for e in events]
    )


@asynccontextmanager
async def running(follower: Follower) -> AsyncIterator[Follower]:
    """A follower at work."""
    task = asyncio.create_task(follower.run())
    yield follower
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class Alarms(list[tuple[str, str]]):
    """What went wrong: stream and sentence."""

    def __call__(self, stream: str, error: Exception) -> None:
        self.append((stream, str(error)))


async def applied(pool: Pool, stream: str, head: int) -> None:
    """Wait for a position; then everything up to it was applied once, in order."""

    async def reached() -> bool:
        return bool(head == await pool.fetchval("SELECT version FROM stats.position WHERE stream = $1", stream))

    await until(reached)
    rows = await pool.fetch("SELECT version FROM stats.applied WHERE stream = $1", stream)
    assert [row["version"] for row in rows] == list(range(1, head + 1))


async def test_it_reads_what_it_lacks_at_the_start(pool: Pool, log: MemoryLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 1000))
    await log.append("t-1", 1000, 1, events("t-1", 1000, 200))
    await log.create("t-2", events("t-2", 0, 3))
    async with running(Follower(pool, "stats.position", log, None, apply, alarm=Alarms())):
        await applied(pool, "t-1", 1200)
        await applied(pool, "t-2", 3)
    await log.append("t-2", 3, 1, events("t-2", 3))
    async with running(Follower(pool, "stats.position", log, None, apply, alarm=Alarms())):
        await applied(pool, "t-2", 4)
        await applied(pool, "t-1", 1200)


async def test_messages_wake_it_up(pool: Pool, log: MemoryLog, client: Client, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    follower = Follower(pool, "stats.position", log, client, apply, alarm=Alarms(), compare_every=3600)
    async with running(follower), publishing(log, client) as publisher:
        await publisher.adopt("t-1", 1)
        await applied(pool, "t-1", 1)
        for head in range(1, 20):
            await log.append("t-1", head, 1, events("t-1", head))
            publisher.publish("t-1", events("t-1", head))
            await applied(pool, "t-1", head + 1)


async def test_lost_doubled_reordered_and_lying_messages_are_harmless(
    pool: Pool, log: MemoryLog, client: Client, events: Events
) -> None:
    await log.create("t-1", events("t-1", 0, 50))
    alarms = Alarms()
    follower = Follower(pool, "stats.position", log, client, apply, alarm=alarms, compare_every=3600)
    async with running(follower):
        await applied(pool, "t-1", 50)
        await log.append("t-1", 50, 1, events("t-1", 50, 10))
        versions = ["60", "55", "60", "3", "60", "999", "no number", ""]
        for version in versions:
            await client.publish("relance.table.t-1", b"not even a message", headers={"Relance-Version": version})
        await client.publish("relance.table.t-1", b"")
        await client.publish("relance.table.t-none", b"", headers={"Relance-Version": "5"})
        await applied(pool, "t-1", 60)
        await client.publish("relance.table.t-1", b"", headers={"Relance-Version": "60"})
        await log.append("t-1", 60, 1, events("t-1", 60))
        await client.publish("relance.table.t-1", b"", headers={"Relance-Version": "61"})
        await applied(pool, "t-1", 61)
    assert alarms == []


async def test_messages_about_what_can_be_no_table_are_not_looked_into(
    pool: Pool, log: MemoryLog, client: Client, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.create("t-1", events("t-1", 0))
    read: list[str] = []
    reading = log.read

    async def noted(stream: str, after: int = 0, limit: int | None = None) -> list[TableEvent]:
        read.append(stream)
        return await reading(stream, after, limit)

    monkeypatch.setattr(log, "read", noted)
    follower = Follower(pool, "stats.position", log, client, apply, alarm=Alarms(), compare_every=3600)
    async with running(follower):
        await applied(pool, "t-1", 1)
        for stream in ("TABLE", "a" * 41, "\u00e9", "t_1"):
            await client.publish(f"relance.table.{stream}", b"", headers={"Relance-Version": "9"})
        await log.append("t-1", 1, 1, events("t-1", 1))
        await client.publish("relance.table.t-1", b"", headers={"Relance-Version": "9" * 5000})
        await client.publish("relance.table.t-1", b"", headers={"Relance-Version": "2"})
        await applied(pool, "t-1", 2)
    assert set(read) == {"t-1"}


async def test_wiping_jetstream_loses_nothing(pool: Pool, log: MemoryLog, client: Client, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    await ensure_stream(client)
    follower = Follower(pool, "stats.position", log, client, apply, alarm=Alarms(), compare_every=0.1)
    async with running(follower):
        await applied(pool, "t-1", 1)
        for head in range(1, 5):
            with contextlib.suppress(nats.js.errors.NotFoundError):
                await client.jetstream().delete_stream(STREAM)
            await log.append("t-1", head, 1, events("t-1", head))  # and nobody is told
            await applied(pool, "t-1", head + 1)


async def test_it_wakes_only_for_the_types_it_asked_for(
    pool: Pool, log: MemoryLog, client: Client, events: Events
) -> None:
    await log.create("t-1", events("t-1", 0))
    reads: list[int] = []

    class Counting:
        """The log, noting every read."""

        async def heads(self) -> dict[str, int]:
            return await log.heads()

        async def read(self, stream: str, after: int, limit: int) -> list[TableEvent]:
            reads.append(after)
            return await log.read(stream, after, limit)

    follower = Follower(
        pool, "stats.position", Counting(), client, apply, alarm=Alarms(), types=["hand_ended"], compare_every=3600
    )
    async with running(follower):
        await applied(pool, "t-1", 1)
        for version, types in (("2", "checked,called"), ("3", "called,hand_ended")):
            await log.append("t-1", int(version) - 1, 1, events("t-1", int(version) - 1))
            await client.publish("relance.table.t-1", b"", headers={"Relance-Version": version, "Relance-Types": types})
        await applied(pool, "t-1", 3)
    assert reads == [0, 1]  # as far as was heard, and no read more


async def test_position_and_effect_are_one(pool: Pool, log: MemoryLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 5))
    failures = iter([True, True, False])

    async def breaks_halfway(connection: Connection, events: Sequence[TableEvent]) -> None:
        await apply(connection, events[:3])
        if next(failures):
            raise RuntimeError("halfway")
        await apply(connection, events[3:])

    alarms = Alarms()
    follower = Follower(pool, "stats.position", log, None, breaks_halfway, alarm=alarms, compare_every=0.01)
    async with running(follower):
        await applied(pool, "t-1", 5)
    assert alarms == [("t-1", "halfway")] * 2


async def test_a_poisoned_stream_is_parked_and_the_others_go_on(pool: Pool, log: MemoryLog, events: Events) -> None:
    for stream in ("t-1", "t-2", "t-3"):
        await log.create(stream, events(stream, 0))

    async def chokes_on_t_2(connection: Connection, events: Sequence[TableEvent]) -> None:
        if events[0].table == "t-2":
            raise ValueError("cannot be applied")
        await apply(connection, events)

    alarms = Alarms()
    follower = Follower(pool, "stats.position", log, None, chokes_on_t_2, alarm=alarms, compare_every=3600)
    async with running(follower):
        await applied(pool, "t-1", 1)
        await applied(pool, "t-3", 1)
        follower.wake("t-2", 1)
        await log.append("t-3", 1, 1, events("t-3", 1))
        follower.wake("t-3", 2)
        await applied(pool, "t-3", 2)
    assert alarms == [("t-2", "cannot be applied")]
    assert list(follower.parked) == ["t-2"]
    async with running(Follower(pool, "stats.position", log, None, apply, alarm=alarms)):
        await applied(pool, "t-2", 1)


async def test_two_followers_with_one_table_apply_everything_once(pool: Pool, log: MemoryLog, events: Events) -> None:
    streams = [f"t-{i}" for i in range(10)]
    for stream in streams:
        await log.create(stream, events(stream, 0, 40))
    alarms = Alarms()
    first, second = (
        Follower(pool, "stats.position", log, None, apply, alarm=alarms, compare_every=0.01) for _ in range(2)
    )
    async with running(first), running(second):
        for stream in streams:
            await log.append(stream, 40, 1, events(stream, 40, 5))
        for stream in streams:
            await applied(pool, stream, 45)
    assert alarms == []


async def test_an_outage_of_the_source_or_the_database_parks_nothing(
    pool: Pool, log: MemoryLog, store: MemoryStore, events: Events
) -> None:
    await log.create("t-1", events("t-1", 0))
    alarms = Alarms()
    lost = iter([asyncpg.ConnectionDoesNotExistError("lost"), ConnectionResetError("cut"), None])
    attempts: list[int] = []

    async def loses_the_connection(connection: Connection, events: Sequence[TableEvent]) -> None:
        attempts.append(len(events))
        error = next(lost)
        if error is not None:
            raise error
        await apply(connection, events)

    follower = Follower(pool, "stats.position", log, None, loses_the_connection, alarm=alarms, compare_every=3600)
    store.set_connected(False)
    with pytest.raises(Unavailable):
        await log.heads()
    async with running(follower):
        store.set_connected(True)
        await applied(pool, "t-1", 1)
    assert alarms == []
    assert attempts == [1, 1, 1]


async def test_a_table_name_is_checked(pool: Pool, log: MemoryLog) -> None:
    with pytest.raises(ValueError, match=r"schema\.table"):
        Follower(pool, "position; DROP TABLE x", log, None, apply, alarm=Alarms())
