"""`relance up`: a room with tables and bots, watched until somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import grpc
import psutil

from relance.api.table.v1.table_pb2 import OpenTableRequest
from relance.ops.audit import audit
from relance.room.demo import demo_tables, open_tables
from relance.room.figures import Observer
from relance.room.mischief import Mischief, hurried
from relance.room.panel import Display
from relance.room.play import BotPlan, play_command
from relance.room.room import Room, RoomOptions
from relance.room.services import OFFSETS, SERVICES

LOOK_SECONDS = 1.0
FIRST_AUDIT_SECONDS, AUDIT_SECONDS = 10.0, 30.0
# A long log is audited less often: it takes at most one part in so many of the time.
AUDIT_SHARE = 30
FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What `relance up` was asked for. `house` None: tables of several houses; `seconds` None: until a signal."""

    room: RoomOptions
    bots: BotPlan
    house: str | None = None
    seconds: float | None = None


@dataclass(slots=True)
class Process:
    """A process as the panel shows it."""

    name: str
    address: str
    state: str
    pid: int
    restarts: int
    megabytes: float


async def up(options: UpOptions, display: Display) -> bool:
    """Run a room until SIGINT or SIGTERM, or until `seconds` are over: then drain and audit.

    False: the audit found something, or bots that misbehave did. Raises RoomError.
    """
    tables = demo_tables(options.house)
    if options.bots.misbehave:
        tables = hurried(tables)
    room = Room(options.room, display.say)
    async with _stop_signal() as stop:
        display.say(f"starting a room on {room.folder.path}")
        try:
            if not await _unless(stop, room.start()):
                return True
            mischief = Mischief(room.folder, room.address("table"), display.say) if options.bots.misbehave else None
            await _unless(stop, _run(room, options, tables, display, mischief))
            if mischief is not None:
                await mischief.look(())
            display.say(f"draining: hands end within {options.room.drain_seconds:.0f} s or are voided in order")
            began = time.monotonic()
            await room.stop_services()
            # After a signal everything has to be gone soon, and an audit of a long log takes its time.
            if mischief is not None:
                display.tell(mischief.report())
            ok = options.seconds is None or await _last_audit(room, display)
            ok = ok and (mischief is None or not mischief.findings)
            await room.stop_servers()
            display.say(f"stopped in {time.monotonic() - began:.1f} s")
        finally:
            await room.stop(drain=False)
    return ok


async def _run(
    room: Room, options: UpOptions, tables: list[OpenTableRequest], display: Display, mischief: Mischief | None
) -> None:
    await open_tables(room.folder, room.address("table"), tables)
    if options.bots.count:
        room.add("bots", play_command(options.bots, room.address("lobby"), room.folder.path))
    for service in ("lobby", "table", "wallet", "rake"):
        display.say(f"{service}: grpc {room.address(service)}, metrics http://{room.ports.metrics(service)}/metrics")
    display.say(f"an operator's token: relance token --role floor --name ann --data {room.folder.path}")
    watching = asyncio.create_task(_watch(room, display, mischief))
    try:
        await asyncio.sleep(options.seconds if options.seconds is not None else FOREVER)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(room: Room, display: Display, mischief: Mischief | None) -> None:
    """Show the room, and audit it now and then, for ever."""
    observer = Observer(room.folder, {service: room.address(service) for service in SERVICES})
    verdict, audit_at = "none yet", time.monotonic() + FIRST_AUDIT_SECONDS
    try:
        while True:
            if time.monotonic() > audit_at:
                began = time.monotonic()
                verdict = await _audited(room, display, verdict)
                took = time.monotonic() - began
                audit_at = time.monotonic() + max(AUDIT_SECONDS, AUDIT_SHARE * took)
            figures = None
            with contextlib.suppress(grpc.aio.AioRpcError):  # a service is away; the supervisor says so
                figures = await observer.look()
                if mischief is not None:
                    await mischief.look(figures.tables)
            display.show(figures, await _processes(room), verdict)
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await observer.close()


async def _last_audit(room: Room, display: Display) -> bool:
    """Audit the room at rest; whether all is well."""
    report = await audit(room.audit_url)
    display.tell([f"audit: {line}" for line in (report.summary, *report.findings)])
    return report.ok


async def _audited(room: Room, display: Display, before: str) -> str:
    """Audit the running room; the verdict, or the one before where the database is away."""
    try:
        report = await audit(room.audit_url)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return before
    for finding in report.findings:
        display.say(f"audit: {finding}")
    return f"{report.summary} at {time.strftime('%H:%M:%S')}"


async def _processes(room: Room) -> list[Process]:
    healthy = await asyncio.gather(*(room.healthy(service) for service in SERVICES))
    ready = dict(zip(SERVICES, healthy, strict=True))
    found = []
    for name in room.names:
        child = room.child(name)
        address = f"127.0.0.1:{room.ports.of(name)}" if name in OFFSETS else ""
        state = "down" if not child.running else "up" if ready.get(name, True) else "not ready"
        found.append(Process(name, address, state, child.pid or 0, room.restarts.get(name, 0), _megabytes(child.pid)))
    return found


def _megabytes(pid: int | None) -> float:
    try:
        return psutil.Process(pid).memory_info().rss / 1e6 if pid else 0.0
    except psutil.NoSuchProcess:
        return 0.0


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do `work` unless `stop` is set first: then it is cancelled. Whether it was done."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    done = task.done()
    task.cancel()
    results = await asyncio.gather(task, stopped, return_exceptions=True)
    if isinstance(results[0], Exception):
        raise results[0]
    return done


@asynccontextmanager
async def _stop_signal() -> AsyncIterator[asyncio.Event]:
    """An event that SIGINT, SIGTERM and the end of the terminal set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
