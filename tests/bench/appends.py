"""Appends a second: 64 streams at once through the log, against one connection that commits one row at a time."""

from __future__ import annotations

import asyncio
import resource
import secrets
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from relance.api.events.v1.events_pb2 import Called, TableEvent
from relance.eventlog import PostgresLog
from relance.room.embedded import Postgres
from relance.runtime.migrations import migrate

NAME = "appends"
STREAMS, TURNS, SINGLE = 64, 400, 3_000


def _event(stream: str, version: int) -> TableEvent:
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


async def one_by_one(url: str) -> float:
    """Rows a second of one connection, one row a commit."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE TABLE single (stream text, version bigint, body bytea NOT NULL, PRIMARY KEY (stream, version))"
    )
    statement = await connection.prepare("INSERT INTO single VALUES ($1, $2, $3)")
    body = _event("t-1", 1).SerializeToString()
    start = time.perf_counter()
    for version in range(SINGLE):
        await statement.fetch("t-1", version, body)
    rate = SINGLE / (time.perf_counter() - start)
    await connection.close()
    return rate


async def together(url: str) -> tuple[float, float]:
    """Appends a second over all streams, and this process's microseconds of CPU for each."""
    async with PostgresLog(url, "bench") as log:

        async def stream_of(stream: str) -> None:
            head = (await log.create(stream, [_event(stream, 1)])).head
            for _ in range(TURNS):
                head = await log.append(stream, head, 1, [_event(stream, head + 1)])

        cpu, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        await asyncio.gather(*(stream_of(f"t-{i}") for i in range(STREAMS)))
        seconds, spent = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    used = spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime
    return STREAMS * TURNS / seconds, used / (STREAMS * TURNS) * 1e6


def fresh_server(stack: ExitStack) -> Postgres:
    """A PostgreSQL server that goes with the stack."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    server = Postgres(folder / "postgres")
    server.start()
    stack.callback(server.stop)
    return server


async def measure() -> dict[str, float]:
    """ours, limit: appends a second; cpu_us: CPU of this process an append, the making of the event included."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        limit = await one_by_one(server.url)
        ours, cpu_us = await together(await service_url(server.url))
    return {"ours": ours, "limit": limit, "ratio": ours / limit, "target": 10.0, "cpu_us": cpu_us}
