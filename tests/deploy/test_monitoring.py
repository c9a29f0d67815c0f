"""Alert rules and the dashboard ask for metrics and labels that the code has."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

import pytest
import yaml
from tests.deploy.rendering import DEPLOY, REPOSITORY

MONITORING = DEPLOY / "k8s" / "components" / "monitoring"
SUFFIXES = {
    "Counter": ("_total",), "Gauge": ("",), "Histogram": ("_bucket", "_count", "_sum"),
    "CounterMetricFamily": ("_total",), "GaugeMetricFamily": ("",),
}  # fmt: skip
GIVEN = {"pod", "le"}
"""Labels that Prometheus gives by itself."""


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Labels by metric, as the services export them: read from the code."""
    found: dict[str, set[str]] = {}
    for root in ("libs", "services"):
        for file in (REPOSITORY / root).rglob("*.py"):
            text = file.read_text()
            if "prometheus_client" in text:
                found |= dict(_metrics(ast.parse(text)))
    return found


def _metrics(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in SUFFIXES:
            continue
        if not call.args or not isinstance(call.args[0], ast.Constant):
            continue
        labels = [ast.literal_eval(value) for value in call.args[2:3] if isinstance(value, ast.List | ast.Tuple)]
        for suffix in SUFFIXES[call.func.id]:
            yield str(call.args[0].value).removesuffix("_total") + suffix, {label for row in labels for label in row}


def _rules() -> list[tuple[str, str]]:
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    return [(rule["alert"], rule["expr"]) for group in rules["spec"]["groups"] for rule in group["rules"]]


def _panels() -> list[tuple[str, str]]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]


QUERIES = [*_rules(), *_panels()]


def test_there_are_alerts_and_panels() -> None:
    assert len(_rules()) > 10
    assert len(_panels()) > 15


@pytest.mark.parametrize("query", [pytest.param(query, id=title) for title, query in QUERIES])
def test_a_query_asks_for_what_there_is(query: str, exported: dict[str, set[str]]) -> None:
    names = set(re.findall(r"\brelance_\w+", query))
    assert names, f"no metric of ours in {query}"
    assert names <= exported.keys()
    known = GIVEN.union(*(exported[name] for name in names))
    by = re.findall(r"\bby \(([^)]*)\)", query)
    asked = {label.strip() for group in by for label in group.split(",")} | set(re.findall(r"(\w+)\s*[!=]~?\"", query))
    assert asked <= known


def test_alerts_say_what_is_the_matter_and_what_to_do() -> None:
    rules = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    for rule in [rule for group in rules["spec"]["groups"] for rule in group["rules"]]:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
