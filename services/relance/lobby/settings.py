"""Settings of the lobby."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from relance.runtime.settings import ServiceSettings


class LobbySettings(ServiceSettings):
    """What the lobby is told beyond the usual."""

    player_signing_key: Path
    """PEM file of the Ed25519 key that signs players' tokens."""
    player_signing_kid: str = "lobby-1"
    """Id of that key in the key ring."""
    player_token_seconds: int = Field(default=900, ge=10, le=86_400)
    """How long a player's token is good."""
