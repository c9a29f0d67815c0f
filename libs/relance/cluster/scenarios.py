"""What is done to pods, and which hands may be void because of it."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from relance.cluster.cluster import Cluster
from relance.cluster.document import ManifestError
from relance.cluster.pod import Pod
from relance.cluster.record import AWAY, Hand, Record
from relance.room.processes import Child
from relance.room.room import until
from relance.room.services import inherited

LOOK_SECONDS = 0.1
IN_PROGRESS = 2
"""Hands that run at a pod before something happens to it."""
TAKEN_OVER_SECONDS = 40.0
PATIENCE = 90.0
STREAM = "RELANCE_TABLES"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing that happens. `run` answers the hands that have to be void."""

    name: str
    title: str
    run: Callable[[Stage], Awaitable[set[Hand]]]


class Stage:
    """The cluster, its log, and how to find a pod with something at stake."""

    def __init__(
        self, cluster: Cluster, record: Record, pods: int, token: Callable[[], str], say: Callable[[str], None]
    ) -> None:
        self.cluster, self.record, self.pods, self.say = cluster, record, pods, say
        self.tables = cluster.deployment("table")
        self.taken_after: float | None = None
        """Seconds until all tables of a pod that was gone had new owners."""
        self._token = token

    async def until(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        """Follow the log until a condition holds. Raises ManifestError where it does not."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                await self.record.follow()
                if reached():
                    return
            except AWAY as error:
                if time.monotonic() > deadline:
                    raise ManifestError(f"the database is away: {error}") from error
            if time.monotonic() > deadline:
                raise ManifestError(f"gave up after {seconds:.0f} s of waiting until {what}")
            await asyncio.sleep(LOOK_SECONDS)

    async def victim(self) -> Pod:
        """The ready table pod with the most hands in progress, once it has some."""

        def busiest() -> Pod:
            return max(self.tables.ready, key=lambda pod: self.record.running(pod.address))

        await self.until(
            lambda: bool(self.tables.ready) and self.record.running(busiest().address) >= IN_PROGRESS,
            f"{IN_PROGRESS} hands run at one pod",
            60,
        )
        return busiest()

    async def plays_on(self) -> None:
        """Wait until every table has an owner among the pods, and every table pod beats."""
        addresses = {pod.address for pod in self.tables.pods}
        await self.record.follow()
        seen = dict(self.record.beats)
        await self.until(lambda: not self.record.unowned(addresses), "every table has an owner", PATIENCE)

        def beating() -> set[str]:
            return {address for (address, id_), beat in self.record.beats.items() if beat > seen.get((address, id_), 0)}

        await self.until(lambda: addresses <= beating(), "the heart of every table pod beats", PATIENCE)

    async def rebalance(self) -> None:
        """Spread the tables over the pods, by the operators' command."""
        words = ("rebalance", "--address", self.cluster.client_address("table"), "--token", self._token())
        folder = self.cluster.folder
        (folder / "rebalance.log").unlink(missing_ok=True)
        child = Child("rebalance", folder / "rebalance.pid", folder / "rebalance.log")
        child.start([sys.executable, "-m", "relance.cli", *words], inherited())
        await until(lambda: not child.running)
        said = child.log_tail(8000)
        if child.exit_code != 0:
            raise ManifestError(f"relance rebalance: {said}")
        moved = sum(line.rstrip().endswith("moved") for line in said.splitlines())
        self.say(f"relance rebalance: tables moved: {moved}")

    async def taken_over(self, pod: Pod, names: list[str]) -> None:
        """Wait until other pods run tables that were a pod's."""
        began = time.monotonic()
        others = {each.address for each in self.tables.pods if each is not pod}
        await self.until(
            lambda: all(self.record.owners[name].address.rpartition(":")[0] in others for name in names),
            f"others run the {len(names)} tables of {pod.name}",
            TAKEN_OVER_SECONDS,
        )
        self.taken_after = time.monotonic() - began
        self.say(f"{len(names)} tables of {pod.name} run elsewhere after {self.taken_after:.1f} s")


async def rolling_update(stage: Stage) -> set[Hand]:
    """The pods of all Deployments are replaced at once, each as its Deployment says: as a new image does."""
    deployments = [each for each in stage.cluster.deployments.values() if not each.workload.stateful]
    for deployment in deployments:
        deployment.restart()
    for deployment in deployments:
        await deployment.wait_settled(300)
    return set()


async def kill(stage: Stage) -> set[Hand]:
    """SIGKILL. The pod is held for a moment before, so that it is known which hands it had."""
    pod = await stage.victim()
    pod.child.send(signal.SIGSTOP)
    hands = await stage.record.still(pod.address)
    fences = {name: stage.record.owners[name].fence for name in stage.record.run_by(pod.address)}
    pod.child.send(signal.SIGKILL)
    stage.say(f"killed {pod.name} with {len(fences)} tables and {len(hands)} hands in progress")
    began = time.monotonic()
    await stage.until(
        lambda: all(stage.record.owners[name].fence > fence for name, fence in fences.items()),
        f"the {len(fences)} tables of {pod.name} have new owners",
        TAKEN_OVER_SECONDS,
    )
    stage.taken_after = time.monotonic() - began
    stage.say(f"all have new owners after {stage.taken_after:.1f} s")
    await stage.tables.wait_settled(120)
    return hands


async def freeze(stage: Stage) -> set[Hand]:
    """SIGSTOP until others have taken its tables, then SIGCONT: it wakes up as an owner that it is no more."""
    pod = await stage.victim()
    pod.child.send(signal.SIGSTOP)
    hands = await stage.record.still(pod.address)
    names = stage.record.run_by(pod.address)
    stage.say(f"{pod.name} stands still with {len(names)} tables and {len(hands)} hands in progress")
    await stage.taken_over(pod, names)
    pod.child.send(signal.SIGCONT)
    await stage.tables.wait_settled(120)
    return hands


async def partition(stage: Stage) -> set[Hand]:
    """The wire of a pod to the database carries nothing until others have taken its tables, and then again."""
    pod = await stage.victim()
    stage.cluster.wires.cut(pod.address)
    hands = await stage.record.still(pod.address)
    names = stage.record.run_by(pod.address)
    stage.say(f"{pod.name} is cut off from PostgreSQL with {len(names)} tables and {len(hands)} hands in progress")
    await stage.taken_over(pod, names)
    stage.cluster.wires.mend(pod.address)
    await stage.tables.wait_settled(120)
    return hands


async def scale(stage: Stage) -> set[Hand]:
    """Two pods more, then down to two, then as before."""
    for replicas in (stage.pods + 2, 2, stage.pods):
        grows = replicas > stage.tables.wanted
        stage.tables.scale(replicas)
        await stage.tables.wait_settled(240)
        stage.say(f"{replicas} table pods")
        if grows:
            await stage.rebalance()
    return set()


async def nats_wiped(stage: Stage) -> set[Hand]:
    """The NATS pod is gone with all that it kept, and another one starts with nothing."""
    nats = stage.cluster.deployment("nats")
    await nats.pods[0].end(force=True)
    await stage.until(lambda: nats.settled and not nats.pods[0].ending, "NATS is there again", 60)
    pod = nats.pods[0]
    monitor = f"http://{pod.address}:{pod.template.ports['monitor']}/jsz?streams=1"
    deadline = time.monotonic() + 60
    while STREAM not in await asyncio.to_thread(_read, monitor):
        if time.monotonic() > deadline:
            raise ManifestError(f"nobody made the stream {STREAM} again in the new NATS")
        await asyncio.sleep(0.5)
    return set()


async def database_restarted(stage: Stage) -> set[Hand]:
    """PostgreSQL is shut down, which ends every session, and started again."""
    await stage.cluster.database.restart()
    for deployment in stage.cluster.deployments.values():
        await deployment.wait_settled(120)
    return set()


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


SCENARIOS = (
    Scenario("rolling", "rolling update of all Deployments at once", rolling_update),
    Scenario("kill", "SIGKILL of a table pod", kill),
    Scenario("freeze", "SIGSTOP past the lease, SIGCONT", freeze),
    Scenario("partition", "pod cut off from PostgreSQL", partition),
    Scenario("scale", "scale up by two, down to two, back", scale),
    Scenario("nats", "NATS wiped", nats_wiped),
    Scenario("database", "PostgreSQL restarted", database_restarted),
)
