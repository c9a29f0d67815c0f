"""Durable actions a second of one table process and of two on the same PostgreSQL, everyone watching."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack, suppress

import psutil
from tests.bench.durable import TABLES, TIMERS, Load, Side, seated_side
from tests.bench.rooms import BenchRoom, bench_room, cpu_seconds

from relance.room.processes import RoomError

NAME = "scale"
WHAT = "Durable actions a second of two table processes (50 six-seat tables each, every seat watching), of one; times"
AT_MOST = False
TARGET = 1.0

WARM_UP, SECONDS, ROUNDS = 3.0, 4.0, 3
SEEN_SECONDS, SEEN_TIMES = 60.0, 8


async def rate(sides: list[Side], seconds: float) -> tuple[float, list[Load]]:
    """Actions a second of all sides at once."""
    loads = await asyncio.gather(*(side.load(seconds) for side in sides))
    return sum(load.actions_per_second for load in loads), list(loads)


def postgres_seconds(bench: BenchRoom) -> float:
    """Processor time of PostgreSQL's processes; 0: the server is not this room's."""
    try:
        pid = bench.room.child("postgres").pid
    except RoomError:
        return 0.0
    assert pid is not None
    parent = psutil.Process(pid)
    seconds = 0.0
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # a worker that has just ended
            seconds += cpu_seconds(process)
    return seconds


async def both_known(bench: BenchRoom) -> None:
    """Wait until every table process knows of the other."""
    async with asyncio.timeout(SEEN_SECONDS):
        for _ in range(SEEN_TIMES):
            while len(await bench.operator.table_processes()) < 2:  # noqa: ASYNC110  another process's doing
                await asyncio.sleep(0.2)


async def measure() -> dict[str, float]:
    """ours: two processes; limit: one. With as many processors as processes have to share, the sum does not grow."""
    async with bench_room() as bench, AsyncExitStack() as stack:
        tables = await bench.open_tables(TABLES, timers=TIMERS)
        address, process = await bench.another_table_process("second")
        await both_known(bench)
        more = await bench.open_tables(TABLES, timers=TIMERS)
        # They go where there is least; one that is not there is handed over.
        for table in more:
            await bench.operator.hand_over(table, address)
        first = bench.table_process
        one = await stack.enter_async_context(seated_side(bench, tables, bench.room.address("table"), first))
        two = await stack.enter_async_context(seated_side(bench, more, address, process, name="second"))
        await rate([one, two], WARM_UP)
        alone, both = [], []
        used = {"tables": 0.0, "PostgreSQL": 0.0, "clients": 0.0}
        busy = 0.0
        for _ in range(ROUNDS):
            alone.append((await rate([one], SECONDS))[0])
            before = [cpu_seconds(first) + cpu_seconds(process), postgres_seconds(bench), _own()]
            started = time.perf_counter()
            both.append((await rate([one, two], SECONDS))[0])
            busy += time.perf_counter() - started
            after = [cpu_seconds(first) + cpu_seconds(process), postgres_seconds(bench), _own()]
            for name, then, now in zip(used, before, after, strict=True):
                used[name] += now - then
    ours, limit = sum(both) / ROUNDS, sum(alone) / ROUNDS
    return {
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "target": TARGET,
        "processors of this machine": float(os.cpu_count() or 0),
        **{f"processors that {name} used, of two processes": seconds / busy for name, seconds in used.items()},
    }


def _own() -> float:
    return cpu_seconds(psutil.Process())
