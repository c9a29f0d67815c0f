"""Where the rake service reads the tables' events: any table process that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import grpc
import structlog

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import Unavailable
from relance.runtime.auth import ServiceToken
from relance.runtime.server import MAX_ANSWER_BYTES

log = structlog.get_logger(__name__)

T = TypeVar("T")

_TIMEOUT = 30.0
_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


class TableLogs:
    """A follower's source. The process that answered last is asked first."""

    def __init__(self, addresses: Iterable[str], token: ServiceToken) -> None:
        self._token = token
        self._channels = [grpc.aio.insecure_channel(address, options=_OPTIONS) for address in addresses]

    async def heads(self) -> dict[str, int]:
        """Version of each table's last event. Raises Unavailable."""

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> dict[str, int]:
            answer = await admin.ListHeads(
                table_pb2.ListHeadsRequest(), timeout=_TIMEOUT, metadata=self._token.metadata()
            )
            return {head.table.removeprefix("tables/"): head.version for head in answer.heads}

        return await self._first(ask)

    async def read(self, stream: str, after: int, limit: int) -> list[TableEvent]:
        """At most `limit` events of a table after version `after`. Raises Unavailable."""

        async def ask(admin: table_pb2_grpc.TableAdminServiceAsyncStub) -> list[TableEvent]:
            request = table_pb2.ReadStreamRequest(table=f"tables/{stream}", after=after, limit=limit)
            call = admin.ReadStream(request, timeout=_TIMEOUT, metadata=self._token.metadata())
            return [event async for answer in call for event in answer.events]

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
