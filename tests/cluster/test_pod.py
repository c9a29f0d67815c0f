"""A pod as processes: its beginning, its probes, its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.support import NOWHERE, around

from relance.cluster.document import ManifestError
from relance.cluster.manifests import Manifests
from relance.cluster.pod import Pod, image_name
from relance.cluster.pods import Container, Mount, PodTemplate, PreStop, Probe, Volume
from relance.room.room import until

MakePod = Callable[[PodTemplate], Pod]

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
ONCE = "import sys; sys.exit(open('/v/first').read() != 'yes')"


def container(code: str, **more: object) -> Container:
    """A container that runs a line of Python."""
    return Container("service", "relance", ("python", "-I", "-S", "-c", code), **more)  # type: ignore[arg-type]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakePod]:
    """Makes pods; what is left of them is killed."""
    made: list[Pod] = []

    def one(template: PodTemplate) -> Pod:
        surroundings = around(tmp_path, Manifests())
        made.append(Pod(f"pod-{len(made)}", "pod", template, NOWHERE, len(made), surroundings))
        return made[-1]

    yield one
    for pod in made:
        pod.kill()


async def test_a_pod_that_does_not_end_within_its_grace_is_killed(make: MakePod) -> None:
    pod = make(PodTemplate((container(STUBBORN),), grace=1))
    pod.start()
    assert await until(lambda: pod.ready and "up" in pod.child.log_tail(), 30)
    await pod.end()
    assert pod.gone
    assert pod.killed
    assert not pod.child.running


async def test_a_pod_is_out_of_its_services_before_its_pre_stop_begins(make: MakePod) -> None:
    pod = make(PodTemplate((container("import time; time.sleep(60)", pre_stop=PreStop(sleep=0.3)),)))
    pod.start()
    assert await until(lambda: pod.ready, 30)
    ending = asyncio.create_task(pod.end())
    await asyncio.sleep(0)
    assert not pod.ready
    assert pod.child.running
    await ending
    assert pod.ended_in >= 0.3
    assert not pod.killed


async def test_a_container_that_fails_its_liveness_probe_is_started_again_in_its_pod(make: MakePod) -> None:
    alive = Probe(
        "exec", command=(sys.executable, "-I", "-S", "-c", "raise SystemExit(1)"), period=0.1, timeout=20, failure=2
    )
    pod = make(PodTemplate((container("import time; time.sleep(60)", liveness=alive),)))
    pod.start()
    assert await until(lambda: pod.restarts == 1 and pod.child.running, 30)
    assert pod.containers[0].failed_probes == 1


async def test_readiness_counts_only_once_the_start_is_over(make: MakePod, tmp_path: Path) -> None:
    asked, over = tmp_path / "asked", tmp_path / "over"
    script = f"echo >> {asked}; test -e {over}"
    started = Probe("exec", command=("/bin/sh", "-c", script), period=0.1, timeout=20, failure=1000)
    pod = make(PodTemplate((container("import time; time.sleep(60)", startup=started),)))
    pod.start()
    assert await until(lambda: asked.exists() and len(asked.read_text()) > 1, 30)
    assert not pod.ready
    over.touch()
    assert await until(lambda: pod.ready, 30)


async def test_a_job_runs_its_containers_in_order_on_the_same_volumes(make: MakePod) -> None:
    mounts = (Mount("v", "/v"),)
    first = container("open('/v/first', 'w').write('yes')", mounts=mounts)
    last = container(ONCE, mounts=mounts)
    assert await make(PodTemplate((last,), init=(first,), volumes=(Volume("v"),))).run_once(30) == 0
    assert await make(PodTemplate((last,), volumes=(Volume("v"),))).run_once(30) == 1
    assert await make(PodTemplate((container("import time; time.sleep(60)"),))).run_once(0.2) is None


def test_an_image_that_nobody_knows_is_refused(make: MakePod) -> None:
    with pytest.raises(ManifestError, match="image redis is not known here"):
        make(PodTemplate((Container("service", "redis:8", ("redis-server",)),))).start()


def test_images_are_known_by_the_last_part_of_their_names() -> None:
    assert image_name("registry.example:5000/rooms/relance:0.1@sha256:1") == "relance"
    assert image_name("nats:2-alpine") == "nats"
