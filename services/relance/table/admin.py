"""TableAdminService: running tables, and reading their logs."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import EventLog, Unavailable
from relance.poker import redact
from relance.poker.commands import OpenTable
from relance.poker.config import table_config
from relance.runtime import validation
from relance.runtime.auth import AUDITOR, FLOOR, SERVICE, VIEWER, Context, require
from relance.runtime.errors import Refused
from relance.table import requests
from relance.table.tables import Tables

PAGE = 500
"""Events in one message of ReadStream, about."""

_ENDS = frozenset({"hand_ended", "hand_voided"})


class TableAdminService(table_pb2_grpc.TableAdminServiceServicer):
    """For operators and for other services. HoldSeat and ReleaseSeat answer UNIMPLEMENTED: the rules hold no seats."""

    def __init__(self, tables: Tables, log: EventLog) -> None:
        self._tables = tables
        self._log = log

    async def OpenTable(self, request: table_pb2.OpenTableRequest, context: Context) -> table_pb2.OpenTableResponse:
        """Open a table here; a repeat of the request opens one table."""
        caller = require(context, FLOOR, SERVICE)
        asked = requests.identify("open_table", request.request_id, request, caller.subject)
        setup = table_config(request)
        name = hashlib.sha256(f"{caller.subject}\n{request.request_id}".encode()).hexdigest()[:12]
        table = f"{setup.config.game.replace('_', '-')}-{name}"
        await self._tables.open(table, OpenTable(setup.config, setup.rake, caller.subject), asked)
        here = table in self._tables.actors
        address = self._tables.address if here else (await self._tables.locate(table)).address
        return table_pb2.OpenTableResponse(table=f"tables/{table}", address=address)

    async def CloseTable(self, request: table_pb2.CloseTableRequest, context: Context) -> table_pb2.CommandResponse:
        """Close a table after its hand."""
        return await self._command("close_table", request, context, (FLOOR, SERVICE))

    async def PauseTable(self, request: table_pb2.PauseTableRequest, context: Context) -> table_pb2.CommandResponse:
        """No new hands until the table is resumed."""
        return await self._command("pause_table", request, context, (FLOOR, SERVICE))

    async def ResumeTable(self, request: table_pb2.ResumeTableRequest, context: Context) -> table_pb2.CommandResponse:
        """Hands may start again."""
        return await self._command("resume_table", request, context, (FLOOR, SERVICE))

    async def VoidHand(self, request: table_pb2.VoidHandRequest, context: Context) -> table_pb2.CommandResponse:
        """Void the running hand (C4)."""
        return await self._command("void_hand", request, context, (FLOOR,))

    async def RecordRuling(self, request: table_pb2.RecordRulingRequest, context: Context) -> table_pb2.CommandResponse:
        """Record a ruling (C4)."""
        return await self._command("record_ruling", request, context, (FLOOR,))

    async def ReportDealingFault(
        self, request: table_pb2.ReportDealingFaultRequest, context: Context
    ) -> table_pb2.CommandResponse:
        """Report a dealing fault (F1-F6)."""
        return await self._command("report_dealing_fault", request, context, (FLOOR,))

    async def ReadStream(
        self, request: table_pb2.ReadStreamRequest, context: Context
    ) -> AsyncIterator[table_pb2.ReadStreamResponse]:
        """A table's log: public for viewers and services, with every card of hands that are over for auditors."""
        caller = require(context, VIEWER, AUDITOR, SERVICE)
        table = validation.table_id(request.table)
        if request.after < 0:
            raise validation.invalid("after", "0 or a version")
        if request.limit < 0:
            raise validation.invalid("limit", "0 (up to the head) or a number of events")
        try:
            heads = await self._log.heads([table])
            if table not in heads:
                raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=f"tables/{table}")
            upto = min(heads[table], request.after + request.limit) if request.limit else heads[table]
            pages = self._disclosed if caller.has(AUDITOR) else self._public
            async for page in pages(table, request.after, upto, heads[table]):
                if page:
                    yield table_pb2.ReadStreamResponse(events=page)
        except Unavailable:
            raise self._tables.host.unavailable(table) from None

    async def ListHeads(self, request: table_pb2.ListHeadsRequest, context: Context) -> table_pb2.ListHeadsResponse:
        """The last version of each table, or of those named that exist."""
        require(context, VIEWER, AUDITOR, SERVICE)
        names = [validation.table_id(name, "tables") for name in request.tables]
        try:
            heads = await self._log.heads(names or None)
        except Unavailable:
            raise Refused(reason_pb2.REASON_UNAVAILABLE, "The log's database does not answer; ask again.") from None
        return table_pb2.ListHeadsResponse(
            heads=[table_pb2.Head(table=f"tables/{table}", version=heads[table]) for table in sorted(heads)]
        )

    async def _public(self, table: str, after: int, upto: int, _head: int) -> AsyncIterator[list[TableEvent]]:
        while after < upto:
            page = await self._log.read(table, after, min(PAGE, upto - after))
            if not page:
                return
            after = page[-1].version
            yield [redact(event) for event in page]

    async def _disclosed(self, table: str, after: int, upto: int, head: int) -> AsyncIterator[list[TableEvent]]:
        """As `_public`, with the cards of hands whose end is in the log: each is held back until that is known."""
        held: list[TableEvent] = []
        shown: list[TableEvent] = []
        at = after
        while at < head and (at < upto or held):
            page = await self._log.read(table, at, min(PAGE, head - at))
            if not page:
                break
            at = page[-1].version
            for event in page:
                if held and event.hand not in {0, held[0].hand}:
                    shown += [redact(each) for each in held]  # a hand without an end stays as the public sees it
                    held = []
                if event.hand or held:
                    held.append(event)
                else:
                    shown.append(redact(event))
                if event.WhichOneof("payload") in _ENDS:
                    shown += [redact(each, disclosed=True) for each in held]
                    held = []
            yield [event for event in shown if event.version <= upto]
            shown = []
        yield [event for event in (redact(each) for each in held) if event.version <= upto]

    async def _command(
        self, kind: str, request: requests.OperatorMessage, context: Context, roles: tuple[str, ...]
    ) -> table_pb2.CommandResponse:
        caller = require(context, *roles)
        table = validation.table_id(request.table)
        command, asked = requests.read(kind, request, caller.subject)
        actor = await self._tables.find(table)
        version = await actor.ask(command, asked)
        return table_pb2.CommandResponse(request_id=asked.id, version=version)
