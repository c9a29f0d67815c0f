"""1,000 tables whose process was killed in mid-hand: until every hand is void and every stack is back."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import median

import asyncpg
from tests.bench.memory import TIMERS, seat_everyone
from tests.bench.rooms import BenchRoom, bench_room, cpu_seconds, every

from relance.eventlog import PostgresLog
from relance.room.services import with_login

NAME = "recovery"
WHAT = "Seconds until the last HandVoided of 1,000 tables is durable; reading and appending as much at once; times"
AT_MOST = True
TARGET = 6.0

TABLES, SEATS = 1_000, 6
# OwnerStarted, HandVoided, and for each seat PlayerLeft and TransferRequested (C3, cash_out); then TransferSettled.
VOIDED, SETTLED = 2 + 2 * SEATS, 2 + 3 * SEATS
GIVE_UP_SECONDS = 120.0
POLL_SECONDS = 0.02
LIMITS = 5

_PROGRESS = """
SELECT count(*) FILTER (WHERE stream.fence > bench_before.fence) AS taken, min(stream.head - bench_before.head) AS least
FROM log.stream JOIN bench_before USING (stream)
"""
_READ = """
SELECT stream, body FROM log.event JOIN bench_before USING (stream) WHERE version <= bench_before.head
ORDER BY stream, version
"""
_WRITTEN = """
SELECT event.* FROM log.event JOIN bench_before USING (stream)
WHERE version > bench_before.head AND version <= bench_before.head + $1
"""
_WRITE = """
INSERT INTO bench_copy SELECT * FROM unnest(
    $1::text[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[], $7::bigint[], $8::bytea[])
"""


@dataclass(frozen=True, slots=True)
class Moments:
    """Seconds from the moment at which the first table was seen taken, and processor seconds of the new owner."""

    voided: float
    settled: float
    cpu_voided: float
    cpu_settled: float


async def kill_in_mid_hand(bench: BenchRoom, database: asyncpg.Connection) -> None:
    """Seat everyone, wait until a hand runs at every table, kill the process; what the log holds is remembered."""
    tables = await bench.open_tables(TABLES, timers=TIMERS)
    await seat_everyone(bench, tables, [f"bench-{n}" for n in range(TABLES * SEATS)])
    running = sum(bool(view.hand) for view in await every([bench.operator.table(table) for table in tables]))
    if running != TABLES:
        raise RuntimeError(f"a hand runs at {running} of {TABLES} tables")
    bench.room.hold("table")
    bench.room.kill("table")
    await asyncio.to_thread(bench.room.child("table").wait, 10)
    await database.execute("CREATE TABLE bench_before AS SELECT stream, head, fence FROM log.stream")
    await database.execute("ANALYZE bench_before")


async def recovered(bench: BenchRoom, database: asyncpg.Connection) -> Moments:
    """Start the process again and look on."""
    bench.room.release("table")
    taken = voided = cpu_taken = cpu_voided = 0.0
    give_up = time.perf_counter() + GIVE_UP_SECONDS
    while (now := time.perf_counter()) < give_up:
        row = await database.fetchrow(_PROGRESS)
        assert row is not None
        if row["taken"] and not taken:
            taken, cpu_taken = now, cpu_seconds(bench.table_process)
        if row["least"] >= VOIDED and not voided:
            voided, cpu_voided = now, cpu_seconds(bench.table_process)
        if row["least"] >= SETTLED:
            cpu = cpu_seconds(bench.table_process)
            return Moments(voided - taken, now - taken, cpu_voided - cpu_taken, cpu - cpu_taken)
        await asyncio.sleep(POLL_SECONDS)
    raise RuntimeError(f"not recovered after {GIVE_UP_SECONDS:.0f} s: {row}")


async def taking_over(bench: BenchRoom) -> float:
    """Seconds that making oneself the owner of all tables takes: it was over when the first was seen taken."""
    password = bench.room.folder.secret("database-table")
    async with PostgresLog(with_login(bench.room.owner_url, "relance_table", password), "bench") as log:
        fences = {info.stream: info.fence for info in await log.streams()}
        start = time.perf_counter()
        await log.take_over_all(fences)
        return time.perf_counter() - start


async def at_once(database: asyncpg.Connection) -> float:
    """Seconds to read the rows that a recovery reads, and to append as many as it appends, in one batch each: the
    median of a few times, each into a new table.
    """
    columns = list(zip(*await database.fetch(_WRITTEN, VOIDED), strict=True))
    seconds = []
    for _ in range(LIMITS):
        await database.execute("CREATE TABLE bench_copy (LIKE log.event INCLUDING ALL)")
        start = time.perf_counter()
        await database.fetch(_READ)
        await database.execute(_WRITE, *columns)
        seconds.append(time.perf_counter() - start)
        await database.execute("DROP TABLE bench_copy")
    return median(seconds)


async def measure() -> dict[str, float]:
    """ours, limit: seconds from the moment that the tables may be taken."""
    async with bench_room() as bench:
        database = await asyncpg.connect(bench.room.owner_url)
        try:
            await kill_in_mid_hand(bench, database)
            moments = await recovered(bench, database)
            bench.room.hold("table")
            bench.room.kill("table")
            own = await taking_over(bench)
            limit = await at_once(database)
        finally:
            await database.close()
    return {
        "ours": own + moments.voided,
        "limit": limit,
        "ratio": (own + moments.voided) / limit,
        "target": TARGET,
        "seconds to the last cash-out": own + moments.settled,
        "seconds to own all tables": own,
        "CPU seconds to the last HandVoided": moments.cpu_voided,
        "CPU seconds to the last cash-out": moments.cpu_settled,
    }
