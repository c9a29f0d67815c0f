"""This process's ends of links to other table processes: one each, with every call on it that is passed on there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

import grpc
import structlog

from relance.api.table.v1 import link_pb2
from relance.table.outbox import Metadata, Outbox, entries, size_of
from relance.table.streams import Stream

log = structlog.get_logger(__name__)

LINK = "/relance.api.table.v1.TableLinkService/Link"
CONNECT_SECONDS = 2.0
PAUSE_SECONDS = 0.2
"""How long a process that was not reached is not tried again: many callers ask at once when one has died."""
OUTBOX_BYTES = 4 * 1024 * 1024
"""What may wait to be sent: callers whose messages come after that wait, too, before they are read on."""

Open = Callable[[str], grpc.aio.Channel]
Token = Callable[[], tuple[tuple[str, str], ...]]


class LinkLost(Exception):
    """The process at the other end is not reached, or is gone: what became of calls under way is not known."""


class Call:
    """A call that was passed on and has one answer. `end` stays None where the link was lost."""

    __slots__ = ("body", "done", "end", "number", "parts")

    def __init__(self, number: int) -> None:
        self.number = number
        self.body = b""
        self.parts: list[bytes] = []
        self.end: link_pb2.LinkEnd | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, body: bytes) -> None:
        """A message has come."""
        self.body = body

    def over(self, end: link_pb2.LinkEnd | None) -> None:
        """Nothing more comes."""
        self.end = end
        if not self.done.done():
            self.done.set_result(None)


class StreamCall(Call):
    """A call that is answered by a stream, in `answers`. `begun`: set with the first message, or the end."""

    __slots__ = ("answered", "answers", "begun")

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.answers = Stream("", seated=False)
        self.answered = False
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, body: bytes) -> None:
        """A message has come. Ends the stream where too many wait (SLOW_WATCHER)."""
        self.answers.push(body)
        if not self.answered:
            self.answered = True
            self._begin()

    def over(self, end: link_pb2.LinkEnd | None) -> None:
        """Nothing more comes."""
        super().over(end)
        self.answers.end(None)
        self._begin()

    def _begin(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)


AnyCall = TypeVar("AnyCall", bound=Call)


class Link:
    """One link. It lives until the connection breaks, either end goes, or `close`."""

    def __init__(self, address: str, channel: grpc.aio.Channel, token: Token) -> None:
        self.address = address
        self._channel, self._token = channel, token
        self._outbox = Outbox(link_pb2.LinkRequest, OUTBOX_BYTES, lambda: None)
        self._numbers = count(1)
        self._calls: dict[int, Call] = {}
        self._up = self._over = False
        self._ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"link {address}")

    @property
    def up(self) -> bool:
        """Whether calls can be passed on at once."""
        return self._up and not self._over

    @property
    def lost(self) -> bool:
        """Whether it is over."""
        return self._over

    @property
    def calls(self) -> int:
        """Calls under way."""
        return len(self._calls)

    async def ready(self) -> None:
        """Wait until the other end has answered. Raises LinkLost."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                ready = await asyncio.shield(self._ready)
        except TimeoutError:
            self._task.cancel()
            ready = False
        if not ready or self.lost:
            raise LinkLost(self.address)

    async def ask(self, method: str, metadata: Metadata, timeout: float | None, request: bytes) -> Call:
        """Pass a unary call on and wait for its answer. Raises LinkLost."""
        call = self._begin(Call(next(self._numbers)), method, metadata, timeout)
        self._outbox.push(call.number, request)
        try:
            await self._outbox.has_room()
            await call.done
        finally:
            self.forget(call)
        if call.end is None:
            raise LinkLost(self.address)
        return call

    def stream(self, method: str, metadata: Metadata, timeout: float | None, first: bytes) -> StreamCall:
        """Begin to pass on a call that is answered by a stream. To be forgotten when it is over."""
        call = self._begin(StreamCall(next(self._numbers)), method, metadata, timeout)
        self._outbox.push(call.number, first)
        return call

    async def send(self, call: Call, message: bytes) -> None:
        """A further message of the caller; waits while too much waits."""
        if call.number in self._calls:
            self._outbox.push(call.number, message)
            await self._outbox.has_room()

    def half_close(self, call: Call) -> None:
        """The caller sends no more."""
        if call.number in self._calls:
            self._outbox.frame(call.number, 2).half_closed = True

    def forget(self, call: Call) -> None:
        """Nobody waits for the call any more."""
        if self._calls.pop(call.number, None) is not None:
            self._outbox.frame(call.number, 2).cancelled = True

    async def close(self) -> None:
        """End it; calls under way are lost."""
        self._task.cancel()
        await asyncio.wait([self._task])

    def drop(self) -> None:
        """The same without waiting."""
        self._task.cancel()

    def _begin(self, call: AnyCall, method: str, metadata: Metadata, timeout: float | None) -> AnyCall:
        if self.lost:
            raise LinkLost(self.address)
        self._calls[call.number] = call
        known = entries(metadata)
        begin = self._outbox.frame(call.number, 128 + size_of(known)).begin
        begin.method = method
        begin.metadata.extend(known)
        if timeout is not None:
            begin.timeout_us = max(1, round(timeout * 1e6))
        return call

    async def _run(self) -> None:
        stream: grpc.aio.StreamStreamCall[bytes, bytes] = self._channel.stream_stream(LINK)(metadata=self._token())
        writer = asyncio.create_task(self._outbox.write_all(stream.write))
        why = "ended"
        try:
            while isinstance(raw := await stream.read(), bytes):
                if raw:
                    self._take(link_pb2.LinkResponse.FromString(raw))
                elif not self._ready.done():
                    self._up = True
                    self._ready.set_result(True)
        except grpc.aio.AioRpcError as error:
            why = error.code().name
        finally:
            log.info("link over", address=self.address, why=why, calls=len(self._calls))
            self._lose()
            stream.cancel()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            await self._channel.close()

    def _take(self, batch: link_pb2.LinkResponse) -> None:
        calls = self._calls
        for frame in batch.frames:
            if frame.HasField("body"):
                body = frame.body
                for number in frame.calls:
                    call = calls.get(number)
                    if call is None:
                        continue
                    if frame.partial:
                        call.parts.append(body)
                    elif call.parts:
                        call.take(b"".join((*call.parts, body)))
                        call.parts.clear()
                    else:
                        call.take(body)
            if frame.HasField("end"):
                for number in frame.calls:
                    call = calls.pop(number, None)
                    if call is not None:
                        call.over(frame.end)

    def _lose(self) -> None:
        self._over = True
        if not self._ready.done():
            self._ready.set_result(False)
        self._outbox.close()
        calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.over(None)


class Links:
    """The links of this process, by address, made when they are needed."""

    def __init__(self, open_channel: Open, token: Token) -> None:
        self._open_channel, self._token = open_channel, token
        self._links: dict[str, Link] = {}
        self._failed: dict[str, float] = {}  # when an address was not reached
        self._closed = False

    def up(self, address: str) -> Link | None:
        """The link to an address, where it is up."""
        link = self._links.get(address)
        return link if link is not None and link.up else None

    async def to(self, address: str) -> Link:
        """A link that is up. Raises LinkLost."""
        link = self._links.get(address)
        if link is None or link.lost:
            now = time.monotonic()
            if self._closed or now - self._failed.get(address, -PAUSE_SECONDS) < PAUSE_SECONDS:
                raise LinkLost(address)
            self._failed.pop(address, None)
            link = self._links[address] = Link(address, self._open_channel(address), self._token)
        try:
            await link.ready()
        except LinkLost:
            self._failed[address] = time.monotonic()
            raise
        return link

    @property
    def addresses(self) -> list[str]:
        """Where they go."""
        return list(self._links)

    def drop(self, addresses: Iterable[str]) -> None:
        """Drop the links to processes that are gone, or hang: their calls are lost."""
        for address in addresses:
            self._links.pop(address).drop()
            self._failed.pop(address, None)

    @property
    def calls(self) -> int:
        """Calls under way on all of them."""
        return sum(link.calls for link in self._links.values())

    async def close(self) -> None:
        """End all of them, for good."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.close()
