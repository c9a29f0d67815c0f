"""The server's end of a stream that tells of changes: a bounded queue, and an end with a reason."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from relance.api.common.v1 import reason_pb2
from relance.runtime.auth import Context, Identity
from relance.runtime.clock import Clock
from relance.runtime.errors import Refused

MAX_WAITING = 64
"""Messages that may wait for a watcher before it is too slow."""
MAX_WATCHERS = 2_000
"""Watchers of one kind that a process serves."""
LAST_WORDS_SECONDS = 2.0
"""How long a stream that ends may take to write what was pushed before its end."""

M = TypeVar("M", bound=Message)


class Watcher(Generic[M]):
    """One watcher: what is pushed is written in order."""

    def __init__(self, limit: int = MAX_WAITING) -> None:
        self._limit = limit
        self._queue: deque[M] = deque()
        self._wake = asyncio.Event()
        self.ended: asyncio.Future[Refused | None] = asyncio.get_running_loop().create_future()
        """Set once, with why; None: in order."""

    def push(self, message: M) -> None:
        """Send a message after those that wait. Ends the stream where too many do (SLOW_WATCHER)."""
        if self.ended.done():
            return
        if len(self._queue) >= self._limit:
            text = f"The stream had {self._limit} messages waiting; watch again."
            self.end(Refused(reason_pb2.REASON_SLOW_WATCHER, text, limit=self._limit))
            return
        self._queue.append(message)
        self._wake.set()

    def end(self, why: Refused | None) -> None:
        """End the stream with a refusal, or in order. The first call counts."""
        if not self.ended.done():
            self.ended.set_result(why)
            self._wake.set()

    async def write_all(self, write: Callable[[M], Awaitable[None]]) -> None:
        """Write what is pushed until the stream has ended and nothing waits."""
        while self._queue or not self.ended.done():
            if self._queue:
                await write(self._queue.popleft())
            else:
                self._wake.clear()
                await self._wake.wait()


class Streams:
    """All streams of a process, to end them when it stops."""

    def __init__(self) -> None:
        self._open: set[Watcher[Any]] = set()

    def end(self) -> None:
        """End every stream: the process is stopping."""
        for watcher in list(self._open):
            watcher.end(Refused(reason_pb2.REASON_UNAVAILABLE, "This server is being stopped; watch at another one."))

    async def serve(
        self,
        context: Context,
        caller: Identity,
        clock: Clock,
        watcher: Watcher[M],
        enter: Callable[[], Awaitable[None]],
    ) -> None:
        """Write to a stream until it ends, at the latest when the caller's token does.

        `enter`: makes the watcher known to what pushes. Raises Refused where the stream ends with a reason.
        """
        if len(self._open) >= MAX_WATCHERS:
            raise Refused(
                reason_pb2.REASON_TOO_MANY_REQUESTS, "Too many streams are open here; try again later.",
                retry_after_seconds=30,
            )  # fmt: skip
        self._open.add(watcher)
        expired = Refused(reason_pb2.REASON_TOKEN_EXPIRED, "The token has expired; watch again with another one.")
        left = (caller.expires_at - clock.now_us()) / 1e6
        timer = clock.call_later(max(0.0, left), lambda: watcher.end(expired))
        writer = asyncio.create_task(watcher.write_all(context.write))
        writer.add_done_callback(lambda _: watcher.end(None))
        try:
            await enter()
            why = await watcher.ended
            if why is None or why.reason != reason_pb2.REASON_SLOW_WATCHER:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_WORDS_SECONDS):
                        await asyncio.wait([writer])
        finally:
            self._open.discard(watcher)
            timer.cancel()
            watcher.end(None)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        if why is not None:
            raise why
