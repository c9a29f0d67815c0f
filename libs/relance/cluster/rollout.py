"""What a Deployment does next: which pods to start and to stop so that the wanted ones run, as a pure function.

The rules are those of a cluster: never more than replicas + surge pods, never fewer available than
replicas - unavailable; pods that are ending count neither way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relance.cluster.manifests import Strategy


@dataclass(frozen=True, slots=True)
class Replica:
    """A pod that is not ending. available: ready for as long as minReadySeconds wants; made: order of their making."""

    name: str
    revision: str
    available: bool
    made: int


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now."""

    start: int = 0
    stop: tuple[str, ...] = ()


def next_step(replicas: Sequence[Replica], *, revision: str, wanted: int, strategy: Strategy, ending: int = 0) -> Step:
    """The step from these pods towards `wanted` of `revision`. `ending`: pods that are on their way out."""
    new = [replica for replica in replicas if replica.revision == revision]
    old = [replica for replica in replicas if replica.revision != revision]
    if strategy.recreate and (old or (ending and not new)):
        return Step(stop=tuple(replica.name for replica in old))
    start = max(0, min(wanted + strategy.surge - len(replicas), wanted - len(new)))
    if not old:
        return Step(start, tuple(replica.name for replica in _first_to_go(new)[: max(0, len(new) - wanted)]))
    least = wanted - strategy.unavailable
    available = sum(replica.available for replica in replicas)
    new_not_yet = sum(not replica.available for replica in new)
    may_go = max(0, len(replicas) - least - new_not_yet)
    # Old pods that are of no use go first, and cost nothing; of the others so many that enough stay.
    useless = [replica for replica in _first_to_go(old) if not replica.available][:may_go]
    useful = [replica for replica in _first_to_go(old) if replica.available][: max(0, available - least)]
    stop = (*useless, *useful[: max(0, may_go - len(useless))])
    surplus = _first_to_go(new)[: max(0, len(new) - wanted)]
    return Step(start, tuple(replica.name for replica in (*stop, *surplus)))


def _first_to_go(replicas: Sequence[Replica]) -> list[Replica]:
    """Pods in the order in which they are given up: those not available, then the newest."""
    return sorted(replicas, key=lambda replica: (replica.available, -replica.made))
