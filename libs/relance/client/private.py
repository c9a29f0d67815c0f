"""Private tables: for players who open them, and for operators (role floor)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from relance.api.lobby.v1 import lobby_pb2, private_pb2
from relance.api.table.v1 import table_pb2
from relance.client.connection import Connection, Method, Request, Response
from relance.client.credentials import Credentials
from relance.client.names import player_name, table_name


class PrivateTables:
    """Tables where only some may sit. Methods raise RelanceError."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def open(self, table: table_pb2.OpenTableRequest, password: str = "", *, request_id: str = "") -> str:
        """Open a private table whose host is the player; its resource name. Raises LIMIT_REACHED, NOT_SPREAD …"""
        request = private_pb2.OpenPrivateTableRequest(
            request_id=request_id or uuid.uuid4().hex, table=table, password=password
        )
        return (await self._call(lambda peer: peer.private.OpenPrivateTable, request)).table

    async def set_password(self, table: str | lobby_pb2.Table, password: str) -> None:
        """Set the password, or (empty) remove it. For the host. Raises NOT_YOURS."""
        request = private_pb2.SetTablePasswordRequest(table=table_name(table), password=password)
        await self._call(lambda peer: peer.private.SetTablePassword, request)

    async def invite(self, table: str | lobby_pb2.Table, players: Sequence[str]) -> None:
        """Let players in. For the host. Raises NOT_YOURS."""
        request = private_pb2.InvitePlayersRequest(table=table_name(table), players=map(player_name, players))
        await self._call(lambda peer: peer.private.InvitePlayers, request)

    async def uninvite(self, table: str | lobby_pb2.Table, players: Sequence[str]) -> None:
        """Do not let them in any more. For the host. Raises NOT_YOURS."""
        request = private_pb2.UninvitePlayersRequest(table=table_name(table), players=map(player_name, players))
        await self._call(lambda peer: peer.private.UninvitePlayers, request)

    async def invites(self, table: str | lobby_pb2.Table = "") -> list[private_pb2.Invite]:
        """Who is invited to a table (for its host), or where the player is (no table given)."""
        request = private_pb2.ListInvitesRequest(table=table_name(table) if table else "")
        return list((await self._call(lambda peer: peer.private.ListInvites, request)).invites)

    async def invitation(self, table: str | lobby_pb2.Table, password: str = "") -> str:
        """An invitation for taking a seat, good for some minutes. Raises NOT_INVITED, TABLE_PASSWORD_WRONG."""
        request = private_pb2.GetInvitationRequest(table=table_name(table), password=password)
        return (await self._call(lambda peer: peer.private.GetInvitation, request)).invitation

    async def _call(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.lobby, method, request, self._credentials)
