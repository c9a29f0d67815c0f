"""What happens around every RPC, once: the caller's token, the request's id, refusals, faults, deadline, metrics.

Handlers are wrapped when they are registered, not intercepted when they are called: an RPC pays one extra coroutine,
a message on a stream pays nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError

from relance.api.common.v1 import reason_pb2
from relance.runtime import auth, database, errors, metrics
from relance.runtime.auth import Context, KeyRing
from relance.runtime.errors import Refused
from relance.runtime.logging import REQUEST_ID_KEY, new_request_id, request_id, verbose
from relance.transport import tracing

log = structlog.get_logger(__name__)

T = TypeVar("T")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")

_kept: set[asyncio.Task[Any]] = set()


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is finished even when the caller goes away.

    grpc.aio cancels a handler at the client's deadline and when its connection breaks. Whatever must not stop half-way
    (a posted command, a transaction whose outcome has to be known) runs in here.
    """
    task = asyncio.ensure_future(work)
    _kept.add(task)
    task.add_done_callback(_let_go)
    return await asyncio.shield(task)


def _let_go(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, errors.Refusal):
        log.warning("shielded work failed", error=type(error).__name__)


class Pipeline:
    """Wraps the handlers of one server."""

    def __init__(self, keyring: KeyRing, public: frozenset[str], deadline: float) -> None:
        """`public`: full names (/package.Service/Method) of methods that need no token; `deadline`: longest time of a
        unary call, seconds.
        """
        self._keyring, self._public, self._deadline = keyring, public, deadline
        self._running = 0
        self._closed = False
        self._idle = asyncio.Event()

    async def close(self, grace: float) -> None:
        """Refuse new RPCs (UNAVAILABLE) but those about the server itself, and return when the others have ended, or
        after `grace` seconds. Stopping the gRPC server instead would cancel calls that have just come in.
        """
        self._closed = True
        if self._running:
            self._idle.clear()
            try:
                await asyncio.wait_for(self._idle.wait(), grace)
            except TimeoutError:
                log.warning("requests outlasted the drain", requests=self._running)

    def wrap(self, method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler as the server shall call it."""
        measured = _Measured(method)
        authenticate = method not in self._public
        if handler.unary_unary is not None:
            return self._unary(handler.unary_unary, handler, measured, authenticate)
        if handler.unary_stream is not None:
            serve = self._stream(handler.unary_stream, measured, authenticate, _decoding(handler, _decoded))
            return grpc.unary_stream_rpc_method_handler(serve, None, handler.response_serializer)
        if handler.stream_stream is not None:
            serve = self._stream(handler.stream_stream, measured, authenticate, _decoding(handler, _each_decoded))
            return grpc.stream_stream_rpc_method_handler(serve, None, handler.response_serializer)
        raise TypeError(f"{method}: streams of requests with one answer are not served here")

    def _unary(
        self, behavior: Any, handler: grpc.RpcMethodHandler[Any, Any], measured: _Measured, authenticate: bool
    ) -> grpc.RpcMethodHandler[Any, Any]:
        _must_be(behavior, inspect.iscoroutinefunction(behavior))
        decode = handler.request_deserializer
        longest = self._deadline

        # The request is decoded in here, so that bytes that are no message are refused like everything else.
        async def serve(raw: bytes, context: Context) -> Any:
            started = perf_counter()

            async def call() -> Any:
                request = raw if decode is None else _decoded(decode, raw)
                remaining = context.time_remaining()
                if remaining is not None and remaining <= longest:
                    return await behavior(request, context)
                async with asyncio.timeout(longest) as scope:
                    try:
                        return await behavior(request, context)
                    except asyncio.CancelledError:
                        if scope.expired():
                            raise _deadline(longest) from None
                        raise

            try:
                return await self._guarded(call, context, measured, authenticate)
            finally:
                measured.seconds.observe(perf_counter() - started)

        return grpc.unary_unary_rpc_method_handler(serve, None, handler.response_serializer)

    def _stream(self, behavior: Any, measured: _Measured, authenticate: bool, decoded: Callable[[Any], Any]) -> Any:
        if inspect.isasyncgenfunction(behavior):

            async def call(request: Any, context: Context) -> None:
                answers: AsyncIterable[Any] = behavior(request, context)
                async for answer in answers:
                    await context.write(answer)

        else:
            _must_be(behavior, inspect.iscoroutinefunction(behavior))
            call = behavior

        async def begin(request: Any, context: Context) -> None:
            await call(decoded(request), context)

        async def serve(request: Any, context: Context) -> None:
            await self._guarded(lambda: begin(request, context), context, measured, authenticate)

        return serve

    async def _guarded(
        self, call: Callable[[], Awaitable[T]], context: Context, measured: _Measured, authenticate: bool
    ) -> T:
        request, authorization, parent = _read_metadata(context)
        request_id.set(request)
        span = tracing.serve(measured.method, parent, request) if tracing.on() and measured.counts else None
        measured.open.inc()
        code = "OK"
        # Counted, not kept as tasks: asking for the current task costs ten times as much.
        self._running += measured.counts
        try:
            if self._closed and measured.counts:
                raise _stopping()
            if authenticate:
                auth.enter(self._keyring.verify(auth.bearer(authorization)))
            return await call()
        except grpc.aio.AbortError:
            code = context.code().name  # the handler ended its stream itself
            raise
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED.name
            raise
        except Exception as error:  # the boundary of the process: nothing else may reach the client
            refusal: errors.Refusal
            if isinstance(error, errors.Refusal):
                refusal = error
                log.debug("refused", method=measured.method, reason=errors.reason_name(error.reason))
            elif isinstance(error, database.OUTAGE):
                refusal = _away()
                log.warning("database away", method=measured.method, error=repr(error))
            else:
                refusal = fault(request)
                log.error("request failed", method=measured.method, exc_info=error)
            code = errors.code_of(refusal.reason).name
            await _abort(context, refusal)
            raise AssertionError("abort returned") from error
        finally:
            measured.open.dec()
            measured.handled(code)
            if span is not None:
                tracing.end(span, code)
            if verbose() and measured.counts:
                log.debug("served", method=measured.method, code=code)
            self._running -= measured.counts
            if not self._running:
                self._idle.set()


class _Measured:
    """The metrics of one method, looked up once."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.counts = not method.startswith("/grpc.")  # health and reflection do not hold up a drain
        self.seconds = metrics.SECONDS.labels(method)
        self.open = metrics.OPEN.labels(method)
        self._handled = {"OK": metrics.HANDLED.labels(method, "OK")}

    def handled(self, code: str) -> None:
        """One more RPC ended with `code`."""
        counter = self._handled.get(code)
        if counter is None:
            counter = self._handled[code] = metrics.HANDLED.labels(self.method, code)
        counter.inc()


async def _abort(context: Context, refusal: errors.Refusal) -> None:
    status = errors.to_status(refusal)
    await context.abort(
        errors.code_of(refusal.reason), refusal.message, ((errors.DETAILS_KEY, status.SerializeToString()),)
    )


def _read_metadata(context: Context) -> tuple[str, str | bytes | None, str]:
    """The request's id, the authorization and the caller's span, in one pass: gRPC makes the pairs anew.

    The id is the caller's, or that of the trace that the caller is in, or a new one.
    """
    request, authorization, parent, trace = "", None, "", ""
    for key, value in context.invocation_metadata() or ():
        if key == "authorization":
            authorization = value
        elif key == REQUEST_ID_KEY and isinstance(value, str) and _REQUEST_ID.fullmatch(value):
            request = value
        elif key == tracing.KEY and isinstance(value, str) and (found := _TRACE_PARENT.fullmatch(value)):
            parent, trace = value, found[1]
    return request or trace or new_request_id(), authorization, parent


def _decoding(
    handler: grpc.RpcMethodHandler[Any, Any], decoded: Callable[[Callable[[bytes], Any], Any], Any]
) -> Callable[[Any], Any]:
    """How what a client sends becomes what the handler takes; as it is where the handler has no codec."""
    decode = handler.request_deserializer
    return _as_it_is if decode is None else partial(decoded, decode)


def _as_it_is(raw: Any) -> Any:
    return raw


async def _each_decoded(decode: Callable[[bytes], Any], messages: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    async for raw in messages:
        yield _decoded(decode, raw)


def _decoded(decode: Callable[[bytes], Any], raw: bytes) -> Any:
    try:
        return decode(raw)
    except DecodeError:
        raise Refused(
            reason_pb2.REASON_FIELD_INVALID, "The request is no message of this method.", field="", allowed=""
        ) from None


def _deadline(seconds: float) -> Refused:
    return Refused(
        reason_pb2.REASON_DEADLINE,
        f"No answer within {seconds:g} seconds; the outcome is unknown. Ask again with the same request_id.",
    )


def _away() -> Refused:
    return Refused(reason_pb2.REASON_UNAVAILABLE, "The database does not answer; ask again with the same request_id.")


def _stopping() -> Refused:
    return Refused(reason_pb2.REASON_UNAVAILABLE, "This server is being stopped; ask another one, or again soon.")


def fault(request: str) -> Refused:
    """What a caller is told of a mistake of ours, which is in the log under the request's id."""
    return Refused(
        reason_pb2.REASON_INTERNAL, f"A fault of the room; it is logged under request {request}.", request=request
    )


def _must_be(behavior: object, asynchronous: bool) -> None:
    if not asynchronous:
        raise TypeError(f"{behavior!r} is not asynchronous")
