"""Settings of the rake service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from relance.runtime.settings import Address, Addresses, ServiceSettings


class RakeSettings(ServiceSettings):
    """What the rake service cannot do without."""

    signing_key: Path
    """PEM file of the service's Ed25519 key. Signs the tokens by which it calls tables and wallet."""
    wallet_address: Address
    """Where the wallet is."""
    table_addresses: Addresses = Field(min_length=1)
    """Table processes, comma-separated: one that answers is enough."""
