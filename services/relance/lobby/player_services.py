"""The RPCs of waiting lists and private tables."""

from __future__ import annotations

from collections.abc import Sequence

from relance.api.lobby.v1 import private_pb2, private_pb2_grpc, waiting_pb2, waiting_pb2_grpc
from relance.lobby.accounts import LONGEST_PASSWORD
from relance.lobby.handlers import peer
from relance.lobby.offer_board import OfferBoard
from relance.lobby.offers import Offers
from relance.lobby.private import PrivateTables
from relance.lobby.seating import Seating
from relance.lobby.waits import Waits
from relance.lobby.watching import Streams, Watcher
from relance.runtime import validation
from relance.runtime.auth import FLOOR, PLAYER, VIEWER, Context, identity, require
from relance.runtime.clock import Clock
from relance.runtime.pipeline import shielded

_MOST_PLAYERS = 100
_ID = r"[0-9a-f]{1,40}"


class WaitingService(waiting_pb2_grpc.WaitingServiceServicer):
    """Waiting for seats."""

    def __init__(
        self, waits: Waits, offers: Offers, seating: Seating, board: OfferBoard, streams: Streams, clock: Clock
    ) -> None:
        self._waits, self._offers, self._seating = waits, offers, seating
        self._board, self._streams, self._clock = board, streams, clock

    async def JoinWaitlist(self, request: waiting_pb2.JoinWaitlistRequest, context: Context) -> waiting_pb2.Wait:
        """A place on a list."""
        return await shielded(self._waits.join(identity(context).player, request))

    async def LeaveWaitlist(
        self, request: waiting_pb2.LeaveWaitlistRequest, context: Context
    ) -> waiting_pb2.LeaveWaitlistResponse:
        """No place any more."""
        player = identity(context).player
        await shielded(self._waits.leave(player, validation.resource(request.wait, "waits/", _ID, "wait")))
        return waiting_pb2.LeaveWaitlistResponse()

    async def ListWaitlist(
        self, request: waiting_pb2.ListWaitlistRequest, context: Context
    ) -> waiting_pb2.ListWaitlistResponse:
        """The caller's places, or a table's."""
        if request.table:
            require(context, VIEWER, FLOOR)
            waits = await self._waits.of_table(validation.table_id(request.table))
        else:
            waits = await self._waits.of_player(identity(context).player)
        return waiting_pb2.ListWaitlistResponse(waits=waits)

    async def ListOffers(
        self, request: waiting_pb2.ListOffersRequest, context: Context
    ) -> waiting_pb2.ListOffersResponse:
        """The caller's offers."""
        now = self._clock.now_us()
        offers = await self._offers.live([identity(context).player])
        return waiting_pb2.ListOffersResponse(offers=[offer.proto(now) for offer in offers])

    async def WatchOffers(self, request: waiting_pb2.WatchOffersRequest, context: Context) -> None:  # type: ignore[override]
        """The caller's offers as they change."""
        caller = identity(context)
        player = caller.player
        watcher: Watcher[waiting_pb2.WatchOffersResponse] = Watcher()
        try:
            await self._streams.serve(context, caller, self._clock, watcher, lambda: self._board.enter(watcher, player))
        finally:
            self._board.leave(watcher)

    async def AcceptOffer(self, request: waiting_pb2.AcceptOfferRequest, context: Context) -> waiting_pb2.Offer:
        """The seat is the caller's to take."""
        player = identity(context).player
        offer = await shielded(self._seating.accept(player, _offer_id(request.offer)))
        return offer.proto(self._clock.now_us())

    async def DeclineOffer(self, request: waiting_pb2.DeclineOfferRequest, context: Context) -> waiting_pb2.Offer:
        """The seat goes to the next."""
        player = identity(context).player
        offer = await shielded(self._seating.decline(player, _offer_id(request.offer)))
        return offer.proto(self._clock.now_us())


class PrivateTableService(private_pb2_grpc.PrivateTableServiceServicer):
    """Tables for friends. `public`: one address for all tables, told instead of each one's; empty: there is none."""

    def __init__(self, tables: PrivateTables, public: str = "") -> None:
        self._tables, self._public = tables, public

    async def OpenPrivateTable(
        self, request: private_pb2.OpenPrivateTableRequest, context: Context
    ) -> private_pb2.OpenPrivateTableResponse:
        """Open a table whose host is the caller."""
        player = identity(context).player
        request_id = validation.request_id(request.request_id)
        validation.present(request, "table")
        password = _password(request.password)
        opened = await shielded(self._tables.open(player, request_id, request.table, password))
        return private_pb2.OpenPrivateTableResponse(table=opened.table, address=self._public or opened.address)

    async def SetTablePassword(
        self, request: private_pb2.SetTablePasswordRequest, context: Context
    ) -> private_pb2.SetTablePasswordResponse:
        """Set or remove the password."""
        caller = require(context, PLAYER, FLOOR)
        table, password = validation.table_id(request.table), _password(request.password)
        await shielded(self._tables.set_password(table, caller.subject, password, floor=caller.has(FLOOR)))
        return private_pb2.SetTablePasswordResponse()

    async def InvitePlayers(
        self, request: private_pb2.InvitePlayersRequest, context: Context
    ) -> private_pb2.InvitePlayersResponse:
        """Invite players."""
        caller = require(context, PLAYER, FLOOR)
        table, players = validation.table_id(request.table), _players(request.players)
        await self._tables.invite(table, caller.subject, players, floor=caller.has(FLOOR))
        return private_pb2.InvitePlayersResponse()

    async def UninvitePlayers(
        self, request: private_pb2.UninvitePlayersRequest, context: Context
    ) -> private_pb2.UninvitePlayersResponse:
        """Take invitations back."""
        caller = require(context, PLAYER, FLOOR)
        table, players = validation.table_id(request.table), _players(request.players)
        await self._tables.uninvite(table, caller.subject, players, floor=caller.has(FLOOR))
        return private_pb2.UninvitePlayersResponse()

    async def ListInvites(
        self, request: private_pb2.ListInvitesRequest, context: Context
    ) -> private_pb2.ListInvitesResponse:
        """Who is invited, or where the caller is."""
        caller = require(context, PLAYER, FLOOR)
        if request.table:
            table = validation.table_id(request.table)
            invites = await self._tables.invites_of(table, caller.subject, floor=caller.has(FLOOR))
        else:
            invites = await self._tables.invites_for(caller.player)
        return private_pb2.ListInvitesResponse(invites=invites)

    async def GetInvitation(
        self, request: private_pb2.GetInvitationRequest, context: Context
    ) -> private_pb2.GetInvitationResponse:
        """An invitation for TakeSeat."""
        player = identity(context).player
        table, password = validation.table_id(request.table), _password(request.password)
        invitation, expires = await shielded(self._tables.invitation(table, player, password, peer(context)))
        return private_pb2.GetInvitationResponse(invitation=invitation, expire_time_us=expires)


def _offer_id(name: str) -> str:
    return validation.resource(name, "offers/", _ID, "offer")


def _password(password: str) -> str:
    return validation.text(password, "password", longest=LONGEST_PASSWORD, required=False)


def _players(names: Sequence[str]) -> list[str]:
    if not names:
        raise validation.missing("players")
    if len(names) > _MOST_PLAYERS:
        raise validation.invalid("players", f"at most {_MOST_PLAYERS}")
    return [validation.player_id(name, "players") for name in names]
