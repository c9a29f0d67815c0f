"""Settings of the lobby."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from relance.runtime.settings import OptionalAddress, ServiceSettings


class LobbySettings(ServiceSettings):
    """What the lobby is told beyond the usual."""

    public_table_address: OptionalAddress = ""
    """One address for all tables, told to clients: of what stands before table processes that forward (a Service, a
    gateway). Empty: clients are told the processes themselves."""
    player_signing_key: Path
    """PEM file of the Ed25519 key that signs players' tokens."""
    player_signing_kid: str = "lobby-1"
    """Id of that key in the key ring."""
    player_token_seconds: int = Field(default=900, ge=10, le=86_400)
    """How long a player's token is good."""
    tick_seconds: float = Field(default=0.5, ge=0.01, le=10)
    """How often it looks for seats to offer, offers that ran out, and what is new for those who watch."""
    offer_seconds: float = Field(default=30.0, gt=0, le=600)
    """How long an offered seat waits for an answer."""
    buy_in_seconds: float = Field(default=60.0, gt=0, le=600)
    """How long an accepted seat is held for the buy-in."""
    empty_seconds: float = Field(default=120.0, ge=0, le=86_400)
    """How long a template's surplus table stays open with nobody at it."""
