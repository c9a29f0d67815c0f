"""Settings of a service, from environment variables with the prefix RELANCE_."""

from __future__ import annotations

import re
import secrets
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import grpc
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from relance.runtime import plaintext
from relance.runtime.database import checked_url
from relance.transport import Options, Tls, TlsError, open_channel

PREFIX = "RELANCE_"

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


class SettingsError(Exception):
    """The environment does not make settings; the text is one line that names every variable at fault."""


def check_address(text: str) -> str:
    """`text` where it is host:port with a port from 0 to 65535. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match[2]) > 65535:
        raise ValueError("must be host:port, for example 127.0.0.1:7001")
    return text


def _check_address_or_empty(text: str) -> str:
    return text and check_address(text)


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _check_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_address(address) for address in addresses)


def _new_instance() -> str:
    return secrets.token_hex(6)


def _check_database_url(url: SecretStr) -> SecretStr:
    checked_url(url.get_secret_value())
    return url


Address = Annotated[str, AfterValidator(check_address)]
OptionalAddress = Annotated[str, AfterValidator(_check_address_or_empty)]
Addresses = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_check_addresses)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_check_database_url)]


class Settings(BaseSettings):
    """What services and their migrations have in common."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    plaintext: Literal["allow"] | None = None
    """Without it a process does not start that would listen, or connect, beyond this machine without TLS."""

    def in_the_open(self) -> list[str]:
        """What would go over a network in plaintext: one line for each setting. Raises TlsError for files that do not
        do.
        """
        raise NotImplementedError


class ServiceSettings(Settings):
    """What all four services are told. A service that needs more derives its own class.

    Addresses are host:port. Secrets are SecretStr: they show as asterisks wherever they are printed.
    """

    database_url: DatabaseUrl
    """URL of PostgreSQL for the service's own role."""
    nats_url: SecretStr = SecretStr("nats://127.0.0.1:4222")
    """URL of NATS; may hold credentials."""
    listen: Address = "127.0.0.1:0"
    """Where gRPC listens; port 0: any free one."""
    advertise: OptionalAddress = ""
    """Address told to others; empty: the bound one."""
    metrics: OptionalAddress = ""
    """Where Prometheus may read, by plain HTTP, whatever TLS there is; empty: nowhere."""
    health: OptionalAddress = ""
    """Where health alone is answered too, in plaintext: for probes without a certificate; empty: nowhere."""
    keyring: Path
    """JSON file of the public keys whose tokens are believed."""
    signing_key: Path | None = None
    """PEM file of the Ed25519 key that signs this service's own tokens (role service)."""
    signing_kid: str = "service-1"
    """Id of that key in the key ring."""
    drain_timeout: float = Field(default=15.0, gt=0, le=3600)
    """Seconds that a drain may take before the process ends anyway."""
    instance: str = Field(default_factory=_new_instance, pattern=r"^[a-z0-9-]{1,40}$")
    """Id of this process."""
    wallet_address: OptionalAddress = ""
    rake_address: OptionalAddress = ""
    table_addresses: Addresses = ()
    """Table processes that are known from the start, comma-separated."""
    lobby_address: OptionalAddress = ""
    faucet_limit: int = Field(default=0, ge=0, le=10**15)
    """Most that the development faucet gives at once, minor units; 0: there is no faucet."""
    address_file: Path | None = None
    """File that gets the bound gRPC address once the server serves."""
    tls_cert: Path | None = None
    """PEM file of the certificate, with its chain, that the gRPC server shows, and this process as a client. With it
    all gRPC of the process is TLS. It is read again when it changes, as the key and the authorities are."""
    tls_key: Path | None = None
    """PEM file of its key."""
    tls_ca: Path | None = None
    """PEM file of the authorities that are believed, as a client and of clients; none: the system's, and clients are
    not asked."""
    tls_client_auth: Literal["none", "require"] | None = None
    """Whether clients must show a certificate of those authorities; the usual: where TLS_CA is set."""
    tls_server_name: str = Field(default="", pattern=r"^[A-Za-z0-9.-]{0,253}$")
    """Name that the certificates of other processes must have; empty: the host by which each is reached. Processes
    that are reached by addresses of pods have a name in common in all their certificates, and it is set here."""
    nats_ca: Path | None = None
    """PEM file of the authorities of the NATS server; with it the connection is TLS."""
    nats_cert: Path | None = None
    """PEM file of the certificate that NATS is shown."""
    nats_key: Path | None = None
    """PEM file of its key."""

    @cached_property
    def tls(self) -> Tls | None:
        """TLS of the gRPC server and of all channels; None: plaintext. Raises TlsError."""
        if self.tls_cert is None and self.tls_key is None and self.tls_ca is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise TlsError("RELANCE_TLS_CERT and RELANCE_TLS_KEY: both are needed for TLS")
        return Tls(ca=self.tls_ca, cert=self.tls_cert, key=self.tls_key, server_name=self.tls_server_name)

    def open_channel(self, address: str, options: Options = ()) -> grpc.aio.Channel:
        """A channel to another process of the room, host:port: every one is opened here. Raises TlsError."""
        return open_channel(address, self.tls, options)

    @cached_property
    def nats_tls(self) -> Tls | None:
        """TLS of the connection to NATS; None: as the URL says. Raises TlsError."""
        if self.nats_ca is None and self.nats_cert is None and self.nats_key is None:
            return None
        return Tls(ca=self.nats_ca, cert=self.nats_cert, key=self.nats_key)

    @property
    def asks_clients(self) -> bool:
        """Whether a client must show a certificate. Raises TlsError where it could not be checked."""
        if self.tls_client_auth == "require" and self.tls_ca is None:
            raise TlsError("RELANCE_TLS_CLIENT_AUTH=require: needs RELANCE_TLS_CA, whose clients are believed")
        return self.tls_ca is not None and self.tls_client_auth != "none"

    def in_the_open(self) -> list[str]:
        """See Settings."""
        nats = self.nats_url.get_secret_value()
        found = plaintext.database("DATABASE_URL", self.database_url.get_secret_value())
        if self.nats_tls is None:
            found += plaintext.nats("NATS_URL", nats)
        if self.tls is None:
            others = (self.wallet_address, self.rake_address, self.lobby_address, *self.table_addresses)
            found += plaintext.listening("LISTEN", self.listen)
            found += plaintext.calling("…_ADDRESS", filter(None, others))
        return found


class MigrateSettings(Settings):
    """What `migrate` is told."""

    migrate_url: DatabaseUrl
    """URL of PostgreSQL for a role that owns the schemas and may create roles."""

    def in_the_open(self) -> list[str]:
        """See Settings."""
        return plaintext.database("MIGRATE_URL", self.migrate_url.get_secret_value())


S = TypeVar("S", bound=Settings)


def load(kind: type[S]) -> S:
    """Settings of `kind` from the environment, checked for plaintext over a network and for unusable certificates.

    Raises SettingsError with one line that holds no secret.
    """
    try:
        loaded = kind()
        faults = loaded.in_the_open()
        if isinstance(loaded, ServiceSettings):
            loaded.asks_clients  # noqa: B018  raises where it cannot be done
    except TlsError as error:
        raise SettingsError(str(error)) from None
    except ValidationError as error:
        faults = [
            f"{PREFIX}{str(fault['loc'][0]).upper()}: {_sentence(fault['type'], fault['msg'])}"
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise SettingsError("; ".join(faults)) from None
    if faults and loaded.plaintext != "allow":
        raise SettingsError("; ".join(faults) + "; or set RELANCE_PLAINTEXT=allow")
    return loaded


def _sentence(kind: str, message: str) -> str:
    if kind == "missing":
        return "is missing"
    return message.removeprefix("Value error, ").replace("\n", " ")
