"""Events a second from the log in PostgreSQL to a table's state, against an aggregate of `eventsourcing`."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from tests.bench.appends import fresh_server, service_url
from tests.bench.rules import OurTable

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import PostgresLog
from relance.table.recovery import replay

NAME = "replay"
WHAT = "Events a second from PostgreSQL to state: a table of the room; an aggregate of eventsourcing; times"
TARGET = 4.0

EVENTS = 10_000
APPEND = 500
RUNS = 5


class Pot(Aggregate):
    """An aggregate whose events carry what a bet carries."""

    def __init__(self) -> None:
        self.pot = 0
        self.stacks: dict[int, int] = {}

    @event("Raised")
    def raise_to(self, seat: int, amount: int, to: int, raise_by: int, hand: int) -> None:
        """Chips from a stack to the pot."""
        self.pot += amount
        self.stacks[seat] = self.stacks.get(seat, 0) - amount


def played() -> list[TableEvent]:
    """The log of a table, commitments to the deck included, as a real one."""
    table = OurTable(commitments=True)
    while len(table.log) < EVENTS:
        if sum(seat.stack > 0 for seat in table.table.seats.values()) < 2:
            raise RuntimeError("the players went broke before there were enough events")
        table.hand()
    return [TableEvent.FromString(body) for body in table.log[:EVENTS]]


async def ours(url: str) -> float:
    """Events a second."""
    events = played()
    async with PostgresLog(url, "bench") as log:
        head = (await log.create("bench", events[:APPEND])).head
        for start in range(APPEND, EVENTS, APPEND):
            head = await log.append("bench", head, 1, events[start : start + APPEND])
        best = float("inf")
        for _ in range(RUNS):
            start_time = time.perf_counter()
            # The log ends in the middle of a hand: so do logs after a crash.
            table = replay("bench", None, await log.read_raw("bench"))
            best = min(best, time.perf_counter() - start_time)
        assert table.version == EVENTS
    return EVENTS / best


def theirs(url: str) -> float:
    """Events a second."""
    parts = urlsplit(url)
    app: Application[UUID] = Application(
        {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": parts.path.lstrip("/"),
            "POSTGRES_HOST": parts.hostname or "",
            "POSTGRES_PORT": str(parts.port),
            "POSTGRES_USER": parts.username or "",
            "POSTGRES_PASSWORD": parts.password or "",
        }
    )
    pot = Pot()
    for number in range(1, EVENTS):
        pot.raise_to(seat=number % 6, amount=200, to=400, raise_by=200, hand=number // 50)
        if number % APPEND == 0:
            app.save(pot)
    app.save(pot)
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        found: Pot = app.repository.get(pot.id)
        best = min(best, time.perf_counter() - start)
    assert found.version == EVENTS
    app.close()
    return EVENTS / best


async def measure() -> dict[str, float]:
    """ours, limit: events a second, the best of a few runs."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        fast = await ours(await service_url(server.url))
        admin = await asyncpg.connect(server.url)
        await admin.execute("CREATE DATABASE theirs")
        await admin.close()
        limit = await asyncio.to_thread(theirs, server.url.rsplit("/", 1)[0] + "/theirs")
    return {"ours": fast, "limit": limit, "ratio": fast / limit, "target": TARGET, "events": EVENTS}
