"""Private tables: hosts, passwords and invites (lobby.private_table, lobby.invite), invitations that tables believe."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from relance.api.common.v1 import reason_pb2
from relance.api.lobby.v1 import private_pb2
from relance.api.table.v1 import table_pb2
from relance.lobby.commands import TableCommands
from relance.lobby.passwords import Passwords
from relance.lobby.throttle import Throttle
from relance.runtime.auth import TokenSigner
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused
from relance.runtime.invitations import invite

MOST_TABLES = 5
"""Private tables that one player may have open."""
_MOST_LISTED = 500
_SECONDS = 300
"""How long an invitation is good."""

_OTHERS = """
SELECT count(*) FROM lobby.private_table p LEFT JOIN lobby.game_table t ON t.id = p.id
WHERE p.host = $1 AND p.request <> $2 AND NOT coalesce(t.closed, false)
"""
_RESTS = """
SELECT EXISTS (SELECT FROM lobby.house WHERE id = $1 AND maintenance)
    AND NOT EXISTS (SELECT FROM lobby.private_table WHERE host = $2 AND request = $3)
"""
_REMEMBER = """
INSERT INTO lobby.private_table (id, host, request, password, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
"""
_FIND = """
SELECT t.private, t.closed, p.host, p.password FROM lobby.game_table t LEFT JOIN lobby.private_table p ON p.id = t.id
WHERE t.id = $1 AND t.version > 0
UNION ALL
SELECT true, false, host, password FROM lobby.private_table
WHERE id = $1 AND NOT EXISTS (SELECT FROM lobby.game_table WHERE id = $1 AND version > 0)
"""
_SET_PASSWORD = """
INSERT INTO lobby.private_table (id, host, request, password, created_at) VALUES ($1, NULL, '', $2, $3)
ON CONFLICT (id) DO UPDATE SET password = excluded.password
"""
_INVITE = """
INSERT INTO lobby.invite ("table", player, invited_by, created_at)
SELECT $1, player, $3, $4 FROM unnest($2::text[]) player ON CONFLICT DO NOTHING
"""
_UNINVITE = 'DELETE FROM lobby.invite WHERE "table" = $1 AND player = ANY ($2)'
_INVITED = 'SELECT EXISTS (SELECT FROM lobby.invite WHERE "table" = $1 AND player = $2)'
_HOST = "SELECT host FROM lobby.private_table WHERE id = $1"
_LIST = f"""
SELECT i."table", i.player, i.invited_by, i.created_at
FROM lobby.invite i LEFT JOIN lobby.game_table t ON t.id = i."table"
WHERE {{}} AND NOT coalesce(t.closed, false) ORDER BY i.created_at DESC, i.player LIMIT {_MOST_LISTED}
"""


@dataclass(frozen=True, slots=True)
class _Found:
    host: str
    password: str | None


class PrivateTables:
    """Who may sit where not everybody may."""

    def __init__(
        self, pool: Pool, passwords: Passwords, throttle: Throttle, commands: TableCommands, signer: TokenSigner,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._pool, self._passwords, self._throttle = pool, passwords, throttle
        self._commands, self._signer, self._clock = commands, signer, clock

    async def open(
        self, player: str, request_id: str, wanted: table_pb2.OpenTableRequest, password: str
    ) -> table_pb2.OpenTableResponse:
        """Open a private table for a player, once a request_id.

        Raises Refused MAINTENANCE, LIMIT_REACHED; what OpenTable raises.
        """
        request = table_pb2.OpenTableRequest()
        request.CopyFrom(wanted)
        request.request_id = hashlib.sha256(f"{player}\n{request_id}".encode()).hexdigest()[:40]
        request.private = True
        request.ClearField("choices")
        if await self._pool.fetchval(_RESTS, wanted.house, player, request.request_id):
            text = f"The house {wanted.house} is in maintenance: it opens no tables now."
            raise Refused(reason_pb2.REASON_MAINTENANCE, text, house=f"houses/{wanted.house}")
        hashed = await self._passwords.hash(password) if password else None
        if await self._pool.fetchval(_OTHERS, player, request.request_id) >= MOST_TABLES:
            raise Refused(
                reason_pb2.REASON_LIMIT_REACHED, f"You have {MOST_TABLES} private tables open.", limit=MOST_TABLES
            )
        # Its id is known once it is open: until it is remembered here it is nobody's and takes nobody.
        opened = await self._commands.open(request)
        table = opened.table.removeprefix("tables/")
        await self._pool.execute(_REMEMBER, table, player, request.request_id, hashed, self._clock.now_us())
        return opened

    async def set_password(self, table: str, caller: str, password: str, *, floor: bool) -> None:
        """Set the password, or (empty) remove it. Raises Refused TABLE_NOT_FOUND, NOT_INVITED, NOT_YOURS."""
        await self._mine(table, caller, floor=floor)
        hashed = await self._passwords.hash(password) if password else None
        await self._pool.execute(_SET_PASSWORD, table, hashed, self._clock.now_us())

    async def invite(self, table: str, caller: str, players: Sequence[str], *, floor: bool) -> None:
        """Let players in. Raises as `set_password`."""
        await self._mine(table, caller, floor=floor)
        await self._pool.execute(_INVITE, table, players, caller, self._clock.now_us())

    async def uninvite(self, table: str, caller: str, players: Sequence[str], *, floor: bool) -> None:
        """Do not let them in any more. Raises as `set_password`."""
        await self._mine(table, caller, floor=floor)
        await self._pool.execute(_UNINVITE, table, players)

    async def invites_of(self, table: str, caller: str, *, floor: bool) -> list[private_pb2.Invite]:
        """Who is invited. Raises as `set_password`."""
        await self._mine(table, caller, floor=floor)
        return [_invite(*row) for row in await self._pool.fetch(_LIST.format('i."table" = $1'), table)]

    async def invites_for(self, player: str) -> list[private_pb2.Invite]:
        """Where a player is invited."""
        return [_invite(*row) for row in await self._pool.fetch(_LIST.format("i.player = $1"), player)]

    async def admits(self, table: str, player: str) -> bool:
        """Whether a player may sit down without a password: invited, or the host."""
        host = await self._pool.fetchval(_HOST, table)
        return host == player or bool(await self._pool.fetchval(_INVITED, table, player))

    async def invitation(self, table: str, player: str, password: str, peer: str) -> tuple[str, int]:
        """An invitation for TakeSeat, and when it runs out (microseconds since 1970 UTC).

        Raises Refused TABLE_NOT_FOUND, NOT_INVITED (give the password), TABLE_PASSWORD_WRONG, TOO_MANY_REQUESTS.
        """
        found = await self._find(table)
        if not await self.admits(table, player):
            if not password:
                raise Refused(reason_pb2.REASON_NOT_INVITED, "You are not invited; the table's password would do.")
            charged = await self._throttle.charge(f"tables/{table} {player}", peer)
            if not await self._passwords.verify(found.password, password):
                raise Refused(reason_pb2.REASON_TABLE_PASSWORD_WRONG, "That is not the table's password.")
            await self._throttle.give_back(charged)
        return invite(self._signer, player, table, seconds=_SECONDS, now_us=self._clock.now_us())

    async def _mine(self, table: str, caller: str, *, floor: bool) -> None:
        found = await self._find(table)
        if not floor and found.host != caller:
            raise Refused(reason_pb2.REASON_NOT_YOURS, "Another player, or an operator, is the host of this table.")

    async def _find(self, table: str) -> _Found:
        row = await self._pool.fetchrow(_FIND, table)
        if row is None or row["closed"]:
            raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=f"tables/{table}")
        if not row["private"]:
            raise Refused(reason_pb2.REASON_FIELD_INVALID, "The table is public.", field="table", allowed="private")
        return _Found(row["host"] or "", row["password"])


def _invite(table: str, player: str, invited_by: str, created_at: int) -> private_pb2.Invite:
    return private_pb2.Invite(
        table=f"tables/{table}", player=f"players/{player}", invited_by=invited_by, create_time_us=created_at
    )
