"""A Deployment of a real service: the wallet's, killed, updated and ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest_asyncio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.cluster.support import around
from tests.conftest import Migrated

from relance.cluster.addresses import Addresses
from relance.cluster.deployment import Deployment
from relance.cluster.manifests import Manifests, read
from relance.cluster.pod import Pod
from relance.cluster.pods import PodTemplate
from relance.cluster.wires import ServiceAddress
from relance.room.folder import DataFolder
from relance.room.ports import free_block
from relance.room.room import until

MANIFEST = """
kind: Deployment
metadata: {{name: wallet}}
spec:
  replicas: 1
  strategy: {{rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}
  template:
    metadata: {{labels: {{app: wallet}}}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
        - name: service
          image: relance
          command: [python, -m, relance.wallet, serve]
          ports: [{{name: grpc, containerPort: {port}}}, {{name: health, containerPort: {health}}}]
          env:
            - {{name: RELANCE_LISTEN, value: "0.0.0.0:{port}"}}
            - {{name: RELANCE_HEALTH, value: "0.0.0.0:{health}"}}
            - {{name: RELANCE_KEYRING, value: /etc/keys/keyring.json}}
            - {{name: RELANCE_SIGNING_KEY, value: /etc/keys/service.pem}}
            - name: RELANCE_DATABASE_URL
              valueFrom: {{secretKeyRef: {{name: wallet, key: url}}}}
            - name: RELANCE_INSTANCE
              valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}
          readinessProbe:
            grpc: {{port: {health}, service: readiness}}
            periodSeconds: 1
            timeoutSeconds: 5
          volumeMounts: [{{name: keys, mountPath: /etc/keys}}]
      volumes:
        - name: keys
          secret: {{secretName: wallet}}
---
kind: Service
metadata: {{name: wallet}}
spec: {{selector: {{app: wallet}}, ports: [{{port: {port}, targetPort: grpc}}]}}
"""


@pytest_asyncio.fixture
async def manifests(migrated: Migrated, tmp_path: Path) -> Manifests:
    """The wallet's, with a database and keys."""
    port = free_block(2)
    found = read(MANIFEST.format(port=port, health=port + 1))
    folder = DataFolder(tmp_path / "keys")
    folder.take()
    folder.make_keys()
    files = {"keyring.json": folder.keyring, "service.pem": folder.key_file("service-1")}
    folder.release()
    url = await migrated("relance.wallet")
    found.secrets["wallet"] = {"url": url.encode(), **{name: file.read_bytes() for name, file in files.items()}}
    return found


@pytest_asyncio.fixture
async def deployment(manifests: Manifests, tmp_path: Path) -> AsyncIterator[Deployment]:
    """The Deployment, kept until the test ends."""
    workload = manifests.workloads["wallet"]
    addresses = Addresses(workload.template.ports.values())
    made = 0

    def make(template: PodTemplate) -> Pod:
        nonlocal made
        made += 1
        return Pod(f"wallet-{made}", "wallet", template, addresses.pod(), made, around(tmp_path, manifests))

    kept = Deployment(workload, make, lambda _sentence: None)
    keeper = asyncio.create_task(kept.run())
    yield kept
    keeper.cancel()
    kept.kill()


async def test_a_pod_of_a_real_service_is_started_again_and_replaced_without_a_gap(
    deployment: Deployment, manifests: Manifests
) -> None:
    await deployment.wait_settled(60)
    [first] = deployment.pods
    service = ServiceAddress(manifests.services["wallet"], "127.0.0.2", lambda: deployment.pods)
    await service.start()
    [port] = manifests.services["wallet"].ports
    assert await serves(f"127.0.0.2:{port.port}")

    first.child.send(signal.SIGKILL)
    assert await until(lambda: first.restarts == 1 and deployment.settled, 60), first.last_words()
    assert deployment.pods == [first]

    ready: list[int] = []
    watching = asyncio.create_task(watch(lambda: ready.append(len(deployment.ready))))
    deployment.restart()
    await deployment.wait_settled(60)
    watching.cancel()
    assert 1 <= min(ready) <= max(ready) <= 2
    assert first.gone
    assert not first.killed
    assert await serves(f"127.0.0.2:{port.port}")
    await service.close()


async def watch(look: Callable[[], None]) -> None:
    """Look for ever."""
    while True:
        look()
        await asyncio.sleep(0.02)


async def serves(address: str) -> bool:
    """Whether a service answers there that it serves."""
    async with grpc.aio.insecure_channel(address) as channel:
        request = health_pb2.HealthCheckRequest(service="readiness")
        answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=10, wait_for_ready=True)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
