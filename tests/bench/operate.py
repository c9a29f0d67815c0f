"""Operators' commands: verifying a log, exporting hands, the state at an old version."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import asyncpg
from pokerkit import HandHistory
from tests.bench.appends import fresh_server, service_url
from tests.bench.replay import EVENTS as THEIR_EVENTS
from tests.bench.replay import replay_theirs, their_application, write_theirs
from tests.ops.logs import LoggedRoom
from tests.poker import playing

from relance.api.common.v1 import game_pb2
from relance.eventlog import PostgresLog
from relance.ops.export.run import Order, export
from relance.ops.output import Out
from relance.ops.source import PostgresSource, connected
from relance.ops.states import state_at
from relance.ops.verify import verify_stream
from relance.poker import apply, initial
from relance.poker.deck import VirtualDeck
from relance.poker.snapshot import dump

RUNS = 3
VERIFIED = 10_000
HANDS, TABLES = 250, 40
LONG = 100_000
SNAPSHOT_EVERY = 1_000
"""Events between two snapshots that are kept, about as the table service keeps them."""


class Deep(LoggedRoom):
    """Six players who never go broke, and who check or call."""

    def __init__(self) -> None:
        super().__init__(playing.config(seats=6, rules=game_pb2.TableRules(deck_commitments=True)))
        rng = random.Random(1)
        self._deck = VirtualDeck(rng.shuffle, rng.randbytes)
        for seat in range(1, 7):
            self.sit(seat, 10**9)

    def hand(self) -> None:
        """One hand."""
        self.start(self._deck)
        self.passive()


async def fill(owner: str, room: Deep, names: list[str], *, snapshots: bool = False) -> None:
    """Put a room's log into the database as the log of each of these tables."""
    connection = await asyncpg.connect(owner)
    rows: list[tuple[object, ...]] = []
    kept: list[tuple[object, ...]] = []
    for name in names:
        table, since = initial(name), 0
        for append in room.appends:
            claim = uuid.uuid4()
            for event in append:
                event.table = name
                body = event.SerializeToString()
                kind = event.WhichOneof("payload") or ""
                rows.append((name, event.version, 1, claim, event.hand, kind, event.time_us, body))
                if snapshots:
                    apply(table, event)
            if snapshots and table.hand is None and table.version - since > SNAPSHOT_EVERY:
                kept.append((name, table.version, len(kept) + 1, dump(table)))
                since = table.version
    head = len(rows) // len(names)
    await connection.copy_records_to_table("event", schema_name="log", records=rows)
    streams = [(name, head, 1, "bench", uuid.uuid4()) for name in names]
    await connection.copy_records_to_table("stream", schema_name="log", records=streams)
    await connection.copy_records_to_table("snapshot", schema_name="log", records=kept)
    await connection.execute("ANALYZE log.event")
    await connection.close()


async def best(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds, the least of a few runs."""
    found = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        await work()
        found = min(found, time.perf_counter() - start)
    return found


async def verifying() -> Mapping[str, float]:
    """Events a second that are decided again and compared, against events that eventsourcing only replays."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        admin = await asyncpg.connect(server.url)
        await admin.execute("CREATE DATABASE theirs")
        await admin.close()
        app = their_application(server.url.rsplit("/", 1)[0] + "/theirs")
        stack.callback(app.close)
        pot = await asyncio.to_thread(write_theirs, app)
        await service_url(server.url)
        room = Deep()
        while len(room.log) < VERIFIED:
            room.hand()
        await fill(server.url, room, ["t"])
        async with connected(server.url) as connection:
            source = PostgresSource(connection)

            async def verify() -> None:
                result = await verify_stream(source, "t", len(room.log))
                assert result.finding is None, str(result.finding)

            ours, theirs = 0.0, 0.0
            for _ in range(RUNS):  # in turn, so that both have the same machine
                start = time.perf_counter()
                await verify()
                ours = max(ours, len(room.log) / (time.perf_counter() - start))
                theirs = max(theirs, THEIR_EVENTS / await asyncio.to_thread(replay_theirs, app, pot))
    return {"ours": ours, "limit": theirs, "ratio": ours / theirs, "target": 1.0, "events": len(room.log)}


async def exporting() -> Mapping[str, float]:
    """Hands a second from the log to PHH files, against PokerKit writing the same hands that it has in memory."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await service_url(server.url)
        room = Deep()
        for _ in range(HANDS):
            room.hand()
        await fill(server.url, room, [f"t{number}" for number in range(TABLES)])
        runs = iter(range(RUNS))
        async with connected(server.url) as connection:
            source = PostgresSource(connection)

            async def write() -> None:
                order = Order("phh", folder / str(next(runs)), "auditor")
                await export(source, connection, (), order, _Silent())

            await write()
            hands = list(HandHistory.loads_all((folder / "0" / "t0.phhs").read_text()))
            ours, theirs = 0.0, 0.0
            for _ in range(RUNS - 1):  # in turn, so that both have the same machine
                start = time.perf_counter()
                await write()
                between = time.perf_counter()
                for _ in range(TABLES):
                    HandHistory.dumps_all(hands).encode()
                ours = max(ours, HANDS * TABLES / (between - start))
                theirs = max(theirs, HANDS * TABLES / (time.perf_counter() - between))
    return {"ours": ours, "limit": theirs, "ratio": ours / theirs, "target": 1.0, "hands": HANDS * TABLES}


async def looking_back() -> Mapping[str, float]:
    """How many times quicker the state at a version late in a long log is than replaying all of it."""
    with ExitStack() as stack:
        server = fresh_server(stack)
        await service_url(server.url)
        room = Deep()
        while len(room.log) < LONG:
            room.hand()
        await fill(server.url, room, ["t"], snapshots=True)
        async with connected(server.url) as connection, PostgresLog(server.url, "bench") as log:
            source = PostgresSource(connection)
            at = len(room.log) - 123
            quick = await best(lambda: state_at(source, "t", at))
            await log.snapshots.delete_all("t")
            whole = await best(lambda: state_at(source, "t", at))
    return {"ours": quick, "limit": whole, "ratio": whole / quick, "target": 10.0, "events": len(room.log)}


class _Silent(Out):
    """Prints nothing."""

    def line(self, text: str, style: str = "") -> None:
        """See Out."""


BENCHMARKS = (
    ("verify", "Events a second proven by deciding them again; eventsourcing's replay; times", verifying),
    ("export", "Hands a second from the log to PHH; PokerKit writing them from memory; times", exporting),
    ("state-at", "Seconds to the state late in a log of 100,000 events; replaying all of it; times", looking_back),
)
