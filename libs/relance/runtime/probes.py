"""Health on a port of its own, in plaintext: for probes that speak no TLS or show no certificate, as a kubelet's."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc


class Unlistenable(Exception):
    """The address cannot be listened on."""


async def answer_probes(address: str, health: Any) -> tuple[grpc.aio.Server, int]:
    """A running server at host:port that answers grpc.health.v1 by `health` and nothing else, and its port.

    Raises Unlistenable.
    """
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 1024)])
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise Unlistenable(f"cannot listen on {address}: the port is taken or not allowed") from error
    await server.start()
    return server, port
