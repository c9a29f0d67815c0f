"""Who calls: Ed25519 tokens, the key ring that believes them, and the caller of the RPC at hand.

A token is a JWT (EdDSA, header `kid`) with the claims sub, roles, iat, exp, svc for role service, and gen for a player
whose password was changed: how often. It travels as metadata `authorization: Bearer {token}`. The key ring is a JSON
file,

    {"keys": {"lobby-1": {"public": "<base64url of 32 bytes>", "roles": ["player"]}, ...}}

where a key may grant only its own roles. Several keys may be in it at once: a new one is added before it signs, an old
one is removed when its last token has expired. The file is read again when it changes.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import time
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused
from relance.runtime.logging import REQUEST_ID_KEY, request_id

PLAYER, VIEWER, FLOOR, CASHIER, AUDITOR, SERVICE = "player", "viewer", "floor", "cashier", "auditor", "service"
ROLES = frozenset({PLAYER, VIEWER, FLOOR, CASHIER, AUDITOR, SERVICE})

Context = grpc.aio.ServicerContext[Any, Any]

_ALGORITHM = "EdDSA"
_CACHED_TOKENS = 20_000
_CHECK_FILE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whose token was verified."""

    subject: str
    roles: frozenset[str]
    expires_at: int
    """Microseconds since 1970 UTC."""
    service: str = ""
    """Name of the calling service; empty: a person."""
    generation: int = 0
    """Of a player's sessions: with a changed password the next one begins."""

    @property
    def player(self) -> str:
        """Player id. Raises Refused ROLE_REQUIRED for whoever is no player."""
        if PLAYER not in self.roles:
            raise _role_required((PLAYER,))
        return self.subject

    def has(self, *roles: str) -> bool:
        """Whether the caller has one of the roles."""
        return not self.roles.isdisjoint(roles)


@dataclass(frozen=True, slots=True)
class _Key:
    public: Ed25519PublicKey
    roles: frozenset[str]


class KeyRingError(Exception):
    """The key ring's file cannot be read as one."""


class KeyRing:
    """Verifies tokens by the public keys of a file.

    A token is verified once, then remembered until it expires or the file changes (100 us, then 1 us).
    """

    def __init__(self, path: Path) -> None:
        """Read the file. Raises KeyRingError."""
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._checked = 0.0
        self._keys: dict[str, _Key] = {}
        self._verified: dict[str, Identity] = {}
        self._load(self._stat())

    def verify(self, token: str, now_us: int | None = None) -> Identity:
        """The caller that the token names. Raises Refused TOKEN_INVALID or TOKEN_EXPIRED."""
        self._reload()
        now_us = time.time_ns() // 1000 if now_us is None else now_us
        identity = self._verified.get(token)
        if identity is None:
            identity = self._read(token)
            if now_us < identity.expires_at:
                if len(self._verified) >= _CACHED_TOKENS:
                    del self._verified[next(iter(self._verified))]
                self._verified[token] = identity
        if now_us >= identity.expires_at:
            self._verified.pop(token, None)
            raise Refused(
                reason_pb2.REASON_TOKEN_EXPIRED, "The token has expired; sign in again or refresh it in time."
            )
        return identity

    def claims(self, document: str, audience: str, role: str) -> dict[str, object]:
        """What a signed document for one audience says, where a key signed it that may grant `role`; else nothing.

        Its expiry is the caller's to check. Documents with an audience are no tokens: `verify` refuses them.
        """
        self._reload()
        try:
            kid = jwt.get_unverified_header(document).get("kid")
            key = self._keys.get(kid) if isinstance(kid, str) else None
            if key is None or role not in key.roles:
                return {}
            return jwt.decode(
                document, key.public, algorithms=[_ALGORITHM], audience=audience,
                options={"require": ["sub", "exp", "aud"], "verify_exp": False, "verify_iat": False},
            )  # fmt: skip
        except jwt.InvalidTokenError:
            return {}

    def _read(self, token: str) -> Identity:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._keys.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise _invalid("The token was signed by a key that is not in the key ring.")
            # Expiry is checked by the caller, on each use. A clock that is a little ahead does not make a forgery.
            claims = jwt.decode(
                token, key.public, algorithms=[_ALGORITHM],
                options={"require": ["sub", "exp", "iat", "roles"], "verify_exp": False, "verify_iat": False},
            )  # fmt: skip
        except jwt.InvalidTokenError as error:
            raise _invalid("The token is forged or malformed.") from error
        subject, roles, service, expires = claims["sub"], claims["roles"], claims.get("svc", ""), claims["exp"]
        generation = claims.get("gen", 0)
        if (
            not isinstance(subject, str)
            or not isinstance(service, str)
            or not isinstance(expires, int)
            or not isinstance(generation, int)
            or not isinstance(roles, list)
            or not all(isinstance(role, str) for role in roles)
        ):
            raise _invalid("The token's claims are malformed.")
        if not key.roles.issuperset(roles):
            raise _invalid("The token claims a role that its key may not grant.")
        return Identity(subject, frozenset(roles), expires * 1_000_000, service, generation)

    def _reload(self) -> None:
        now = time.monotonic()
        if now - self._checked < _CHECK_FILE_SECONDS:
            return
        self._checked = now
        try:
            stamp = self._stat()
            if stamp != self._stamp:
                self._load(stamp)
        except KeyRingError:
            return  # being replaced, or broken: what was read before holds until it can be read

    def _stat(self) -> tuple[int, int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise KeyRingError(f"key ring {self._path}: {error.strerror}") from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self, stamp: tuple[int, int, int]) -> None:
        try:
            keys = json.loads(self._path.read_text(encoding="utf-8"))["keys"]
            read = {kid: _key(entry["public"], entry["roles"]) for kid, entry in keys.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise KeyRingError(f"key ring {self._path}: not of the form {{'keys': {{kid: …}}}} ({error})") from error
        self._keys, self._stamp = read, stamp
        self._verified.clear()


def _key(public: str, roles: list[str]) -> _Key:
    unknown = set(roles) - ROLES
    if unknown:
        raise ValueError(f"no such role: {', '.join(sorted(unknown))}")
    raw = base64.urlsafe_b64decode(public + "=" * (-len(public) % 4))
    return _Key(Ed25519PublicKey.from_public_bytes(raw), frozenset(roles))


class TokenSigner:
    """Signs tokens with one private key."""

    def __init__(self, private: Ed25519PrivateKey, kid: str) -> None:
        self._private, self._kid = private, kid

    @classmethod
    def from_file(cls, path: Path, kid: str) -> TokenSigner:
        """The signer of a PEM file. Raises KeyRingError."""
        try:
            private = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (OSError, ValueError) as error:
            raise KeyRingError(f"signing key {path}: no PEM file of an Ed25519 key") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyRingError(f"signing key {path}: not an Ed25519 key")
        return cls(private, kid)

    @classmethod
    def generate(cls, kid: str) -> TokenSigner:
        """A signer with a new key."""
        return cls(Ed25519PrivateKey.generate(), kid)

    @property
    def kid(self) -> str:
        """Id of the key."""
        return self._kid

    def pem(self) -> bytes:
        """The private key as PEM, to be kept in a file that only its service can read."""
        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def secret(self, purpose: str) -> bytes:
        """32 secret bytes for one purpose, the same wherever this key is: replicas share them without being told."""
        seed = self._private.private_bytes_raw()
        return hmac.digest(seed, b"relance " + purpose.encode(), "sha256")

    def entry(self, *roles: str) -> dict[str, object]:
        """The key's entry in a key ring that lets it grant `roles`."""
        raw = self._private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"public": base64.urlsafe_b64encode(raw).decode().rstrip("="), "roles": sorted(roles)}

    def sign(
        self,
        subject: str,
        roles: tuple[str, ...],
        *,
        seconds: int,
        now_us: int | None = None,
        service: str = "",
        generation: int = 0,
    ) -> tuple[str, int]:
        """A token and when it expires (microseconds since 1970 UTC, whole seconds)."""
        now = (time.time_ns() // 1000 if now_us is None else now_us) // 1_000_000
        claims: dict[str, object] = {"sub": subject, "roles": list(roles), "iat": now, "exp": now + seconds}
        if service:
            claims["svc"] = service
        if generation:
            claims["gen"] = generation
        return self.encode(claims), (now + seconds) * 1_000_000

    def encode(self, claims: dict[str, object]) -> str:
        """Any claims, signed."""
        return jwt.encode(claims, self._private, algorithm=_ALGORITHM, headers={"kid": self._kid})


class ServiceToken:
    """The token by which one service calls others: role service, renewed before it runs out."""

    _SECONDS = 600

    def __init__(self, signer: TokenSigner, service: str) -> None:
        self._signer, self._service = signer, service
        self._token, self._renew_at = "", 0.0

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata for a call: the token, and the id of the request that it is made for."""
        now = time.monotonic()
        if now >= self._renew_at:
            self._token, _ = self._signer.sign(
                f"services/{self._service}", (SERVICE,), seconds=self._SECONDS, service=self._service
            )
            self._renew_at = now + self._SECONDS / 2
        token = ("authorization", "Bearer " + self._token)
        request = request_id.get()
        return (token, (REQUEST_ID_KEY, request)) if request else (token,)


_caller: ContextVar[Identity | None] = ContextVar("relance_caller", default=None)


def enter(identity: Identity) -> None:
    """The server's: `identity` is the caller of the RPC that this task serves."""
    _caller.set(identity)


def identity(context: Context) -> Identity:
    """The caller of the RPC of `context`. Raises Refused TOKEN_MISSING in methods that need no token."""
    caller = _caller.get()
    if caller is None:
        raise _missing()
    return caller


def require(context: Context, *roles: str) -> Identity:
    """The caller, who has one of the roles. Raises Refused ROLE_REQUIRED."""
    caller = identity(context)
    if not caller.has(*roles):
        raise _role_required(roles)
    return caller


def bearer(authorization: str | bytes | None) -> str:
    """The token in the value of the metadata `authorization`. Raises Refused TOKEN_MISSING or TOKEN_INVALID."""
    if authorization is None:
        raise _missing()
    if isinstance(authorization, str) and authorization[:7].lower() == "bearer ":
        return authorization[7:].strip()
    raise _invalid("The metadata authorization must read: Bearer {token}.")


def _missing() -> Refused:
    return Refused(reason_pb2.REASON_TOKEN_MISSING, "This call needs a token: authorization: Bearer {token}.")


def _invalid(message: str) -> Refused:
    return Refused(reason_pb2.REASON_TOKEN_INVALID, message)


def _role_required(roles: tuple[str, ...]) -> Refused:
    return Refused(reason_pb2.REASON_ROLE_REQUIRED, f"This needs the role {' or '.join(roles)}.", roles=",".join(roles))
