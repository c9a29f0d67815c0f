"""The RPCs of the lobby. Everything around them (tokens, refusals, deadlines, metrics) is the runtime's."""

from __future__ import annotations

from importlib.metadata import version

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.lobby.accounts import LONGEST_PASSWORD, SHORTEST_PASSWORD, Account, Accounts
from relance.lobby.board import TableBoard
from relance.lobby.catalogue import Catalogue
from relance.lobby.protections import Protections
from relance.lobby.settings import LobbySettings
from relance.lobby.tables import TableProcesses
from relance.lobby.watching import Streams, Watcher
from relance.runtime import database, validation
from relance.runtime.auth import PLAYER, SERVICE, Context, TokenSigner, identity, require
from relance.runtime.clock import Clock
from relance.runtime.errors import Refused
from relance.runtime.pipeline import shielded

SERVER_VERSION = version("relance")

PUBLIC = tuple(f"/relance.api.lobby.v1.LobbyService/{method}" for method in ("Register", "SignIn", "GetRoom"))
"""Methods that need no token."""

_MOST_PLAYERS = 100
_MOST_SEATS = 100
_MOST_PROTECTIONS = 1_000


class LobbyService(lobby_pb2_grpc.LobbyServiceServicer):
    """For clients."""

    def __init__(
        self,
        settings: LobbySettings,
        accounts: Accounts,
        catalogue: Catalogue,
        tables: TableProcesses,
        board: TableBoard,
        streams: Streams,
        signer: TokenSigner,
        clock: Clock,
    ) -> None:
        self._settings, self._clock, self._board, self._streams = settings, clock, board, streams
        self._accounts, self._catalogue, self._tables, self._signer = accounts, catalogue, tables, signer

    async def Register(self, request: lobby_pb2.RegisterRequest, context: Context) -> lobby_pb2.Player:
        """Make an account."""
        request_id = validation.request_id(request.request_id)
        password = _new_password(request.password)
        return _player(await shielded(self._accounts.register(request_id, request.display_name, password)))

    async def SignIn(self, request: lobby_pb2.SignInRequest, context: Context) -> lobby_pb2.SignInResponse:
        """A token for a name and its password."""
        password = validation.text(request.password, "password", longest=LONGEST_PASSWORD)
        account = await shielded(self._accounts.sign_in(request.display_name, password, peer(context)))
        return self._token(account.id, account.generation)

    async def RefreshToken(self, request: lobby_pb2.RefreshTokenRequest, context: Context) -> lobby_pb2.SignInResponse:
        """A new token for a valid one, unless the password was changed meanwhile; without the database nobody asks."""
        caller = identity(context)
        try:
            good = await self._accounts.still_good(caller.player, caller.generation)
        except database.OUTAGE:
            good = True  # for the life of one token at most: the next refresh asks again
        if not good:
            raise Refused(reason_pb2.REASON_TOKEN_EXPIRED, "The password was changed; sign in again.")
        return self._token(caller.player, caller.generation)

    async def ChangePassword(
        self, request: lobby_pb2.ChangePasswordRequest, context: Context
    ) -> lobby_pb2.ChangePasswordResponse:
        """Another password for the caller."""
        old = validation.text(request.old_password, "old_password", longest=LONGEST_PASSWORD)
        new = _new_password(request.new_password, "new_password")
        await shielded(self._accounts.change_password(identity(context).player, old, new, peer(context)))
        return lobby_pb2.ChangePasswordResponse()

    async def ListTables(self, request: lobby_pb2.ListTablesRequest, context: Context) -> lobby_pb2.ListTablesResponse:
        """Tables, filtered and paged."""
        page = await self._catalogue.page(
            filter=request.filter,
            order_by=request.order_by,
            size=validation.page_size(request.page_size, usual=50, most=500),
            token=request.page_token,
        )
        await self._place(page.tables)
        return lobby_pb2.ListTablesResponse(tables=page.tables, next_page_token=page.next_page_token)

    async def WatchTables(self, request: lobby_pb2.WatchTablesRequest, context: Context) -> None:  # type: ignore[override]
        """Tables as they change."""
        watcher: Watcher[lobby_pb2.WatchTablesResponse] = Watcher()
        try:
            await self._streams.serve(
                context, identity(context), self._clock, watcher, lambda: self._board.enter(watcher, request.filter)
            )
        finally:
            self._board.leave(watcher)

    async def GetTable(self, request: lobby_pb2.GetTableRequest, context: Context) -> lobby_pb2.Table:
        """One table."""
        table = await self._catalogue.get(validation.table_id(request.table))
        await self._place([table])
        return table

    async def GetRoom(self, request: lobby_pb2.GetRoomRequest, context: Context) -> lobby_pb2.Room:
        """Where everything is."""
        public = self._settings.public_table_address
        return lobby_pb2.Room(
            wallet_address=self._settings.wallet_address,
            rake_address=self._settings.rake_address,
            table_addresses=[public] if public else self._tables.answering(),
            server_version=SERVER_VERSION,
        )

    async def BatchGetPlayers(
        self, request: lobby_pb2.BatchGetPlayersRequest, context: Context
    ) -> lobby_pb2.BatchGetPlayersResponse:
        """Names of players."""
        if not request.players:
            raise validation.missing("players")
        if len(request.players) > _MOST_PLAYERS:
            raise validation.invalid("players", f"at most {_MOST_PLAYERS}")
        found = await self._accounts.find([validation.player_id(name, "players") for name in request.players])
        return lobby_pb2.BatchGetPlayersResponse(players=[_player(account) for account in found])

    def _token(self, player: str, generation: int) -> lobby_pb2.SignInResponse:
        token, expires = self._signer.sign(
            player, (PLAYER,), seconds=self._settings.player_token_seconds, now_us=self._clock.now_us(),
            generation=generation,
        )  # fmt: skip
        return lobby_pb2.SignInResponse(token=token, expire_time_us=expires, player=f"players/{player}")

    async def _place(self, tables: list[lobby_pb2.Table]) -> None:
        """Say where the open ones live."""
        ids = [table.name.removeprefix("tables/") for table in tables if not table.closed]
        where = await self._tables.locate(ids)
        for table in tables:
            address = where.get(table.name.removeprefix("tables/"), "")
            table.address = address and (self._settings.public_table_address or address)


class ProtectionService(lobby_pb2_grpc.ProtectionServiceServicer):
    """For table services."""

    def __init__(self, protections: Protections) -> None:
        self._protections = protections

    async def UseProtection(
        self, request: lobby_pb2.UseProtectionRequest, context: Context
    ) -> lobby_pb2.UseProtectionResponse:
        """Use a protection, if one is left (C2)."""
        require(context, SERVICE)
        answer = await shielded(
            self._protections.use(
                validation.table_id(request.table),
                validation.whole(request.hand, "hand", least=1, most=2**62),
                validation.whole(request.seat, "seat", least=1, most=_MOST_SEATS),
                validation.player_id(request.player),
                validation.whole(request.limit, "limit", least=0, most=_MOST_PROTECTIONS),
            )
        )
        return lobby_pb2.UseProtectionResponse(granted=answer.granted, left=answer.left)


def _player(account: Account) -> lobby_pb2.Player:
    return lobby_pb2.Player(
        name=f"players/{account.id}", display_name=account.display_name, create_time_us=account.created_at
    )


def _new_password(password: str, field: str = "password") -> str:
    validation.text(password, field, longest=LONGEST_PASSWORD)
    if len(password) < SHORTEST_PASSWORD:
        raise validation.invalid(field, f"{SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    return password


def peer(context: Context) -> str:
    """The caller's address without its port: ipv4:127.0.0.1:5000 -> ipv4:127.0.0.1."""
    return context.peer().rpartition(":")[0]
