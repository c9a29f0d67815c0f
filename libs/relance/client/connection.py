"""Calls to the room's processes: where each one is, and what to do when it is not there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2
from relance.client.backoff import Backoff
from relance.client.channels import Channels, Peer
from relance.client.credentials import Credentials, bearer
from relance.client.errors import RETRIABLE, RelanceError, SignInRequired, Unavailable, from_rpc

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Method = Callable[[Peer], grpc.aio.UnaryUnaryMultiCallable[Request, Response]]

# Finding a process must not take as long as the call itself may.
_FIND_SECONDS = 3.0


class Place(Protocol):
    """Where a service is."""

    async def address(self) -> str:
        """host:port. Raises RelanceError."""

    def moved(self, address: str = "") -> None:
        """It is not where `address` said; the server may have told where it is now."""


class Connection:
    """The processes of one room, found from the lobby's address.

    `timeout`: seconds for one try of a call. `patience`: seconds for which a call that a server cannot answer now is
    tried again; every request of the contract may be repeated, because it has a request_id or changes nothing.
    """

    def __init__(self, lobby: str, channels: Channels, timeout: float, patience: float) -> None:
        self.channels = channels
        self.timeout = timeout
        self.patience = patience
        self.lobby = Fixed(lobby)
        self.wallet = Named(self, "wallet")
        self.rake = Named(self, "rake")
        self.tables = AnyTable(self)
        self._room: lobby_pb2.Room | None = None
        self._stale = False

    async def call(
        self, place: Place, method: Method[Request, Response], request: Request, credentials: Credentials
    ) -> Response:
        """Make a unary call. Raises RelanceError: the refusal, or Unavailable when patience ends."""
        until = time.monotonic() + self.patience
        backoff = Backoff()
        renewed = False
        while True:
            try:
                peer = self.channels.peer(await place.address())
                metadata = bearer(await credentials.token())
                return await method(peer)(request, timeout=self.timeout, metadata=metadata)
            except grpc.aio.AioRpcError as failure:
                refusal = from_rpc(failure)
            except Unavailable as failure:
                refusal = failure
            if refusal.reason == "TOKEN_EXPIRED" and not renewed and credentials.expired():
                renewed = True
                continue
            if refusal.reason not in RETRIABLE or time.monotonic() > until:
                raise refusal
            place.moved(refusal.metadata.get("address", ""))
            await backoff.wait()

    async def room(self) -> lobby_pb2.Room:
        """Where the services are; what was known last while the lobby is away. Raises Unavailable."""
        if self._room is None or self._stale:
            lobby = self.channels.peer(self.lobby.known).lobby
            try:
                self._room = await lobby.GetRoom(lobby_pb2.GetRoomRequest(), timeout=_FIND_SECONDS)
                self._stale = False
            except grpc.aio.AioRpcError as failure:
                if self._room is None:
                    raise _as_unavailable(from_rpc(failure)) from failure
        return self._room

    def look_again(self) -> None:
        """Something was not where the lobby said: ask it again next time."""
        self._stale = True


class Fixed:
    """A service at an address that was given."""

    def __init__(self, address: str) -> None:
        self.known = address

    async def address(self) -> str:
        return self.known

    def moved(self, address: str = "") -> None:
        """It stays where it was said to be."""


class Named:
    """The wallet or the rake service, as the lobby tells."""

    def __init__(self, connection: Connection, service: Literal["wallet", "rake"]) -> None:
        self._connection = connection
        self._service = service

    async def address(self) -> str:
        room = await self._connection.room()
        address = room.wallet_address if self._service == "wallet" else room.rake_address
        if not address:
            self._connection.look_again()
            raise Unavailable("UNAVAILABLE", f"the lobby does not know where the {self._service} is")
        return address

    def moved(self, address: str = "") -> None:
        self._connection.look_again()


class AnyTable:
    """Any table process: another one after each that did not answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._turn = random.randrange(1 << 16)

    async def address(self) -> str:
        addresses = (await self._connection.room()).table_addresses
        if not addresses:
            self._connection.look_again()
            raise Unavailable("UNAVAILABLE", "the lobby knows no table process")
        return addresses[self._turn % len(addresses)]

    def moved(self, address: str = "") -> None:
        self._turn += 1
        self._connection.look_again()


class TableProcess:
    """Where calls for one table go: to the process that runs it, which any table process locates, or to one that passes
    them on.
    """

    def __init__(self, connection: Connection, table: str, credentials: Credentials, known: str = "") -> None:
        self._connection = connection
        self._table = table
        self._credentials = credentials
        self._known = known
        self._passed_on = False

    async def address(self) -> str:
        if not self._known:
            self._known = await self._locate()
        return self._known

    def moved(self, address: str = "") -> None:
        # Who is served by a process that passes calls on may not reach the others, and has no need to.
        self._known = "" if self._passed_on else address

    async def _locate(self) -> str:
        """Ask table processes one after the other. Raises TABLE_NOT_FOUND, Unavailable."""
        room = await self._connection.room()
        refusal: RelanceError = Unavailable("UNAVAILABLE", "the lobby knows no table process")
        for address in random.sample(room.table_addresses, len(room.table_addresses)):
            try:
                answer = await self._connection.channels.peer(address).table.Locate(
                    table_pb2.LocateRequest(table=self._table),
                    timeout=_FIND_SECONDS,
                    metadata=bearer(await self._credentials.token()),
                )
            except grpc.aio.AioRpcError as failure:
                refusal = from_rpc(failure)
                if isinstance(refusal, SignInRequired) or refusal.reason not in RETRIABLE:
                    raise refusal from failure
            else:
                if answer.address:
                    self._passed_on = answer.forwards
                    return address if answer.forwards else answer.address
                refusal = Unavailable("TABLE_UNAVAILABLE", "no process runs the table now", {"table": self._table})
        self._connection.look_again()
        raise _as_unavailable(refusal)


def _as_unavailable(refusal: RelanceError) -> Unavailable:
    if isinstance(refusal, Unavailable):
        return refusal
    return Unavailable(refusal.reason, refusal.message, refusal.metadata, refusal.code)
