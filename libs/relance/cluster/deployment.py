"""A Deployment that is kept: as many pods as wanted, of the wanted template, changed as its strategy says."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import replace

from relance.cluster.document import ManifestError
from relance.cluster.manifests import Workload
from relance.cluster.pod import Pod
from relance.cluster.pods import PodTemplate
from relance.cluster.rollout import Replica, next_step

LOOK_SECONDS = 0.1
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


class Deployment:
    """The pods of one Deployment. `make` makes a pod, not yet started, of a template."""

    def __init__(self, workload: Workload, make: Callable[[PodTemplate], Pod], say: Callable[[str], None]) -> None:
        self.workload, self._make, self._say = workload, make, say
        self.name = workload.name
        self.wanted = workload.replicas
        self.template = workload.template
        self.pods: list[Pod] = []
        self.past: list[Pod] = []
        """Pods that are gone."""
        self._ends: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> list[Pod]:
        """Pods that a Service may send somebody to."""
        return [pod for pod in self.pods if pod.ready]

    @property
    def settled(self) -> bool:
        """Whether exactly the wanted pods are there, available and of the wanted template, and none is on its way."""
        return len(self.pods) == self.wanted and all(
            pod.revision == self.template.revision and pod.available(self.workload.min_ready) for pod in self.pods
        )

    async def run(self) -> None:
        """Keep it, for ever."""
        while True:
            self.step()
            await asyncio.sleep(LOOK_SECONDS)

    def step(self) -> None:
        """One look at the pods, and what follows from it."""
        self.past += [pod for pod in self.pods if pod.gone]
        self.pods = [pod for pod in self.pods if not pod.gone]
        staying = [pod for pod in self.pods if not pod.ending]
        step = next_step(
            [Replica(pod.name, pod.revision, pod.available(self.workload.min_ready), pod.made) for pod in staying],
            revision=self.template.revision,
            wanted=self.wanted,
            strategy=self.workload.rolling.strategy(self.wanted),
            ending=len(self.pods) - len(staying),
        )
        for pod in staying:
            if pod.name in step.stop:
                self._say(f"{pod.name} ends")
                task = asyncio.create_task(pod.end(), name=f"end {pod.name}")
                self._ends.add(task)
                task.add_done_callback(self._ended)
        for _ in range(step.start):
            pod = self._make(self.template)
            self.pods.append(pod)
            self._say(f"{pod.name} starts at {pod.address}")
            pod.start()

    def scale(self, replicas: int) -> None:
        """Want another number of pods."""
        self.wanted = replicas

    def restart(self) -> None:
        """Want all pods anew, as `kubectl rollout restart` does: by an annotation of the template."""
        now = f"{time.time():.6f}"
        revision = hashlib.sha256(f"{self.template.revision} {now}".encode()).hexdigest()[:10]
        annotations = {**self.template.annotations, RESTARTED_AT: now}
        self.template = replace(self.template, annotations=annotations, revision=revision)

    async def wait_settled(self, seconds: float | None = None) -> None:
        """Wait until it is as wanted. Raises ManifestError where that takes longer than its deadline."""
        limit = seconds if seconds is not None else self.workload.progress_deadline
        deadline = time.monotonic() + limit
        while not self.settled:
            if time.monotonic() > deadline:
                late = [pod for pod in self.pods if not pod.available(self.workload.min_ready)]
                why = "; ".join(pod.last_words() for pod in late) or f"{len(self.pods)} pods, {self.wanted} wanted"
                raise ManifestError(f"{self.name} is not as wanted after {limit:.0f} s: {why}")
            await asyncio.sleep(LOOK_SECONDS)

    def kill(self) -> None:
        """End all pods at once."""
        for task in self._ends:
            task.cancel()
        for pod in self.pods:
            pod.kill()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ends.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"{self.name}: a pod could not be ended: {error!r}")
