"""Loopback ports for servers that must come back on the same one."""

from __future__ import annotations

import random
import socket

# Below the ports that Linux hands to outgoing connections: one of those could take a server's port while it restarts.
_LOWEST, _HIGHEST = 20_000, 32_000


def is_free(port: int) -> bool:
    """Whether a server could listen on the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A loopback TCP port that nobody listens on now."""
    return free_block(1)


def free_block(count: int) -> int:
    """The first of `count` ports in a row that nobody listens on now. Raises OSError where there are none."""
    for _ in range(1000):
        first = random.randrange(_LOWEST, _HIGHEST - count)
        if all(is_free(port) for port in range(first, first + count)):
            return first
    raise OSError(f"no {count} free ports in a row between {_LOWEST} and {_HIGHEST}")
