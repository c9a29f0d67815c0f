"""CPU of the table process for a durable action, everyone watching, against a bare grpc.aio server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import grpc
import psutil
from tests.bench.bare import METHOD
from tests.bench.rooms import BUY_IN, PLAY, BenchRoom, bench_room, channels, cpu_seconds, every

from relance.api.common.v1.game_pb2 import Timers
from relance.api.table.v1 import table_pb2
from relance.client.credentials import bearer

NAME = "durable"
WHAT = "CPU µs of the table process for an action (50 six-seat tables, every seat watching), bare grpc.aio, times"
AT_MOST = True
TARGET = 2.5

TABLES, SEATS = 50, 6
WARM_UP, SECONDS, SETTLE, ROUNDS = 3.0, 3.0, 0.5, 4
SEATING_SECONDS = 60.0
TIMERS = Timers(between_hands_ms=1, decision_ms=60_000)

Call = grpc.aio.StreamStreamCall[bytes, bytes]
# Never a bet: every hand goes to its showdown.
_QUIET = (table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL, table_pb2.ACTION_KIND_ALL_IN)


@dataclass(slots=True)
class Traffic:
    """What went over all streams."""

    actions: int = 0
    action_bytes: int = 0
    answers: int = 0
    answer_bytes: int = 0
    updates: int = 0
    update_bytes: int = 0

    def copy(self) -> Traffic:
        return Traffic(*(getattr(self, name) for name in self.__slots__))

    def since(self, before: Traffic) -> Traffic:
        return Traffic(*(getattr(self, name) - getattr(before, name) for name in self.__slots__))

    def plus(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Load:
    """A server under load for a while: CPU microseconds and traffic."""

    cpu_us: float
    seconds: float
    traffic: Traffic

    def plus(self, other: Load) -> Load:
        return Load(self.cpu_us + other.cpu_us, self.seconds + other.seconds, self.traffic.plus(other.traffic))

    @property
    def cpu_us_per_action(self) -> float:
        return self.cpu_us / self.traffic.actions

    @property
    def actions_per_second(self) -> float:
        return self.traffic.actions / self.seconds


class Side:
    """A server (of one process or more) and its players, who act while `gate` is open."""

    def __init__(self, *processes: psutil.Process) -> None:
        self.processes = processes
        self.gate = asyncio.Event()
        self.traffic = Traffic()
        self.players: list[asyncio.Task[None]] = []

    async def load(self, seconds: float) -> Load:
        """Let them act for a while, with all that follows from it. Raises what ended a player."""
        before, used, start = self.traffic.copy(), self._used(), time.perf_counter()
        self.gate.set()
        await self._playing(seconds)
        self.gate.clear()
        acting = time.perf_counter() - start
        await self._playing(SETTLE)
        return Load((self._used() - used) * 1e6, acting, self.traffic.since(before))

    def _used(self) -> float:
        return sum(map(cpu_seconds, self.processes))

    async def _playing(self, seconds: float) -> None:
        ended, _ = await asyncio.wait(self.players, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for player in ended:
            player.result()
            raise RuntimeError("a stream ended while it was measured")


async def play(call: Call, table: str, player: str, seated: asyncio.Queue[None], side: Side) -> None:
    """Sit down, then check or call whenever asked."""
    traffic = side.traffic
    await call.write(_request(join=table_pb2.Join(table=table)))
    sit = table_pb2.TakeSeatRequest(request_id="sit", buy_in=BUY_IN)
    await call.write(_request(take_seat=sit))
    seat = number = 0
    while isinstance(raw := await call.read(), bytes):
        message = table_pb2.PlayResponse.FromString(raw)
        kind = message.WhichOneof("message")
        if kind == "update":
            traffic.updates += 1
            traffic.update_bytes += len(raw)
            if not seat:
                seat = next((e.player_sat.seat for e in message.update.events if e.player_sat.player == player), 0)
                if seat:
                    seated.put_nowait(None)
            prompt = message.update.prompt
            if seat and prompt.seat == seat:
                await side.gate.wait()
                number += 1
                action = _request(act=_quiet(prompt, f"{number}"))
                traffic.actions += 1
                traffic.action_bytes += len(action)
                await call.write(action)
        elif kind == "result":
            traffic.answers += 1
            traffic.answer_bytes += len(raw)
        elif kind == "refusal":
            raise RuntimeError(f"{message.refusal.reason}: {message.refusal.message}")


def _quiet(prompt: table_pb2.Prompt, request_id: str) -> table_pb2.ActRequest:
    """Check, or call, or call with everything."""
    kind = next(kind for kind in _QUIET if kind in prompt.actions)
    return table_pb2.ActRequest(request_id=request_id, action=table_pb2.Action(turn=prompt.turn, kind=kind))


def _request(
    *,
    join: table_pb2.Join | None = None,
    take_seat: table_pb2.TakeSeatRequest | None = None,
    act: table_pb2.ActRequest | None = None,
) -> bytes:
    return table_pb2.PlayRequest(join=join, take_seat=take_seat, act=act).SerializeToString()


async def play_bare(call: Call, group: int, action: bytes, side: Side) -> None:
    """Join a group and act whenever the server names this stream's place; who completes the group begins."""
    await call.write(bytes((group,)))
    welcome = await call.read()
    assert isinstance(welcome, bytes)
    place = welcome[0]
    turn = place == SEATS - 1
    while True:
        if turn:
            await side.gate.wait()
            side.traffic.actions += 1
            await call.write(action)
        raw = await call.read()
        if not isinstance(raw, bytes):
            return
        turn = raw[0] == place


@asynccontextmanager
async def streams(
    address: str, method: str, metadata: Callable[[int], tuple[tuple[str, str], ...]]
) -> AsyncIterator[list[Call]]:
    """One stream a seat of every table."""
    count = TABLES * SEATS
    async with AsyncExitStack() as stack:
        open_channels = [await stack.enter_async_context(channel) for channel in channels(address, count)]
        yield [open_channels[n % len(open_channels)].stream_stream(method)(metadata=metadata(n)) for n in range(count)]


@asynccontextmanager
async def ours(bench: BenchRoom) -> AsyncIterator[Side]:
    """The table service, everyone seated."""
    tables = await bench.open_tables(TABLES, timers=TIMERS)
    async with seated_side(bench, tables, bench.room.address("table"), bench.table_process) as side:
        yield side


@asynccontextmanager
async def seated_side(
    bench: BenchRoom, tables: list[str], address: str, *processes: psutil.Process, name: str = "bench"
) -> AsyncIterator[Side]:
    """Everyone seated at tables that are reached at an address. `processes`: those whose processor time counts."""
    players = [f"{name}-{n}" for n in range(TABLES * SEATS)]
    await bench.fund(players)
    side, seated = Side(*processes), asyncio.Queue[None]()
    async with streams(address, PLAY, lambda n: bearer(bench.token(players[n]))) as calls:
        side.players = [
            asyncio.create_task(play(call, tables[n // SEATS], players[n], seated, side))
            for n, call in enumerate(calls)
        ]
        async with asyncio.timeout(SEATING_SECONDS):
            await every([seated.get() for _ in side.players])
        yield side
        for task in side.players:
            task.cancel()


@asynccontextmanager
async def bare(like: Traffic) -> AsyncIterator[Side]:
    """A bare server that sends the same number and size of messages for an action."""
    answer = round(like.answer_bytes / like.answers)
    update = round(like.update_bytes / like.updates)
    updates = like.updates / like.actions / SEATS
    action = b"\0" * round(like.action_bytes / like.actions)
    command = [sys.executable, "-m", "tests.bench.bare", str(answer), str(update), str(updates)]
    server = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        port = int(await server.stdout.readline())
        side = Side(psutil.Process(server.pid))
        async with streams(f"127.0.0.1:{port}", METHOD, lambda n: ()) as calls:
            side.players = [
                asyncio.create_task(play_bare(call, n // SEATS, action, side)) for n, call in enumerate(calls)
            ]
            yield side
            for task in side.players:
                task.cancel()
    finally:
        server.kill()
        await server.wait()


async def measure() -> dict[str, float]:
    """ours, limit: CPU microseconds an action, of both in turn: a busy moment hits neither alone."""
    async with bench_room() as bench, ours(bench) as room:
        like = (await room.load(WARM_UP)).traffic
        async with bare(like) as server:
            await server.load(WARM_UP)
            load, limit = await room.load(SECONDS), await server.load(SECONDS)
            for _ in range(ROUNDS - 1):
                load = load.plus(await room.load(SECONDS))
                limit = limit.plus(await server.load(SECONDS))
    traffic = load.traffic
    return {
        "ours": load.cpu_us_per_action,
        "limit": limit.cpu_us_per_action,
        "ratio": load.cpu_us_per_action / limit.cpu_us_per_action,
        "target": TARGET,
        "actions a second": load.actions_per_second,
        "actions a second, bare": limit.actions_per_second,
        "messages down an action": (traffic.updates + traffic.answers) / traffic.actions,
        "bytes of an update": traffic.update_bytes / traffic.updates,
    }
