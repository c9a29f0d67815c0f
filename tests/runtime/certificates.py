"""Certificates for tests, made anew for each: an authority, and what it signs."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = ("127.0.0.1", "localhost")


class Authority:
    """Who signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self._certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None), 3650)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def write(self, path: Path) -> Path:
        """The authority's own certificate, as a file."""
        return replaced(path, self.pem)

    def issue(self, folder: Path, name: str, hosts: Sequence[str] = LOOPBACK, days: float = 1) -> tuple[Path, Path]:
        """Files of a certificate for hosts and of its key, named after `name`; files that were there are replaced."""
        chain, key = self.pair(name, hosts, days)
        return replaced(folder / "tls.crt", chain), replaced(folder / "tls.key", key)

    def pair(self, name: str, hosts: Sequence[str] = LOOPBACK, days: float = 1) -> tuple[bytes, bytes]:
        """A certificate and its key, PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        made = self._signed(_name(name), key, names, days)
        return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, days: float
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=days))
        return builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


def replaced(path: Path, content: bytes) -> Path:
    """The file, whole: written beside its place and renamed, as Kubernetes does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.chmod(0o600)
    return beside.replace(path)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
