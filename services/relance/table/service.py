"""TableService's unary methods: everything that Play can do, one call each, and reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import EventLog, Unavailable
from relance.poker import Table, redact
from relance.runtime import validation
from relance.runtime.auth import AUDITOR, FLOOR, PLAYER, Context, KeyRing, identity, require
from relance.runtime.errors import Refused
from relance.runtime.paging import PageTokens
from relance.runtime.pipeline import shielded
from relance.table import notices, requests
from relance.table.chat import Chat
from relance.table.hands import hand_events, hand_not_found, is_over, seat_in
from relance.table.history import own_hands, session_of
from relance.table.past import last_state
from relance.table.play import Play, admitted
from relance.table.tables import Tables

SERVICE = "relance.api.table.v1.TableService"


class TableService(table_pb2_grpc.TableServiceServicer):
    """For players and watchers. Play and Watch take and give raw bytes: register `raw_handlers` too."""

    def __init__(
        self, tables: Tables, log: EventLog, streams: Play, keyring: KeyRing, chat: Chat, pages: PageTokens, *,
        forwards: bool = False,
    ) -> None:  # fmt: skip
        self._tables = tables
        self._log = log
        self._streams = streams
        self._keyring = keyring
        self._chat = chat
        self._pages = pages
        self._forwards = forwards

    def raw_handlers(self) -> Mapping[str, grpc.RpcMethodHandler[Any, Any]]:
        """Play and Watch without a codec, so that what many watch is encoded once."""
        return {
            "Play": grpc.stream_stream_rpc_method_handler(self.Play, None, None),
            "Watch": grpc.unary_stream_rpc_method_handler(self.Watch, None, None),
        }

    async def Play(self, request_iterator: object, context: Context, first: bytes | None = None) -> None:  # type: ignore[override]
        """Play at a table: a Join first, then commands up and what happens down."""
        await self._streams.play(context, first)

    async def Watch(self, request: bytes, context: Context) -> None:  # type: ignore[override]
        """Watch a table without a seat."""
        await self._streams.watch(request, context)

    async def Act(self, request: table_pb2.ActRequest, context: Context) -> table_pb2.CommandResponse:
        """Act in a hand."""
        return await self._command("act", request, context)

    async def TakeSeat(self, request: table_pb2.TakeSeatRequest, context: Context) -> table_pb2.CommandResponse:
        """Take a seat; the answer comes when the buy-in is requested."""
        return await self._command("take_seat", request, context)

    async def AddChips(self, request: table_pb2.AddChipsRequest, context: Context) -> table_pb2.CommandResponse:
        """Buy more chips."""
        return await self._command("add_chips", request, context)

    async def SitOut(self, request: table_pb2.SitOutRequest, context: Context) -> table_pb2.CommandResponse:
        """Sit out from the next hand on."""
        return await self._command("sit_out", request, context)

    async def SitIn(self, request: table_pb2.SitInRequest, context: Context) -> table_pb2.CommandResponse:
        """Sit in again."""
        return await self._command("sit_in", request, context)

    async def LeaveSeat(self, request: table_pb2.LeaveSeatRequest, context: Context) -> table_pb2.CommandResponse:
        """Leave the table."""
        return await self._command("leave_seat", request, context)

    async def SetSeatPreferences(
        self, request: table_pb2.SetSeatPreferencesRequest, context: Context
    ) -> table_pb2.CommandResponse:
        """Change how the seat plays by itself."""
        return await self._command("set_seat_preferences", request, context)

    async def AckNotices(self, request: table_pb2.AckNoticesRequest, context: Context) -> table_pb2.CommandResponse:
        """The caller has seen the notices."""
        return await self._command("ack_notices", request, context)

    async def ListNotices(
        self, request: table_pb2.ListNoticesRequest, context: Context
    ) -> table_pb2.ListNoticesResponse:
        """What the caller should know about chips at this table."""
        player = require(context, PLAYER).player
        table = await self._state(validation.table_id(request.table))
        return table_pb2.ListNoticesResponse(notices=notices.for_player(table, player))

    async def SendChat(self, request: table_pb2.SendChatRequest, context: Context) -> table_pb2.ChatMessage:
        """Say something at the table."""
        player = require(context, PLAYER).player
        actor = await self._tables.find(validation.table_id(request.table))
        return await shielded(self._chat.say(actor, player, request))

    async def ListChat(self, request: table_pb2.ListChatRequest, context: Context) -> table_pb2.ListChatResponse:
        """What was said at the table last: for its players, watchers and operators."""
        identity(context)
        table = validation.table_id(request.table)
        count = validation.page_size(request.page_size, usual=50, most=200)
        return table_pb2.ListChatResponse(messages=await self._chat.last(table, count))

    async def ListHands(self, request: table_pb2.ListHandsRequest, context: Context) -> table_pb2.ListHandsResponse:
        """Hands that the caller was dealt into, newest first."""
        player = require(context, PLAYER).player
        table = validation.table_id(request.table)
        size = validation.page_size(request.page_size, usual=20, most=100)
        position = self._pages.read(request.page_token, table, player)
        head, _ = await self._head(table)
        before = int(position[0]) if position else head + 1
        try:
            hands, rest = await own_hands(self._log, table, player, before, size)
        except Unavailable:
            raise self._tables.host.unavailable(table) from None
        token = self._pages.make([rest], table, player) if rest else ""
        return table_pb2.ListHandsResponse(hands=hands, next_page_token=token)

    async def GetSession(self, request: table_pb2.GetSessionRequest, context: Context) -> table_pb2.Session:
        """The caller's sitting at the table: the running one, or else the last."""
        player = require(context, PLAYER).player
        found = session_of(await self._state(validation.table_id(request.table)), player)
        if found is None:
            raise Refused(reason_pb2.REASON_NOT_SEATED, "You have not played at this table lately.")
        return found

    async def GetTable(self, request: table_pb2.GetTableRequest, context: Context) -> table_pb2.TableView:
        """The table as the caller may see it."""
        caller = identity(context)
        actor = await self._tables.find(validation.table_id(request.table))
        return actor.view(caller.subject if caller.has(PLAYER) else None)

    async def GetHand(self, request: table_pb2.GetHandRequest, context: Context) -> table_pb2.GetHandResponse:
        """The events of a hand: players with their own cards, floor and auditors with all once it is over."""
        caller = identity(context)
        table = validation.table_id(request.table)
        if request.hand <= 0:
            raise (
                validation.missing("hand") if request.hand == 0 else validation.invalid("hand", "the number of a hand")
            )
        head, last = await self._head(table)
        if last and request.hand > last:
            raise hand_not_found(request.hand, last)
        try:
            events = await hand_events(self._log, table, request.hand, head)
        except Unavailable:
            raise self._tables.host.unavailable(table) from None
        if not events:
            raise hand_not_found(request.hand, last)
        disclosed = caller.has(FLOOR, AUDITOR) and is_over(events)
        seat = seat_in(events, caller.subject) if caller.has(PLAYER) else 0
        return table_pb2.GetHandResponse(events=[redact(event, seat, disclosed=disclosed) for event in events])

    async def Locate(self, request: table_pb2.LocateRequest, context: Context) -> table_pb2.LocateResponse:
        """Where a table lives, whichever process is asked."""
        identity(context)
        info = await self._tables.locate(validation.table_id(request.table))
        return table_pb2.LocateResponse(address=info.address, fence=info.fence, forwards=self._forwards)

    async def _state(self, table: str) -> Table:
        """A table's state: the live one, or the last one of a table that is closed."""
        if table not in self._tables.closed:
            return (await self._tables.find(table)).table
        try:
            return await last_state(self._log, table)
        except Unavailable:
            raise self._tables.host.unavailable(table) from None

    async def _head(self, table: str) -> tuple[int, int]:
        """Version of the table's last event and number of its last hand (0: not known); of a closed one, too."""
        actor = self._tables.actors.get(table)
        if actor is None and table in self._tables.closed:
            try:
                return (await self._log.heads([table]))[table], 0
            except Unavailable:
                raise self._tables.host.unavailable(table) from None
        actor = actor or await self._tables.find(table)
        return actor.table.version, actor.table.last_hand

    async def _command(self, kind: str, request: requests.PlayerMessage, context: Context) -> table_pb2.CommandResponse:
        caller = require(context, PLAYER)
        table = validation.table_id(request.table)
        invitation = request.invitation if isinstance(request, table_pb2.TakeSeatRequest) else ""
        command, asked = requests.read(kind, request, caller.player)
        if invitation:
            command = admitted(self._keyring, invitation, command, table, self._tables.host.clock.now_us())
        actor = await self._tables.find(table)
        if self._tables.cash_outs.asked_for(actor.table, command, asked):
            await self._tables.cash_outs.confirm_none(actor.table, command)
        version = await actor.ask(command, asked)
        return table_pb2.CommandResponse(request_id=asked.id, version=version)
