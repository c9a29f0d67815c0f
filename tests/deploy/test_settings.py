"""Manifests tell services what they need, and nothing that they do not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.deploy.policies import SERVICES, WORKLOADS, containers, of_kind, template
from tests.deploy.rendering import Document, Tree
from tests.deploy.test_compose import KINDS, known_settings
from tests.runtime.certificates import Authority

from relance.room.credentials import Servers, make
from relance.runtime.settings import MigrateSettings, ServiceSettings, SettingsError, load

TOOLS = {"audit_url", "migrate_url"}
"""What the tools of the Jobs are told (relance audit, relance logins)."""
DATABASE = "postgresql://relance:s@db.postgres:5432/relance"
VERIFIED = "?sslmode=verify-full&sslrootcert=/etc/relance/authorities/postgres.crt"


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    return Tree(tmp_path_factory.mktemp("settings")).render("production")


def test_every_variable_is_a_setting(production: list[Document]) -> None:
    known = known_settings() | set(MigrateSettings.model_fields) | TOOLS
    told = {name for settings in of_kind(production, "ConfigMap") for name in settings["data"]}
    for workload in of_kind(production, *WORKLOADS):
        for container in containers(workload):
            told |= {variable["name"] for variable in container.get("env", ())}
    ours = {name.removeprefix("RELANCE_").lower() for name in told if name.startswith("RELANCE_")}
    assert len(ours) > 20
    assert ours <= known


def environment(production: list[Document], service: str, folder: Path, database_url: str) -> dict[str, str]:
    """The environment of a service's container on a cluster whose Secrets and mounts are in `folder`."""
    make(folder, Servers(database_url, "nats://nats.nats:4222"))
    workload = next(d for d in of_kind(production, "Deployment") if d["metadata"]["name"] == f"relance-{service}")
    container = template(workload)["spec"]["containers"][0]
    source = container["envFrom"][0]["configMapRef"]["name"]
    made = dict(next(d["data"] for d in of_kind(production, "ConfigMap") if d["metadata"]["name"] == source))
    for variable in container["env"]:
        if "value" in variable:
            made[variable["name"]] = variable["value"].replace("$(POD_IP)", "10.1.2.3")
        elif "secretKeyRef" in variable["valueFrom"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            made[variable["name"]] = (
                folder / reference["name"].removeprefix("relance-") / reference["key"]
            ).read_text()
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    places = {
        "keyring": folder / "keyring", "keys": folder / service, "tls": folder / "tls", "authorities": folder / "tls",
    }  # fmt: skip
    for name, value in made.items():
        for path, volume in mounts.items():
            if volume in places:
                made[name] = made[name].replace(path, str(places[volume]))
        assert "/etc/relance" not in made[name], f"{name}={value}: nothing is mounted there"
    return made


@pytest.mark.parametrize("service", SERVICES)
def test_production_is_mtls_throughout(
    production: list[Document], service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority("room")
    authority.issue(tmp_path / "tls", service)
    for name in ("ca.crt", "nats.crt", "postgres.crt"):
        authority.write(tmp_path / "tls" / name)
    kind: type[ServiceSettings] = KINDS["table-1" if service == "table" else service]
    for name, value in environment(production, service, tmp_path, DATABASE + VERIFIED).items():
        monkeypatch.setenv(name, value)
    settings = load(kind)
    assert settings.asks_clients
    assert settings.keyring.is_file()
    assert settings.advertise == "10.1.2.3:7000"
    monkeypatch.setenv("RELANCE_DATABASE_URL", DATABASE)
    with pytest.raises(SettingsError, match=r"RELANCE_DATABASE_URL: db\.postgres would be asked without TLS"):
        load(kind)
