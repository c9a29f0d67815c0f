"""Appends a second: 64 streams at once through the log, against one connection that commits one row at a time."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from relance.api.events.v1.events_pb2 import Called, TableEvent
from relance.eventlog import PostgresLog
from relance.room.embedded import Postgres
from relance.runtime.migrations import migrate

NAME = "appends"
STREAMS, TURNS, SINGLE, ROUNDS = 64, 150, 1_000, 5


def event_of(stream: str, version: int) -> TableEvent:
    """A small event."""
    return TableEvent(
        table=stream, version=version, hand=12, time_us=1_790_000_000_000_000, called=Called(seat=3, amount=200)
    )


async def service_url(url: str) -> str:
    """Migrate the log into the database of a superuser's URL; the URL of a member of relance_table."""
    await migrate(url, "relance.eventlog")
    password = secrets.token_hex(8)
    admin = await asyncpg.connect(url)
    await admin.execute(f"CREATE ROLE bench LOGIN PASSWORD '{password}' IN ROLE relance_table")
    await admin.close()
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"bench:{password}@{parts.hostname}:{parts.port}"))


async def one_by_one(connection: asyncpg.Connection[asyncpg.Record], stream: str) -> float:
    """Rows a second of one connection, one row a commit."""
    statement = await connection.prepare("INSERT INTO single VALUES ($1, $2, $3)")
    start = time.perf_counter()
    for version in range(SINGLE):
        await statement.fetch(stream, version, event_of(stream, version).SerializeToString())
    return SINGLE / (time.perf_counter() - start)


async def together(log: PostgresLog, prefix: str) -> tuple[float, float]:
    """Appends a second over all streams, and this process's microseconds of CPU for each."""

    async def fill(stream: str) -> None:
        head = 1
        for _ in range(TURNS):
            head = await log.append(stream, head, 1, [event_of(stream, head + 1)])

    streams = [f"{prefix}-{i}" for i in range(STREAMS)]
    for stream in streams:
        await log.create(stream, [event_of(stream, 1)])
    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(fill(stream) for stream in streams))
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    return STREAMS * TURNS / seconds, used / (STREAMS * TURNS) * 1e6


def fresh_server(stack: ExitStack) -> Postgres:
    """A PostgreSQL server that goes with the stack."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    server = Postgres(folder / "postgres")
    server.start()
    stack.callback(server.stop)
    return server


async def measure() -> dict[str, float]:
    """ours, limit: appends a second, medians of rounds in turn; cpu_us: CPU of this process an append."""
    single, grouped = [], []
    with ExitStack() as stack:
        server = fresh_server(stack)
        url = await service_url(server.url)
        connection = await asyncpg.connect(server.url)
        await connection.execute(
            "CREATE TABLE single (stream text, version bigint, body bytea NOT NULL, PRIMARY KEY (stream, version))"
        )
        async with PostgresLog(url, "bench") as log:
            for turn in range(ROUNDS):
                single.append(await one_by_one(connection, f"s-{turn}"))
                grouped.append(await together(log, f"t-{turn}"))
        await connection.close()
    ours, limit = median(rate for rate, _ in grouped), median(single)
    cpu_us = median(cpu for _, cpu in grouped)
    return {"ours": ours, "limit": limit, "ratio": ours / limit, "target": 10.0, "cpu_us": cpu_us}
