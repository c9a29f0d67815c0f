"""The operations page: its commands, options, settings, files, alerts and metrics exist."""

from __future__ import annotations

import re

import click
import pytest
import yaml
from tests.deploy.rendering import DEPLOY, REPOSITORY, Tree
from tests.deploy.test_compose import known_settings

from relance.api.events.v1 import events_pb2
from relance.cli.main import cli
from relance.runtime.settings import MigrateSettings

PAGE = (DEPLOY / "README.md").read_text()
FLAT = " ".join(PAGE.split())


def test_every_file_that_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#][^)#]*)", PAGE)
    assert len(links) > 10
    assert [link for link in links if not (DEPLOY / link).exists()] == []
    headings = {re.sub(r"[^a-z -]", "", line.lower()).strip().replace(" ", "-") for line in PAGE.split("\n#")}
    for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE):
        assert any(heading.startswith(anchor) for heading in headings), anchor


def test_every_command_and_option_that_it_names_exists() -> None:
    named = re.findall(r"(?<!-n )(?<!namespace )\brelance ([a-z-]+)((?: [^`|\n]*)?)", FLAT)
    assert len(named) > 15
    for name, rest in named:
        assert name in cli.commands, name
        command = cli.commands[name]
        # What follows the first end of a sentence or of a code span is no part of it.
        options = re.findall(r"(?<= )--[a-z-]+", re.split(r"[`;)]|\. | kubectl ", rest)[0])
        known = {option for parameter in command.params for option in parameter.opts}
        if isinstance(command, click.Group):
            continue
        assert set(options) <= known, f"relance {name}{rest[:60]}"


def test_every_setting_is_told() -> None:
    table = PAGE[PAGE.index("| `RELANCE_…`") : PAGE.index("**Secrets.**")]
    told = {name.lower() for name in re.findall(r"`([A-Z_]+)`", table) if not name.startswith("OTEL")}
    assert told == known_settings() | (set(MigrateSettings.model_fields) & {"migrate_url"})


def test_alerts_of_the_runbook_are_rules_and_rules_that_need_it_are_in_the_runbook() -> None:
    rules = yaml.safe_load((DEPLOY / "k8s" / "components" / "monitoring" / "rules.yaml").read_text())
    alerts = {rule["alert"] for group in rules["spec"]["groups"] for rule in group["rules"]}
    named = set(re.findall(r"\bRelance[A-Z]\w+", PAGE))
    assert len(named) > 5
    assert named <= alerts
    entries = {text.lower() for text in re.findall(r"^\*\*([^*]+?)\.?\*\*", PAGE, re.MULTILINE)}
    for rule in [rule for group in rules["spec"]["groups"] for rule in group["rules"]]:
        for entry in re.findall(r"[Rr]unbook, ([a-z A-Z]+)\.", rule["annotations"]["description"]):
            assert entry.lower() in entries, f"{rule['alert']}: {entry}"


@pytest.mark.parametrize("kind", ["transfer_refused"])
def test_types_of_events_that_it_names_exist(kind: str) -> None:
    assert kind in PAGE
    assert kind in events_pb2.TableEvent.DESCRIPTOR.fields_by_name


def test_secrets_of_production_are_made_as_it_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = Tree(tmp_path_factory.mktemp("page")).path / "overlays" / "dev" / "secrets"
    loop = re.search(r"for name in ([a-z ]+); do kubectl -n relance create secret", FLAT)
    assert loop is not None
    for name in loop[1].split():
        assert any((made / name).iterdir()), name
    assert (made / "keyring" / "keyring.json").is_file()


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", PAGE)) <= targets
