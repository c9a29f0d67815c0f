"""Certificates in files that are read again when they change: for servers, for channels and for other clients.

A pair that is broken, half-written or does not match is not used: what was read before holds, and the log and
`Tls.refused` say so. What replaces the files does best to rename new ones over them, as Kubernetes does with secrets.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""How often a process that opens no new connection looks whether the files have changed."""


class TlsError(Exception):
    """The files are no usable certificates; the text is one line and holds no secret."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the files held at one time. `number` counts what was read; `expires`: seconds since 1970, 0 without a
    certificate.
    """

    number: int
    ca: bytes | None
    chain: bytes | None
    key: bytes | None = field(repr=False)
    expires: float


class Tls:
    """The three files of one side of TLS connections, all PEM.

    `ca`: whom to believe (None: the system's authorities). `cert`, `key`: what to show, both or none; the chain begins
    with the own certificate. `server_name`: the name that servers' certificates must have, where they are reached by
    an address that is not in them; empty: the host of the address.

    Raises TlsError where the files do not do.
    """

    def __init__(
        self, *, ca: Path | None = None, cert: Path | None = None, key: Path | None = None, server_name: str = ""
    ) -> None:
        if (cert is None) != (key is None):
            raise TlsError("a certificate needs its key, and a key its certificate")
        self.ca, self.cert, self.key, self.server_name = ca, cert, key, server_name
        self.refused = 0
        """How often changed files were of no use."""
        self._lock = threading.Lock()
        self._stamp = self._stat()
        self._material = self._read(1)
        self._looked = time.monotonic()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Tls | None:
        """What a client uses by RELANCE_TLS_CA, _TLS_CERT, _TLS_KEY and _TLS_SERVER_NAME; None: plaintext."""
        ca, cert, key = (environment.get(f"RELANCE_TLS_{name}") for name in ("CA", "CERT", "KEY"))
        if not ca and not cert and not key:
            return None
        return cls(
            ca=Path(ca) if ca else None,
            cert=Path(cert) if cert else None,
            key=Path(key) if key else None,
            server_name=environment.get("RELANCE_TLS_SERVER_NAME", ""),
        )

    @property
    def expires(self) -> float:
        """When the certificate in use ends, seconds since 1970; 0 without one."""
        return self._material.expires

    @property
    def reads(self) -> int:
        """How often usable files were read."""
        return self._material.number

    def current(self) -> Material:
        """What the files hold now, or held when they were last of use. From any thread."""
        with self._lock:
            self._looked = time.monotonic()
            try:
                stamp = self._stat()
            except TlsError as error:
                if self._stamp:
                    self._refuse(error)
                self._stamp = ()
                return self._material
            if stamp != self._stamp:
                self._stamp = stamp  # before reading: what changes meanwhile is read the next time
                try:
                    self._material = self._read(self._material.number + 1)
                except TlsError as error:
                    self._refuse(error)
                else:
                    log.info("certificates read again", cert=_name(self.cert), expires=_date(self._material.expires))
            return self._material

    def _refuse(self, error: TlsError) -> None:
        self.refused += 1
        log.error("CERTIFICATES OF NO USE: those read before hold", why=str(error))

    def recent(self) -> Material:
        """The same as of a second ago: cheap enough for every call."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return self._material
        return self.current()

    # For gRPC

    def channel_credentials(self, material: Material) -> grpc.ChannelCredentials:
        """What a channel to a server uses."""
        return grpc.ssl_channel_credentials(material.ca, material.key, material.chain)

    def server_credentials(self, *, ask_clients: bool) -> grpc.ServerCredentials:
        """What a server uses; each new connection gets what the files hold then. `ask_clients`: a client without a
        certificate of the authorities is refused.
        """
        given = self.current()

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            now = self.current()
            if now is given:
                return None  # nothing new
            given = now
            return _server_configuration(now)

        return grpc.dynamic_ssl_server_credentials(
            _server_configuration(given),
            fetch,  # type: ignore[arg-type]  # None is what gRPC takes for: nothing new
            require_client_authentication=ask_clients,
        )

    # For everything else

    def context(self) -> ssl.SSLContext:
        """A client's context for libraries that keep one: each new connection made with it uses what the files hold
        then.
        """
        return _Fresh(self)

    def _stat(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_stamp_of(path) for path in (self.ca, self.cert, self.key) if path is not None)

    def _read(self, number: int) -> Material:
        ca, chain, key = (None if path is None else _bytes(path) for path in (self.ca, self.cert, self.key))
        if ca is not None:
            _certificates(ca, self.ca)
        expires = 0.0
        if chain is not None and key is not None:
            own = _certificates(chain, self.cert)[0]
            _check_pair(own, key, self.key)
            expires = own.not_valid_after_utc.timestamp()
        return Material(number, ca, chain, key, expires)


class _Fresh(ssl.SSLContext):
    """A context that makes each connection by a context of what the files hold at that time.

    asyncio and uvloop ask a context for a connection's state machine by `wrap_bio`, and for nothing else.
    """

    _tls: Tls
    _made: tuple[int, ssl.SSLContext]

    def __new__(cls, tls: Tls) -> _Fresh:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._tls, made._made = tls, (0, made)
        return made

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self.wrapped()

    def wrapped(self) -> ssl.SSLContext:
        """The context of now."""
        material = self._tls.current()
        if self._made[0] != material.number:
            self._made = material.number, _context(material)
        return self._made[1]

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """See ssl.SSLContext."""
        return self.wrapped().wrap_bio(*arguments, **named)


def _context(material: Material) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=None if material.ca is None else material.ca.decode())
    if material.chain is not None and material.key is not None:
        # The module reads files alone: here is one in memory, which nobody else sees.
        file = os.memfd_create("certificate")
        try:
            os.write(file, material.chain + b"\n" + material.key)
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
    return context


def _server_configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    assert material.chain is not None
    assert material.key is not None
    return grpc.ssl_server_certificate_configuration([(material.key, material.chain)], root_certificates=material.ca)


def _certificates(pem: bytes, path: Path | None) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise TlsError(f"{path}: no PEM file of certificates") from error


def _check_pair(own: x509.Certificate, key: bytes, path: Path | None) -> None:
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise TlsError(f"{path}: no PEM file of a private key without a password") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise TlsError(f"{path}: gRPC takes keys of RSA and of elliptic curves P-256, P-384 and P-521")
    if private.public_key() != own.public_key():
        raise TlsError(f"{path}: not the key of the certificate")


def _stamp_of(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise TlsError(f"{path}: cannot be read ({error.strerror})") from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path}: cannot be read ({error.strerror})") from error


def _name(path: Path | None) -> str:
    return "" if path is None else str(path)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else ""
