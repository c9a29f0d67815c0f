"""Which process a table goes to: new ones, and those that are handed over.

Each process knows what the others carry from their heartbeats, a moment old. Of two others that it picks by chance it
takes the one that carries less, so that many who choose at once do not all choose the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from relance.eventlog import Load, ProcessInfo

Others = Callable[[], Sequence[ProcessInfo]]
"""The other processes that live."""


def weight(load: Load) -> int:
    """What a process carries, as one figure: tables, which will have players, and seats, which have them."""
    return load.tables + load.seats


class Placement:
    """Chooses. `own`: what this process carries; None: it takes no tables."""

    def __init__(
        self, process: str, others: Others, own: Callable[[], Load | None], chance: random.Random | None = None
    ) -> None:
        self.process = process
        self._others, self._own = others, own
        self._chance = chance or random.Random()
        self._given: dict[str, tuple[int, int]] = {}  # what was given since a process's beat: beat, tables

    def home(self) -> ProcessInfo | None:
        """Where a new table goes; None: here. This process, rather than one that carries as much."""
        own = self._own()
        chosen = self._pick()
        if chosen is None or (own is not None and self._carries(chosen) >= weight(own)):
            return None
        self._give(chosen)
        return chosen

    def heir(self) -> ProcessInfo | None:
        """Who is to run a table that this process gives up; None: there is nobody."""
        chosen = self._pick()
        if chosen is not None:
            self._give(chosen)
        return chosen

    def find(self, name: str) -> ProcessInfo | None:
        """Another process that takes tables, by id or address."""
        return next((row for row in self._takers() if name in {row.id, row.address}), None)

    def _takers(self) -> list[ProcessInfo]:
        return [row for row in self._others() if row.load is not None]

    def _pick(self) -> ProcessInfo | None:
        takers = self._takers()
        if len(takers) > 2:
            takers = self._chance.sample(takers, 2)
        return min(takers, key=lambda row: (self._carries(row), self._chance.random()), default=None)

    def _carries(self, row: ProcessInfo) -> int:
        beat, given = self._given.get(row.id, (row.beat, 0))
        assert row.load is not None
        return weight(row.load) + (given if beat == row.beat else 0)

    def _give(self, row: ProcessInfo) -> None:
        beat, given = self._given.get(row.id, (row.beat, 0))
        self._given[row.id] = (row.beat, given + 1 if beat == row.beat else 1)
