"""Invitations to private tables: what the lobby gives a player and the table service believes.

A JWT (EdDSA, header `kid`) with the claims sub (player), table, aud, iat, exp. The audience makes it no token: it
opens no call. It is signed by the key that makes players.
"""

from __future__ import annotations

from relance.runtime.auth import PLAYER, KeyRing, TokenSigner

AUDIENCE = "relance-invitation"


def invite(signer: TokenSigner, player: str, table: str, *, seconds: int, now_us: int) -> tuple[str, int]:
    """An invitation and when it expires (microseconds since 1970 UTC, whole seconds)."""
    now = now_us // 1_000_000
    claims: dict[str, object] = {"sub": player, "table": table, "aud": AUDIENCE, "iat": now, "exp": now + seconds}
    return signer.encode(claims), (now + seconds) * 1_000_000


def is_invited(keyring: KeyRing, invitation: str, player: str, table: str, *, now_us: int) -> bool:
    """Whether an invitation lets this player in at this table now."""
    claims = keyring.claims(invitation, AUDIENCE, PLAYER)
    expires = claims.get("exp")
    return (
        claims.get("sub") == player
        and claims.get("table") == table
        and isinstance(expires, int)
        and now_us < expires * 1_000_000
    )
