"""A room: accounts, the catalogue, money, and the way to its tables."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Self

import grpc

from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.client import lists
from relance.client.channels import Channels
from relance.client.club import Club
from relance.client.connection import Connection, Method, Request, Response, TableProcess
from relance.client.credentials import Anonymous, Credentials, GivenToken, PlayerCredentials, bearer
from relance.client.errors import from_rpc
from relance.client.events import Event, event_of
from relance.client.limits import PlayerLimits
from relance.client.names import CURRENCIES, CurrencyName, plain_id, player_name, table_name
from relance.client.operator import Operator
from relance.client.private import PrivateTables
from relance.client.rake import Rake
from relance.client.seat import Seat
from relance.client.stream import Watch
from relance.client.waitlist import Waitlist
from relance.transport import Tls


def connect(
    lobby: str,
    *,
    tls: Tls | None = None,
    channels: Channels | None = None,
    timeout: float = 10.0,
    patience: float = 60.0,
) -> Room:
    """A room by the address (host:port) of its lobby; connects on first use. `async with` closes what it opened.

    `tls`: authorities to believe, and the client's own certificate where the room asks for one; None: plaintext.
    `channels`: connections shared with other rooms of this program, with TLS of their own. `timeout`: seconds for one
    try of a call.
    `patience`: seconds for which calls and streams try to get through a server that is away.
    """
    return Room(lobby, channels, timeout, patience, tls)


class Room:
    """One player's (or nobody's) way into a room. Methods raise RelanceError."""

    def __init__(
        self, lobby: str, channels: Channels | None, timeout: float, patience: float, tls: Tls | None = None
    ) -> None:
        self._own = channels is None
        self._connection = Connection(lobby, channels or Channels(tls), timeout, patience)
        self._credentials: Credentials = PlayerCredentials(self._sign_in, self._renew)
        self._anonymous = Anonymous()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own:
            await self._connection.channels.close()

    @property
    def player(self) -> str:
        """Id of the signed-in player; empty: nobody."""
        return self._credentials.player

    async def services(self) -> lobby_pb2.Room:
        """Where the room's services are."""
        return await self._lobby(lambda peer: peer.lobby.GetRoom, lobby_pb2.GetRoomRequest(), self._anonymous)

    async def register(self, name: str, password: str) -> str:
        """Make an account; its player id. Raises NAME_TAKEN, FIELD_INVALID, FIELD_TOO_LONG (N1)."""
        request = lobby_pb2.RegisterRequest(request_id=uuid.uuid4().hex, display_name=name, password=password)
        return plain_id((await self._lobby(lambda peer: peer.lobby.Register, request, self._anonymous)).name)

    async def sign_in(self, name: str, password: str) -> str:
        """Sign in; the player's id. Tokens are renewed from here on. Raises SIGN_IN_REFUSED."""
        credentials = PlayerCredentials(self._sign_in, self._renew)
        player = await credentials.sign_in(name, password)
        self._credentials = credentials
        return player

    def use_token(self, token: str | Callable[[], str]) -> None:
        """Play with a player's token that somebody else signed and renews, instead of signing in."""
        self._credentials = GivenToken(token)

    async def list_tables(
        self, filter: str = "", order_by: str = "", *, limit: int | None = None
    ) -> list[lobby_pb2.Table]:
        """Tables of the catalogue, all pages (or the first `limit`).

        `filter` is AIP-160 over house, game, limit, big_blind, seats_free, currency, turbo, heads_up, private … (see
        ListTablesRequest), for example 'game = "holdem" AND seats_free > 0'; empty: open tables. `order_by`: for
        example "players desc, create_time".
        """
        tables: list[lobby_pb2.Table] = []
        page_token = ""
        while limit is None or len(tables) < limit:
            size = 500 if limit is None else min(limit - len(tables), 500)
            request = lobby_pb2.ListTablesRequest(
                page_size=size, page_token=page_token, filter=filter, order_by=order_by
            )
            page = await self._lobby(lambda peer: peer.lobby.ListTables, request)
            tables += page.tables
            page_token = page.next_page_token
            if not page_token:
                break
        return tables

    async def listed(self, table: str | lobby_pb2.Table) -> lobby_pb2.Table:
        """A table as the lobby lists it, with the address of its process. Raises TABLE_NOT_FOUND."""
        request = lobby_pb2.GetTableRequest(table=table_name(table))
        return await self._lobby(lambda peer: peer.lobby.GetTable, request)

    def watch_tables(
        self, filter: str = "", *, lost: lists.Lost | None = None
    ) -> AsyncGenerator[dict[str, lobby_pb2.Table], None]:
        """The tables that a filter lets through, by name, now and whenever something has changed.

        Tables come without their address; statistics move with each hand. `lost`: called with what went wrong each
        time that the connection is lost, before the next is tried; raised is only what no patience helps.
        """
        return lists.tables(self._connection, self._credentials, filter, lost)

    @property
    def waitlist(self) -> Waitlist:
        """Waiting for seats, and the offers that come of it."""
        return Waitlist(self._connection, self._credentials)

    @property
    def private(self) -> PrivateTables:
        """Private tables."""
        return PrivateTables(self._connection, self._credentials)

    @property
    def club(self) -> Club:
        """The player's credits and passes."""
        return Club(self._connection, self._credentials)

    @property
    def limits(self) -> PlayerLimits:
        """What the player holds themselves back with."""
        return PlayerLimits(self._connection, self._credentials)

    @property
    def rake(self) -> Rake:
        """What hands cost."""
        return Rake(self._connection, self._credentials)

    async def change_password(self, old: str, new: str) -> None:
        """Another password. Raises SIGN_IN_REFUSED where the old one is wrong, TOO_MANY_REQUESTS."""
        request = lobby_pb2.ChangePasswordRequest(old_password=old, new_password=new)
        await self._lobby(lambda peer: peer.lobby.ChangePassword, request)
        if isinstance(self._credentials, PlayerCredentials):
            self._credentials.changed(new)

    async def names(self, players: Iterable[str]) -> dict[str, str]:
        """Names that others see, by player id. Unknown ids are left out."""
        asked = [player_name(player) for player in players]
        names: dict[str, str] = {}
        for start in range(0, len(asked), 100):
            request = lobby_pb2.BatchGetPlayersRequest(players=asked[start : start + 100])
            answer = await self._lobby(lambda peer: peer.lobby.BatchGetPlayers, request)
            names |= {plain_id(player.name): player.display_name for player in answer.players}
        return names

    async def balance(self, currency: CurrencyName = "eur") -> int:
        """Minor units on the player's account."""
        request = wallet_pb2.GetBalanceRequest(currency=CURRENCIES[currency])
        return (await self._wallet(lambda peer: peer.wallet.GetBalance, request)).balance

    async def transfers(
        self, currency: CurrencyName = "eur", *, since_us: int = 0, until_us: int = 0
    ) -> AsyncIterator[wallet_pb2.Transfer]:
        """The account's transfers, newest first, page after page."""
        page_token = ""
        while True:
            request = wallet_pb2.ListTransfersRequest(
                currency=CURRENCIES[currency], page_token=page_token, since_us=since_us, until_us=until_us
            )
            page = await self._wallet(lambda peer: peer.wallet.ListTransfers, request)
            for transfer in page.transfers:
                yield transfer
            page_token = page.next_page_token
            if not page_token:
                return

    async def faucet(self, amount: int, currency: CurrencyName = "eur") -> wallet_pb2.Transfer:
        """Money from the development faucet. Raises FAUCET_OFF in other rooms."""
        request = wallet_pb2.DrawFaucetRequest(
            request_id=uuid.uuid4().hex, currency=CURRENCIES[currency], amount=amount
        )
        return await self._wallet(lambda peer: peer.wallet.DrawFaucet, request)

    async def table(self, table: str | lobby_pb2.Table) -> table_pb2.TableView:
        """A table as the player may see it."""
        name = table_name(table)
        return await self._table(name, lambda peer: peer.table.GetTable, table_pb2.GetTableRequest(table=name))

    async def hand(self, table: str | lobby_pb2.Table, number: int) -> list[Event]:
        """The events of a hand as the player may see them. Raises HAND_NOT_FOUND."""
        name = table_name(table)
        request = table_pb2.GetHandRequest(table=name, hand=number)
        return [event_of(raw) for raw in (await self._table(name, lambda peer: peer.table.GetHand, request)).events]

    async def hands(self, table: str | lobby_pb2.Table, *, limit: int | None = None) -> list[table_pb2.HandSummary]:
        """The player's own hands at a table, newest first, all pages (or the first `limit`)."""
        name = table_name(table)
        found: list[table_pb2.HandSummary] = []
        page_token = ""
        while limit is None or len(found) < limit:
            size = 100 if limit is None else min(limit - len(found), 100)
            request = table_pb2.ListHandsRequest(table=name, page_size=size, page_token=page_token)
            page = await self._table(name, lambda peer: peer.table.ListHands, request)
            found += page.hands
            page_token = page.next_page_token
            if not page_token:
                break
        return found

    async def session(self, table: str | lobby_pb2.Table) -> table_pb2.Session:
        """The player's sitting at a table, the running one or else the last. Raises NOT_SEATED."""
        name = table_name(table)
        return await self._table(name, lambda peer: peer.table.GetSession, table_pb2.GetSessionRequest(table=name))

    async def notices(self, table: str | lobby_pb2.Table) -> list[table_pb2.Notice]:
        """What the player should know of void hands and lost seats at a table, until it is acknowledged."""
        name = table_name(table)
        request = table_pb2.ListNoticesRequest(table=name)
        return list((await self._table(name, lambda peer: peer.table.ListNotices, request)).notices)

    async def acknowledge(self, table: str | lobby_pb2.Table) -> None:
        """The notices were seen."""
        name = table_name(table)
        request = table_pb2.AckNoticesRequest(table=name, request_id=uuid.uuid4().hex)
        await self._table(name, lambda peer: peer.table.AckNotices, request)

    async def talk(self, table: str | lobby_pb2.Table, limit: int = 50) -> list[table_pb2.ChatMessage]:
        """What was said at a table last, oldest first."""
        name = table_name(table)
        request = table_pb2.ListChatRequest(table=name, page_size=limit)
        return list((await self._table(name, lambda peer: peer.table.ListChat, request)).messages)

    def play(self, table: str | lobby_pb2.Table) -> Seat:
        """Join a table to play: `async with room.play(table) as seat`."""
        return Seat(self._connection, table_name(table), self._credentials, self.player)

    def watch(self, table: str | lobby_pb2.Table) -> Watch:
        """Watch a table: `async with room.watch(table) as watch`."""
        return Watch(self._connection, table_name(table), self._credentials, self.player)

    def operator(self, token: str | Callable[[], str]) -> Operator:
        """The room as an operator with this token (or with what the function answers at each call)."""
        return Operator(self._connection, GivenToken(token))

    async def _lobby(
        self, method: Method[Request, Response], request: Request, credentials: Credentials | None = None
    ) -> Response:
        return await self._connection.call(self._connection.lobby, method, request, credentials or self._credentials)

    async def _wallet(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.wallet, method, request, self._credentials)

    async def _table(self, table: str, method: Method[Request, Response], request: Request) -> Response:
        place = TableProcess(self._connection, table, self._credentials)
        return await self._connection.call(place, method, request, self._credentials)

    async def _sign_in(self, name: str, password: str) -> lobby_pb2.SignInResponse:
        request = lobby_pb2.SignInRequest(display_name=name, password=password)
        return await self._lobby(lambda peer: peer.lobby.SignIn, request, self._anonymous)

    async def _renew(self, token: str) -> lobby_pb2.SignInResponse:
        """One try: the old token is still good for a while."""
        lobby = self._connection.channels.peer(self._connection.lobby.known).lobby
        try:
            return await lobby.RefreshToken(
                lobby_pb2.RefreshTokenRequest(), timeout=self._connection.timeout, metadata=bearer(token)
            )
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from failure
