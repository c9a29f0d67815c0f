"""The owner's end of links: calls that other table processes pass on are served here as if their callers had come by
themselves. The owner checks their tokens, and refuses what is not its own: nothing is passed on twice.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any, NoReturn, TypeAlias

import grpc
import structlog

from relance.api.table.v1 import link_pb2
from relance.table.outbox import Metadata, Outbox, entries, pairs, size_of

log = structlog.get_logger(__name__)

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

OUTBOX_BYTES = 32 * 1024 * 1024
"""What may wait to be read by the process at the other end before it counts as gone."""
MAX_WAITING = 256
"""Messages of one call that may wait to be read."""
LAST_SECONDS = 1.0
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Landed(grpc.aio.ServicerContext[bytes, bytes]):
    """A call that came over a link, as its handler sees it."""

    def __init__(self, number: int, begin: link_pb2.LinkCall, outbox: Outbox[link_pb2.LinkResponse], peer: str) -> None:
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._outbox = outbox
        self._peer = peer
        self._metadata = pairs(begin.metadata)
        self._until = time.monotonic() + begin.timeout_us / 1e6 if begin.timeout_us else None
        self._messages: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._wake: asyncio.Future[None] | None = None
        self._half_closed = False
        self._listener: Callable[[bytes], None] | None = None
        self._code = grpc.StatusCode.OK
        self._details = ""
        self._trailing: Metadata = ()
        self._over = False

    # What the link does

    def take(self, body: bytes, *, partial: bool) -> None:
        """The caller has sent a message, or a part of one."""
        if partial:
            self._parts.append(body)
            return
        if self._parts:
            body = b"".join((*self._parts, body))
            self._parts.clear()
        if self._listener is not None:
            self._listener(body)
            return
        if len(self._messages) >= MAX_WAITING:
            if self.task is not None:
                self.task.cancel()  # nobody reads, and the caller sends more than any client does
            return
        self._messages.append(body)
        self._awake()

    def half_close(self) -> None:
        """The caller sends no more."""
        self._half_closed = True
        self._awake()

    def cancel(self) -> None:
        """The caller waits no more."""
        self._over = True
        if self.task is not None:
            self.task.cancel()

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def end(self) -> None:
        """The handler has returned."""
        if self._over:
            return
        self._over = True
        code: int = self._code.value[0]
        end = link_pb2.LinkEnd(code=code, details=self._details, trailing=entries(self._trailing))
        self._outbox.frame(self.number, 64 + 4 * len(self._details) + size_of(end.trailing)).end.CopyFrom(end)

    # What handlers do

    def send(self, message: bytes) -> None:
        """Send a message without waiting. What waits on the link is bounded for all calls together."""
        if not self._over:
            self._outbox.push(self.number, message)

    def listen(self, listener: Callable[[bytes], None]) -> None:
        """Have `listener` called with each message, at once, instead of reading them."""
        inside = copy_context()  # the caller's, not the link's
        self._listener = lambda message: inside.run(listener, message)
        while self._messages:
            self._listener(self._messages.popleft())

    async def read(self) -> bytes:
        """See grpc.aio.ServicerContext."""
        while not self._messages:
            if self._half_closed:
                end: Any = grpc.aio.EOF
                return end  # type: ignore[no-any-return]
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._messages.popleft()

    async def write(self, message: bytes) -> None:
        """See grpc.aio.ServicerContext."""
        await self._outbox.has_room()
        self.send(message)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        """See grpc.aio.ServicerContext."""
        self._code, self._details = code, details
        if trailing_metadata:
            self._trailing = trailing_metadata
        raise grpc.aio.AbortError("passed on")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """See grpc.aio.ServicerContext."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Nothing here sends any: it would not get over the link."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """See grpc.aio.ServicerContext."""
        self._trailing = trailing_metadata

    def invocation_metadata(self) -> Any:
        """See grpc.aio.ServicerContext."""
        return self._metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        """See grpc.aio.ServicerContext."""
        self._code = code

    def set_details(self, details: str) -> None:
        """See grpc.aio.ServicerContext."""
        self._details = details

    def code(self) -> grpc.StatusCode:
        """See grpc.aio.ServicerContext."""
        return self._code

    def details(self) -> str:
        """See grpc.aio.ServicerContext."""
        return self._details

    def trailing_metadata(self) -> Any:
        """See grpc.aio.ServicerContext."""
        return self._trailing

    def time_remaining(self) -> Any:
        """See grpc.aio.ServicerContext."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def set_compression(self, compression: grpc.Compression) -> None:
        """The link's own is what counts."""

    def disable_next_message_compression(self) -> None:
        """The same."""

    def peer(self) -> str:
        """The process that passed the call on."""
        return self._peer

    def peer_identities(self) -> Iterable[bytes] | None:
        """See grpc.aio.ServicerContext."""
        return None

    def peer_identity_key(self) -> str | None:
        """See grpc.aio.ServicerContext."""
        return None

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """See grpc.aio.ServicerContext."""
        return {}

    def add_done_callback(self, callback: Any) -> None:
        """See grpc.aio.ServicerContext."""
        assert self.task is not None
        self.task.add_done_callback(lambda _: callback(self))

    def cancelled(self) -> bool:
        """See grpc.aio.ServicerContext."""
        return self.task is not None and self.task.cancelled()

    def done(self) -> bool:
        """See grpc.aio.ServicerContext."""
        return self._over


class Landing:
    """Serves links. `handlers`: by full name, each as the server itself would call it."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._links: set[_Served] = set()

    async def serve(self, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        """One link, until the other end or this process goes."""
        link = _Served(self._handlers, context)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    @property
    def calls(self) -> int:
        """Calls that are being served."""
        return sum(len(link.calls) for link in self._links)

    def close(self) -> None:
        """End every link, once what waits is sent."""
        for link in self._links:
            link.stop()


class _Served:
    def __init__(self, handlers: Mapping[str, Handler], context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        self._handlers, self._context = handlers, context
        self._peer = context.peer()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outbox = Outbox(link_pb2.LinkResponse, OUTBOX_BYTES, self._overflowed)
        self.calls: dict[int, Landed] = {}

    async def run(self) -> None:
        await self._context.write(b"")
        writer = asyncio.create_task(self._outbox.write_all(self._context.write))
        reader = asyncio.create_task(self._read())
        for child in (writer, reader):
            child.add_done_callback(lambda _: self.stop())
        try:
            await self._ended
            self._outbox.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await asyncio.wait([writer])
        finally:
            for call in list(self.calls.values()):
                call.cancel()
            tasks = [writer, reader, *(call.task for call in self.calls.values() if call.task is not None)]
            for child in (writer, reader):
                child.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _overflowed(self) -> None:
        if not self._ended.done():
            log.warning("link dropped: the process at its other end does not read", peer=self._peer)
        self.stop()

    async def _read(self) -> None:
        context, calls = self._context, self.calls
        while isinstance(raw := await context.read(), bytes):
            for frame in link_pb2.LinkRequest.FromString(raw).frames:
                for number in frame.calls:
                    if frame.HasField("begin"):
                        self._begin(number, frame.begin)
                    call = calls.get(number)
                    if call is not None:
                        self._take(call, frame)

    def _take(self, call: Landed, frame: link_pb2.LinkFrame) -> None:
        if frame.HasField("body"):
            call.take(frame.body, partial=frame.partial)
        if frame.half_closed:
            call.half_close()
        if frame.cancelled:
            self.calls.pop(call.number, None)
            call.cancel()

    def _begin(self, number: int, begin: link_pb2.LinkCall) -> None:
        call = self.calls[number] = Landed(number, begin, self._outbox, self._peer)
        call.task = asyncio.create_task(self._serve(call, self._handlers.get(begin.method)))

    async def _serve(self, call: Landed, handler: Handler | None) -> None:
        try:
            if handler is None:
                await call.abort(grpc.StatusCode.UNIMPLEMENTED, "This process does not know the method.")
            elif handler.stream_stream is not None:
                await _served(handler.stream_stream, None, call)
            elif isinstance(request := await call.read(), bytes):
                answer = await _served(handler.unary_unary or handler.unary_stream, request, call)
                if handler.unary_unary is not None:
                    encode = handler.response_serializer
                    await call.write(answer if encode is None else encode(answer))
        except grpc.aio.AbortError:
            pass  # the status says why
        except asyncio.CancelledError:
            call.set_code(grpc.StatusCode.CANCELLED)
            raise
        except Exception:  # the boundary of the process: nothing else may reach the caller
            log.exception("call over a link failed")
            call.set_code(grpc.StatusCode.UNKNOWN)
        finally:
            self.calls.pop(call.number, None)
            call.end()


async def _served(behavior: Any, request: bytes | None, call: Landed) -> Any:
    return await behavior(request, call)


def status_code(number: int) -> grpc.StatusCode:
    """The gRPC code of a number."""
    return _CODES.get(number, grpc.StatusCode.UNKNOWN)
