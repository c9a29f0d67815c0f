"""The manifests: they render, they are what Kubernetes takes, and policies hold that fail on broken copies."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from kubernetes_validate import utils
from tests.deploy import policies
from tests.deploy.policies import Policy, of_kind, template
from tests.deploy.rendering import REPOSITORY, Document, Tree

OVERLAYS = ("dev", "production", "everything")
CUSTOM = {"PodMonitor", "PrometheusRule", "Certificate", "Issuer", "GRPCRoute"}
"""Kinds of the Prometheus operator, cert-manager and the Gateway API: not in Kubernetes' own schemas."""
OLDEST, NEWEST = "1.31", "1.37"

Break = Callable[[list[Document]], object]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("manifests"))


def findings(policy: Policy, documents: Sequence[Document]) -> list[str]:
    return list(policy(documents))


def test_every_document_is_what_kubernetes_takes_strictly(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    # The schemas are read again for every document otherwise: that is nearly all of its time.
    monkeypatch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
    seen: list[Document] = []
    for overlay in OVERLAYS:
        documents = [document for document in tree.render(overlay) if document["kind"] not in CUSTOM]
        assert len(documents) > 30
        for document in documents:
            if document not in seen:
                kubernetes_validate.validate(document, NEWEST, strict=True)
                seen.append(document)
    kinds = {(document["kind"], document["apiVersion"]): document for document in seen}
    for document in kinds.values():  # one of each: their common parts come from the same files
        kubernetes_validate.validate(document, OLDEST, strict=True)


def test_an_unknown_field_is_refused(tree: Tree) -> None:
    broken = copy.deepcopy(of_kind(tree.render("production"), "Deployment")[0])
    broken["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, NEWEST, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("policy", policies.ALWAYS, ids=lambda policy: policy.__name__)
def test_the_policies_hold(tree: Tree, overlay: str, policy: Policy) -> None:
    assert findings(policy, tree.render(overlay)) == []


def test_exactly_those_may_call_one_another_that_do(tree: Tree) -> None:
    assert findings(policies.acquainted, tree.render("dev")) == []


def test_production_holds_no_secret(tree: Tree) -> None:
    assert findings(policies.secretive, tree.render("production")) == []


def test_the_room_for_trying_out_has_all_that_its_pods_need(tree: Tree) -> None:
    assert findings(policies.complete, tree.render("dev")) == []


def test_production_needs_what_its_page_says_and_nothing_else(tree: Tree) -> None:
    missing = set(policies.references(tree.render("production")))
    missing = {(kind, name) for kind, name in missing if not name.startswith("relance-settings")}
    services = {f"relance-{service}" for service in policies.SERVICES}
    shown = {f"{name}-tls" for name in (*services, "relance-tools")}
    secrets = services | shown | {"relance-migrate", "relance-logins", "relance-audit"}
    authorities = {"relance-keyring", "relance-authorities"}
    assert missing == {("Secret", name) for name in secrets} | {("ConfigMap", name) for name in authorities}


def test_certificates_name_each_service_as_it_is_called_and_what_they_have_in_common(tree: Tree) -> None:
    documents = tree.render("everything")
    settings = next(d["data"] for d in of_kind(documents, "ConfigMap") if "RELANCE_KEYRING" in d.get("data", {}))
    names = {d["spec"]["secretName"]: set(d["spec"].get("dnsNames", ())) for d in of_kind(documents, "Certificate")}
    for service in policies.SERVICES:
        plural = "ES" if service == "table" else ""
        called = settings[f"RELANCE_{service.upper()}_ADDRESS{plural}"].partition(":")[0]
        assert {called, f"relance-{service}", settings["RELANCE_TLS_SERVER_NAME"]} <= names[f"relance-{service}-tls"]


def test_the_gateway_lets_clients_call_what_is_theirs_and_nothing_that_services_call_of_one_another(tree: Tree) -> None:
    routes = {
        match["method"]["service"]: rule["backendRefs"][0]["name"]
        for route in of_kind(tree.render("everything"), "GRPCRoute")
        for rule in route["spec"]["rules"]
        for match in rule["matches"]
    }
    services = set()
    for proto in (REPOSITORY / "protos" / "relance").rglob("*.proto"):
        text = proto.read_text()
        package = re.search(r"^package (.*);", text, re.MULTILINE)
        assert package is not None
        services |= {f"{package[1]}.{name}" for name in re.findall(r"^service (\w+)", text, re.MULTILINE)}
    # Cashiers call the ledger from inside.
    inside = {"lobby.v1.ProtectionService", "table.v1.TableLinkService", "wallet.v1.LedgerService"}
    assert set(routes) == services - {f"relance.api.{name}" for name in inside}
    assert all(name.split(".")[2] == behind.removeprefix("relance-") for name, behind in routes.items())


def deployment(documents: list[Document], name: str = "relance-table") -> Document:
    return next(d for d in of_kind(documents, "Deployment") if d["metadata"]["name"] == name)


def pod(documents: list[Document]) -> Document:
    found: Document = template(deployment(documents))["spec"]
    return found


def container(documents: list[Document]) -> Document:
    found: Document = pod(documents)["containers"][0]
    return found


def policy_of(documents: list[Document], name: str) -> Document:
    return next(d for d in of_kind(documents, "NetworkPolicy") if d["metadata"]["name"] == name)


def without(kind: str, *names: str) -> Break:
    def remove(documents: list[Document]) -> None:
        documents[:] = [d for d in documents if d["kind"] != kind or d["metadata"]["name"] not in names]

    return remove


def variable(documents: list[Document], name: str, value: str) -> None:
    variables: list[dict[str, Any]] = container(documents)["env"]
    variables[:] = [each for each in variables if each["name"] != name] + [{"name": name, "value": value}]


BROKEN: dict[str, tuple[Policy, Break]] = {
    "no readiness probe": (policies.probed, lambda d: container(d).pop("readinessProbe")),
    "no liveness probe": (policies.probed, lambda d: container(d).pop("livenessProbe")),
    "liveness depends": (
        policies.probed, lambda d: container(d)["livenessProbe"]["grpc"].update(service="readiness"),
    ),
    "no limit": (policies.limited, lambda d: container(d)["resources"]["limits"].pop("memory")),
    "no request": (policies.limited, lambda d: container(d)["resources"].pop("requests")),
    "latest": (policies.pinned, lambda d: container(d).update(image="relance:latest")),
    "no tag": (policies.pinned, lambda d: container(d).update(image="registry.example:5000/relance")),
    "root": (policies.restricted, lambda d: pod(d)["securityContext"].update(runAsNonRoot=False)),
    "uid 0": (policies.restricted, lambda d: pod(d)["securityContext"].update(runAsUser=0)),
    "no seccomp": (policies.restricted, lambda d: pod(d)["securityContext"].pop("seccompProfile")),
    "a capability": (
        policies.restricted, lambda d: container(d)["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
    ),
    "privileges": (policies.restricted, lambda d: container(d)["securityContext"].pop("allowPrivilegeEscalation")),
    "writable root": (
        policies.restricted, lambda d: container(d)["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    "the node's network": (policies.restricted, lambda d: pod(d).update(hostNetwork=True)),
    "the node's folders": (
        policies.restricted, lambda d: pod(d)["volumes"].append({"name": "n", "hostPath": {"path": "/"}}),
    ),
    "a token": (policies.restricted, lambda d: pod(d).pop("automountServiceAccountToken")),
    "one replica": (policies.available, lambda d: deployment(d, "relance-wallet")["spec"].update(replicas=1)),
    "no budget": (policies.available, without("PodDisruptionBudget", "relance-table")),
    "a gap": (
        policies.available,
        lambda d: deployment(d)["spec"]["strategy"]["rollingUpdate"].update(maxUnavailable="25%"),
    ),
    "no spread": (policies.available, lambda d: pod(d).pop("topologySpreadConstraints")),
    "short grace": (policies.patient, lambda d: pod(d).update(terminationGracePeriodSeconds=605)),
    "usual grace": (policies.patient, lambda d: pod(d).pop("terminationGracePeriodSeconds")),
    "no drain": (policies.patient, lambda d: variable(d, "RELANCE_DRAIN_TIMEOUT", "3600")),
    "another's account": (policies.identified, lambda d: pod(d).update(serviceAccountName="relance-wallet")),
    "a service without policy": (
        policies.shut, without("NetworkPolicy", "relance-wallet", "relance-clients", "relance-operators"),
    ),
    "open by default": (policies.shut, without("NetworkPolicy", "relance-nobody")),
    "the wallet calls the lobby": (
        policies.acquainted,
        lambda d: [
            policy_of(d, "relance-wallet")["spec"]["egress"][0]["to"].append({"podSelector": {}}),
            policy_of(d, "relance-lobby")["spec"]["ingress"][0]["from"].append({"podSelector": {}}),
        ],
    ),
    "tables do not forward": (policies.acquainted, lambda d: policy_of(d, "relance-table")["spec"].pop("egress")),
    "a secret": (
        policies.secretive,
        lambda d: d.append({"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}}),
    ),
    "a password in a URL": (
        policies.secretive, lambda d: variable(d, "RELANCE_AUDIT", "postgresql://relance:hunter2@db:5432/relance"),
    ),
    "a URL in the environment": (
        policies.secretive, lambda d: variable(d, "RELANCE_DATABASE_URL", "postgresql://db:5432/relance"),
    ),
    "a Secret that is not there": (policies.complete, lambda d: d.remove(of_kind(d, "Secret")[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_is_found(tree: Tree, name: str) -> None:
    policy, spoil = BROKEN[name]
    overlay = "production" if policy is policies.secretive else "dev"
    documents = copy.deepcopy(tree.render(overlay))
    spoil(documents)
    assert findings(policy, documents), f"{policy.__name__} has found nothing"
