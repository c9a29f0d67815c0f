"""Time as a port: services ask a Clock, so a whole room can run on a simulated one."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """The call does not happen; nothing where it has happened."""


class Clock(Protocol):
    """Where the time comes from."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC. May jump."""

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back once, on the event loop, after that many seconds."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class _SimulatedTimer:
    __slots__ = ("callback", "due_us", "number")

    def __init__(self, due_us: int, number: int, callback: Callable[[], object]) -> None:
        self.due_us, self.number = due_us, number
        self.callback: Callable[[], object] | None = callback

    def __lt__(self, other: _SimulatedTimer) -> bool:
        return (self.due_us, self.number) < (other.due_us, other.number)

    def cancel(self) -> None:
        self.callback = None


class SimulatedClock:
    """A clock that stands still until `advance` moves it; timers fire in order of their time, then of their making."""

    def __init__(self, start_us: int = 1_700_000_000_000_000) -> None:
        self._now_us = self._start_us = start_us
        self._timers: list[_SimulatedTimer] = []
        self._made = 0

    def now_us(self) -> int:
        return self._now_us

    def monotonic(self) -> float:
        return (self._now_us - self._start_us) / 1e6

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.call_later(seconds, wake)
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        self._made += 1
        # A time that a sum of floats puts a hair after now is a microsecond away: fired now, it would be asked for
        # again and again.
        wait_us = max(1, round(seconds * 1e6)) if seconds > 0 else 0
        timer = _SimulatedTimer(self._now_us + wait_us, self._made, callback)
        heapq.heappush(self._timers, timer)
        return timer

    def next_due(self) -> float | None:
        """Seconds until the next timer; None: there is none."""
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        return (self._timers[0].due_us - self._now_us) / 1e6 if self._timers else None

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`, firing what falls due; tasks that it wakes run before the next timer does."""
        end_us = self._now_us + round(seconds * 1e6)
        await _settle()
        while self.next_due() is not None and self._timers[0].due_us <= end_us:
            timer = heapq.heappop(self._timers)
            self._now_us = max(self._now_us, timer.due_us)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
            await _settle()
        self._now_us = end_us


async def _settle() -> None:
    """Let tasks that are ready run, and those that they make ready."""
    for _ in range(10):
        await asyncio.sleep(0)
