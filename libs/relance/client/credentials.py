"""Who is calling: tokens for the metadata of calls, renewed before they run out."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from relance.api.lobby.v1 import lobby_pb2
from relance.client.errors import SignInRequired, Unavailable
from relance.client.names import plain_id

Metadata = tuple[tuple[str, str], ...]
Renew = Callable[[str], Awaitable[lobby_pb2.SignInResponse]]
SignIn = Callable[[str, str], Awaitable[lobby_pb2.SignInResponse]]

# A token is renewed when this part of its life has gone.
_RENEW_AFTER = 0.7
_RETRY_SECONDS = 5.0


class Credentials(Protocol):
    """Where a call's token comes from, and whose it is."""

    @property
    def player(self) -> str:
        """Player id; empty: nobody's or not a player's."""

    async def token(self) -> str:
        """A token that is valid now; empty: none. Raises SignInRequired."""

    def expired(self) -> bool:
        """The server called the token expired: say whether `token` will get another one."""

    def renew_in(self) -> float | None:
        """Seconds until a stream should be given a new token; None: never."""


class Anonymous:
    """Calls without a token."""

    player = ""

    async def token(self) -> str:
        return ""

    def expired(self) -> bool:
        return False

    def renew_in(self) -> float | None:
        return None


class GivenToken:
    """A token that somebody else looks after: a string, or a function that answers the current one."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._source = token

    @property
    def player(self) -> str:
        claims = _claims(self._now())
        return plain_id(str(claims.get("sub", ""))) if "player" in claims.get("roles", ()) else ""

    async def token(self) -> str:
        return self._now()

    def expired(self) -> bool:
        return False

    def renew_in(self) -> float | None:
        return None

    def _now(self) -> str:
        return self._source if isinstance(self._source, str) else self._source()


class PlayerCredentials:
    """A signed-in player. Keeps name and password in memory to sign in again after a long time without the room."""

    def __init__(self, sign_in: SignIn, renew: Renew) -> None:
        self.player = ""
        self._sign_in = sign_in
        self._renew = renew
        self._name = ""
        self._password = ""
        self._token = ""
        self._renew_at = 0.0
        self._expires_at = 0.0
        self._lock = asyncio.Lock()

    async def sign_in(self, name: str, password: str) -> str:
        """Sign in; the player's id. Raises RelanceError SIGN_IN_REFUSED."""
        self._keep(await self._sign_in(name, password))
        self._name, self._password = name, password
        return self.player

    def changed(self, password: str) -> None:
        """The password is another one from now on."""
        self._password = password

    async def token(self) -> str:
        if not self._token:
            raise SignInRequired("TOKEN_MISSING", "sign in first: await room.sign_in(name, password)")
        if time.monotonic() >= self._renew_at:
            async with self._lock:
                if time.monotonic() >= self._renew_at:
                    await self._get_another()
        return self._token

    def expired(self) -> bool:
        self._renew_at = self._expires_at = 0.0
        return bool(self._token)

    def renew_in(self) -> float | None:
        return max(self._renew_at - time.monotonic(), 0.0)

    async def _get_another(self) -> None:
        """Renew while the old token is valid, sign in again afterwards. A lobby that is away matters only then."""
        if time.monotonic() >= self._expires_at:
            self._keep(await self._sign_in(self._name, self._password))
            return
        try:
            self._keep(await self._renew(self._token))
        except SignInRequired:
            self._keep(await self._sign_in(self._name, self._password))
        except Unavailable:
            self._renew_at = time.monotonic() + _RETRY_SECONDS

    def _keep(self, answer: lobby_pb2.SignInResponse) -> None:
        life = _lifetime(answer)
        self._token = answer.token
        self.player = plain_id(answer.player)
        self._renew_at = time.monotonic() + life * _RENEW_AFTER
        self._expires_at = time.monotonic() + life


def bearer(token: str) -> Metadata:
    """Metadata of a call with this token."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def _lifetime(answer: lobby_pb2.SignInResponse) -> float:
    """Seconds that a fresh token lives, from its own claims: the clocks of client and server need not agree."""
    claims = _claims(answer.token)
    try:
        return float(claims["exp"]) - float(claims["iat"])
    except (KeyError, TypeError, ValueError):
        return max(answer.expire_time_us / 1e6 - time.time(), 0.0)


def _claims(token: str) -> dict[str, Any]:
    """What a token says, unproven; empty for what is no token."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}
