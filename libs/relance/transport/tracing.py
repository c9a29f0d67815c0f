"""Traces by OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT is set; otherwise nothing is imported and nothing done.

A span tells a method, a code, a table's id and a request's id. Nothing else goes into one: no message, no token, no
name of anybody. All of this is called where `on()` says so, and only there.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as Span  # noqa: PLC0414  others name what they are given
    from opentelemetry.trace import SpanContext as SpanContext  # noqa: PLC0414
    from opentelemetry.trace import SpanKind

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
KEY = "traceparent"
LAST_SECONDS = 2.0
"""How long the last spans of a process may take."""

_FAULTS = frozenset({"UNKNOWN", "INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "DATA_LOSS"})
"""Codes that are a server's fault, not its caller's."""


class _Traced:
    """The tracer of this process, and what its spans are made of."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider, self.context, self.trace = provider, context, trace
        self.tracer = provider.get_tracer("relance")
        self.propagator = TraceContextTextMapPropagator()
        self.ending: set[asyncio.Task[None]] = set()


_traced: _Traced | None = None


def on() -> bool:
    """Whether this process traces."""
    return _traced is not None


@contextmanager
def traced(service: str) -> Iterator[None]:
    """Trace while the context lasts, where an endpoint is set; what is left then is sent at its end, if that is quick.

    `service`: the name of this process in traces, unless OTEL_SERVICE_NAME says otherwise.
    """
    global _traced  # noqa: PLW0603  one a process, like the environment that turns it on
    if not os.environ.get(ENDPOINT) or _traced is not None:
        yield
        return
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME") or service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _traced = _Traced(provider)
    try:
        yield
    finally:
        _traced = None
        # A collector that is away holds nobody up.
        ending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(LAST_SECONDS)


def _on() -> _Traced:
    assert _traced is not None, "asked for a span where nothing is traced"
    return _traced


# gRPC


def called(method: str, call: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Make a call to another process in a span of its own, which ends with the call."""
    here = _on()
    span = here.tracer.start_span(method.removeprefix("/"), kind=here.trace.SpanKind.CLIENT, attributes=_rpc(method))
    carrier: dict[str, str] = {}
    here.propagator.inject(carrier, here.trace.set_span_in_context(span))
    named = {**named, "metadata": (*(named.get("metadata") or ()), *carrier.items())}
    made = call(*arguments, **named)
    made.add_done_callback(lambda done: _end_later(span, done))
    return made


def _end_later(span: Span, call: Any) -> None:
    async def ended() -> None:
        end(span, (await call.code()).name, any_is_fault=True)

    if _traced is None:
        return
    task = asyncio.get_running_loop().create_task(ended())
    _traced.ending.add(task)
    task.add_done_callback(_traced.ending.discard)


def serve(method: str, traceparent: str, request: str) -> Span:
    """Begin the span of an RPC that this task serves: the one in which everything it does happens from here on."""
    here = _on()
    span = here.tracer.start_span(
        method.removeprefix("/"),
        here.propagator.extract({KEY: traceparent}) if traceparent else here.context.Context(),
        here.trace.SpanKind.SERVER,
        {**_rpc(method), "relance.request": request},
    )
    here.context.attach(here.trace.set_span_in_context(span))
    return span


def end(span: Span, code: str, *, any_is_fault: bool = False) -> None:
    """End an RPC's span with its gRPC code."""
    span.set_attribute("rpc.grpc.status_code", grpc.StatusCode[code].value[0])
    if code in _FAULTS or (any_is_fault and code != "OK"):
        from opentelemetry.trace import StatusCode

        span.set_status(StatusCode.ERROR, code)
    span.end()


def _rpc(method: str) -> dict[str, str]:
    service, _, name = method.removeprefix("/").partition("/")
    return {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name}


# What happens inside, and over NATS


@contextmanager
def span(
    name: str, kind: str = "internal", *, links: Iterable[SpanContext] = (), apart: bool = False, **about: str
) -> Iterator[Span]:
    """A span around what the context does. `kind`: internal, producer or consumer; `links`: other spans that led to it;
    `apart`: it begins a trace of its own; `about`: table, request.
    """
    here = _on()
    made = here.tracer.start_span(
        name,
        here.context.Context() if apart else None,
        _kind(here, kind),
        _about(about),
        [here.trace.Link(link) for link in links],
    )
    token = here.context.attach(here.trace.set_span_in_context(made))
    try:
        yield made
    finally:
        here.context.detach(token)
        made.end()


def enter(name: str, *, links: Iterable[SpanContext] = (), **about: str) -> Span:
    """The same, apart, for who ends it elsewhere (`Span.end`): from here on this context is in it."""
    here = _on()
    made = here.tracer.start_span(
        name, here.context.Context(), _kind(here, "internal"), _about(about),
        [here.trace.Link(link) for link in links],
    )  # fmt: skip
    here.context.attach(here.trace.set_span_in_context(made))
    return made


def happened(name: str, seconds: float, **about: str) -> None:
    """Something that ends now and took so long, as a part of the present span; nothing where there is none."""
    if present() is None:
        return
    here = _on()
    began = time.time_ns() - int(seconds * 1e9)
    here.tracer.start_span(name, None, _kind(here, "internal"), _about(about), start_time=began).end()


def published(stream: str) -> tuple[dict[str, str], Callable[[], None]] | None:
    """A message about a table is sent: the headers that tell of its span, and what to call when it has arrived.

    None where what it tells of happened in no span.
    """
    if present() is None:
        return None
    here = _on()
    about = {**_about({"table": stream}), "messaging.system": "nats"}
    span = here.tracer.start_span("relance.table/publish", None, _kind(here, "producer"), about)
    carrier: dict[str, str] = {}
    here.propagator.inject(carrier, here.trace.set_span_in_context(span))
    return carrier, span.end


def present() -> SpanContext | None:
    """The span that the present context is in, to link to; None: none that counts."""
    found = _on().trace.get_current_span().get_span_context()
    return found if found.is_valid else None


def trace_id() -> str:
    """The present trace, 32 hexadecimal digits; empty: none."""
    found = present()
    return "" if found is None else f"{found.trace_id:032x}"


def headers() -> dict[str, str]:
    """What a message tells of the span that it comes from."""
    carrier: dict[str, str] = {}
    _on().propagator.inject(carrier)
    return carrier


def sender(headers: Mapping[str, str]) -> SpanContext | None:
    """The span that a message with these headers comes from."""
    here = _on()
    found = here.trace.get_current_span(here.propagator.extract(headers)).get_span_context()
    return found if found.is_valid else None


def _kind(here: _Traced, kind: str) -> SpanKind:
    found: SpanKind = here.trace.SpanKind[kind.upper()]
    return found


def _about(about: Mapping[str, str]) -> dict[str, str]:
    return {f"relance.{key}": value for key, value in about.items() if value}
