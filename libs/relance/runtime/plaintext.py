"""Which connections would go over a network for everybody on the way to read: none, unless a setting allows it.

Each function answers one line for each setting at fault. Addresses of this machine alone are no network, and neither
are sockets of its file system.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

_ENCRYPTED = frozenset({"require", "verify-ca", "verify-full"})


def listening(setting: str, address: str) -> list[str]:
    """A gRPC server without TLS."""
    if is_loopback(_host(address)):
        return []
    return [f"RELANCE_{setting}: {address} is open to a network: set RELANCE_TLS_CERT and RELANCE_TLS_KEY"]


def calling(setting: str, addresses: Iterable[str]) -> list[str]:
    """gRPC channels without TLS."""
    open_ = [address for address in addresses if not is_loopback(_host(address))]
    return [f"RELANCE_{setting}: {', '.join(open_)} would be called without TLS: set RELANCE_TLS_CERT"] if open_ else []


def database(setting: str, url: str) -> list[str]:
    """A database by its URL."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    hosts = [_host(each) for each in parts.netloc.rpartition("@")[2].split(",")] + query.get("host", [])
    mode = query.get("sslmode", [os.environ.get("PGSSLMODE", "")])[0]
    away = [host for host in hosts if host and not unquote(host).startswith("/") and not is_loopback(host)]
    if not away or mode in _ENCRYPTED:
        return []
    return [f"RELANCE_{setting}: {', '.join(away)} would be asked without TLS: add sslmode=verify-full and sslrootcert"]


def nats(setting: str, url: str) -> list[str]:
    """NATS servers by their URL, where no certificate is set."""
    parts = [urlsplit(each if "://" in each else f"nats://{each}") for each in map(str.strip, url.split(","))]
    away = [part.hostname or "" for part in parts if part.scheme not in {"tls", "wss"}]
    away = [host for host in away if not is_loopback(host)]
    return [f"RELANCE_{setting}: {', '.join(away)} would be asked without TLS: set RELANCE_NATS_CA"] if away else []


def is_loopback(host: str) -> bool:
    """Whether a host is this machine for itself alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host(address: str) -> str:
    """The host of host:port or host."""
    host, colon, port = address.rpartition(":")
    return host if colon and port.isdigit() else address
