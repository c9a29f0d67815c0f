"""Waiting for a seat: places on lists, and the seats that are offered to who has one."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2, waiting_pb2
from relance.client import lists
from relance.client.connection import Connection, Method, Request, Response
from relance.client.credentials import Credentials
from relance.client.names import table_name


class Waitlist:
    """A player's places and offers. Methods raise RelanceError.

    A seat that is offered is held: `accept` in time (`offer.remaining_ms`), then sit down at `offer.table`.
    """

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def join(self, table: str | lobby_pb2.Table) -> waiting_pb2.Wait:
        """Wait for a seat at a table. Raises ALREADY_SEATED, TABLE_CLOSED, NOT_INVITED, LIMIT_REACHED."""
        return await self._join(waiting_pb2.JoinWaitlistRequest(table=table_name(table)))

    async def join_any(self, config: game_pb2.TableConfig, *, any_seats: bool = True) -> waiting_pb2.Wait:
        """Wait for a seat at any table like this: house, game, limit, stakes, currency, turbo or not.

        `any_seats`: with whatever number of seats, but two where it has more; without it, with as many.
        """
        kind = waiting_pb2.TableKind(
            house=config.house,
            game=config.game,
            limit=config.limit,
            currency=config.currency,
            low_limit=config.stakes.low_limit,
            seats=0 if any_seats and config.seats != 2 else config.seats,
            turbo=config.turbo,
        )
        return await self._join(waiting_pb2.JoinWaitlistRequest(kind=kind))

    async def leave(self, wait: str | waiting_pb2.Wait) -> None:
        """Give up a place, and the offer that it led to. Raises WAIT_NOT_FOUND."""
        request = waiting_pb2.LeaveWaitlistRequest(wait=wait if isinstance(wait, str) else wait.name)
        await self._call(lambda peer: peer.waiting.LeaveWaitlist, request)

    async def waits(self, table: str | lobby_pb2.Table = "") -> list[waiting_pb2.Wait]:
        """The player's places, the oldest first; for operators (viewer, floor) those on the list of a table."""
        request = waiting_pb2.ListWaitlistRequest(table=table_name(table) if table else "")
        return list((await self._call(lambda peer: peer.waiting.ListWaitlist, request)).waits)

    async def offers(self) -> list[waiting_pb2.Offer]:
        """Offers that are not over."""
        answer = await self._call(lambda peer: peer.waiting.ListOffers, waiting_pb2.ListOffersRequest())
        return list(answer.offers)

    def watch(self, *, lost: lists.Lost | None = None) -> AsyncGenerator[waiting_pb2.Offer, None]:
        """Offers as they come and change, for as long as one iterates. `lost`: as of `Room.watch_tables`."""
        return lists.offers(self._connection, self._credentials, lost)

    async def accept(self, offer: str | waiting_pb2.Offer) -> waiting_pb2.Offer:
        """Take an offered seat: it is held a while longer for the buy-in. Raises OFFER_OVER."""
        request = waiting_pb2.AcceptOfferRequest(offer=offer if isinstance(offer, str) else offer.name)
        return await self._call(lambda peer: peer.waiting.AcceptOffer, request)

    async def decline(self, offer: str | waiting_pb2.Offer) -> waiting_pb2.Offer:
        """Refuse an offered seat: it goes to the next. Raises OFFER_OVER."""
        request = waiting_pb2.DeclineOfferRequest(offer=offer if isinstance(offer, str) else offer.name)
        return await self._call(lambda peer: peer.waiting.DeclineOffer, request)

    async def _join(self, request: waiting_pb2.JoinWaitlistRequest) -> waiting_pb2.Wait:
        return await self._call(lambda peer: peer.waiting.JoinWaitlist, request)

    async def _call(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.lobby, method, request, self._credentials)
