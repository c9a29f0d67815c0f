"""TableAdminService: running tables, and reading their logs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from weakref import WeakValueDictionary

import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import EventLog, Unavailable
from relance.poker import Request, known_request, redact
from relance.poker.commands import ChangeSettings, Command, OpenTable
from relance.poker.config import changed, changed_rake, table_config
from relance.runtime import validation
from relance.runtime.auth import AUDITOR, FLOOR, SERVICE, VIEWER, Context, require
from relance.runtime.errors import Refused
from relance.runtime.pipeline import shielded
from relance.table import requests
from relance.table.cluster import Cluster
from relance.table.tables import Tables

log = structlog.get_logger(__name__)

PAGE = 500
"""Events in one message of ReadStream, about."""

_ENDS = frozenset({"hand_ended", "hand_voided"})


_Timed = (
    table_pb2.HoldSeatRequest
    | table_pb2.BanPlayerRequest
    | table_pb2.MutePlayerRequest
    | table_pb2.ChangeSettingsRequest
)


class TableAdminService(table_pb2_grpc.TableAdminServiceServicer):
    """For operators and for other services."""

    def __init__(self, tables: Tables, log: EventLog, cluster: Cluster) -> None:
        self._tables = tables
        self._log = log
        self._cluster = cluster
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by table

    async def OpenTable(self, request: table_pb2.OpenTableRequest, context: Context) -> table_pb2.OpenTableResponse:
        """Open a table, at the process that carries least; a repeat of the request opens one table."""
        caller = require(context, FLOOR, SERVICE)
        elsewhere = await self._cluster.opened_elsewhere(request, context)
        if elsewhere is not None:
            return elsewhere
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

    async def HoldSeat(self, request: table_pb2.HoldSeatRequest, context: Context) -> table_pb2.HoldSeatResponse:
        """Hold a free seat for one player, or for longer the one that is held."""
        caller = require(context, SERVICE)
        table, asked = self._asked("hold_seat", request, caller.subject)
        command = requests.hold_seat(request, caller.subject, self._tables.host.clock.now_us())
        version = await (await self._tables.find(table)).ask(command, asked)
        try:
            held = (await self._log.read(table, version - 1, 1))[0].seat_held
        except Unavailable:
            raise self._tables.host.unavailable(table) from None
        return table_pb2.HoldSeatResponse(seat=held.seat, expire_time_us=held.expire_time_us, version=version)

    async def ReleaseSeat(self, request: table_pb2.ReleaseSeatRequest, context: Context) -> table_pb2.CommandResponse:
        """Give up the seat that is held for a player."""
        return await self._command("release_seat", request, context, (SERVICE,))

    async def WarnPlayer(self, request: table_pb2.WarnPlayerRequest, context: Context) -> table_pb2.CommandResponse:
        """Warn a player, on record (C2, C4)."""
        return await self._command("warn_player", request, context, (FLOOR,))

    async def BanPlayer(self, request: table_pb2.BanPlayerRequest, context: Context) -> table_pb2.CommandResponse:
        """Ban a player from the table (C2, C4)."""
        caller = require(context, FLOOR)
        table, asked = self._asked("ban_player", request, caller.subject)
        command = requests.ban_player(request, caller.subject, self._tables.host.clock.now_us())
        return await self._ask(table, command, asked)

    async def MutePlayer(self, request: table_pb2.MutePlayerRequest, context: Context) -> table_pb2.CommandResponse:
        """Take a player's voice in the chat, or give it back."""
        caller = require(context, FLOOR)
        table, asked = self._asked("mute_player", request, caller.subject)
        command = requests.mute_player(request, caller.subject, self._tables.host.clock.now_us())
        return await self._ask(table, command, asked)

    async def ChangeSettings(
        self, request: table_pb2.ChangeSettingsRequest, context: Context
    ) -> table_pb2.CommandResponse:
        """Another name, other clocks, buy-ins or percentage from the next hand on."""
        caller = require(context, FLOOR)
        table, asked = self._asked("change_settings", request, caller.subject)
        validation.text(request.reason, "reason", longest=requests.MAX_REASON)
        return await shielded(self._change(table, request, asked))

    async def _change(
        self, table: str, request: table_pb2.ChangeSettingsRequest, asked: Request
    ) -> table_pb2.CommandResponse:
        # One after another: each says only what it changes, and starts from what the one before it has made.
        async with self._changing.setdefault(table, asyncio.Lock()):
            now = (await self._tables.find(table)).table
            if now.config is None or now.rake is None:
                raise self._tables.host.unavailable(table)
            version = known_request(now, asked)
            if version is not None:  # what it changed need not be a change of what is there now
                return table_pb2.CommandResponse(request_id=asked.id, version=version)
            rake = changed_rake(now.config, now.rake, request)
            command = ChangeSettings(asked.player, changed(now.config, request), rake, request.reason)
            return await self._ask(table, command, asked)

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

    async def HandOverTable(
        self, request: table_pb2.HandOverTableRequest, context: Context
    ) -> table_pb2.HandOverTableResponse:
        """Have another process run a table, once its hand is over."""
        caller = require(context, FLOOR)
        table = validation.table_id(request.table)
        heir = self._cluster.process(request.process)
        found = await self._tables.hand_over(table, heir)
        log.info("table handed over", table=table, to=found.writer, by=caller.subject)
        return table_pb2.HandOverTableResponse(process=found.writer, address=found.address, fence=found.fence)

    async def ListProcesses(
        self, request: table_pb2.ListProcessesRequest, context: Context
    ) -> table_pb2.ListProcessesResponse:
        """The table processes that live."""
        require(context, FLOOR, VIEWER, AUDITOR, SERVICE)
        return table_pb2.ListProcessesResponse(processes=await self._cluster.processes(tables=request.tables))

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
            if request.limit and not caller.has(AUDITOR):  # followers, by far the most frequent: one query
                pages = self._public(table, request.after, request.after + request.limit)
            else:
                head = await self._head(table)
                upto = min(head, request.after + request.limit) if request.limit else head
                pages = (
                    self._disclosed(table, request.after, upto, head)
                    if caller.has(AUDITOR)
                    else self._public(table, request.after, upto)
                )
            found = False
            async for page in pages:
                if page:
                    found = True
                    yield table_pb2.ReadStreamResponse(events=page)
            if not found:
                await self._head(table)
        except Unavailable:
            raise self._tables.host.unavailable(table) from None

    async def _head(self, table: str) -> int:
        """The last version. Raises Unavailable, Refused TABLE_NOT_FOUND."""
        heads = await self._log.heads([table])
        if table not in heads:
            raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=f"tables/{table}")
        return heads[table]

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

    async def _public(self, table: str, after: int, upto: int) -> AsyncIterator[list[TableEvent]]:
        while after < upto:
            asked = min(PAGE, upto - after)
            page = _known(await self._log.read(table, after, asked))
            yield [redact(event) for event in page]
            if len(page) < asked:
                return
            after = page[-1].version

    async def _disclosed(self, table: str, after: int, upto: int, head: int) -> AsyncIterator[list[TableEvent]]:
        """As `_public`, with the cards of hands whose end is in the log: each is held back until that is known."""
        held: list[TableEvent] = []
        shown: list[TableEvent] = []
        at = after
        while at < head and (at < upto or held):
            page = _known(await self._log.read(table, at, min(PAGE, head - at)))
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
        return await self._ask(table, command, asked)

    def _asked(self, kind: str, request: _Timed, caller: str) -> tuple[str, Request]:
        """The table that a request names, and the request's identity."""
        table = validation.table_id(request.table)
        request.ClearField("table")
        return table, requests.identify(kind, request.request_id, request, caller)

    async def _ask(self, table: str, command: Command, asked: Request) -> table_pb2.CommandResponse:
        version = await (await self._tables.find(table)).ask(command, asked)
        return table_pb2.CommandResponse(request_id=asked.id, version=version)


def _known(events: list[TableEvent]) -> list[TableEvent]:
    """The events without fields of newer versions: whether they are secret is not known here."""
    for event in events:
        event.DiscardUnknownFields()
    return events
