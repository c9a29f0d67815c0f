"""The log as other services see it: read through any table process that answers. A follower's source."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

import grpc
import structlog

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog.errors import Unavailable

log = structlog.get_logger("relance.eventlog")

T = TypeVar("T")

Metadata: TypeAlias = Callable[[], tuple[tuple[str, str], ...]]
Open: TypeAlias = Callable[[str, Sequence[tuple[str, int]]], grpc.aio.Channel]

_TIMEOUT = 30.0


class RemoteLog:
    """Tables' events by gRPC. The process that answered last is asked first.

    `open_channel(address, options)` makes a channel. `metadata`: that of each call, with a service's token.
    `max_answer_bytes`: largest message that is taken.
    """

    def __init__(
        self, addresses: Iterable[str], open_channel: Open, metadata: Metadata, *, max_answer_bytes: int
    ) -> None:
        self._metadata = metadata
        options = [
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.max_receive_message_length", max_answer_bytes),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 2_000),
        ]
        self._channels = [open_channel(address, options) for address in addresses]

    async def heads(self) -> dict[str, int]:
        """Version of each table's last event. Raises Unavailable."""

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> dict[str, int]:
            answer = await admin.ListHeads(table_pb2.ListHeadsRequest(), timeout=_TIMEOUT, metadata=self._metadata())
            return {head.table.removeprefix("tables/"): head.version for head in answer.heads}

        return await self._first(ask)

    async def read(self, stream: str, after: int, limit: int) -> list[TableEvent]:
        """At most `limit` events of a table after version `after`; none of a table that is not there.

        Raises Unavailable.
        """

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> list[TableEvent]:
            request = table_pb2.ReadStreamRequest(table=f"tables/{stream}", after=after, limit=limit)
            return await read_all(admin.ReadStream(request, timeout=_TIMEOUT, metadata=self._metadata()))

        return await self._first(ask)

    async def close(self) -> None:
        """Close every connection."""
        for channel in self._channels:
            await channel.close()

    async def _first(self, ask: Callable[[table_pb2_grpc.TableAdminServiceAsyncStub], Awaitable[T]]) -> T:
        for channel in list(self._channels):
            try:
                answer = await ask(table_pb2_grpc.TableAdminServiceStub(channel))
            except grpc.aio.AioRpcError as error:
                log.info("table process does not answer", code=error.code().name)
                continue
            self._channels.remove(channel)
            self._channels.insert(0, channel)
            return answer
        raise Unavailable("no table process answers")


async def read_all(
    call: grpc.aio.UnaryStreamCall[table_pb2.ReadStreamRequest, table_pb2.ReadStreamResponse],
) -> list[TableEvent]:
    """The events that a call of ReadStream gives; none where there is no such table. Raises AioRpcError.

    Anybody who may publish can name a table that is not there: a definite answer, not one to ask for again.
    """
    try:
        return [event async for answer in call for event in answer.events]
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.NOT_FOUND:
            return []
        raise
