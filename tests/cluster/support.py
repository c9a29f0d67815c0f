"""What pods of tests are put into."""

from __future__ import annotations

from pathlib import Path

from relance.cluster.manifests import Manifests
from relance.cluster.pod import Image, Surroundings
from relance.cluster.rewrites import Ledger

NOWHERE = "127.0.0.9"


async def _nothing(_address: str) -> None: ...


def around(folder: Path, manifests: Manifests) -> Surroundings:
    """Surroundings without Services and wires, in which the image relance is known."""
    return Surroundings(
        folder=folder, manifests=manifests, hosts={}, links={}, ledger=Ledger(), say=lambda _sentence: None,
        images={"relance": Image()}, join=_nothing, leave=_nothing,
    )  # fmt: skip
