"""Addresses of loopback: 127.0.0.0/8 is this machine's own, so every pod has one without any set-up."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from relance.cluster.document import ManifestError

_FIRST_POD, _LAST_POD = 1, 189
_FIRST_SERVICE = 190


class Addresses:
    """A block of 254 addresses, 127.x.y.1 to 127.x.y.254, in which nobody listens on any of `ports`.

    Pods get 1 to 189 one after the other, over and over; Services those from 190 on.
    """

    def __init__(self, ports: Iterable[int]) -> None:
        wanted = sorted(set(ports))
        taken: list[int] = []
        for _ in range(100):
            self.block = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
            taken = _taken(f"{self.block}.{_FIRST_POD}", wanted) or _taken(f"{self.block}.{_FIRST_SERVICE}", wanted)
            if not taken:
                break
        else:
            raise ManifestError(
                f"port {taken[0]} is taken on all addresses of this machine: something listens on 0.0.0.0:{taken[0]}"
            )
        self._next_pod, self._next_service = _FIRST_POD, _FIRST_SERVICE
        self._pods: set[str] = set()

    def pod(self) -> str:
        """An address for a pod, not used by another one. Raises ManifestError where there is none left."""
        for _ in range(_LAST_POD):
            address = f"{self.block}.{self._next_pod}"
            self._next_pod = self._next_pod % _LAST_POD + 1
            if address not in self._pods:
                self._pods.add(address)
                return address
        raise ManifestError(f"more than {_LAST_POD} pods")

    def give_back(self, address: str) -> None:
        """The pod is gone."""
        self._pods.discard(address)

    def service(self) -> str:
        """An address for a Service."""
        if self._next_service > 254:
            raise ManifestError("more Services than addresses for them")
        self._next_service += 1
        return f"{self.block}.{self._next_service - 1}"


def _taken(host: str, ports: Iterable[int]) -> list[int]:
    taken = []
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                taken.append(port)
    return taken
