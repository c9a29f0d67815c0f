"""Waiting between tries: longer each time, never in step with others."""

from __future__ import annotations

import asyncio
import random


class Backoff:
    """Delays of `first` seconds, doubling up to `most`, each a random part of it (full jitter, at least a tenth)."""

    def __init__(self, first: float = 0.1, most: float = 3.0) -> None:
        self.first = first
        self.most = most
        self._next = first

    def reset(self) -> None:
        """Something worked: begin small again."""
        self._next = self.first

    async def wait(self) -> None:
        """Wait for the next delay."""
        delay = self._next * random.uniform(0.1, 1.0)
        self._next = min(self._next * 2, self.most)
        await asyncio.sleep(delay)
