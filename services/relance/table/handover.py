"""Giving tables to other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from relance.api.table.v1 import link_pb2, table_pb2
from relance.eventlog import ProcessInfo
from relance.table.links import LinkLost, Links, Token
from relance.table.placement import Placement
from relance.table.tables import Tables

log = structlog.get_logger(__name__)

TAKE = "/relance.api.table.v1.TableLinkService/TakeTables"
LIST = "/relance.api.table.v1.TableLinkService/ListRunning"
TAKE_SECONDS = 2.0
LIST_SECONDS = 2.0
AT_ONCE = 100
"""Tables that one process is given at once."""

Keep = Callable[[Coroutine[Any, Any, None]], object]


def running(tables: Tables) -> list[table_pb2.RunningTable]:
    """The tables of this process, by name."""
    return [
        table_pb2.RunningTable(table=f"tables/{table}", seats=len(actor.table.seats))
        for table, actor in sorted(tables.actors.items())
    ]


class Handover:
    """Gives drained tables to others: many to one at once, while it is busy with those before."""

    def __init__(self, links: Links, placement: Placement, token: Token, keep: Keep) -> None:
        self._links, self._placement, self._token, self._keep = links, placement, token, keep
        self._waiting: dict[str, dict[str, tuple[int, asyncio.Future[bool]]]] = {}  # by address, by table
        self._busy: set[str] = set()

    async def give(self, table: str, fence: int, heir: str) -> bool:
        """Have another process run a table; `heir`: which; empty: any. Whether one does."""
        chosen = self._placement.find(heir) if heir else None
        chosen = chosen or self._placement.heir()
        if chosen is None:
            return False
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(chosen.address, {})[table] = (fence, taken)
        if chosen.address not in self._busy:
            self._busy.add(chosen.address)
            self._keep(self._work(chosen.address))
        return await taken

    async def list(self, process: ProcessInfo) -> list[table_pb2.RunningTable]:
        """What another process runs; nothing where it does not answer."""
        request = link_pb2.ListRunningRequest().SerializeToString()
        answer = await self.ask(process.address, LIST, LIST_SECONDS, request)
        return [] if answer is None else list(link_pb2.ListRunningResponse.FromString(answer).tables)

    async def _work(self, address: str) -> None:
        try:
            while waiting := self._waiting.pop(address, None):
                while waiting:
                    names = list(waiting)[:AT_ONCE]
                    await self._take(address, {name: waiting.pop(name) for name in names})
        finally:
            self._busy.discard(address)

    async def _take(self, address: str, given: dict[str, tuple[int, asyncio.Future[bool]]]) -> None:
        request = link_pb2.TakeTablesRequest(
            tables=[link_pb2.FreeTable(table=f"tables/{table}", fence=fence) for table, (fence, _) in given.items()]
        )
        taken: set[str] = set()
        try:
            answer = await self.ask(address, TAKE, TAKE_SECONDS, request.SerializeToString())
            if answer is not None:
                taken = set(link_pb2.TakeTablesResponse.FromString(answer).tables)
            log.info("tables handed over", to=address, tables=len(taken), of=len(given))
        finally:
            for table, (_, future) in given.items():
                if not future.done():
                    future.set_result(f"tables/{table}" in taken)

    async def ask(self, address: str, method: str, seconds: float, request: bytes) -> bytes | None:
        """The answer of another process; None: there was none in time, or it refused."""
        try:
            async with asyncio.timeout(seconds):
                link = await self._links.to(address)
                call = await link.ask(method, self._token(), seconds, request)
        except (LinkLost, TimeoutError):
            return None
        return call.body if call.end is not None and call.end.code == 0 else None
