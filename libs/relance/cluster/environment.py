"""The environment of a container, as a cluster would make it: references, the pod's own fields, $(NAME)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from relance.cluster.document import ManifestError
from relance.cluster.manifests import Manifests, Service
from relance.cluster.pods import Container, Reference, VariablesFrom

_EXPANDED = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
NODE = "localhost"


@dataclass(frozen=True)
class PodFacts:
    """What a pod may be told about itself."""

    name: str
    namespace: str
    address: str
    uid: str = ""
    service_account: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def field(self, path: str) -> str:
        """A field by its path. Raises ManifestError."""
        keyed = _KEYED.fullmatch(path)
        if keyed is not None:
            return (self.labels if keyed[1] == "labels" else self.annotations).get(keyed[2], "")
        fields = {
            "metadata.name": self.name,
            "metadata.namespace": self.namespace,
            "metadata.uid": self.uid,
            "spec.nodeName": NODE,
            "spec.serviceAccountName": self.service_account,
            "status.hostIP": "127.0.0.1",
            "status.podIP": self.address,
            "status.podIPs": self.address,
        }
        if path not in fields:
            raise ManifestError(f"pod {self.name}: fieldPath {path} is not known")
        return fields[path]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each $(NAME) that is known replaced; $$ is a dollar that begins nothing."""

    def one(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return _EXPANDED.sub(one, text)


def environment(container: Container, facts: PodFacts, manifests: Manifests) -> dict[str, str]:
    """The variables of a container in the order in which they are made. Raises ManifestError.

    A value may name variables before it, those of envFrom too; later ones replace earlier ones of the same name.
    """
    made: dict[str, str] = {}
    for source in container.variables_from:
        made.update(_all_of(source, manifests))
    for variable in container.variables:
        if variable.reference is None:
            made[variable.name] = expand(variable.value, made)
        else:
            value = _referred(variable.reference, facts, manifests)
            if value is not None:
                made[variable.name] = value
    return made


def arguments(container: Container, variables: Mapping[str, str]) -> list[str]:
    """Command and arguments with $(NAME) expanded."""
    return [expand(word, variables) for word in (*container.command, *container.args)]


def service_links(services: Sequence[Service], addresses: Mapping[str, str]) -> dict[str, str]:
    """The variables that a cluster makes of every Service with an address of its own, whether asked to or not.

    They are the reason why a Service must not be named so that NAME_PORT or NAME_SERVICE_HOST is a setting.
    """
    links: dict[str, str] = {}
    for service in services:
        if service.headless or not service.ports:
            continue
        name, host = service.name.upper().replace("-", "_"), addresses[service.name]
        first = service.ports[0].port
        links |= {
            f"{name}_SERVICE_HOST": host,
            f"{name}_SERVICE_PORT": str(first),
            f"{name}_PORT": f"tcp://{host}:{first}",
        }
        for port in service.ports:
            base = f"{name}_PORT_{port.port}_TCP"
            links |= {base: f"tcp://{host}:{port.port}", f"{base}_PROTO": "tcp"}
            links |= {f"{base}_PORT": str(port.port), f"{base}_ADDR": host}
            if port.name:
                links[f"{name}_SERVICE_PORT_{port.name.upper().replace('-', '_')}"] = str(port.port)
    return links


def _all_of(source: VariablesFrom, manifests: Manifests) -> Iterator[tuple[str, str]]:
    kept = manifests.config_maps if source.source == "configMap" else manifests.secrets
    if source.name not in kept:
        if source.optional:
            return
        raise ManifestError(f"there is no {source.source} {source.name}")
    for key, value in kept[source.name].items():
        yield source.prefix + key, value.decode()


def _referred(reference: Reference, facts: PodFacts, manifests: Manifests) -> str | None:
    if reference.source == "field":
        return facts.field(reference.key)
    kept = manifests.config_maps if reference.source == "configMap" else manifests.secrets
    value = kept.get(reference.name, {}).get(reference.key)
    if value is None and not reference.optional:
        raise ManifestError(f"there is no key {reference.key} in {reference.source} {reference.name}")
    return None if value is None else value.decode()
