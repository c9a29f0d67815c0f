"""Whose streams may be taken: heartbeats, and silence measured by one's own clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from relance.eventlog.errors import Unavailable
from relance.eventlog.port import EventLog, Silence

_logger = structlog.get_logger("relance.eventlog")


class Heartbeat:
    """This process's row: that it lives, and where it is reached (`address`, host:port)."""

    def __init__(self, log: EventLog, address: str) -> None:
        self._log, self.address = log, address

    async def beat(self) -> None:
        """Count up, durably. Raises Unavailable."""
        await self._log.beats.beat(self._log.writer, self.address)

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
            beats = await self._log.beats.beats()
            alive = [process for process, beat in beats.items() if self._beats.get(process) != beat]
            silent = await self._log.beats.silent([self._log.writer, *alive])
        except Unavailable:
            self.restart()
            raise
        now = self._monotonic()
        if self._last_look is None or now - self._last_look > self._longest_gap:
            self.restart()
        self._last_look, self._beats = now, beats
        self._since = {seen: self._since.get(seen, now) for seen in silent}
        return [
            Takeable(seen.stream, seen.fence, seen.writer)
            for seen, since in self._since.items()
            if seen.writer == "" or now - since >= self._lease
        ]

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
