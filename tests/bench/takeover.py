"""1,000 tables with players, whose process is killed in mid-hand: until another process runs them all, hands void."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import psutil
from tests.bench.memory import TIMERS, seat_everyone
from tests.bench.recovery import GIVE_UP_SECONDS, POLL_SECONDS, SEATS, TABLES, VOIDED
from tests.bench.rooms import BenchRoom, bench_room, cpu_seconds, every

NAME = "takeover"
WHAT = (
    "Seconds from the kill of a table process until another has taken over its 1,000 tables, every hand void; "
    "the lease; and the seconds beyond it"
)
AT_MOST = True
TARGET = 5.0

LEASE = 5.0

_PROGRESS = """
SELECT count(*) FILTER (WHERE stream.fence > bench_before.fence) AS taken, min(stream.head - bench_before.head) AS least
FROM log.stream JOIN bench_before USING (stream)
"""


async def kill_in_mid_hand(bench: BenchRoom, database: asyncpg.Connection) -> tuple[psutil.Process, float]:
    """Seat everyone, start the other process, kill the first; the other process, and when the first died."""
    tables = await bench.open_tables(TABLES, timers=TIMERS)
    await seat_everyone(bench, tables, [f"bench-{n}" for n in range(TABLES * SEATS)])
    running = sum(bool(view.hand) for view in await every([bench.operator.table(table) for table in tables]))
    if running != TABLES:
        raise RuntimeError(f"a hand runs at {running} of {TABLES} tables")
    _, other = await bench.another_table_process("other", LEASE=str(LEASE))
    await asyncio.sleep(LEASE)  # it has seen the first one beat
    bench.room.hold("table")
    await database.execute("CREATE TABLE bench_before AS SELECT stream, head, fence FROM log.stream")
    await database.execute("ANALYZE bench_before")
    bench.room.kill("table")
    return other, time.perf_counter()


async def measure() -> dict[str, float]:
    """ours: seconds from the kill; limit: the lease, which has to pass; ratio: seconds beyond it."""
    async with bench_room() as bench:
        database = await asyncpg.connect(bench.room.owner_url)
        try:
            other, killed = await kill_in_mid_hand(bench, database)
            used, taken = cpu_seconds(other), 0.0
            while (now := time.perf_counter()) < killed + GIVE_UP_SECONDS:
                row = await database.fetchrow(_PROGRESS)
                assert row is not None
                if row["taken"] and not taken:
                    taken = now
                if row["least"] >= VOIDED:
                    break
                await asyncio.sleep(POLL_SECONDS)
            else:
                raise RuntimeError(f"not taken over after {GIVE_UP_SECONDS:.0f} s: {row}")
            cpu = cpu_seconds(other) - used
        finally:
            await database.close()
    return {
        "ours": now - killed,
        "limit": LEASE,
        "ratio": now - killed - LEASE,
        "target": TARGET,
        "seconds to the first table": taken - killed,
        "seconds from the first table to the last void hand": now - taken,
        "CPU seconds of the process that takes over": cpu,
    }
