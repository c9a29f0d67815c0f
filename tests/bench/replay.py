"""Replay: the events of a stream, out of PostgreSQL."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.bench.appends import event_of, fresh_server, service_url

from relance.eventlog import PostgresLog

EVENTS, APPEND = 100_000, 500


async def fill(log: PostgresLog, stream: str, events: int = EVENTS) -> None:
    """Write a stream of so many events."""
    head = (await log.create(stream, [event_of(stream, 1)])).head
    while head < events:
        batch = [event_of(stream, version) for version in range(head + 1, min(head + APPEND, events) + 1)]
        head = await log.append(stream, head, 1, batch)


async def read_raw(log: PostgresLog, stream: str) -> tuple[float, int]:
    """Serialised events a second, and how many there were."""
    start, n = time.perf_counter(), 0
    async for page in log.replay(stream):
        n += len(page)
    return n / (time.perf_counter() - start), n


async def rates() -> dict[str, float]:
    """raw: serialised events read a second from a stream of 100,000."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        async with PostgresLog(await service_url(server.url), "bench") as log:
            await fill(log, "t-1")
            raw, _ = await read_raw(log, "t-1")
    return {"raw": raw}
