"""Settings of the wallet service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from relance.runtime.settings import ServiceSettings


class WalletSettings(ServiceSettings):
    """What the wallet service cannot do without. Where table processes are is needed for refills alone."""

    signing_key: Path
    """PEM file of the service's Ed25519 key, which replicas share: it signs the tokens by which it reads tables, and
    the secret of the page tokens comes from it."""
    refill_delay: float = Field(default=0.0, ge=0, le=7200)
    """Seconds from the request of a refill to its grant (V3)."""
    limit_cooling_off: float = Field(default=86_400.0, ge=0, le=30 * 86_400)
    """Seconds that a higher deposit limit waits before it holds."""
