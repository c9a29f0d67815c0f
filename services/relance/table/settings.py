"""Settings of the table service."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from relance.runtime.settings import ServiceSettings


class TableSettings(ServiceSettings):
    """What a table process is told beside what every service is."""

    signing_key: Path
    """PEM file of the Ed25519 key that signs the service's own calls to wallet, rake and lobby."""
    lease: float = Field(default=5.0, gt=0, le=600)
    """Seconds of silence after which another process's tables may be taken over."""
    routing: Literal["forward", "redirect"] = "redirect"
    """What becomes of a call for a table that another process runs: it is passed on, or refused with the address."""
