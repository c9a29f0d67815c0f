"""A cluster of one machine: manifests in, processes out.

addresses -> database -> Services -> StatefulSets (NATS) and Jobs -> Deployments
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relance.cluster.addresses import Addresses
from relance.cluster.database import Database
from relance.cluster.deployment import Deployment
from relance.cluster.document import ManifestError
from relance.cluster.environment import PodFacts, environment, service_links
from relance.cluster.manifests import Job, Manifests, Workload
from relance.cluster.pod import Image, Pod, Surroundings, image_name
from relance.cluster.pods import PodTemplate
from relance.cluster.rewrites import Ledger
from relance.cluster.wires import ServiceAddress, Wires

POSTGRES = "postgres"
IMAGES = {
    "relance": Image(),
    "nats": Image(("nats-server",), ("-a", "$(address)")),
}
"""What this machine has instead of images: the programs are those of this environment."""

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Cluster:
    """Runs manifests in `folder`. To be used from the main thread's event loop.

    `replicas`: other numbers of pods than the manifests', by Deployment. `say` gets a sentence for whatever happens.
    """

    def __init__(
        self, manifests: Manifests, folder: Path, say: Callable[[str], None], replicas: Mapping[str, int] | None = None
    ) -> None:
        self.manifests, self.say = manifests, say
        self.ledger = Ledger()
        self.folder = folder
        self._pods_folder = folder / "pods"
        self._pods_folder.mkdir(parents=True)
        self._addresses = Addresses(_ports(manifests))
        self._made = 0
        self._database_name, database = _database(manifests)
        self.database = Database(folder / "postgres", *_owner(database, manifests))
        self.service_addresses = {name: self._addresses.service() for name in manifests.services}
        databases = [service for service in manifests.services.values() if service.selects(database.template)]
        self.wires = Wires([port.port for each in databases for port in each.ports], lambda: self.database.place)
        self._hosts_of_database = {service.name for service in databases}
        self.services = {
            name: ServiceAddress(service, self.service_addresses[name], self._pods)
            for name, service in manifests.services.items()
            if name not in self._hosts_of_database
        }
        self.deployments = {
            name: self._deployment(workload, (replicas or {}).get(name, workload.replicas))
            for name, workload in manifests.workloads.items()
            if name != self._database_name
        }
        self._keepers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Bring everything up. Raises ManifestError, RoomError; then `kill` ends what was started."""
        await self.database.start()
        for service in self.services.values():
            await service.start()
        first = [deployment for deployment in self.deployments.values() if deployment.workload.stateful]
        for deployment in first:
            self._keep(deployment)
        await asyncio.gather(
            *(deployment.wait_settled(60) for deployment in first),
            *(self.run_job(job) for job in self.manifests.jobs.values()),
        )
        others = [deployment for deployment in self.deployments.values() if not deployment.workload.stateful]
        for deployment in others:
            self._keep(deployment)
        for deployment in others:
            await deployment.wait_settled(120)

    async def run_job(self, job: Job) -> None:
        """Run a Job until it succeeds. Raises ManifestError where it does not."""
        for attempt in range(job.retries + 1):
            pod = self._pod(f"{job.name}-{_suffix()}", job.name, job.template)
            if await pod.run_once(job.deadline) == 0:
                self.say(f"Job {job.name} is done")
                return
            self.say(f"Job {job.name} failed: {pod.last_words()}")
            await asyncio.sleep(min(10 * 2**attempt, 60))
        raise ManifestError(f"Job {job.name} failed {job.retries + 1} times")

    def deployment(self, component: str) -> Deployment:
        """The Deployment whose name is, or ends with, `component`. Raises ManifestError."""
        for name, deployment in self.deployments.items():
            if name == component or name.endswith(f"-{component}"):
                return deployment
        raise ManifestError(f"there is no Deployment for {component}; there are {', '.join(self.deployments)}")

    def client_address(self, component: str) -> str:
        """host:port of the Service for clients of a component: the one with an address of its own."""
        deployment = self.deployment(component)
        for address in self.services.values():
            service = address.service
            if not service.headless and service.selects(deployment.template):
                return f"{address.address}:{service.ports[0].port}"
        raise ManifestError(f"no Service with an address of its own stands before {deployment.name}")

    @property
    def restarts(self) -> int:
        """How often containers were started again."""
        return sum(pod.restarts for each in self.deployments.values() for pod in (*each.pods, *each.past))

    def kill(self) -> None:
        """End every process at once."""
        for keeper in self._keepers:
            keeper.cancel()
        for deployment in self.deployments.values():
            deployment.kill()
        self.database.kill()

    async def stop(self) -> None:
        """End everything and close every wire."""
        self.kill()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for service in self.services.values():
            await service.close()
        await self.wires.close()

    # Parts

    def _keep(self, deployment: Deployment) -> None:
        self._keepers.append(asyncio.create_task(deployment.run(), name=f"keep {deployment.name}"))

    def _pods(self) -> Iterator[Pod]:
        for deployment in self.deployments.values():
            yield from deployment.pods

    def _deployment(self, workload: Workload, replicas: int) -> Deployment:
        def make(template: PodTemplate) -> Pod:
            name = f"{workload.name}-0" if workload.stateful else f"{workload.name}-{template.revision}-{_suffix()}"
            return self._pod(name, workload.name, template)

        return Deployment(replace(workload, replicas=replicas), make, self.say)

    def _pod(self, name: str, workload: str, template: PodTemplate) -> Pod:
        address = self._addresses.pod()
        self._made += 1
        hosts = {
            service: (address, "the pod's own wire to the database")
            if service in self._hosts_of_database
            else (self.service_addresses[service], f"the address that stands in for the Service {service}")
            for service in self.manifests.services
        }
        around = Surroundings(
            folder=self._pods_folder,
            manifests=self.manifests,
            hosts=hosts,
            links=service_links(list(self.manifests.services.values()), self.service_addresses),
            ledger=self.ledger,
            say=self.say,
            images=IMAGES,
            join=self.wires.lay,
            leave=self._leave,
        )
        return Pod(name, workload, template, address, self._made, around)

    async def _leave(self, address: str) -> None:
        await self.wires.take_up(address)
        self._addresses.give_back(address)


def _suffix() -> str:
    return "".join(random.choices(_LETTERS, k=5))


def _ports(manifests: Manifests) -> set[int]:
    """All ports that anything listens on."""
    templates = [workload.template for workload in manifests.workloads.values()]
    of_pods = {number for template in templates for number in template.ports.values()}
    return of_pods | {port.port for service in manifests.services.values() for port in service.ports}


def _database(manifests: Manifests) -> tuple[str, Workload]:
    """The workload that is PostgreSQL. Raises ManifestError where the overlay has none: it uses one outside."""
    for name, workload in manifests.workloads.items():
        if image_name(workload.template.containers[0].image) == POSTGRES:
            return name, workload
    raise ManifestError(
        "the overlay has no PostgreSQL pod (image postgres) for which an embedded one could stand in; take overlays/dev"
    )


def _owner(database: Workload, manifests: Manifests) -> tuple[str, str, str]:
    """User, password and database that the image postgres makes when it starts, by its documented variables."""
    container = database.template.containers[0]
    facts = PodFacts(f"{database.name}-0", manifests.namespace, "127.0.0.1")
    said = environment(container, facts, manifests)
    user = said.get("POSTGRES_USER", "postgres")
    password = said.get("POSTGRES_PASSWORD") or _from_file(said.get("POSTGRES_PASSWORD_FILE", ""), database, manifests)
    if not password:
        raise ManifestError(f"{database.name}: neither POSTGRES_PASSWORD nor POSTGRES_PASSWORD_FILE says a password")
    return user, password, said.get("POSTGRES_DB", user)


def _from_file(path: str, database: Workload, manifests: Manifests) -> str:
    """What a file of a mounted Secret holds."""
    folder, _, name = path.rpartition("/")
    mounts = {mount.path: mount.volume for mount in database.template.containers[0].mounts}
    for volume in database.template.volumes:
        if mounts.get(folder) == volume.name:
            for part in volume.parts:
                keys = {path: key for key, path in part.items}
                return manifests.secrets.get(part.name, {}).get(keys.get(name, name), b"").decode()
    return ""
