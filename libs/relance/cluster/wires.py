"""What carries bytes between pods: Services with an address of their own, and each pod's wire to the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from relance.cluster.manifests import Service, ServicePort
from relance.cluster.pod import Pod
from relance.cluster.relay import Place, Relay

Pods = Callable[[], Iterable[Pod]]


class ServiceAddress:
    """A Service: an address on which connections go to its ready pods, each to the next one.

    A headless Service stands in for its name alone: who asked for it would connect to any one of the pods, too.
    """

    def __init__(self, service: Service, address: str, pods: Pods) -> None:
        self.service, self.address = service, address
        self._pods = pods
        self._turn = 0
        self._relays = [Relay((address, port.port), partial(self._pick, port)) for port in service.ports]

    async def start(self) -> None:
        """Listen. Raises OSError."""
        for relay in self._relays:
            await relay.start()

    async def close(self) -> None:
        """Stop listening."""
        for relay in self._relays:
            await relay.close()

    def endpoints(self) -> list[Pod]:
        """The pods behind it now."""
        behind = [pod for pod in self._pods() if self.service.selects(pod.template)]
        return [pod for pod in behind if pod.ready or (self.service.not_ready_too and not pod.ending)]

    def _pick(self, port: ServicePort) -> Place | None:
        pods = self.endpoints()
        if not pods:
            return None
        self._turn += 1
        pod = pods[self._turn % len(pods)]
        number = port.target if isinstance(port.target, int) else pod.template.ports[port.target]
        return pod.address, number


class Wires:
    """The wires of pods to a server outside: each pod has one of its own, on its own address, which can be cut."""

    def __init__(self, ports: Sequence[int], server: Callable[[], Place]) -> None:
        self._ports, self._server = ports, server
        self._relays: dict[str, list[Relay]] = {}

    async def lay(self, pod: str) -> None:
        """A wire for the pod at an address. Raises OSError."""
        self._relays[pod] = [Relay((pod, port), self._server, source=pod) for port in self._ports]
        for relay in self._relays[pod]:
            await relay.start()

    def cut(self, pod: str) -> None:
        """From now on the pod at an address does not reach the server, nor the server it."""
        for relay in self._relays[pod]:
            relay.cut()

    def mend(self, pod: str) -> None:
        """The pod reaches the server again."""
        for relay in self._relays[pod]:
            relay.mend()

    async def take_up(self, pod: str) -> None:
        """The pod is gone."""
        for relay in self._relays.pop(pod, []):
            await relay.close()

    async def close(self) -> None:
        """Take all up."""
        for pod in list(self._relays):
            await self.take_up(pod)
