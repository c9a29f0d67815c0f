"""Processor time of calls that one table process passes on to another, against calls at the owner itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeAlias

import grpc
import psutil
from tests.bench.durable import SEATS, TABLES, TIMERS, Load, Side, seated_side
from tests.bench.rooms import BenchRoom, bench_room, cpu_seconds, every

from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.client.credentials import bearer

NAME = "forwarding"
WHAT = (
    "CPU µs of both table processes for an action passed on (50 six-seat tables, every seat watching), "
    "of an action at the owner; times"
)
AT_MOST = True
TARGET = 1.6

WARM_UP, SECONDS, ROUNDS = 3.0, 3.0, 4
CALLS, CALL_ROUNDS = 1_500, 4

Stub: TypeAlias = "table_pb2_grpc.TableServiceAsyncStub"


@dataclass(slots=True)
class Unary:
    """Unary calls by one way: who is asked, and whose processor time counts."""

    stub: Stub
    processes: Sequence[psutil.Process]
    used: float = 0.0
    calls: int = 0

    async def load(self, call: Callable[[Stub, int], Awaitable[object]]) -> None:
        """So many calls, some at a time."""
        before = sum(map(cpu_seconds, self.processes))
        await every([call(self.stub, number) for number in range(CALLS)])
        self.used += sum(map(cpu_seconds, self.processes)) - before
        self.calls += CALLS

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a call."""
        return self.used / self.calls * 1e6


async def in_turn(ways: Sequence[Side]) -> list[Load]:
    """The load of each, a few times in turn: a busy moment hits neither alone."""
    for way in ways:
        await way.load(WARM_UP)
    loads = [await way.load(SECONDS) for way in ways]
    for _ in range(ROUNDS - 1):
        loads = [load.plus(await way.load(SECONDS)) for load, way in zip(loads, ways, strict=True)]
    return loads


async def unary(ways: Sequence[Unary], call: Callable[[Stub, int], Awaitable[object]]) -> float:
    """How many times the processor time of the first way the second one takes."""
    for way in ways:
        await way.load(call)
    for way in ways:
        way.used, way.calls = 0.0, 0
    for _ in range(CALL_ROUNDS):
        for way in ways:
            await way.load(call)
    direct, passed_on = ways
    return passed_on.cpu_us / direct.cpu_us


async def measure() -> dict[str, float]:
    """ours, limit: CPU microseconds an action."""
    async with bench_room() as bench, AsyncExitStack() as stack:
        # All tables are there, at the only process, before the other starts.
        tables = await bench.open_tables(2 * TABLES, timers=TIMERS)
        owner, address = bench.table_process, bench.room.address("table")
        front, process = await bench.another_table_process("front", ROUTING="forward")
        both = (owner, process)
        direct = await stack.enter_async_context(seated_side(bench, tables[:TABLES], address, *both))
        passed_on = await stack.enter_async_context(seated_side(bench, tables[TABLES:], front, *both, name="front"))
        limit, load = await in_turn([direct, passed_on])
        stubs = [
            table_pb2_grpc.TableServiceStub(await stack.enter_async_context(grpc.aio.insecure_channel(each)))
            for each in (address, front)
        ]
        ways = [Unary(stub, both) for stub in stubs]
        reads = await unary(ways, _read(bench, tables))
        read = [way.cpu_us for way in ways]
        commands = await unary(ways, _command(bench, tables))
        command = [way.cpu_us for way in ways]
    return {
        "ours": load.cpu_us_per_action,
        "limit": limit.cpu_us_per_action,
        "ratio": load.cpu_us_per_action / limit.cpu_us_per_action,
        "target": TARGET,
        "actions a second": load.actions_per_second,
        "actions a second, direct": limit.actions_per_second,
        "messages down an action": (load.traffic.updates + load.traffic.answers) / load.traffic.actions,
        "unary read: times": reads,
        "unary read: CPU µs passed on": read[1],
        "unary read: CPU µs direct": read[0],
        "unary command: times": commands,
        "unary command: CPU µs passed on": command[1],
        "unary command: CPU µs direct": command[0],
    }


def _read(bench: BenchRoom, tables: Sequence[str]) -> Callable[[Stub, int], Awaitable[object]]:
    metadata = bearer(bench.token("bench-0"))

    async def call(stub: Stub, number: int) -> object:
        return await stub.GetTable(table_pb2.GetTableRequest(table=tables[number % len(tables)]), metadata=metadata)

    return call


def _command(bench: BenchRoom, tables: Sequence[str]) -> Callable[[Stub, int], Awaitable[object]]:
    """A durable command that everyone at the table hears nothing of: a preference, on and off."""
    seats = [bearer(bench.token(f"bench-{n}")) for n in range(TABLES * SEATS)]
    ids = itertools.count(1)
    started = time.time_ns()

    async def call(stub: Stub, number: int) -> object:
        seat = number % len(seats)
        request = table_pb2.SetSeatPreferencesRequest(
            table=tables[seat // SEATS], request_id=f"{started}-{next(ids)}",
            preferences=table_pb2.SeatPreferences(auto_muck=bool(next(ids) % 2)),
        )  # fmt: skip
        return await stub.SetSeatPreferences(request, metadata=seats[seat])

    return call
