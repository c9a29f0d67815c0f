"""The room for a laptop: a compose file by its schema, whose services are told all that they need."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import SecretStr
from tests.deploy.rendering import DEPLOY

from relance.lobby.settings import LobbySettings
from relance.rake.settings import RakeSettings
from relance.room.credentials import Servers, make
from relance.runtime.settings import ServiceSettings
from relance.table.settings import TableSettings
from relance.wallet.settings import WalletSettings

KINDS: dict[str, type[ServiceSettings]] = {
    "lobby": LobbySettings, "table-1": TableSettings, "table-2": TableSettings,
    "wallet": WalletSettings, "rake": RakeSettings,
}  # fmt: skip


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


def test_it_is_a_compose_file(compose: dict[str, Any]) -> None:
    vendored = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json")
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)
    validator(schema).validate(compose)
    broken = {**compose, "services": {"postgres": {"images": "postgres"}}}
    with pytest.raises(jsonschema.ValidationError):
        validator(schema).validate(broken)


def test_images_are_pinned_and_nothing_listens_beyond_the_machine(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.search(r":\d+\.\d+", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert "PASSWORD" not in " ".join(service.get("environment", ())), name


def test_what_it_waits_for_is_there_and_says_when_it_is_ready(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services, f"{name} waits for {needed}"
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], f"{needed} never says that it is ready"


@pytest.mark.parametrize("name", KINDS)
def test_a_service_is_told_what_it_needs(compose: dict[str, Any], name: str, tmp_path: Path) -> None:
    make(tmp_path, Servers("postgresql://relance@postgres:5432/relance", "nats://nats:4222"))
    service = compose["services"][name]
    shell, options, script = service["command"]
    script = script.replace("$$", "$").replace("/etc/relance", str(tmp_path))
    script = re.sub(r"exec python .*", "exec env --null", script)
    given = {key: str(value) for key, value in service["environment"].items()}
    run = subprocess.run(
        [shell, options, script], env={"PATH": os.environ["PATH"], **given}, capture_output=True, text=True, check=True
    )
    told = dict(line.split("=", 1) for line in run.stdout.split("\0") if line.startswith("RELANCE_"))
    kind = KINDS[name]
    unknown = {variable.removeprefix("RELANCE_").lower() for variable in told} - known_settings()
    assert unknown == set()
    fields = {key.removeprefix("RELANCE_").lower(): value for key, value in told.items()}
    settings = kind(**{key: value for key, value in fields.items() if key in kind.model_fields})  # type: ignore[arg-type]
    assert isinstance(settings.database_url, SecretStr)
    assert f"relance_{service['environment']['SERVICE']}:" in settings.database_url.get_secret_value()
    assert settings.signing_key is not None
    assert settings.signing_key.is_file()


def known_settings() -> set[str]:
    """Names of all settings of all services."""
    return {field for kind in KINDS.values() for field in kind.model_fields}
