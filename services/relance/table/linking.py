"""TableLinkService: what table processes ask of one another."""

from __future__ import annotations

from relance.api.table.v1 import link_pb2, link_pb2_grpc
from relance.runtime import validation
from relance.runtime.auth import SERVICE, Context, require
from relance.runtime.pipeline import shielded
from relance.table.handover import running
from relance.table.landing import Landing
from relance.table.tables import Tables


class LinkService(link_pb2_grpc.TableLinkServiceServicer):
    """For the other table processes. Link takes and gives raw bytes."""

    def __init__(self, tables: Tables, landing: Landing) -> None:
        self._tables, self._landing = tables, landing

    async def Link(self, request_iterator: object, context: Context) -> None:  # type: ignore[override]
        """Serve the calls that another process passes on."""
        require(context, SERVICE)
        await self._landing.serve(context)

    async def TakeTables(self, request: link_pb2.TakeTablesRequest, context: Context) -> link_pb2.TakeTablesResponse:
        """Run tables that their owner has given up."""
        require(context, SERVICE)
        free = {validation.table_id(each.table, "tables"): each.fence for each in request.tables}
        known = {table: fence for table, fence in free.items() if table not in self._tables.given_back}
        taken = await shielded(self._tables.claim(known)) if known else []
        return link_pb2.TakeTablesResponse(tables=[f"tables/{table}" for table in taken])

    async def ListRunning(self, request: link_pb2.ListRunningRequest, context: Context) -> link_pb2.ListRunningResponse:
        """What runs here."""
        require(context, SERVICE)
        return link_pb2.ListRunningResponse(tables=running(self._tables))

    async def FindCashOut(self, request: link_pb2.FindCashOutRequest, context: Context) -> link_pb2.FindCashOutResponse:
        """A cash-out that is on its way from a table that runs here."""
        require(context, SERVICE)
        return link_pb2.FindCashOutResponse(transfer=self._tables.host.transfers.cash_out(request.account))
