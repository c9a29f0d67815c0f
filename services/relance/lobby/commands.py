"""What the lobby asks table processes to do. Every request has an id: asked again, it is done once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypedDict, TypeVar

import grpc

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.lobby.tables import TableProcesses
from relance.runtime import errors
from relance.runtime.auth import ServiceToken
from relance.runtime.errors import Refused

T = TypeVar("T")

_TIMEOUT = 3.0
_TRIES = 3  # in all less than the lease of what is asked for (offers.LEASE_US)


class _How(TypedDict):
    timeout: float
    metadata: tuple[tuple[str, str], ...]


class TableCommands:
    """Commands to tables, wherever they run. Raises Refused: the table's refusal, or UNAVAILABLE (it may be done)."""

    def __init__(self, tables: TableProcesses, token: ServiceToken) -> None:
        self._tables, self._token = tables, token

    async def open(self, request: table_pb2.OpenTableRequest) -> table_pb2.OpenTableResponse:
        """Open a table at a process that answers."""
        return await self._call("", lambda stub: stub.OpenTable(request, **self._how()))

    async def close(self, table: str, request_id: str, reason: str) -> None:
        """Close a table after its hand."""
        request = table_pb2.CloseTableRequest(table=f"tables/{table}", request_id=request_id, reason=reason)
        await self._call(table, lambda stub: stub.CloseTable(request, **self._how()))

    async def pause(self, table: str, request_id: str, reason: str) -> None:
        """No new hands. Refused NOTHING_TO_CHANGE where it is paused."""
        request = table_pb2.PauseTableRequest(table=f"tables/{table}", request_id=request_id, reason=reason)
        await self._call(table, lambda stub: stub.PauseTable(request, **self._how()))

    async def resume(self, table: str, request_id: str) -> None:
        """Hands again. Refused NOTHING_TO_CHANGE where it is not paused."""
        request = table_pb2.ResumeTableRequest(table=f"tables/{table}", request_id=request_id)
        await self._call(table, lambda stub: stub.ResumeTable(request, **self._how()))

    async def hold(self, table: str, request_id: str, player: str, seconds: float) -> int:
        """Hold a free seat for a player, or for longer the one that is held; its number."""
        request = table_pb2.HoldSeatRequest(
            table=f"tables/{table}", request_id=request_id, player=f"players/{player}", duration_ms=round(seconds * 1e3)
        )
        return (await self._call(table, lambda stub: stub.HoldSeat(request, **self._how()))).seat

    async def release(self, table: str, request_id: str, player: str) -> None:
        """Give up what is held for a player, if anything."""
        request = table_pb2.ReleaseSeatRequest(
            table=f"tables/{table}", request_id=request_id, player=f"players/{player}"
        )
        await self._call(table, lambda stub: stub.ReleaseSeat(request, **self._how()))

    def _how(self) -> _How:
        return {"timeout": _TIMEOUT, "metadata": self._token.metadata()}

    async def _call(self, table: str, ask: Callable[[table_pb2_grpc.TableAdminServiceAsyncStub], Awaitable[T]]) -> T:
        """Ask the process that runs the table ('': any), and follow where it moved."""
        address = (await self._tables.locate([table]))[table] if table else ""
        addresses = [address] if address else self._tables.answering()
        for _ in range(_TRIES):
            if not addresses:
                break
            at = addresses.pop(0)
            try:
                return await ask(table_pb2_grpc.TableAdminServiceStub(self._tables.channel(at)))
            except grpc.aio.AioRpcError as error:
                refused = errors.from_call(error)
                if refused is not None and refused.reason == reason_pb2.REASON_TABLE_MOVED:
                    addresses = [refused.metadata.get("address", "")]
                elif refused is not None and errors.code_of(refused.reason) != grpc.StatusCode.UNAVAILABLE:
                    raise refused from None
                self._tables.forget(table)
        raise Refused(reason_pb2.REASON_UNAVAILABLE, "The table does not answer now; ask again.")
