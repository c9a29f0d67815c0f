"""What a pod template says: containers, their environment, probes, volumes and the grace at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from relance.cluster.document import ManifestError, Node

# What one machine has no counterpart for, or no need of: see README.md.
_POD_PASSED = (
    "affinity", "automountServiceAccountToken", "dnsPolicy", "imagePullSecrets", "nodeSelector", "priorityClassName",
    "schedulerName", "securityContext", "tolerations", "topologySpreadConstraints",
)  # fmt: skip
_POD_KNOWN = (
    "containers", "enableServiceLinks", "initContainers", "restartPolicy", "serviceAccountName",
    "terminationGracePeriodSeconds", "volumes",
)  # fmt: skip
_CONTAINER_PASSED = (
    "imagePullPolicy", "resources", "securityContext", "terminationMessagePath", "terminationMessagePolicy",
)  # fmt: skip
_CONTAINER_KNOWN = (
    "args", "command", "env", "envFrom", "image", "lifecycle", "livenessProbe", "name", "ports", "readinessProbe",
    "startupProbe", "volumeMounts", "workingDir",
)  # fmt: skip
_PROBE_KNOWN = (
    "exec", "failureThreshold", "grpc", "httpGet", "initialDelaySeconds", "periodSeconds", "successThreshold",
    "tcpSocket", "terminationGracePeriodSeconds", "timeoutSeconds",
)  # fmt: skip

Source = Literal["configMap", "secret", "field"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A value from elsewhere: a key of a ConfigMap or Secret, or a field of the pod (then `key` is its path)."""

    source: Source
    name: str
    key: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment: a text in which $(NAME) is expanded, or a reference."""

    name: str
    value: str = ""
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class VariablesFrom:
    """All keys of a ConfigMap or Secret as variables."""

    source: Source
    name: str
    prefix: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """How a container is asked, and how often. Seconds; `port` is a number or the name of a port."""

    kind: Literal["grpc", "tcp", "http", "exec"]
    port: str | int = 0
    service: str = ""
    path: str = ""
    command: tuple[str, ...] = ()
    initial_delay: float = 0
    period: float = 10
    timeout: float = 1
    success: int = 1
    failure: int = 3
    grace: float | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume of the pod at a path of the container."""

    volume: str
    path: str
    sub_path: str = ""


@dataclass(frozen=True, slots=True)
class PreStop:
    """What happens before SIGTERM: a command, or seconds of nothing."""

    command: tuple[str, ...] = ()
    sleep: float = 0


@dataclass(frozen=True, slots=True)
class Container:
    """One container."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    variables_from: tuple[VariablesFrom, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()
    readiness: Probe | None = None
    liveness: Probe | None = None
    startup: Probe | None = None
    mounts: tuple[Mount, ...] = ()
    pre_stop: PreStop | None = None

    def port(self, port: str | int) -> int:
        """The number of a port by name. Raises ManifestError."""
        if isinstance(port, int):
            return port
        if port not in dict(self.ports):
            raise ManifestError(f"container {self.name} has no port named {port}")
        return dict(self.ports)[port]


@dataclass(frozen=True, slots=True)
class Part:
    """A source of files in a volume; `items` (key, path) are the keys taken, none: all."""

    source: Source
    name: str
    items: tuple[tuple[str, str], ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """A folder of a pod; without parts an empty one."""

    name: str
    parts: tuple[Part, ...] = ()
    mode: int = 0o644


@dataclass(frozen=True)
class PodTemplate:
    """A pod as its workload describes it."""

    containers: tuple[Container, ...]
    init: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    grace: float = 30
    service_account: str = "default"
    service_links: bool = True
    revision: str = ""

    @property
    def ports(self) -> dict[str, int]:
        """Ports of all containers by name."""
        return {name: number for container in self.containers for name, number in container.ports}


def pod_template(template: Node, restart_policies: tuple[str, ...] = ("Always",)) -> PodTemplate:
    """Read a pod template. Raises ManifestError."""
    metadata = template.only(("metadata", "spec")).node("metadata")
    metadata.only(("annotations", "labels", "name"), ("creationTimestamp",))
    spec = template.node("spec").only(_POD_KNOWN, _POD_PASSED)
    policy = spec.text("restartPolicy", restart_policies[0])
    if policy not in restart_policies:
        raise ManifestError(f"{spec.where}.restartPolicy: {policy} is none of {', '.join(restart_policies)}")
    raw = json.dumps([metadata.fields, spec.fields], sort_keys=True, default=str)
    return PodTemplate(
        containers=tuple(map(_container, spec.nodes("containers"))),
        init=tuple(map(_container, spec.nodes("initContainers"))),
        volumes=tuple(map(_volume, spec.nodes("volumes"))),
        labels=metadata.mapping("labels"),
        annotations=metadata.mapping("annotations"),
        grace=spec.number("terminationGracePeriodSeconds", 30),
        service_account=spec.text("serviceAccountName", "default"),
        service_links=spec.flag("enableServiceLinks", True),
        revision=hashlib.sha256(raw.encode()).hexdigest()[:10],
    )


def _container(node: Node) -> Container:
    node.only(_CONTAINER_KNOWN, _CONTAINER_PASSED)
    return Container(
        name=node.text("name"),
        image=node.text("image"),
        command=node.texts("command"),
        args=node.texts("args"),
        variables=tuple(map(_variable, node.nodes("env"))),
        variables_from=tuple(map(_variables_from, node.nodes("envFrom"))),
        ports=tuple((port.text("name", ""), port.number("containerPort")) for port in node.nodes("ports")),
        readiness=_probe(node, "readinessProbe"),
        liveness=_probe(node, "livenessProbe"),
        startup=_probe(node, "startupProbe"),
        mounts=tuple(map(_mount, node.nodes("volumeMounts"))),
        pre_stop=_pre_stop(node.node("lifecycle").only(("preStop",))),
    )


def _mount(node: Node) -> Mount:
    node.only(("mountPath", "name", "readOnly", "subPath"))
    return Mount(node.text("name"), node.text("mountPath").rstrip("/"), node.text("subPath", ""))


def _variable(node: Node) -> Variable:
    node.only(("name", "value", "valueFrom"))
    name = node.text("name")
    if not node.has("valueFrom"):
        return Variable(name, node.text("value", ""))
    source = node.node("valueFrom").only(("configMapKeyRef", "secretKeyRef", "fieldRef"))
    if source.has("fieldRef"):
        path = source.node("fieldRef").only(("fieldPath",), ("apiVersion",)).text("fieldPath")
        return Variable(name, reference=Reference("field", "", path))
    kind: Source = "configMap" if source.has("configMapKeyRef") else "secret"
    key = source.node(f"{kind}KeyRef").only(("key", "name", "optional"))
    return Variable(name, reference=Reference(kind, key.text("name"), key.text("key"), key.flag("optional", False)))


def _variables_from(node: Node) -> VariablesFrom:
    node.only(("configMapRef", "prefix", "secretRef"))
    kind: Source = "configMap" if node.has("configMapRef") else "secret"
    source = node.node(f"{kind}Ref").only(("name", "optional"))
    return VariablesFrom(kind, source.text("name"), node.text("prefix", ""), source.flag("optional", False))


def _probe(container: Node, name: str) -> Probe | None:
    if not container.has(name):
        return None
    node = container.node(name).only(_PROBE_KNOWN)
    grace = node.number("terminationGracePeriodSeconds") if node.has("terminationGracePeriodSeconds") else None
    kind, port, service, path, command = _asking(node)
    return Probe(
        kind=kind,
        port=port,
        service=service,
        path=path,
        command=command,
        initial_delay=node.number("initialDelaySeconds", 0),
        period=node.number("periodSeconds", 10),
        timeout=node.number("timeoutSeconds", 1),
        success=node.number("successThreshold", 1),
        failure=node.number("failureThreshold", 3),
        grace=grace,
    )


def _asking(node: Node) -> tuple[Literal["grpc", "tcp", "http", "exec"], str | int, str, str, tuple[str, ...]]:
    if node.has("grpc"):
        grpc = node.node("grpc").only(("port", "service"))
        return "grpc", grpc.number("port"), grpc.text("service", ""), "", ()
    if node.has("httpGet"):
        http = node.node("httpGet").only(("path", "port", "scheme"))
        if http.text("scheme", "HTTP") != "HTTP":
            raise ManifestError(f"{http.where}.scheme: only HTTP is asked")
        return "http", http.port("port"), "", http.text("path", "/"), ()
    if node.has("tcpSocket"):
        return "tcp", node.node("tcpSocket").only(("port",)).port("port"), "", "", ()
    return "exec", 0, "", "", node.node("exec").only(("command",)).texts("command")


def _pre_stop(lifecycle: Node) -> PreStop | None:
    if not lifecycle.has("preStop"):
        return None
    node = lifecycle.node("preStop").only(("exec", "sleep"))
    if node.has("sleep"):
        return PreStop(sleep=node.node("sleep").only(("seconds",)).number("seconds"))
    return PreStop(command=node.node("exec").only(("command",)).texts("command"))


def _volume(node: Node) -> Volume:
    node.only(("configMap", "emptyDir", "name", "projected", "secret"))
    name = node.text("name")
    if node.has("projected"):
        projected = node.node("projected").only(("defaultMode", "sources"))
        parts = tuple(part for source in projected.nodes("sources") for part in _parts(source))
        return Volume(name, parts, projected.number("defaultMode", 0o644))
    for kind in ("configMap", "secret"):
        if node.has(kind):
            return Volume(name, tuple(_parts(node)), node.node(kind).number("defaultMode", 0o644))
    return Volume(name)


def _parts(node: Node) -> Iterator[Part]:
    """The sources in a volume, or in one source of a projected volume, which names them by another word."""
    kinds: tuple[Source, Source] = ("configMap", "secret")
    for kind in kinds:
        if node.has(kind):
            source = node.node(kind).only(("defaultMode", "items", "name", "optional", "secretName"))
            items = tuple((item.text("key"), item.text("path")) for item in source.nodes("items"))
            name = source.text("name") if source.has("name") else source.text("secretName")
            yield Part(kind, name, items, source.flag("optional", False))
