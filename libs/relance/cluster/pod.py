"""One pod as processes: its containers are started, asked, started again when they die, and ended with grace."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relance.cluster.document import ManifestError
from relance.cluster.environment import PodFacts, arguments, environment, expand
from relance.cluster.manifests import Manifests
from relance.cluster.pods import Container, PodTemplate, Probe
from relance.cluster.probing import answers, keep_asking, run
from relance.cluster.rewrites import Ledger, Rewriter
from relance.cluster.volumes import mounted, write_volumes
from relance.room.processes import Child
from relance.room.room import until

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
# A container that ran this long has started well: the next death is a new story.
STEADY_SECONDS = 600.0
_PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
_PYTHONS = ("python", "python3", "python3.11", "python3.12", "python3.13")


@dataclass(frozen=True, slots=True)
class Image:
    """What this machine knows of an image: its entry point, and arguments that are added ($(address): the pod's)."""

    entry_point: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


@dataclass(slots=True)
class Surroundings:
    """What a pod is put into. hosts: name of a Service -> (its address for this pod, kind for the ledger)."""

    folder: Path
    manifests: Manifests
    hosts: Mapping[str, tuple[str, str]]
    links: Mapping[str, str]
    ledger: Ledger
    say: Callable[[str], None]
    images: Mapping[str, Image]
    join: Callable[[str], Awaitable[None]]
    """Connects the address of a pod before it starts."""
    leave: Callable[[str], Awaitable[None]]
    """The pod at an address is gone."""


class Running:
    """A container of a pod while it is there."""

    def __init__(self, container: Container, child: Child) -> None:
        self.container, self.child = container, child
        self.ready = False
        self.restarts = 0
        self.failed_probes = 0


class Pod:
    """A pod. `made` orders pods by their making; `revision` is that of its template."""

    def __init__(
        self, name: str, workload: str, template: PodTemplate, address: str, made: int, around: Surroundings
    ) -> None:
        self.name, self.workload, self.template, self.address, self.made = name, workload, template, address, made
        self.ending = self.gone = False
        self.killed = False
        """Whether it did not end within its grace."""
        self.ended_in = 0.0
        """Seconds that its end took."""
        self._around = around
        self._folder = around.folder / f"{made:03d}-{name}"
        self._ready_since: float | None = None
        self._stop = asyncio.Event()
        self._facts = PodFacts(
            name, around.manifests.namespace, address, f"{made:08x}", template.service_account, template.labels,
            template.annotations,
        )  # fmt: skip
        self._folder.mkdir(parents=True)
        self.containers = [self._running(container) for container in template.containers]
        self._last = self.containers[0].child  # the one that was started last
        self._task: asyncio.Task[None] | None = None

    @property
    def revision(self) -> str:
        """Which template it was made of."""
        return self.template.revision

    @property
    def ready(self) -> bool:
        """Whether a Service may send anybody here."""
        return not self.ending and all(running.ready for running in self.containers)

    def available(self, seconds: float) -> bool:
        """Whether it has been ready for so many seconds."""
        if not self.ready:
            self._ready_since = None
            return False
        if self._ready_since is None:
            self._ready_since = time.monotonic()
        return time.monotonic() - self._ready_since >= seconds

    @property
    def restarts(self) -> int:
        """How often its containers were started again."""
        return sum(running.restarts for running in self.containers)

    @property
    def child(self) -> Child:
        """The process of its first container."""
        return self.containers[0].child

    def start(self) -> None:
        """Bring it to life. Raises ManifestError."""
        self._write_volumes()
        for container in (*self.template.init, *self.template.containers):
            self._image(container)
        self._task = asyncio.create_task(self._live(), name=f"pod {self.name}")

    async def end(self, *, force: bool = False) -> None:
        """Take it out of its Services, run its preStop, SIGTERM, and after the grace SIGKILL. Forced: SIGKILL."""
        if self.ending:
            return
        self.ending = True
        began = time.monotonic()
        self._stop.set()
        if force:
            for running in self.containers:
                running.child.stop(signal.SIGKILL)
        await asyncio.gather(*(self._end(running, began + self.template.grace) for running in self.containers))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.ended_in = time.monotonic() - began
        await self._around.leave(self.address)
        self.gone = True

    def kill(self) -> None:
        """End at once what is left, with SIGKILL."""
        self.ending = self.gone = True
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
        for running in self.containers:
            running.child.send(signal.SIGKILL)
            running.child.wait(5)

    async def run_once(self, deadline: float | None) -> int | None:
        """Run a pod of a Job to its end: the exit code; None: it took too long."""
        self._write_volumes()
        await self._around.join(self.address)
        try:
            for container in (*self.template.init, *self.template.containers):
                child = self._launch(container)
                ended = await until(lambda child=child: not child.running, deadline or 600.0)  # type: ignore[misc]
                if not ended or child.exit_code != 0:
                    return child.exit_code
            return 0
        finally:
            self._last.stop(signal.SIGKILL)
            await self._around.leave(self.address)

    def last_words(self) -> str:
        """Why it is not ready, as far as its containers said."""
        return f"{self.name}: {self._last.last_words()}"

    # Life

    async def _live(self) -> None:
        await self._around.join(self.address)
        for container in self.template.init:
            pause = 0.0
            while (await self._initialized(container)) != 0:
                pause = min(max(FIRST_PAUSE, pause * 2), LONGEST_PAUSE)
                self._around.say(f"{self.name}: {container.name} failed, again in {pause:.0f} s")
                await asyncio.sleep(pause)
        await asyncio.gather(*(self._keep(running) for running in self.containers))

    async def _initialized(self, container: Container) -> int | None:
        child = self._launch(container)
        try:
            await until(lambda: not child.running)
        finally:
            child.stop(signal.SIGKILL)
        return child.exit_code

    async def _keep(self, running: Running) -> None:
        """Start a container, and again whenever it ends: at once the first time, then more and more slowly."""
        pause = 0.0
        while not self.ending:
            started = time.monotonic()
            self._launch(running.container, running.child)
            asking = asyncio.create_task(self._ask(running))
            try:
                await until(lambda: not running.child.running)
            finally:
                asking.cancel()
                running.ready = False
            await asyncio.gather(asking, return_exceptions=True)
            if self.ending:
                return
            if time.monotonic() - started > STEADY_SECONDS:
                pause = 0.0
            running.restarts += 1
            self._around.say(
                f"{self.name}: {running.container.name} ended ({_how(running.child.exit_code)}); "
                + (f"started again in {pause:.0f} s" if pause else "started again")
            )
            await _first(self._stop.wait(), pause)
            pause = min(max(FIRST_PAUSE, pause * 2), LONGEST_PAUSE)

    async def _ask(self, running: Running) -> None:
        """Ask the container until it ends: whether it has started, then whether it is ready and alive."""
        container = running.container
        if container.startup is not None:
            started = asyncio.Event()
            failed = asyncio.Event()
            asking = asyncio.create_task(
                keep_asking(
                    container.startup,
                    lambda: self._answers(running, container.startup),
                    lambda yes: (started if yes else failed).set(),
                )
            )
            try:
                await _either(started.wait(), failed.wait())
            finally:
                asking.cancel()
            if not started.is_set():
                await self._not_alive(running, container.startup, "did not start in time")
                return
        work = []
        if container.readiness is None:
            running.ready = True
        else:
            work.append(
                keep_asking(
                    container.readiness,
                    lambda: self._answers(running, container.readiness),
                    lambda yes: setattr(running, "ready", yes),
                )
            )
        if container.liveness is not None:
            work.append(self._watch_life(running, container.liveness))
        await asyncio.gather(*work)

    async def _watch_life(self, running: Running, probe: Probe) -> None:
        dead = asyncio.Event()
        asking = asyncio.create_task(
            keep_asking(probe, lambda: self._answers(running, probe), lambda yes: None if yes else dead.set())
        )
        try:
            await dead.wait()
        finally:
            asking.cancel()
        await self._not_alive(running, probe, "does not answer the liveness probe")

    async def _answers(self, running: Running, probe: Probe | None) -> bool:
        assert probe is not None
        return await answers(probe, running.container, self.address, self._environment(running.container))

    async def _not_alive(self, running: Running, probe: Probe, why: str) -> None:
        running.ready = False
        if self.ending:
            return  # a pod on its way out is asked no more
        running.failed_probes += 1
        self._around.say(f"{self.name}: {running.container.name} {why}")
        await self._terminate(running, probe.grace if probe.grace is not None else self.template.grace)

    async def _end(self, running: Running, until_time: float) -> None:
        stop = running.container.pre_stop
        if stop is not None and running.child.running:
            await _first(self._before(running, stop.command, stop.sleep), until_time - time.monotonic())
        # What is left of the grace, but never nothing: a cluster gives two seconds more.
        if not await self._terminate(running, max(2.0, until_time - time.monotonic())):
            self.killed = True
            self._around.say(f"{self.name} did not end within its grace of {self.template.grace:.0f} s and was killed")

    async def _before(self, running: Running, command: Sequence[str], seconds: float) -> None:
        if command:
            await run(self._program(running.container, command), self._environment(running.container))
        await asyncio.sleep(seconds)

    async def _terminate(self, running: Running, grace: float) -> bool:
        running.child.send(signal.SIGTERM)
        ended = await until(lambda: not running.child.running, grace)
        if not ended:
            running.child.send(signal.SIGKILL)
        running.child.wait(5)
        return ended

    # Its processes

    def _write_volumes(self) -> None:
        rewriter = self._rewriter(self.template.containers[0])
        write_volumes(self.template, self._folder, self._around.manifests, rewriter.text)

    def _running(self, container: Container) -> Running:
        return Running(container, self._child(container))

    def _child(self, container: Container) -> Child:
        log = self._around.folder / f"{self._folder.name}.{container.name}.log"
        return Child(self.name, self._folder / f".{container.name}.pid", log, signal.SIGKILL)

    def _launch(self, container: Container, child: Child | None = None) -> Child:
        child = child or self._child(container)
        variables = self._environment(container)
        words = arguments(container, variables)
        if not container.command:
            words = [*self._image(container).entry_point, *words]
        rewriter = self._rewriter(container)
        words = [rewriter.text("argument", word) for word in words]
        words += [expand(word, {"address": self.address}) for word in self._image(container).extra]
        self._last = child
        child.start(self._program(container, words), variables)
        return child

    def _environment(self, container: Container) -> dict[str, str]:
        """What the process gets: what the manifest says, and what any container has."""
        rewriter = self._rewriter(container)
        said = environment(container, self._facts, self._around.manifests)
        usual = {"PATH": _PATH, "HOME": str(self._folder), "HOSTNAME": self.name, "LANG": "C.UTF-8"}
        if "PYTHONPATH" in os.environ:
            usual["PYTHONPATH"] = os.environ["PYTHONPATH"]
        links = self._around.links if self.template.service_links else {}
        return {**usual, **links, **{name: rewriter.text(name, value) for name, value in said.items()}}

    def _rewriter(self, container: Container) -> Rewriter:
        around = self._around
        mounts = mounted(container, self._folder)
        return Rewriter(self.workload, around.manifests.namespace, self.address, around.hosts, mounts, around.ledger)

    def _image(self, container: Container) -> Image:
        name = image_name(container.image)
        if name not in self._around.images:
            raise ManifestError(f"{self.name}: image {name} is not known here; {', '.join(self._around.images)} are")
        return self._around.images[name]

    def _program(self, container: Container, words: Sequence[str]) -> list[str]:
        """The command line with its program found here: Python is this one, others lie beside it."""
        if not words:
            raise ManifestError(f"{self.name}: container {container.name} has no command")
        first = Path(words[0])
        if first.name in _PYTHONS:
            return [sys.executable, *words[1:]]
        found = shutil.which(first.name, path=_PATH)
        if found is None:
            raise ManifestError(f"{self.name}: container {container.name}: there is no {words[0]} on this machine")
        return [found, *words[1:]]


def image_name(image: str) -> str:
    """The last part of an image's name, without registry, tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


async def _first(work: Coroutine[Any, Any, object], seconds: float) -> None:
    """Await something for at most so many seconds."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await work
    except TimeoutError:
        return


async def _either(*work: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _how(exit_code: int | None) -> str:
    return signal.Signals(-exit_code).name if exit_code is not None and exit_code < 0 else f"exit code {exit_code}"
