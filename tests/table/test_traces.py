"""What a command leaves behind in the traces and in the logs of all services that it went through."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import pytest
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.table.support import Room, bearer, until

from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.runtime import logging as runtime_logging
from relance.transport import open_channel, tracing

TABLE = "relance.api.table.v1.TableService"
LEDGER = "relance.api.wallet.v1.LedgerService"


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans as an OTLP collector does."""

    def __init__(self) -> None:
        self.sent: list[trace_service_pb2.ExportTraceServiceRequest] = []

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: object
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.sent.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def spans(self) -> list[Span]:
        """All that came."""
        scopes = [scope for sent in self.sent for each in sent.resource_spans for scope in each.scope_spans]
        return [span for scope in scopes for span in scope.spans]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, to which this process sends its spans."""
    made = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(made, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv(tracing.ENDPOINT, f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setattr(tracing, "LAST_SECONDS", 30.0)
    yield made
    server.stop(0)


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, str]]]]:
    """The log of this process, at its most talkative, line by line."""
    output = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    runtime_logging.configure(style="json", level="debug", output=output)
    yield lambda: [json.loads(line) for line in output.getvalue().splitlines()]
    runtime_logging.configure()
    structlog.reset_defaults()
    root.handlers[:], root.level = before


def sit(table: str, request: str, seat: int = 1) -> table_pb2.TakeSeatRequest:
    """A request for a seat, with a buy-in that the wallet has to bring."""
    return table_pb2.TakeSeatRequest(table=f"tables/{table}", request_id=request, seat=seat, buy_in=765_432)


async def test_one_command_is_one_trace_from_the_client_to_the_wallet_and_holds_no_secret(
    room: Room, collector: Collector
) -> None:
    token = room.keys.player("annabel")
    with tracing.traced("test"):
        process = await room.start()
        table = await room.open(process)
        await room.deposit("annabel", 765_432)
        async with open_channel(process.address, None) as channel:
            stub = table_pb2_grpc.TableServiceStub(channel)
            ann = await room.join(process, table, "annabel")
            await stub.TakeSeat(sit(table, "sit-1"), metadata=bearer(token))
            await ann.saw("player_sat")
            stream = await ann.ask(table_pb2.PlayRequest(sit_out=table_pb2.SitOutRequest(request_id="out-1")))
            assert stream.WhichOneof("message") == "result"
            await room.deposit("benedict", 765_432)
            ben = await room.join(process, table, "benedict")
            await stub.TakeSeat(sit(table, "sit-2", 2), metadata=bearer(room.keys.player("benedict")))
            await ann.ask(table_pb2.PlayRequest(sit_in=table_pb2.SitInRequest(request_id="in-1")))
            await ben.saw("hand_started")
            await until(lambda: any(span.name.endswith("publish") for span in collector.spans()))
        await room.kill(process)
    spans = collector.spans()
    first, second = (span for span in spans if span.name == f"{TABLE}/TakeSeat" and span.kind == Span.SPAN_KIND_CLIENT)
    trace = [span for span in spans if span.trace_id == first.trace_id]
    # The request, and the wallet's answer to it; the hand that began then is nobody's request.
    for each in (first, second):
        here = [span.name for span in spans if span.trace_id == each.trace_id]
        assert here.count("relance.table/append") == 2
    names = {(span.name, Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_")) for span in trace}
    assert names >= {
        (f"{TABLE}/TakeSeat", "CLIENT"),
        (f"{TABLE}/TakeSeat", "SERVER"),
        ("relance.table/append", "INTERNAL"),
        ("relance.table/publish", "PRODUCER"),
        (f"{LEDGER}/BatchTransfer", "CLIENT"),
        (f"{LEDGER}/BatchTransfer", "SERVER"),
    }
    by_id = {span.span_id: span for span in trace}
    assert all(not span.parent_span_id or span.parent_span_id in by_id for span in trace)
    (command,) = (span for span in spans if span.name == f"{TABLE}/Play/sit_out")
    assert command.trace_id != first.trace_id
    assert [by.name for by in spans if by.span_id in {link.span_id for link in command.links}] == [f"{TABLE}/Play"]
    said = {str(attribute.value) for span in spans for attribute in span.attributes}
    assert f'string_value: "{table}"\n' in said
    sent = b"".join(each.SerializeToString() for each in collector.sent)
    for secret in (token, "annabel", "benedict", "765432", "players/"):
        assert secret.encode() not in sent


async def test_lines_of_all_services_about_one_request_have_one_id(
    room: Room, lines: Callable[[], list[dict[str, str]]]
) -> None:
    process = await room.start()
    table = await room.open(process)
    stub = room.tables(process)

    def served(request: str) -> set[str]:
        found = [line for line in lines() if line.get("request") == request and line["event"] == "served"]
        return {line["method"].rpartition("/")[2] for line in found}

    trace = "0af7651916cd43dd8448eb211c80319c"
    for player, seat, metadata, request in (
        ("ann", 1, ("x-request-id", "support-7"), "support-7"),
        ("ben", 2, ("traceparent", f"00-{trace}-b7ad6b7169203331-01"), trace),
    ):
        own = (*bearer(room.keys.player(player)), metadata)
        await stub.TakeSeat(sit(table, f"sit-{player}", seat), metadata=own)
        await until(lambda request=request: served(request) >= {"TakeSeat", "BatchTransfer"})  # type: ignore[misc]
    cat = await room.join(process, table, "cat")
    await cat.send(table_pb2.PlayRequest(take_seat=sit(table, "sit-cat", 3)))
    await until(lambda: served("sit-cat") == {"BatchTransfer"})


async def test_a_collector_that_does_not_answer_holds_no_process_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "LAST_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(tracing.ENDPOINT, f"http://127.0.0.1:{silent.getsockname()[1]}")

        def work() -> None:
            with tracing.traced("test"), tracing.span("work"):
                assert tracing.trace_id()

        await asyncio.wait_for(asyncio.to_thread(work), 8)  # its own patience is longer


async def test_nothing_is_traced_and_nothing_imported_where_no_endpoint_is_set() -> None:
    program = """
import sys, relance.table.process, relance.client
from relance.transport import tracing
with tracing.traced("test"):
    print(tracing.on(), [name for name in sys.modules if name.startswith("opentelemetry")])
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, env={**os.environ, tracing.ENDPOINT: ""}
    )
    output, _ = await child.communicate()
    assert output == b"False []\n"
