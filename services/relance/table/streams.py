"""The server's end of a Play or Watch stream: a bounded queue of serialised messages, and their writer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused

MAX_WAITING = 256
"""Messages that may wait for a watcher before it is too slow."""

Write = Callable[[bytes], Awaitable[None]]


class Stream:
    """One watcher of a table.

    player: whose secrets it may see; empty: nobody's. ended: set once, with why: None = in order.
    """

    __slots__ = ("_behind", "_limit", "_queue", "_send", "_wake", "ended", "player", "seated")

    def __init__(
        self, player: str, *, seated: bool, limit: int = MAX_WAITING, send: Callable[[bytes], None] | None = None
    ) -> None:
        """`send`: where messages go at once, where somebody else bounds what waits. Those from before the writer ran,
        which may be all that a watcher missed, are written one by one as there is room.
        """
        loop = asyncio.get_running_loop()
        self.player = player
        self.seated = seated
        """Whether it keeps its player connected: Play does, Watch does not."""
        self.ended: asyncio.Future[Refused | None] = loop.create_future()
        self._queue: deque[bytes] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._limit = limit
        self._send = send
        self._behind = True  # until the writer has caught up

    def push(self, message: bytes) -> None:
        """Send a message after those that wait. Ends the stream where too many do (SLOW_WATCHER)."""
        if self.ended.done():
            return
        if self._send is not None and not self._behind:
            self._send(message)
            return
        if len(self._queue) >= self._limit:
            self.end(
                Refused(
                    reason_pb2.REASON_SLOW_WATCHER,
                    f"The stream had {self._limit} messages waiting; resume from the last version seen.",
                    limit=self._limit,
                )
            )
            return
        self._queue.append(message)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def end(self, why: Refused | None) -> None:
        """End the stream with a refusal, or in order. The first call counts."""
        if not self.ended.done():
            self.ended.set_result(why)
            if self._wake is not None and not self._wake.done():
                self._wake.set_result(None)

    async def write_all(self, write: Write) -> None:
        """Write what is pushed until the stream has ended and nothing waits."""
        loop = asyncio.get_running_loop()
        queue = self._queue
        while True:
            while queue:
                await write(queue.popleft())
            self._behind = False
            if self.ended.done():
                return
            self._wake = loop.create_future()
            await self._wake
