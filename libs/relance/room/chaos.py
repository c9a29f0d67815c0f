"""`relance chaos`: random processes of a playing room die or stand still at random moments, and no cent is lost.

Two table processes run, so that a table whose owner stands still longer than its lease goes on elsewhere, and the old
owner wakes up to find itself shut out. What is chosen follows from the seed; when it strikes does not.
"""

from __future__ import annotations

import asyncio
import random
import signal
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from rich.console import Console

from relance.ops.audit import Report, audit
from relance.room.demo import open_tables
from relance.room.drill import busy_tables
from relance.room.play import BotPlan, play_command
from relance.room.ports import free_port
from relance.room.processes import RoomError
from relance.room.room import DRAIN_GRACE, Room, RoomOptions, until
from relance.room.services import LEASE_SECONDS, environment, serve_command

SECOND = "table-2"
VICTIMS = ("table", SECOND, "table", SECOND, "wallet", "rake", "lobby", "nats", "postgres", "bots")
STANDS_STILL = 0.3
"""Part of the strikes that stop a process for a while instead of killing it."""
PAUSES = (0.5, 4.0)
"""Seconds between two strikes."""
STOPS = (0.2 * LEASE_SECONDS, 2.5 * LEASE_SECONDS)
"""Seconds that a process stands still: some longer than the lease of a table."""
PATIENCE = 120.0
AUDIT_EVERY = 5
DATABASE_AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)

_HANDS = "SELECT count(*) FROM log.event WHERE type = $1"


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """How long, in how large a room. `data` None: a temporary folder, removed afterwards."""

    minutes: float = 3.0
    seed: int = 1
    bots: int = 24
    data: Path | None = None


async def chaos(options: ChaosOptions, console: Console) -> bool:
    """Play, strike, and account for everything. False: a finding of an audit. Raises RoomError."""
    with tempfile.TemporaryDirectory(prefix="relance-chaos-") as temporary:
        room = Room(RoomOptions(options.data or Path(temporary), drain_seconds=5), console.print)
        try:
            await room.start()
            return await _Chaos(room, options, console).run()
        finally:
            await room.stop(drain=False)


class _Chaos:
    def __init__(self, room: Room, options: ChaosOptions, console: Console) -> None:
        self._room, self._options, self._console = room, options, console
        self._random = random.Random(options.seed)
        self._kills = self._stops = self._audits = 0

    async def run(self) -> bool:
        room, options = self._room, self._options
        self._add_second()
        await open_tables(room.folder, room.address("table"), busy_tables("chaos", options.bots, bring_in=False))
        plan = BotPlan(options.bots, "instant", options.seed)
        room.add("bots", play_command(plan, room.address("lobby"), room.folder.path))
        await self._hands_after(0)
        report = await self._strike_until(time.monotonic() + options.minutes * 60)
        if report.ok:
            for name in room.names:
                await room.wait_ready(name)
            await self._hands_after(await self._count("hand_ended") or 0)
            await self._drain_second()
            await room.stop_services()
            report = await audit(room.audit_url)
        hands, voided = await self._count("hand_ended"), await self._count("hand_voided")
        for finding in report.findings:
            self._console.print(f"audit: {finding}")
        self._console.print(
            f"strikes that stopped a process for a while: {self._stops}; hands voided: {voided}; "
            f"audits of the running room that found nothing: {self._audits}"
        )
        verdict = "ok" if report.ok else "FAILED"
        self._console.print(f"chaos: kills={self._kills + self._stops} hands={hands} audit={verdict}")
        return report.ok

    def _add_second(self) -> None:
        """A second table process beside the room's own."""
        room = self._room
        urls = (room.owner_url, room.nats_url)
        env = environment("table", room.folder, room.ports, urls, room.options.drain_seconds)
        env.pop("RELANCE_METRICS", None)
        env["RELANCE_LISTEN"] = f"127.0.0.1:{free_port()}"
        room.add(SECOND, serve_command("table"), env)

    async def _drain_second(self) -> None:
        """Let the second table process hand its tables over in order, before the room stops."""
        child = self._room.child(SECOND)
        self._room.hold(SECOND)
        child.send(signal.SIGTERM)
        await until(lambda: not child.running, self._room.options.drain_seconds + DRAIN_GRACE)

    async def _strike_until(self, end: float) -> Report:
        """Strike until a time; the first audit with findings, or the last without."""
        report = Report()
        while time.monotonic() < end:
            await asyncio.sleep(self._random.uniform(*PAUSES))
            await self._strike(self._random.choice(VICTIMS))
            if (self._kills + self._stops) % AUDIT_EVERY == 0:
                with suppress(*DATABASE_AWAY):
                    report = await audit(self._room.audit_url)
                    self._audits += report.ok
                if not report.ok:
                    break
        return report

    async def _strike(self, name: str) -> None:
        """Kill a process, or let it stand still for a while; one that is not there yet is passed over."""
        child = self._room.child(name)
        if not child.running:
            return
        if self._random.random() < STANDS_STILL and name != "bots":
            seconds = self._random.uniform(*STOPS)
            self._console.print(f"{name} stands still for {seconds:.1f} s")
            child.send(signal.SIGSTOP)
            await asyncio.sleep(seconds)
            child.send(signal.SIGCONT)
            self._stops += 1
        else:
            self._room.kill(name)
            self._kills += 1

    async def _hands_after(self, hands: int) -> None:
        """Wait until more hands have been paid. Raises RoomError."""
        deadline = time.monotonic() + PATIENCE
        while (await self._count("hand_ended") or 0) <= hands:
            if time.monotonic() > deadline:
                raise RoomError(f"no hand was paid for {PATIENCE:.0f} s; logs: {self._room.folder.logs}")
            await asyncio.sleep(0.2)

    async def _count(self, kind: str) -> int | None:
        """Events of a kind in the log; None while the database is away."""
        try:
            owner = await asyncpg.connect(self._room.owner_url, timeout=10)
        except DATABASE_AWAY:
            return None
        try:
            counted: int = await owner.fetchval(_HANDS, kind)
            return counted
        except DATABASE_AWAY:
            return None
        finally:
            await owner.close(timeout=5)
