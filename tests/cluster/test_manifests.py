"""Documents of kubectl kustomize, read as what is to be run."""

from __future__ import annotations

from fractions import Fraction

import pytest

from relance.cluster.document import ManifestError
from relance.cluster.manifests import Rolling, Strategy, read
from relance.cluster.pods import Mount, Part, Probe, Reference, Variable, Volume

TABLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: table, namespace: room}
spec:
  replicas: 3
  minReadySeconds: 5
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector: {matchLabels: {app: table}}
  template:
    metadata: {labels: {app: table, tier: game}}
    spec:
      terminationGracePeriodSeconds: 630
      securityContext: {runAsNonRoot: true}
      containers:
        - name: service
          image: registry.example/relance:1
          command: [python, -m, relance.table, serve]
          ports: [{name: grpc, containerPort: 7000}]
          env:
            - {name: PLAIN, value: "1"}
            - name: URL
              valueFrom: {secretKeyRef: {name: table, key: url}}
            - name: POD_IP
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
          readinessProbe:
            grpc: {port: 7000, service: readiness}
            periodSeconds: 2
            failureThreshold: 2
          volumeMounts: [{name: keys, mountPath: /etc/keys/}]
      volumes:
        - name: keys
          secret: {secretName: table, defaultMode: 0440, items: [{key: pem, path: a/b.pem}]}
---
kind: Service
metadata: {name: table}
spec: {clusterIP: None, selector: {app: table}, ports: [{name: grpc, port: 7000, targetPort: grpc}]}
---
kind: Secret
metadata: {name: table}
data:
  url: |
    cG9zdGdyZXM6
    Ly9h
stringData: {pem: key}
---
kind: NetworkPolicy
metadata: {name: nobody}
spec: {}
"""


def test_a_deployment_is_read_with_everything_that_a_pod_is_run_by() -> None:
    manifests = read(TABLE)
    table = manifests.workloads["table"]
    [container] = table.template.containers
    assert (manifests.namespace, table.replicas, table.min_ready, table.template.grace) == ("room", 3, 5, 630)
    assert table.rolling.strategy(3) == Strategy(1, 0)
    assert container.command == ("python", "-m", "relance.table", "serve")
    assert container.variables == (
        Variable("PLAIN", "1"),
        Variable("URL", reference=Reference("secret", "table", "url")),
        Variable("POD_IP", reference=Reference("field", "", "status.podIP")),
    )
    assert container.readiness == Probe("grpc", 7000, "readiness", period=2, failure=2)
    assert container.mounts == (Mount("keys", "/etc/keys"),)
    assert table.template.volumes == (Volume("keys", (Part("secret", "table", (("pem", "a/b.pem"),)),), 0o440),)
    assert manifests.secrets["table"] == {"url": b"postgres://a", "pem": b"key"}
    assert manifests.services["table"].headless
    assert manifests.services["table"].selects(table.template)
    assert manifests.aside == {"NetworkPolicy": 1}


def test_another_template_is_another_revision_and_the_same_one_is_not() -> None:
    first, same = read(TABLE), read(TABLE)
    other = read(TABLE.replace('value: "1"', 'value: "2"'))
    assert first.workloads["table"].template.revision == same.workloads["table"].template.revision
    assert first.workloads["table"].template.revision != other.workloads["table"].template.revision


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "replicas: 3",
            "replicas: 3\n  paused: true",
            "Deployment table: spec.paused: this runner does not carry it out",
        ),
        ("replicas: 3", "replicas: three", "Deployment table: spec.replicas: a whole number is expected, not 'three'"),
        ('value: "1"', "value: 1", "a text is expected, not 1"),
        ("terminationGracePeriodSeconds: 630", "hostNetwork: true", "spec.template.spec.hostNetwork"),
        (
            "kind: NetworkPolicy",
            "kind: DaemonSet",
            "DaemonSet nobody: this runner does not know documents of this kind",
        ),
        ("stringData", "data: {}\nstringData: {a: [", "not YAML"),
    ],
)
def test_what_is_not_carried_out_is_an_error_that_says_where(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(TABLE.replace(old, new, 1))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("rolling", "replicas", "strategy"),
    [
        (Rolling(), 3, Strategy(1, 0)),
        (Rolling(), 10, Strategy(3, 2)),
        (Rolling(0, 0), 3, Strategy(0, 1)),
        (Rolling(Fraction(1, 2), 1), 3, Strategy(2, 1)),
    ],
)
def test_parts_of_the_replicas_are_rounded_as_a_cluster_rounds_them(
    rolling: Rolling, replicas: int, strategy: Strategy
) -> None:
    assert rolling.strategy(replicas) == strategy


def test_an_autoscaler_wants_no_fewer_than_its_least() -> None:
    scaler = """
---
kind: HorizontalPodAutoscaler
metadata: {name: table}
spec: {scaleTargetRef: {name: table}, minReplicas: 5}
"""
    assert read(TABLE + scaler).workloads["table"].replicas == 5
