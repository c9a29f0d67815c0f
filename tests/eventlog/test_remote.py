"""The log as other services read it, through table processes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import Unavailable
from relance.eventlog.remote import RemoteLog

Context = grpc.aio.ServicerContext[table_pb2.ReadStreamRequest, table_pb2.ReadStreamResponse]


class OneTable(table_pb2_grpc.TableAdminServiceServicer):
    """A table process with one table of two events."""

    async def ReadStream(
        self, request: table_pb2.ReadStreamRequest, context: Context
    ) -> AsyncIterator[table_pb2.ReadStreamResponse]:
        if request.table != "tables/t-1":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such table")
        yield table_pb2.ReadStreamResponse(events=[TableEvent(table="t-1", version=1)])
        yield table_pb2.ReadStreamResponse(events=[TableEvent(table="t-1", version=2)])


@pytest_asyncio.fixture
async def address() -> AsyncIterator[str]:
    """Where the table process is."""
    server = grpc.aio.server()
    table_pb2_grpc.add_TableAdminServiceServicer_to_server(OneTable(), server)  # type: ignore[abstract]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def test_a_table_that_is_not_there_has_no_events_and_is_not_asked_for_again(address: str) -> None:
    log = RemoteLog([address], grpc.aio.insecure_channel, lambda: (), max_answer_bytes=65536)
    assert [event.version for event in await log.read("t-1", 0, 10)] == [1, 2]
    assert await log.read("t-none", 0, 10) == []
    await log.close()


async def test_a_process_that_does_not_answer_is_no_answer() -> None:
    log = RemoteLog(["127.0.0.1:1"], grpc.aio.insecure_channel, lambda: (), max_answer_bytes=65536)
    with pytest.raises(Unavailable):
        await log.read("t-1", 0, 10)
    await log.close()
