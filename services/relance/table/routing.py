"""Calls for tables that another process runs: passed on to it as they are; answers and ends come back as they are.

    client -- call --> this process -- link --> owner          (RELANCE_ROUTING=forward)

A call is passed on once: at a process that does not run the table either it is refused TABLE_MOVED, and this one looks
once more where the table is. With RELANCE_ROUTING=redirect the client is told where to go, by the same TABLE_MOVED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import grpc
import structlog
from google.protobuf.message import DecodeError
from google.rpc import status_pb2  # type: ignore[import-untyped]

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import link_pb2
from relance.runtime import errors
from relance.runtime.auth import Context
from relance.runtime.errors import Refused
from relance.runtime.logging import REQUEST_ID_KEY, request_id
from relance.table.landing import Handler, status_code
from relance.table.links import Call, Link, LinkLost, Links, StreamCall
from relance.table.outbox import Metadata, pairs
from relance.table.peek import joined_table, table_of
from relance.table.play import LAST_WORDS_SECONDS, first_message
from relance.table.tables import Tables
from relance.transport import tracing

log = structlog.get_logger(__name__)

ANYWHERE = frozenset({"Locate", "ListChat", "ReadStream", "ListHeads", "OpenTable", "ListProcesses"})
"""Methods that any process answers: from the database, or about no table in particular."""
MOST_LOCATED = 50_000
_TRIES = 2
_OK: int = grpc.StatusCode.OK.value[0]
UNAVAILABLE: int = grpc.StatusCode.UNAVAILABLE.value[0]
_FAILED_PRECONDITION: int = grpc.StatusCode.FAILED_PRECONDITION.value[0]
_OF_THE_CONNECTION = frozenset({"user-agent", REQUEST_ID_KEY})

Behavior = Callable[..., Awaitable[Any]]


class Elsewhere(NamedTuple):
    """A request for a table that does not run here, as it came."""

    table: str
    raw: bytes


class Router:
    """Passes calls on."""

    def __init__(self, tables: Tables, links: Links) -> None:
        self._tables, self._links = tables, links
        self._located: dict[str, str] = {}
        self._streams: set[StreamCall] = set()
        self._stopped = False
        self.passed_on = 0
        """Calls passed on so far."""

    def routed(self, service: str, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """The handlers of a service, those of methods about one table with a way to other processes."""
        return {
            name: handler if name in ANYWHERE else self._routed(f"/{service}/{name}", handler)
            for name, handler in handlers.items()
        }

    def _routed(self, method: str, handler: Handler) -> Handler:
        if handler.stream_stream is not None:
            return self._play(method, handler)
        if handler.unary_stream is not None:
            return self._watch(method, handler)
        return self._call(method, handler)

    def _play(self, method: str, handler: Handler) -> Handler:
        play = asynchronous(handler.stream_stream)

        async def serve(_messages: object, context: Context) -> None:
            first = await first_message(context)
            table = joined_table(first)
            if not table or self._here(table) or not await self._stream(method, table, first, context, up=True):
                await play(None, context, first)

        return grpc.stream_stream_rpc_method_handler(serve, None, None)

    def _watch(self, method: str, handler: Handler) -> Handler:
        watch = asynchronous(handler.unary_stream)

        async def serve(first: bytes, context: Context) -> None:
            table = table_of(first)
            if not table or self._here(table) or not await self._stream(method, table, first, context, up=False):
                await watch(first, context)

        return grpc.unary_stream_rpc_method_handler(serve, None, None)

    async def ask(self, address: str, method: str, request: bytes, context: Context) -> Call:
        """Have a certain process answer a unary call. Raises LinkLost."""
        link = await self._links.to(address)
        return await link.ask(method, _metadata(context), context.time_remaining(), request)

    def forget(self, table: str) -> None:
        """The table is not where it was."""
        self._located.pop(table, None)

    def stop(self) -> None:
        """End the streams that are passed on, so that their clients come back to another process; begin no more."""
        self._stopped = True
        for call in self._streams:
            call.over(_end(Refused(reason_pb2.REASON_UNAVAILABLE, "This server is being stopped; ask another one.")))

    def _here(self, table: str) -> bool:
        return table in self._tables.actors or table in self._tables.stopped

    def _call(self, method: str, handler: Handler) -> Handler:
        behavior, decode, encode = handler.unary_unary, handler.request_deserializer, handler.response_serializer
        if behavior is None or decode is None or encode is None:
            return handler

        def read(raw: bytes) -> Any:
            table = table_of(raw)
            return Elsewhere(table, raw) if table and not self._here(table) else decode(raw)

        async def serve(request: Any, context: Any) -> Any:
            if isinstance(request, Elsewhere):
                answer = await self._unary(method, request, context)
                if answer is not None:
                    return answer
                request = decoded(decode, request.raw)
            return await asynchronous(behavior)(request, context)

        def write(answer: Any) -> bytes:
            return answer if isinstance(answer, bytes) else encode(answer)  # bytes came from elsewhere

        return grpc.unary_unary_rpc_method_handler(serve, read, write)

    async def _unary(self, method: str, request: Elsewhere, context: Context) -> bytes | None:
        """The answer from elsewhere; None: it is to be given here."""
        table = request.table
        for _ in range(_TRIES):
            link = await self._link(table)
            if link is None:
                return None
            try:
                call = await link.ask(method, _metadata(context), context.time_remaining(), request.raw)
            except LinkLost:
                self.forget(table)
                raise self._tables.host.unavailable(table) from None
            self.passed_on += 1
            if self._is_elsewhere_again(table, call):
                continue
            await finish(call, context)
            return call.body
        raise self._tables.host.unavailable(table)

    async def _stream(self, method: str, table: str, first: bytes, context: Context, *, up: bool) -> bool:
        """Keep a stream that is passed on until it ends; False: it is to be served here."""
        for _ in range(_TRIES):
            link = await self._link(table)
            if link is None:
                return False
            if self._stopped:
                raise Refused(reason_pb2.REASON_UNAVAILABLE, "This server is being stopped; ask another one.")
            try:
                call = link.stream(method, _metadata(context), context.time_remaining(), first)
            except LinkLost:
                self.forget(table)
                continue
            self.passed_on += 1
            self._streams.add(call)
            try:
                await _carried(link, call, context, up=up)
            finally:
                self._streams.discard(call)
                link.forget(call)
            if call.end is None:
                self.forget(table)
                raise self._tables.host.unavailable(table)
            if self._is_elsewhere_again(table, call) and not call.answered:
                continue
            await finish(call, context)
            return True
        raise self._tables.host.unavailable(table)

    async def _link(self, table: str) -> Link | None:
        """The link to a table's owner; None: it is this process, or nobody, or there is no such table.

        Raises Refused TABLE_UNAVAILABLE.
        """
        up = self._links.up(self._located.get(table, ""))
        if up is not None:
            return up
        for _ in range(_TRIES):
            known = table in self._located
            address = self._located[table] if known else (await self._tables.locate(table)).address
            if not address or address == self._tables.address:
                return None
            try:
                link = await self._links.to(address)
            except LinkLost:
                self.forget(table)
                if known:
                    continue
                raise self._tables.host.unavailable(table) from None
            if len(self._located) >= MOST_LOCATED:
                self._located.clear()
            self._located[table] = address
            return link
        raise self._tables.host.unavailable(table)

    def _is_elsewhere_again(self, table: str, call: Call) -> bool:
        """Whether the process asked did not run the table either. One that cannot act is looked for anew next time."""
        assert call.end is not None
        code = call.end.code
        if code in {UNAVAILABLE, _FAILED_PRECONDITION}:
            refused = _refused(call.end)
            moved = refused is not None and refused.reason == reason_pb2.REASON_TABLE_MOVED
            if moved or code == UNAVAILABLE:
                self.forget(table)
            return moved
        return False


async def _carried(link: Link, call: StreamCall, context: Context, *, up: bool) -> None:
    """Carry a stream's messages both ways until it is over. Raises Refused SLOW_WATCHER."""
    answers = call.answers
    writer = asyncio.create_task(answers.write_all(context.write))
    writer.add_done_callback(lambda _: answers.end(None))
    children = [writer]
    if up:
        children.append(asyncio.create_task(_upward(link, call, context)))
    else:
        link.half_close(call)
    try:
        why = await answers.ended
        if why is not None:
            raise why  # who is too slow to read would be too slow for last words
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await asyncio.wait([writer])
    finally:
        for child in children:
            child.cancel()
        await asyncio.gather(*children, return_exceptions=True)


async def _upward(link: Link, call: StreamCall, context: Context) -> None:
    """Pass on what the client sends, once the owner has answered: until then another may turn out to be it."""
    await call.begun
    while isinstance(message := await context.read(), bytes):
        await link.send(call, message)
    link.half_close(call)


async def finish(call: Call, context: Context) -> None:
    """End a call here as it ended there."""
    end = call.end
    assert end is not None
    trailing = pairs(end.trailing)
    if end.code != _OK:
        await context.abort(status_code(end.code), end.details, trailing)
    if trailing:
        context.set_trailing_metadata(trailing)


def _metadata(context: Context) -> Metadata:
    """The caller's metadata as it is passed on, with the request's id under which this process knows it."""
    kept = [
        (key, value)
        for key, value in context.invocation_metadata() or ()
        if key not in _OF_THE_CONNECTION and not key.startswith("grpc-")
    ]
    traced = tracing.headers() if tracing.on() else {}
    if traced:  # the owner's part of the trace belongs to what this process does
        kept = [(key, value) for key, value in kept if key not in traced]
    return [*kept, *traced.items(), (REQUEST_ID_KEY, request_id.get())]


def _refused(end: link_pb2.LinkEnd) -> Refused | None:
    """The refusal in the end of a call; None where there is none."""
    for entry in end.trailing:
        if entry.key == errors.DETAILS_KEY:
            return errors.from_status(status_pb2.Status.FromString(entry.value))
    return None


def _end(refused: Refused) -> link_pb2.LinkEnd:
    """A refusal as the end of a call."""
    status = errors.to_status(refused)
    details = link_pb2.LinkMetadata(key=errors.DETAILS_KEY, value=status.SerializeToString())
    return link_pb2.LinkEnd(code=status.code, details=refused.message, trailing=[details])


def decoded(decode: Callable[[bytes], Any], raw: bytes) -> Any:
    """A request. Raises Refused FIELD_INVALID."""
    try:
        return decode(raw)
    except DecodeError:
        text = "The request is no message of this method."
        raise Refused(reason_pb2.REASON_FIELD_INVALID, text, field="", allowed="") from None


def asynchronous(behavior: Any) -> Behavior:
    """A handler's behaviour as what it is on an asynchronous server."""
    return behavior  # type: ignore[no-any-return]
