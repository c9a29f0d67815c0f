"""One heap of deadlines for the whole process: an idle table costs one entry, not a task.

Times are seconds of the clock's `monotonic`, so that a jump of the wall clock neither ends nor stretches a turn.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Protocol

from relance.runtime.clock import Clock, Timer

NEVER = math.inf
_FEW = 64


class Timed(Protocol):
    """Something that wants to be called at a time. `timer_at` is for Timers alone: its live entry, NEVER at first."""

    timer_at: float

    def due(self, now: float) -> None:
        """The time has come."""


class Timers:
    """Calls `due` of whatever asked for a time.

    A later time than the one asked for before moves nothing in the heap: the entry is looked at when it comes up, and
    `due` asks again. So a clock that is restarted with every action costs one push per expiry, not one per action.
    What is forgotten stays in the heap only until half of it is so: whoever comes and goes leaves nothing behind.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timed]] = []
        self._number = itertools.count()
        self._armed: Timer | None = None
        self._armed_for = NEVER
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when: float, timed: Timed) -> None:
        """Call `timed.due` at `when` or before that: it must look at its own times."""
        if timed.timer_at <= when:
            return
        timed.timer_at = when
        heapq.heappush(self._heap, (when, next(self._number), timed))
        if self._armed is None or when < self._armed_for:
            self._arm(when)

    def forget(self, timed: Timed) -> None:
        """Call `timed` no more, unless it asks again."""
        if timed.timer_at == NEVER:
            return
        timed.timer_at = NEVER
        self._forgotten += 1
        if self._forgotten > max(_FEW, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].timer_at == entry[0]]
            heapq.heapify(self._heap)
            self._forgotten = 0

    def _arm(self, when: float) -> None:
        if self._armed is not None:
            self._armed.cancel()
        self._armed_for = when
        self._armed = self._clock.call_later(max(0.0, when - self._clock.monotonic()), self._fire)

    def _fire(self) -> None:
        self._armed = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            when, _, timed = heapq.heappop(self._heap)
            if timed.timer_at == when:
                timed.timer_at = NEVER
                timed.due(now)
        if self._heap and (self._armed is None or self._heap[0][0] < self._armed_for):
            self._arm(self._heap[0][0])

    def stop(self) -> None:
        """No more calls."""
        if self._armed is not None:
            self._armed.cancel()
        self._heap.clear()
