"""Memory of the table process for an open, seated six-max table, and for an open Play stream."""

from __future__ import annotations

import asyncio

import grpc
import psutil
from tests.bench.rooms import BUY_IN, PLAY, BenchRoom, bench_room, channels, every

from relance.api.common.v1.game_pb2 import Timers
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.client.credentials import bearer

NAME = "memory"
WHAT = "KB of the table process for each open, seated six-max table without streams; target; part of it"
AT_MOST = True
TARGET = 40.0

TABLES, SEATS, STREAMS = 500, 6, 1_000
# Nobody is at the other end, so whoever is asked first has all the time of the measurement.
TIMERS = Timers(decision_ms=600_000, between_hands_ms=600_000)


def resident_kb(process: psutil.Process) -> float:
    """Resident memory of a process."""
    return float(process.memory_info().rss) / 1024


async def seat_everyone(bench: BenchRoom, tables: list[str], players: list[str]) -> None:
    """Six players at each table, by unary calls."""
    await bench.fund(players, BUY_IN)
    async with grpc.aio.insecure_channel(bench.room.address("table")) as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        await every([_take_seat(bench, stub, tables[n // SEATS], player) for n, player in enumerate(players)])
        await every([_full(bench, table) for table in tables])


async def _take_seat(bench: BenchRoom, stub: table_pb2_grpc.TableServiceAsyncStub, table: str, player: str) -> None:
    request = table_pb2.TakeSeatRequest(table=table, request_id="sit", buy_in=BUY_IN)
    await stub.TakeSeat(request, metadata=bearer(bench.token(player)))


async def _full(bench: BenchRoom, table: str) -> None:
    """Wait until every seat of a table has its chips."""
    while True:
        seats = (await bench.operator.table(table)).seats
        if all(seat.stack or seat.contributed for seat in seats):
            return
        await asyncio.sleep(0.05)


async def open_streams(bench: BenchRoom, tables: list[str], players: list[str]) -> float:
    """Kilobytes that the process grew by for each Play stream."""
    process = bench.table_process
    open_channels = channels(bench.room.address("table"), STREAMS)
    # Connections are no streams: they are there, and warm, before the measurement.
    calls = [await _join(bench, channel, tables[-1], players[-1 - n]) for n, channel in enumerate(open_channels)]
    before = resident_kb(process)
    calls += await every(
        [_join(bench, open_channels[n % len(open_channels)], tables[n // SEATS], players[n]) for n in range(STREAMS)]
    )
    grown = resident_kb(process) - before
    for call in calls:
        call.cancel()
    for channel in open_channels:
        await channel.close()
    return grown / STREAMS


async def _join(
    bench: BenchRoom, channel: grpc.aio.Channel, table: str, player: str
) -> grpc.aio.StreamStreamCall[bytes, bytes]:
    call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(PLAY)(metadata=bearer(bench.token(player)))
    await call.write(table_pb2.PlayRequest(join=table_pb2.Join(table=table)).SerializeToString())
    await call.read()
    return call


async def measure() -> dict[str, float]:
    """ours: kilobytes a table; ratio: the same, for there is no limit but the target."""
    async with bench_room() as bench:
        players = [f"bench-{n}" for n in range(TABLES * SEATS)]
        # One table and its seats first: what a process needs once is no table's.
        first = await bench.open_tables(1, timers=TIMERS)
        await seat_everyone(bench, first, [f"warm-{n}" for n in range(SEATS)])
        before = resident_kb(bench.table_process)
        tables = await bench.open_tables(TABLES, timers=TIMERS)
        await seat_everyone(bench, tables, players)
        table_kb = (resident_kb(bench.table_process) - before) / TABLES
        stream_kb = await open_streams(bench, tables, players)
    return {
        "ours": table_kb,
        "limit": 0.0,
        "ratio": table_kb,
        "target": TARGET,
        "KB an open Play stream": stream_kb,
        "MB of the process at the start": before / 1024,
    }
