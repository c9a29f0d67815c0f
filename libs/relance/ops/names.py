"""Names of players. The log holds ids alone; the lobby knows the names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import asyncpg

from relance.ops.source import Connection

_NAMES = "SELECT id, display_name FROM lobby.player WHERE id = ANY($1::text[])"
_BY_NAME = "SELECT id FROM lobby.player WHERE id = $1 OR display_name = $1 ORDER BY id = $1 DESC LIMIT 1"
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Names:
    """Names by player id; who has none is called by the id."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.known: dict[str, str] = dict(known or {})

    def __getitem__(self, player: str) -> str:
        return self.known.get(player) or player

    async def look_up(self, connection: Connection | None, players: Iterable[str]) -> None:
        """Ask the lobby's table for those that are not known yet. A database without a lobby has no names."""
        wanted = sorted(set(players) - self.known.keys())
        if connection is None or not wanted:
            return
        self.known.update(dict.fromkeys(wanted, ""))
        try:
            self.known.update({row["id"]: row["display_name"] for row in await connection.fetch(_NAMES, wanted)})
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InsufficientPrivilegeError):
            return


async def player_id(connection: Connection | None, player: str) -> str:
    """The id of a player given by id (players/… too) or by name; as given where the lobby does not know either."""
    plain = player.removeprefix("players/")
    if connection is None:
        return plain
    try:
        found = await connection.fetchval(_BY_NAME, plain)
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InsufficientPrivilegeError):
        return plain
    return str(found) if found else plain


def printable(text: str) -> str:
    """Text for a terminal: what would move the cursor or turn the direction of writing is shown as an escape."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
