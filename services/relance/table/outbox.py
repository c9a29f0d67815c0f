"""What goes out over a link: frames gather while a write is under way and leave together as the next message.

So a link costs the less a message the more there is to send, and a message for many calls goes over it once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from relance.api.table.v1 import link_pb2

Batch = TypeVar("Batch", link_pb2.LinkRequest, link_pb2.LinkResponse)
Metadata = Iterable[tuple[str, str | bytes]]

BATCH_BYTES = 48 * 1024
"""A batch is closed once it has so many: a server takes requests of 64 KiB."""
QUIET_TURNS, MOST_TURNS = 8, 20
"""Turns of the loop without anything new after which a batch goes out, and at most."""
_FRAME_BYTES = 16  # about what a frame has beside its body
_CALL_BYTES = 6  # and for each further call


class Outbox(Generic[Batch]):
    """Frames on their way. `overflowed` is called when more than `limit` bytes wait: who reads has stopped reading."""

    def __init__(self, batch: type[Batch], limit: int, overflowed: Callable[[], None]) -> None:
        self._kind: type[Batch] = batch
        self._limit, self._overflowed = limit, overflowed
        self._batches: deque[tuple[Batch, list[int]]] = deque()
        self._last: link_pb2.LinkFrame | None = None  # of the last batch, where its body may be another call's too
        self._body: bytes | None = None
        self._wake: asyncio.Future[None] | None = None
        self._relief: asyncio.Future[None] | None = None
        self._waiting = 0
        self._pushed = 0
        self._closed = False

    def push(self, call: int, body: bytes) -> None:
        """A message of one call; bytes that were pushed last for another go over the link with those."""
        if body is self._body and self._last is not None:
            self._last.calls.append(call)
            self._grow(_CALL_BYTES)
            return
        size = len(body)
        for start in range(0, size if size > BATCH_BYTES else 0, BATCH_BYTES):
            part = body[start : start + BATCH_BYTES]
            frame = self.frame(call, len(part))
            frame.body, frame.partial = part, start + BATCH_BYTES < size
        if size <= BATCH_BYTES:
            frame = self.frame(call, size)
            frame.body = body
            self._last, self._body = frame, body

    def frame(self, call: int, size: int) -> link_pb2.LinkFrame:
        """A new frame of one call, after what waits, to be filled with about `size` bytes at once."""
        self._last = self._body = None
        size += _FRAME_BYTES
        if not self._batches or self._batches[-1][1][0] + size > BATCH_BYTES + _FRAME_BYTES:
            self._batches.append((self._kind(), [0]))
        frame = self._batches[-1][0].frames.add()
        frame.calls.append(call)
        self._grow(size)
        return frame

    def _grow(self, size: int) -> None:
        self._waiting += size
        self._pushed += 1
        last = self._batches[-1][1]
        last[0] += size
        if last[0] >= BATCH_BYTES:
            self._last = self._body = None
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self._waiting > self._limit:
            self._overflowed()

    async def has_room(self) -> None:
        """Wait until less than half of the limit waits."""
        while self._waiting > self._limit // 2 and not self._closed:
            if self._relief is None:
                self._relief = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._relief)

    def close(self) -> None:
        """`write_all` returns once what waits is written."""
        self._closed = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        self._relieve()

    async def write_all(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Write what is pushed, batch by batch, until closed."""
        loop = asyncio.get_running_loop()
        while True:
            while self._batches:
                await self._gather()
                batch, (size,) = self._batches.popleft()
                if not self._batches:
                    self._last = self._body = None
                await write(batch.SerializeToString())
                self._waiting -= size
                if self._waiting <= self._limit // 2:
                    self._relieve()
            if self._closed:
                return
            self._wake = loop.create_future()
            await self._wake

    async def _gather(self) -> None:
        """Let what is about to be pushed be pushed: a write costs as much as passing on several calls."""
        quiet = turns = 0
        while quiet < QUIET_TURNS and turns < MOST_TURNS:
            pushed = self._pushed
            await asyncio.sleep(0)
            turns += 1
            quiet = quiet + 1 if pushed == self._pushed else 0

    def _relieve(self) -> None:
        relief, self._relief = self._relief, None
        if relief is not None and not relief.done():
            relief.set_result(None)


def entries(metadata: Metadata) -> list[link_pb2.LinkMetadata]:
    """Metadata as it goes over a link."""
    return [
        link_pb2.LinkMetadata(key=key, value=value if isinstance(value, bytes) else value.encode("latin-1", "replace"))
        for key, value in metadata
    ]


def size_of(metadata: Iterable[link_pb2.LinkMetadata]) -> int:
    """Bytes that entries take, about."""
    return sum(8 + len(entry.key) + len(entry.value) for entry in metadata)


def pairs(metadata: Iterable[link_pb2.LinkMetadata]) -> tuple[tuple[str, str | bytes], ...]:
    """And back."""
    return tuple(
        (entry.key, entry.value if entry.key.endswith("-bin") else entry.value.decode("latin-1")) for entry in metadata
    )
