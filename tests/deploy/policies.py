"""What must hold for manifests: each policy answers with what it finds wrong, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from tests.deploy.rendering import Document

Policy: TypeAlias = Callable[[Sequence[Document]], Iterator[str]]

COMPONENT = "app.kubernetes.io/component"
SERVICES = ("lobby", "table", "wallet", "rake")
SERVERS = ("postgres", "nats")
RUN_TO_THEIR_END = ("migrate", "logins", "audit", "tools")

CALLS = {
    ("table", "wallet"), ("table", "rake"), ("table", "lobby"), ("table", "table"), ("lobby", "table"),
    ("rake", "table"), ("rake", "wallet"), ("wallet", "table"),
    *(("tools", service) for service in SERVICES),
}  # fmt: skip
"""Who calls whom by gRPC (caller, called). Nobody else may."""

WORKLOADS = ("Deployment", "StatefulSet", "Job", "CronJob")
LAST_SECONDS = 5
"""What a process may take beyond its drain (relance.runtime.service)."""


def named(document: Document) -> str:
    """Kind and name, for sentences."""
    return f"{document['kind']} {document['metadata']['name']}"


def of_kind(documents: Sequence[Document], *kinds: str) -> list[Document]:
    """Those of some kinds."""
    return [document for document in documents if document["kind"] in kinds]


def template(workload: Document) -> Document:
    """The pod template of a workload."""
    spec = workload["spec"]
    found: Document = (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]
    return found


def containers(workload: Document) -> list[Document]:
    """All containers of a workload's pods."""
    spec = template(workload)["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def component(workload: Document) -> str:
    """Which part of the room the pods of a workload are."""
    return str(template(workload)["metadata"]["labels"][COMPONENT])


def selects(selector: Document, labels: Document) -> bool:
    """Whether a label selector selects."""
    matches = selector.get("matchLabels", {}).items() <= labels.items()
    for expression in selector.get("matchExpressions", ()):
        if expression["operator"] != "In":
            raise NotImplementedError(expression["operator"])
        matches = matches and labels.get(expression["key"]) in expression["values"]
    return bool(matches)


def probed(documents: Sequence[Document]) -> Iterator[str]:
    """What serves is probed; services by gRPC: liveness without their dependencies, readiness with them."""
    for workload in of_kind(documents, "Deployment", "StatefulSet"):
        for container in template(workload)["spec"]["containers"]:
            for kind in ("liveness", "readiness"):
                probe = container.get(f"{kind}Probe")
                if probe is None:
                    yield f"{named(workload)}: no {kind} probe"
                elif component(workload) in SERVICES and probe.get("grpc", {}).get("service") != kind:
                    yield f"{named(workload)}: the {kind} probe does not ask gRPC health for {kind}"


def limited(documents: Sequence[Document]) -> Iterator[str]:
    """Every container says what it needs and what it may take."""
    for workload in of_kind(documents, *WORKLOADS):
        for container in containers(workload):
            for part in ("requests", "limits"):
                for resource in ("cpu", "memory"):
                    if resource not in container.get("resources", {}).get(part, {}):
                        yield f"{named(workload)}: container {container['name']} has no {part} of {resource}"


def pinned(documents: Sequence[Document]) -> Iterator[str]:
    """Every image has a tag that says a version, or a digest."""
    for workload in of_kind(documents, *WORKLOADS):
        for container in containers(workload):
            image = container["image"]
            tag = image.rpartition("/")[2].partition(":")[2]
            if "@sha256:" not in image and (tag == "latest" or not re.match(r"v?\d+\.\d+", tag)):
                yield f"{named(workload)}: image {image} is not pinned"


def restricted(documents: Sequence[Document]) -> Iterator[str]:
    """Pods meet the restricted standard, on a root file system that they cannot write, without a token."""
    for workload in of_kind(documents, *WORKLOADS):
        pod = template(workload)["spec"]
        security = pod.get("securityContext", {})
        if security.get("runAsNonRoot") is not True or not security.get("runAsUser"):
            yield f"{named(workload)}: may run as root"
        if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{named(workload)}: no seccomp profile"
        if pod.get("automountServiceAccountToken") is not False:
            yield f"{named(workload)}: the pod gets a token of the cluster"
        if any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
            yield f"{named(workload)}: shares something with its node"
        if any("hostPath" in volume for volume in pod.get("volumes", ())):
            yield f"{named(workload)}: mounts a folder of its node"
        for container in containers(workload):
            name, own = f"{named(workload)}: container {container['name']}", container.get("securityContext", {})
            if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
                yield f"{name} may gain privileges"
            if own.get("capabilities") != {"drop": ["ALL"]}:
                yield f"{name} keeps capabilities"
            if own.get("readOnlyRootFilesystem") is not True:
                yield f"{name} may write its root file system"


def available(documents: Sequence[Document]) -> Iterator[str]:
    """Services have two pods at least, spread, with a budget, and are updated without a gap."""
    least = {
        scaler["spec"]["scaleTargetRef"]["name"]: scaler["spec"]["minReplicas"]
        for scaler in of_kind(documents, "HorizontalPodAutoscaler")
    }
    for workload in of_kind(documents, "Deployment"):
        labels = template(workload)["metadata"]["labels"]
        if workload["spec"].get("replicas", least.get(workload["metadata"]["name"], 1)) < 2:
            yield f"{named(workload)}: one pod alone"
        budgets = [
            budget
            for budget in of_kind(documents, "PodDisruptionBudget")
            if selects(budget["spec"]["selector"], labels)
        ]
        if len(budgets) != 1:
            yield f"{named(workload)}: {len(budgets)} disruption budgets"
        if workload["spec"]["strategy"].get("rollingUpdate", {}).get("maxUnavailable") != 0:
            yield f"{named(workload)}: an update may leave fewer pods than there should be"
        spread = template(workload)["spec"].get("topologySpreadConstraints", ())
        if not any(selects(constraint["labelSelector"], labels) for constraint in spread):
            yield f"{named(workload)}: its pods may all be on one node"


def patient(documents: Sequence[Document]) -> Iterator[str]:
    """The grace of a pod is longer than all that may happen in it."""
    for workload in of_kind(documents, "Deployment"):
        for container in template(workload)["spec"]["containers"]:
            drain = next((e["value"] for e in container["env"] if e["name"] == "RELANCE_DRAIN_TIMEOUT"), None)
            if drain is None:
                yield f"{named(workload)}: no drain timeout"
                continue
            before = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
            if (
                template(workload)["spec"].get("terminationGracePeriodSeconds", 30)
                <= before + float(drain) + LAST_SECONDS
            ):
                yield f"{named(workload)}: the grace is shorter than the drain"


def identified(documents: Sequence[Document]) -> Iterator[str]:
    """Each service has an account of its own."""
    accounts = {account["metadata"]["name"] for account in of_kind(documents, "ServiceAccount")}
    used = [template(workload)["spec"].get("serviceAccountName") for workload in of_kind(documents, "Deployment")]
    for workload, account in zip(of_kind(documents, "Deployment"), used, strict=True):
        if account not in accounts or used.count(account) > 1:
            yield f"{named(workload)}: no account of its own"
    for account in of_kind(documents, "ServiceAccount"):
        if account.get("automountServiceAccountToken") is not False:
            yield f"{named(account)}: gives tokens away"


def shut(documents: Sequence[Document]) -> Iterator[str]:
    """Nobody may talk to anybody unless a policy says so, and each Service has one that does."""
    policies = of_kind(documents, "NetworkPolicy")
    if not any(
        not policy["spec"]["podSelector"]
        and set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
        and not policy["spec"].get("ingress")
        and not policy["spec"].get("egress")
        for policy in policies
    ):
        yield "no policy refuses everything first"
    templates = [template(workload) for workload in of_kind(documents, "Deployment", "StatefulSet")]
    for service in of_kind(documents, "Service"):
        behind = [pod for pod in templates if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()]
        if not behind:
            yield f"{named(service)}: nothing stands behind it"
        for pod in behind:
            labels = pod["metadata"]["labels"]
            ports = {port["containerPort"] for container in pod["spec"]["containers"] for port in container["ports"]}
            opened = {
                port["port"]
                for policy in policies
                if policy["spec"]["podSelector"] and selects(policy["spec"]["podSelector"], labels)
                for rule in policy["spec"].get("ingress", ())
                for port in rule.get("ports", ())
            }
            for port in service["spec"]["ports"]:
                target = _number(pod, port.get("targetPort", port["port"]))
                if target not in ports or target not in opened:
                    yield f"{named(service)}: no NetworkPolicy opens port {target} of what stands behind it"


def acquainted(documents: Sequence[Document]) -> Iterator[str]:
    """Exactly those services may call one another that do."""
    policies = of_kind(documents, "NetworkPolicy")
    pods = {component(w): template(w)["metadata"]["labels"] for w in of_kind(documents, *WORKLOADS)}
    for caller, own in pods.items():
        for called, labels in pods.items():
            goes = _allowed(policies, "egress", "to", own, labels)
            comes = _allowed(policies, "ingress", "from", labels, own)
            if called in SERVERS:
                wanted = caller in SERVICES or (called == "postgres" and caller in RUN_TO_THEIR_END)
            else:
                wanted = (caller, called) in CALLS
            if (goes and comes) != wanted:
                yield f"{caller} {'may' if goes and comes else 'may not'} call {called}"


def secretive(documents: Sequence[Document]) -> Iterator[str]:
    """No secret stands in the manifests: they name Secrets, and hold none."""
    for secret in of_kind(documents, "Secret"):
        yield f"{named(secret)}: a secret in plain text"
    for document in documents:
        for where, text in _texts(document):
            if re.search(r"PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@", text) or (
                re.search(r"(PASSWORD|SECRET|TOKEN|DATABASE_URL|NATS_URL)$", where) and "\n" not in text
            ):
                yield f"{named(document)}: {where} holds a secret"


def complete(documents: Sequence[Document]) -> Iterator[str]:
    """Every ConfigMap and Secret that a pod needs is there."""
    there = {(document["kind"], document["metadata"]["name"]) for document in of_kind(documents, "ConfigMap", "Secret")}
    for reference in references(documents):
        if reference not in there:
            yield f"{reference[0]} {reference[1]} is not there"


def references(documents: Sequence[Document]) -> set[tuple[str, str]]:
    """(kind, name) of the ConfigMaps and Secrets that pods need."""
    found = set()
    for workload in of_kind(documents, *WORKLOADS):
        pod = template(workload)["spec"]
        for volume in pod.get("volumes", ()):
            if "secret" in volume:
                found.add(("Secret", volume["secret"]["secretName"]))
            if "configMap" in volume:
                found.add(("ConfigMap", volume["configMap"]["name"]))
        for container in containers(workload):
            found |= {("ConfigMap", source["configMapRef"]["name"]) for source in container.get("envFrom", ())}
            for variable in container.get("env", ()):
                source = variable.get("valueFrom", {})
                found |= {("Secret", source["secretKeyRef"]["name"])} if "secretKeyRef" in source else set()
                found |= {("ConfigMap", source["configMapKeyRef"]["name"])} if "configMapKeyRef" in source else set()
    return found


ALWAYS: tuple[Policy, ...] = (
    probed, limited, pinned, restricted, available, patient, identified, shut,
)  # fmt: skip
"""What holds for every overlay."""


def _allowed(policies: Sequence[Document], way: str, whom: str, own: Document, other: Document) -> bool:
    """Whether some policy of pods with labels `own` lets them exchange with pods with labels `other`, by their pods'
    labels: what is allowed to whole namespaces (clients, monitoring) does not count.
    """
    for policy in policies:
        if not selects(policy["spec"]["podSelector"], own):
            continue
        for rule in policy["spec"].get(way, ()):
            for peer in rule.get(whom, ()):
                if "podSelector" in peer and "namespaceSelector" not in peer and selects(peer["podSelector"], other):
                    return True
    return False


def _number(pod: Document, port: str | int) -> int:
    if isinstance(port, int):
        return port
    names = {p["name"]: int(p["containerPort"]) for c in pod["spec"]["containers"] for p in c["ports"]}
    return names.get(port, 0)


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a document with the way to it; a variable of an environment is named by its name."""
    if isinstance(value, dict):
        if set(value) == {"name", "value"}:
            yield str(value["name"]), str(value["value"])
            return
        for key, inner in value.items():
            yield from _texts(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, where)
    elif isinstance(value, str):
        yield where, value
