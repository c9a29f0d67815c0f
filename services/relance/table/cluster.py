"""This process among the others: who lives, who carries what, where a new table goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.eventlog import Load, ProcessInfo
from relance.runtime import validation
from relance.runtime.auth import Context
from relance.runtime.errors import Refused
from relance.table.handover import Handover, running
from relance.table.landing import Landed
from relance.table.links import LinkLost
from relance.table.placement import Placement
from relance.table.routing import UNAVAILABLE, Router, finish
from relance.table.tables import Tables

log = structlog.get_logger(__name__)

OPEN = "/relance.api.table.v1.TableAdminService/OpenTable"


class Cluster:
    """What the operators' methods ask of the other processes."""

    def __init__(
        self,
        tables: Tables,
        router: Router,
        placement: Placement,
        handover: Handover,
        living: Callable[[], Sequence[ProcessInfo]],
    ) -> None:
        self._tables, self._router, self._placement, self._handover = tables, router, placement, handover
        self._living = living

    async def opened_elsewhere(
        self, request: table_pb2.OpenTableRequest, context: Context
    ) -> table_pb2.OpenTableResponse | None:
        """The answer of a process that carries less than this one; None: the table is to be opened here.

        Ends the call with that process's refusal, but for one that says: not now.
        """
        home = None if isinstance(context, Landed) else self._placement.home()
        if home is None:
            return None
        try:
            call = await self._router.ask(home.address, OPEN, request.SerializeToString(), context)
        except LinkLost:
            log.info("table opened here: the process chosen is not reached", chosen=home.address)
            return None
        if call.end is not None and call.end.code == UNAVAILABLE:
            return None
        await finish(call, context)
        return table_pb2.OpenTableResponse.FromString(call.body)

    def process(self, name: str) -> str:
        """Id of a process that takes tables, by id or address. Raises Refused FIELD_MISSING, PROCESS_NOT_FOUND."""
        if not name:
            raise validation.missing("process")
        if name in {self._tables.host.process, self._tables.address}:
            return self._tables.host.process
        found = self._placement.find(name)
        if found is None:
            text = f"No table process {name} lives, or it takes no tables now."
            raise Refused(reason_pb2.REASON_PROCESS_NOT_FOUND, text, process=name)
        return found.id

    async def processes(self, *, tables: bool) -> list[table_pb2.TableProcess]:
        """Those that live, by id; with what each runs."""
        load = self._tables.load()
        own = ProcessInfo(self._tables.host.process, self._tables.address, 0, load)
        rows = sorted([own, *self._living()], key=lambda row: row.id)
        lists: list[list[table_pb2.RunningTable]] = [[] for _ in rows]
        if tables:
            lists = await asyncio.gather(*(self._running(row) for row in rows))
        return [_process(row, found) for row, found in zip(rows, lists, strict=True)]

    async def _running(self, row: ProcessInfo) -> list[table_pb2.RunningTable]:
        if row.id == self._tables.host.process:
            return running(self._tables)
        return await self._handover.list(row)


def _process(row: ProcessInfo, found: list[table_pb2.RunningTable]) -> table_pb2.TableProcess:
    load = row.load if row.load is not None and not found else Load(len(found), sum(each.seats for each in found))
    return table_pb2.TableProcess(
        id=row.id, address=row.address, takes_tables=row.load is not None, tables=load.tables, seats=load.seats,
        running=found,
    )  # fmt: skip
