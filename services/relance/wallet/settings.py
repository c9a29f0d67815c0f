"""Settings of the wallet service."""

from __future__ import annotations

from pathlib import Path

from relance.runtime.settings import ServiceSettings


class WalletSettings(ServiceSettings):
    """What the wallet service cannot do without."""

    signing_key: Path
    """PEM file of the service's Ed25519 key, which replicas share: the secret of the page tokens comes from it."""
