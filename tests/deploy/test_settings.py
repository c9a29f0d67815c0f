"""Manifests tell services nothing that they do not know."""

from __future__ import annotations

from pathlib import Path

from tests.deploy.policies import WORKLOADS, containers, of_kind
from tests.deploy.rendering import Tree
from tests.deploy.test_compose import known_settings

from relance.runtime.settings import MigrateSettings

TOOLS = {"audit_url", "migrate_url"}
"""What the tools of the Jobs are told (relance audit, relance logins)."""


def test_every_variable_is_a_setting(tmp_path: Path) -> None:
    known = known_settings() | set(MigrateSettings.model_fields) | TOOLS
    documents = Tree(tmp_path).render("production")
    told = {name for settings in of_kind(documents, "ConfigMap") for name in settings["data"]}
    for workload in of_kind(documents, *WORKLOADS):
        for container in containers(workload):
            told |= {variable["name"] for variable in container.get("env", ())}
    ours = {name.removeprefix("RELANCE_").lower() for name in told if name.startswith("RELANCE_")}
    assert len(ours) > 20
    assert ours <= known
