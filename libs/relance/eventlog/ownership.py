"""Whose streams may be taken: heartbeats, and silence measured by one's own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import blake2b

import structlog

from relance.eventlog.errors import Unavailable
from relance.eventlog.port import EventLog, Load, ProcessInfo, Silence

_logger = structlog.get_logger("relance.eventlog")


_TURNS = 2
"""How many turns a stream that may be taken waits at most for those that come before this process."""
_TURN = 1.5
"""A turn, in intervals between two looks."""


class Heartbeat:
    """This process's row: that it lives, where it is reached (`address`, host:port), and what it carries (None: it
    takes no more).
    """

    def __init__(self, log: EventLog, address: str, load: Callable[[], Load | None] = lambda: None) -> None:
        self._log, self.address, self._load = log, address, load

    async def beat(self) -> None:
        """Count up, durably. Raises Unavailable."""
        await self._log.beats.beat(self._log.writer, self.address, self._load())

    async def retire(self) -> None:
        """Remove the row, after the last stream was released. Raises Unavailable."""
        await self._log.beats.retire(self._log.writer)


@dataclass(frozen=True, slots=True)
class Takeable:
    """A stream for `take_over(stream, fence)`; `writer` is who has it, '' if it was released."""

    stream: str
    fence: int
    writer: str


class Observer:
    """Finds the streams whose owner has been silent for the lease.

    Silent means: this process saw the same beat and the same fence for `lease` seconds of its own monotonic clock,
    while it kept writing its own beat to the same database. So neither an outage of the database (reads only, or
    altogether) nor a pause of this process looks like the death of the others: both restart every observation.
    A released stream may be taken at once.

    Where several processes live, each stream is one's first: the others wait a turn or two, which spreads a dead
    owner's streams over all of them and still has each taken when the first of its takers does not.
    """

    def __init__(
        self,
        log: EventLog,
        heartbeat: Heartbeat,
        *,
        lease: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if lease <= 0:
            raise ValueError(f"lease of {lease} s: it must be positive")
        self._log, self._heartbeat, self._lease, self._monotonic = log, heartbeat, lease, monotonic
        self._longest_gap = lease / 2
        self._last_look: float | None = None
        self._beats: dict[str, int] = {}
        self._beaten: dict[str, float] = {}  # when a beat was seen to change
        self.living: list[ProcessInfo] = []
        """The other processes that were seen beating, by id, as of the last look."""
        self._since: dict[Silence, float] = {}
        log.on_connection(self._connection_changed)

    @property
    def interval(self) -> float:
        """Seconds between two looks: often enough that a missed one restarts nothing."""
        return self._lease / 5

    async def look(self) -> list[Takeable]:
        """Beat, look at the others, and answer what may be taken now. Raises Unavailable, which restarts everything."""
        try:
            await self._heartbeat.beat()
            rows = await self._log.beats.processes()
            beats = {row.id: row.beat for row in rows}
            alive = [process for process, beat in beats.items() if self._beats.get(process) != beat]
            silent = await self._log.beats.silent([self._log.writer, *alive])
        except Unavailable:
            self.restart()
            raise
        now = self._monotonic()
        if self._last_look is None or now - self._last_look > self._longest_gap:
            self.restart()
        self._follow(rows, now)
        self._last_look, self._beats = now, beats
        self._since = {seen: self._since.get(seen, now) for seen in silent}
        takers = [row.id for row in self.living if row.load is not None]
        return [
            Takeable(seen.stream, seen.fence, seen.writer)
            for seen, since in self._since.items()
            if self._may_take(seen, now - since, takers)
        ]

    def _follow(self, rows: Collection[ProcessInfo], now: float) -> None:
        changed = (row.id for row in rows if self._beats.get(row.id, row.beat) != row.beat)
        self._beaten |= dict.fromkeys(changed, now)
        there = {row.id for row in rows}
        self._beaten = {id_: at for id_, at in self._beaten.items() if id_ in there and now - at <= self._longest_gap}
        self.living = [row for row in rows if row.id in self._beaten and row.id != self._log.writer]

    def _may_take(self, seen: Silence, waited: float, takers: Collection[str]) -> bool:
        waited -= 0 if seen.writer == "" else self._lease
        if waited < 0 or not takers:
            return waited >= 0
        return waited >= min(turn(seen.stream, self._log.writer, takers), _TURNS) * _TURN * self.interval

    def restart(self) -> None:
        """Forget what was observed."""
        self._last_look = None
        self._since.clear()

    async def run(self, found: Callable[[list[Takeable]], None]) -> None:
        """Look for ever, and call `found` whenever something may be taken. Ends by cancellation."""
        while True:
            try:
                takeable = await self.look()
            except Unavailable as error:
                _logger.warning("observation_restarted", error=str(error))
            else:
                if takeable:
                    found(takeable)
            await asyncio.sleep(self.interval)

    def _connection_changed(self, connected: bool) -> None:
        self.restart()


def turn(stream: str, process: str, others: Collection[str]) -> int:
    """How many of the others come before a process in taking a stream: the same answer wherever it is asked."""
    mine = _place(stream, process)
    return sum(_place(stream, other) < mine for other in others)


def _place(stream: str, process: str) -> bytes:
    return blake2b(f"{stream} {process}".encode(), digest_size=8).digest()
