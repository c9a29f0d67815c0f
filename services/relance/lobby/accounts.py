"""Player accounts (lobby.player): made once, found by name or id."""

from __future__ import annotations

import asyncio
import secrets
import weakref
from dataclasses import dataclass

from relance.api.common.v1 import reason_pb2
from relance.lobby.passwords import Passwords
from relance.lobby.throttle import Throttle
from relance.poker.names import check_name, key_of_name
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused

SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 128

_COLUMNS = "id, display_name, password, request_id, created_at, generation"
_INSERT = f"""
INSERT INTO lobby.player (id, display_name, folded_name, password, request_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
"""
_BY_REQUEST = f"SELECT {_COLUMNS} FROM lobby.player WHERE request_id = $1"
_BY_NAME = f"SELECT {_COLUMNS} FROM lobby.player WHERE folded_name = $1"
_BY_ID = f"SELECT {_COLUMNS} FROM lobby.player WHERE id = $1"
_CHANGE = "UPDATE lobby.player SET password = $3, generation = generation + 1 WHERE id = $1 AND password = $2"
_GENERATION = "SELECT generation FROM lobby.player WHERE id = $1"
_BY_IDS = f"SELECT {_COLUMNS} FROM lobby.player WHERE id = ANY($1)"


@dataclass(frozen=True, slots=True)
class Account:
    """A player's account."""

    id: str
    display_name: str
    created_at: int
    """Microseconds since 1970 UTC."""
    generation: int
    """Of the sessions that are good: how often the password was changed."""


@dataclass(frozen=True, slots=True)
class _Stored:
    id: str
    display_name: str
    password: str
    request_id: str
    created_at: int
    generation: int

    def account(self) -> Account:
        return Account(self.id, self.display_name, self.created_at, self.generation)


class Accounts:
    """The accounts of the room."""

    def __init__(self, pool: Pool, passwords: Passwords, throttle: Throttle, clock: Clock) -> None:
        self._pool, self._passwords, self._throttle, self._clock = pool, passwords, throttle, clock
        self._making: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def register(self, request_id: str, display_name: str, password: str) -> Account:
        """Make an account, once a request_id.

        Raises Rejected for a name that is none (N1); Refused NAME_TAKEN, REQUEST_ID_REUSED where the id made an
        account of another name or password.
        """
        name = check_name(display_name)
        lock = self._making.setdefault(request_id, asyncio.Lock())
        async with lock:  # repeats that come together hash once; between replicas the database decides
            before = await self._one(_BY_REQUEST, request_id)
            if before is None:
                before = await self._insert(request_id, name, password)
                if before is not None and before.request_id == request_id and before.display_name == name:
                    return before.account()
            if before is None or before.request_id != request_id:
                raise Refused(reason_pb2.REASON_NAME_TAKEN, "The name is taken; choose another one.")
            if before.display_name != name or not await self._passwords.verify(before.password, password):
                raise Refused(
                    reason_pb2.REASON_REQUEST_ID_REUSED,
                    "The request_id was used for another account; choose a new one.",
                    request_id=request_id,
                )
            return before.account()

    async def _insert(self, request_id: str, name: str, password: str) -> _Stored | None:
        """The account that was made, or the one that was faster."""
        made = await self._one(
            _INSERT, secrets.token_hex(10), name, key_of_name(name), await self._passwords.hash(password), request_id,
            self._clock.now_us(),
        )  # fmt: skip
        return made or await self._one(_BY_REQUEST, request_id) or await self._one(_BY_NAME, key_of_name(name))

    async def sign_in(self, display_name: str, password: str, peer: str) -> Account:
        """The account of a name and its password; `peer`: where the try comes from.

        Raises Refused SIGN_IN_REFUSED, the same after the same time whether the name or the password is wrong;
        TOO_MANY_REQUESTS.
        """
        folded = key_of_name(check_name(display_name))
        async with self._passwords.turn():  # tries of a whole crowd at once are no guesses
            charged = await self._throttle.charge(folded, peer)
            found = await self._one(_BY_NAME, folded)
            right = await self._passwords.verify(None if found is None else found.password, password)
            if found is not None and right:
                await self._throttle.give_back(charged)
        if found is None or not right:
            raise Refused(reason_pb2.REASON_SIGN_IN_REFUSED, "Name or password is wrong.")
        return found.account()

    async def still_good(self, player: str, generation: int) -> bool:
        """Whether sessions of a generation of the player's may go on. Raises what database.OUTAGE names."""
        return await self._pool.fetchval(_GENERATION, player) in {None, generation}

    async def change_password(self, player: str, old: str, new: str, peer: str) -> None:
        """Another password, for who knows the one until now; sessions begun with that one end.

        Raises Refused SIGN_IN_REFUSED, TOO_MANY_REQUESTS.
        """
        found = await self._one(_BY_ID, player)
        async with self._passwords.turn():
            charged = await self._throttle.charge(key_of_name(found.display_name) if found else player, peer)
            right = await self._passwords.verify(None if found is None else found.password, old)
        hashed = await self._passwords.hash(new)
        # Changed twice at once: the second one's old password is not the old one any more.
        if (
            found is None
            or not right
            or await self._pool.execute(_CHANGE, player, found.password, hashed) == "UPDATE 0"
        ):
            raise Refused(reason_pb2.REASON_SIGN_IN_REFUSED, "The password until now is wrong.")
        await self._throttle.give_back(charged)

    async def find(self, ids: list[str]) -> list[Account]:
        """The accounts that exist, in the order of `ids`."""
        rows = await self._pool.fetch(_BY_IDS, ids)
        found = {row["id"]: _Stored(*row).account() for row in rows}
        return [found[player] for player in ids if player in found]

    async def _one(self, query: str, *arguments: object) -> _Stored | None:
        row = await self._pool.fetchrow(query, *arguments)
        return None if row is None else _Stored(*row)
