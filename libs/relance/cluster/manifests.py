"""The documents that `kubectl kustomize` prints, as what is to be run."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor

import yaml

from relance.cluster.document import ManifestError, Node
from relance.cluster.pods import PodTemplate, Volume, pod_template

_WORKLOAD_PASSED = (
    "podManagementPolicy",
    "revisionHistoryLimit",
    "serviceName",
    "updateStrategy",
    "volumeClaimTemplates",
)
_SERVICE_PASSED = (
    "externalTrafficPolicy", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "sessionAffinity", "type",
)  # fmt: skip
_ASIDE = frozenset(
    {"Namespace", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "PrometheusRule", "ServiceAccount",
     "Certificate", "Issuer", "ServiceMonitor", "Ingress", "Role", "RoleBinding"}
)  # fmt: skip
"""Kinds that are read past: what one machine cannot carry out or does not need (README.md)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a Deployment is updated: `surge` pods more than wanted, `unavailable` fewer, at most."""

    surge: int = 1
    unavailable: int = 0
    recreate: bool = False


@dataclass(frozen=True, slots=True)
class Rolling:
    """maxSurge and maxUnavailable as written: a number, or a part of the replicas."""

    surge: int | Fraction = Fraction(1, 4)
    unavailable: int | Fraction = Fraction(1, 4)
    recreate: bool = False

    def strategy(self, replicas: int) -> Strategy:
        """The numbers for so many replicas: surge is rounded up, unavailable down, and both are never 0."""
        surge = self.surge if isinstance(self.surge, int) else ceil(self.surge * replicas)
        unavailable = self.unavailable if isinstance(self.unavailable, int) else floor(self.unavailable * replicas)
        if not surge and not unavailable:
            unavailable = 1
        return Strategy(surge, unavailable, self.recreate)


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, or a StatefulSet, whose pods keep their names."""

    name: str
    replicas: int
    template: PodTemplate
    rolling: Rolling = field(default_factory=Rolling)
    min_ready: float = 0
    progress_deadline: float = 600
    stateful: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """Something that is run to its end, once."""

    name: str
    template: PodTemplate
    retries: int = 6
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service, and the port of the pods behind it by number or name."""

    name: str
    port: int
    target: str | int


@dataclass(frozen=True, slots=True)
class Service:
    """A name for the pods that a selector finds."""

    name: str
    selector: dict[str, str]
    ports: tuple[ServicePort, ...]
    headless: bool = False
    not_ready_too: bool = False

    def selects(self, template: PodTemplate) -> bool:
        """Whether pods of a template stand behind it."""
        return bool(self.selector) and self.selector.items() <= template.labels.items()


@dataclass(slots=True)
class Manifests:
    """All that is run, by name."""

    namespace: str = "default"
    workloads: dict[str, Workload] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    cron_jobs: dict[str, Job] = field(default_factory=dict)
    """What would be run by the clock, each as one Job; those that are suspended left out."""
    services: dict[str, Service] = field(default_factory=dict)
    config_maps: dict[str, dict[str, bytes]] = field(default_factory=dict)
    secrets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    """minReplicas of autoscalers by workload."""
    aside: Counter[str] = field(default_factory=Counter)
    """Kinds that were read past, with how many of them."""


def read(text: str) -> Manifests:
    """Read documents. Raises ManifestError for YAML that is none and for what this runner does not carry out."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document]
    except yaml.YAMLError as error:
        raise ManifestError(f"not YAML: {' '.join(str(error).split())}") from error
    manifests = Manifests()
    for document in documents:
        if not isinstance(document, Mapping):
            raise ManifestError(f"a document is expected to be a mapping, not {document!r}")
        _add(manifests, document)
    for name, least in manifests.least.items():
        if name in manifests.workloads:
            workload = manifests.workloads[name]
            manifests.workloads[name] = replace(workload, replicas=max(workload.replicas, least))
    return manifests


def _add(manifests: Manifests, document: Mapping[str, object]) -> None:
    top = Node(document, "document")
    kind = top.text("kind")
    name = top.node("metadata").text("name")
    node = Node(document, f"{kind} {name}:")
    manifests.namespace = node.node("metadata").text("namespace", manifests.namespace)
    if kind in ("Deployment", "StatefulSet"):
        manifests.workloads[name] = replace(_workload(name, node.node("spec")), stateful=kind == "StatefulSet")
    elif kind == "Job":
        manifests.jobs[name] = _job(name, node.node("spec"))
    elif kind == "CronJob":
        spec = node.node("spec")
        if not spec.flag("suspend", False):
            manifests.cron_jobs[name] = _job(name, spec.node("jobTemplate").node("spec"))
    elif kind == "Service":
        manifests.services[name] = _service(name, node.node("spec"))
    elif kind == "ConfigMap":
        manifests.config_maps[name] = {
            **{key: value.encode() for key, value in node.mapping("data").items()},
            **_decoded(node, "binaryData"),
        }
    elif kind == "Secret":
        plain = {key: value.encode() for key, value in node.mapping("stringData").items()}
        manifests.secrets[name] = {**_decoded(node, "data"), **plain}
    elif kind == "HorizontalPodAutoscaler":
        spec = node.node("spec")
        manifests.least[spec.node("scaleTargetRef").text("name")] = spec.number("minReplicas", 1)
    elif kind in _ASIDE:
        manifests.aside[kind] += 1
    else:
        raise ManifestError(f"{node.where} this runner does not know documents of this kind")


def _decoded(node: Node, name: str) -> dict[str, bytes]:
    try:
        # Long values come in lines.
        return {
            key: base64.b64decode("".join(value.split()), validate=True) for key, value in node.mapping(name).items()
        }
    except binascii.Error as error:
        raise ManifestError(f"{node.where} {name}: not base64: {error}") from error


def _workload(name: str, spec: Node) -> Workload:
    spec.only(
        (
            "minReadySeconds",
            "progressDeadlineSeconds",
            "replicas",
            "selector",
            "strategy",
            "template",
            "updateStrategy",
        ),
        _WORKLOAD_PASSED,
    )  # fmt: skip
    claims = [claim.node("metadata").text("name") for claim in spec.nodes("volumeClaimTemplates")]
    template = pod_template(spec.node("template"))
    return Workload(
        name,
        spec.number("replicas", 1),
        replace(template, volumes=(*template.volumes, *map(Volume, claims))),
        _rolling(spec.node("strategy")),
        spec.number("minReadySeconds", 0),
        spec.number("progressDeadlineSeconds", 600),
    )


def _rolling(node: Node) -> Rolling:
    node.only(("rollingUpdate", "type"))
    if node.text("type", "RollingUpdate") == "Recreate":
        return Rolling(recreate=True)
    rolling = node.node("rollingUpdate").only(("maxSurge", "maxUnavailable"))
    return Rolling(_amount(rolling.port("maxSurge", "25%")), _amount(rolling.port("maxUnavailable", "25%")))


def _amount(value: str | int) -> int | Fraction:
    return value if isinstance(value, int) else Fraction(int(value.removesuffix("%")), 100)


def _job(name: str, spec: Node) -> Job:
    spec.only(
        ("activeDeadlineSeconds", "backoffLimit", "template"),
        ("completions", "parallelism", "podFailurePolicy", "ttlSecondsAfterFinished"),
    )
    deadline = spec.number("activeDeadlineSeconds") if spec.has("activeDeadlineSeconds") else None
    template = pod_template(spec.node("template"), ("Never", "OnFailure"))
    return Job(name, template, spec.number("backoffLimit", 6), deadline)


def _service(name: str, spec: Node) -> Service:
    spec.only(("clusterIP", "ports", "publishNotReadyAddresses", "selector"), _SERVICE_PASSED)
    ports = []
    for port in spec.nodes("ports"):
        port.only(("name", "port", "protocol", "targetPort"), ("appProtocol", "nodePort"))
        if port.text("protocol", "TCP") != "TCP":
            raise ManifestError(f"{port.where}.protocol: only TCP is carried")
        number = port.number("port")
        ports.append(ServicePort(port.text("name", ""), number, port.port("targetPort", number)))
    headless = spec.text("clusterIP", "") == "None"
    return Service(name, spec.mapping("selector"), tuple(ports), headless, spec.flag("publishNotReadyAddresses", False))
