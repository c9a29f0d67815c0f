"""Prometheus metrics: rate, errors and duration of every RPC, and a port to read them from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from relance.transport import Tls

HANDLED = Counter("relance_grpc_handled_total", "RPCs that ended, by gRPC code.", ["method", "code"])
SECONDS = Histogram(
    "relance_grpc_seconds",
    "How long unary RPCs took.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
OPEN = Gauge("relance_grpc_open", "RPCs that run now.", ["method"])
FOLLOW_BEHIND = Gauge("relance_follow_behind", "Tables whose events are not all taken in, as far as is known.")
FOLLOW_PARKED = Gauge("relance_follow_parked", "Tables whose events cannot be taken in: people must look.")


class _Certificates(Collector):
    """What the certificates of this process are worth, at the time when somebody asks."""

    def __init__(self) -> None:
        self.watched: dict[str, Tls] = {}

    def describe(self) -> tuple[GaugeMetricFamily, CounterMetricFamily, CounterMetricFamily]:
        """The metrics, without their values."""
        use = ("use",)
        return (
            GaugeMetricFamily("relance_tls_expires_seconds", "End of the certificate in use, since 1970.", labels=use),
            CounterMetricFamily("relance_tls_reads", "Reads of usable certificates.", labels=use),
            CounterMetricFamily("relance_tls_refused", "Changed files of no use: the old ones held.", labels=use),
        )

    def collect(self) -> Iterable[Metric]:
        """The metrics; nothing of what has no TLS."""
        expires, reads, refused = self.describe()
        for use, tls in list(self.watched.items()):
            tls.current()  # files that have changed are told of although nobody connects
            if tls.cert is not None:
                expires.add_metric((use,), tls.expires)
            reads.add_metric((use,), tls.reads)
            refused.add_metric((use,), tls.refused)
        return expires, reads, refused


_certificates = _Certificates()
REGISTRY.register(_certificates)


def watch_certificate(use: str, tls: Tls) -> None:
    """Tell of this process's certificate for a use (grpc, nats) from now on."""
    _certificates.watched[use] = tls


class Following(Protocol):
    """Who takes in the tables' events (relance.eventlog.Follower)."""

    parked: dict[str, Exception]

    @property
    def behind(self) -> int:
        """Tables that are known to be ahead."""


def watch_follower(follower: Following) -> None:
    """Tell how far this process has come with the tables' events from now on."""
    FOLLOW_BEHIND.set_function(lambda: follower.behind)
    FOLLOW_PARKED.set_function(lambda: len(follower.parked))


@contextmanager
def exposed(address: str) -> Iterator[int]:
    """Let Prometheus read at host:port while the context lasts; gives the port, 0 where `address` is empty.

    Raises OSError where the port is taken.
    """
    if not address:
        yield 0
        return
    host, _, port = address.rpartition(":")
    server, thread = start_http_server(int(port), addr=host)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
