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
    """What the certificates of this process's servers are worth, at the time when somebody asks."""

    def __init__(self) -> None:
        self.watched: Tls | None = None

    def describe(self) -> Iterable[Metric]:
        """The metrics, without their values."""
        return self._metrics(0.0, 0, 0)

    def collect(self) -> Iterable[Metric]:
        """The metrics; nothing where there is no TLS."""
        if self.watched is None:
            return ()
        self.watched.current()  # files that have changed are told of although nobody connects
        return self._metrics(self.watched.expires, self.watched.reads, self.watched.refused)

    def _metrics(self, expires: float, reads: int, refused: int) -> Iterable[Metric]:
        return (
            GaugeMetricFamily("relance_tls_expires_seconds", "End of the certificate in use, since 1970.", expires),
            CounterMetricFamily("relance_tls_reads", "Reads of usable certificates.", reads),
            CounterMetricFamily("relance_tls_refused", "Changed files of no use: the old ones held.", refused),
        )


_certificates = _Certificates()
REGISTRY.register(_certificates)


def watch_certificate(tls: Tls) -> None:
    """Tell of this process's certificate from now on."""
    _certificates.watched = tls


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
