"""Events of a table as a client sees them, and readers of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.client.errors import RelanceError, SlowReader

# Events that a reader may leave unread before it is cut off.
BUFFER = 4096


@dataclass(frozen=True, slots=True)
class Event:
    """One event: `data` is the payload message of relance.api.events.v1, so `match event.data` tells kinds apart."""

    table: str
    version: int
    hand: int
    time_us: int
    kind: str
    data: Message


def event_of(raw: events_pb2.TableEvent) -> Event:
    """The event in an envelope. An envelope of a kind newer than this client has kind "" and itself as data."""
    kind = raw.WhichOneof("payload") or ""
    data: Message = getattr(raw, kind) if kind else raw
    return Event(raw.table, raw.version, raw.hand, raw.time_us, kind, data)


class Events:
    """An async iterator over the events of a stream from the moment it was made. Ends with the stream.

    Raises what ended the stream, if that was a failure; SlowReader when more than `BUFFER` events wait.
    """

    def __init__(self, forget: Callable[[Events], None]) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._forget = forget
        self._failure: RelanceError | None = None
        self._ended = False

    def put(self, event: Event) -> None:
        """Called by the stream."""
        if self._ended:
            return
        if self._queue.qsize() >= BUFFER:
            self.end(SlowReader("SLOW_READER", f"{BUFFER} events wait to be read", {"limit": str(BUFFER)}))
            return
        self._queue.put_nowait(event)

    def end(self, failure: RelanceError | None = None) -> None:
        """Called by the stream: nothing follows."""
        if not self._ended:
            self._ended, self._failure = True, failure
            self._queue.put_nowait(None)
            self._forget(self)

    def close(self) -> None:
        """Stop reading."""
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._queue.get()
        if event is None:
            self._queue.put_nowait(None)
            if self._failure is not None:
                raise self._failure
            raise StopAsyncIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
