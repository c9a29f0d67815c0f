"""Prometheus metrics: rate, errors and duration of every RPC, and a port to read them from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, Gauge, Histogram, start_http_server

HANDLED = Counter("relance_grpc_handled_total", "RPCs that ended, by gRPC code.", ["method", "code"])
SECONDS = Histogram(
    "relance_grpc_seconds",
    "How long unary RPCs took.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
OPEN = Gauge("relance_grpc_open", "RPCs that run now.", ["method"])


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
