"""Rooms for benchmarks: real processes on embedded servers, players with tokens of the room's own key."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import grpc
import psutil

from relance.api.common.v1.game_pb2 import Timers
from relance.client import Operator, connect
from relance.room.folder import OPERATOR_ROLES
from relance.room.room import Room, RoomOptions, until
from relance.room.services import environment, serve_command
from relance.runtime.auth import PLAYER, TokenSigner

T = TypeVar("T")

PLAY = "/relance.api.table.v1.TableService/Play"
BUY_IN = 10_000
BLINDS = (50, 100)
# Streams share a connection as far as HTTP/2 keeps pace, as players behind one proxy would.
STREAMS_A_CHANNEL = 50
CONCURRENT = 32
START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class BenchRoom:
    """A running room and its operator."""

    room: Room
    operator: Operator

    @property
    def table_process(self) -> psutil.Process:
        """The table service's process."""
        pid = self.room.child("table").pid
        assert pid is not None
        return psutil.Process(pid)

    async def another_table_process(self, name: str, **settings: str) -> tuple[str, psutil.Process]:
        """A further table process; its address. `settings`: as RELANCE_NAME, where they differ from the first one's."""
        room = self.room
        file = room.folder.run / f"{name}.address"
        theirs = environment(
            "table", room.folder, room.ports, (room.owner_url, room.nats_url), room.options.drain_seconds
        )
        own = {"LISTEN": "127.0.0.1:0", "METRICS": "", "ADDRESS_FILE": str(file), **settings}
        room.add(name, serve_command("table"), {**theirs, **{f"RELANCE_{key}": value for key, value in own.items()}})
        if not await until(file.exists, START_SECONDS):
            raise RuntimeError(f"{name} did not start: {room.child(name).last_words()}")
        pid = room.child(name).pid
        assert pid is not None
        return file.read_text(), psutil.Process(pid)

    def token(self, player: str) -> str:
        """A player's token, signed with the lobby's key."""
        signer = TokenSigner.from_file(self.room.folder.key_file("lobby-1"), "lobby-1")
        token, _ = signer.sign(player, (PLAYER,), seconds=3600)
        return token

    async def open_tables(self, count: int, *, timers: Timers | None = None) -> list[str]:
        """Six-seat no-limit tables, tables/{table}."""
        return await every(
            [
                self.operator.open_table(blinds=BLINDS, seats=6, min_buy_in=BUY_IN, max_buy_in=BUY_IN, timers=timers)
                for _ in range(count)
            ]
        )

    async def fund(self, players: Sequence[str], amount: int = 100 * BUY_IN) -> None:
        """Money for players."""
        await every([self.operator.deposit(player, amount) for player in players])


async def every(work: Sequence[Awaitable[T]]) -> list[T]:
    """The results of all, a few at a time, in order."""
    gate = asyncio.Semaphore(CONCURRENT)

    async def one(part: Awaitable[T]) -> T:
        async with gate:
            return await part

    return await asyncio.gather(*(one(part) for part in work))


@asynccontextmanager
async def bench_room() -> AsyncIterator[BenchRoom]:
    """A room in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="relance-bench-") as folder:
        room = Room(RoomOptions(Path(folder) / "room"), lambda sentence: None)
        await room.start()
        try:
            token = room.folder.operator_token("bench", OPERATOR_ROLES, 7200)
            async with connect(room.address("lobby")) as client:
                yield BenchRoom(room, client.operator(token))
        finally:
            await room.stop(drain=False)


def channels(address: str, streams: int) -> list[grpc.aio.Channel]:
    """Connections of their own for so many streams."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    count = -(-streams // STREAMS_A_CHANNEL)
    return [grpc.aio.insecure_channel(address, options=options) for _ in range(count)]


def cpu_seconds(process: psutil.Process) -> float:
    """Processor time that a process has used, all its threads, in user and kernel mode."""
    times = process.cpu_times()
    return float(times.user + times.system)
