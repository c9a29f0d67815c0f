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
from tests.bench.games import HOLDEM, OurTable

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import PostgresLog
from relance.table.recovery import replay

NAME = "replay"
WHAT = "Events a second from PostgreSQL to state: a table of the room; an aggregate of eventsourcing; times"
TARGET = 4.0

EVENTS = 10_000
APPEND = 500
RUNS = 8


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
    table = OurTable(HOLDEM, commitments=True)
    while len(table.log) < EVENTS:
        if sum(seat.stack > 0 for seat in table.table.seats.values()) < 2:
            raise RuntimeError("the players went broke before there were enough events")
        table.hand()
    return [TableEvent.FromString(body) for body in table.log[:EVENTS]]


async def write_ours(log: PostgresLog) -> None:
    """A stream of the log."""
    events = played()
    head = (await log.create("bench", events[:APPEND])).head
    for start in range(APPEND, EVENTS, APPEND):
        head = await log.append("bench", head, 1, events[start : start + APPEND])


async def replay_ours(log: PostgresLog) -> float:
    """Seconds. The log ends in the middle of a hand: so do logs after a crash."""
    start = time.perf_counter()
    table = replay("bench", None, await log.read_raw("bench"))
    seconds = time.perf_counter() - start
    assert table.version == EVENTS
    return seconds


def their_application(url: str) -> Application[UUID]:
    """An application of the other library on a database of its own."""
    parts = urlsplit(url)
    return Application(
        {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": parts.path.lstrip("/"),
            "POSTGRES_HOST": parts.hostname or "",
            "POSTGRES_PORT": str(parts.port),
            "POSTGRES_USER": parts.username or "",
            "POSTGRES_PASSWORD": parts.password or "",
        }
    )


def write_theirs(app: Application[UUID]) -> UUID:
    """An aggregate with as many events; its id."""
    pot = Pot()
    for number in range(1, EVENTS):
        pot.raise_to(seat=number % 6, amount=200, to=400, raise_by=200, hand=number // 50)
        if number % APPEND == 0:
            app.save(pot)
    app.save(pot)
    return pot.id


def replay_theirs(app: Application[UUID], pot: UUID) -> float:
    """Seconds."""
    start = time.perf_counter()
    found: Pot = app.repository.get(pot)
    seconds = time.perf_counter() - start
    assert found.version == EVENTS
    return seconds


async def measure() -> dict[str, float]:
    """ours, limit: events a second, the best of a few runs in turn."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        admin = await asyncpg.connect(server.url)
        await admin.execute("CREATE DATABASE theirs")
        await admin.close()
        app = their_application(server.url.rsplit("/", 1)[0] + "/theirs")
        stack.callback(app.close)
        pot = await asyncio.to_thread(write_theirs, app)
        async with PostgresLog(await service_url(server.url), "bench") as log:
            await write_ours(log)
            ours, theirs = [], []
            for _ in range(RUNS):
                ours.append(await replay_ours(log))
                theirs.append(await asyncio.to_thread(replay_theirs, app, pot))
    fast, limit = EVENTS / min(ours), EVENTS / min(theirs)
    return {"ours": fast, "limit": limit, "ratio": fast / limit, "target": TARGET, "events": EVENTS}
