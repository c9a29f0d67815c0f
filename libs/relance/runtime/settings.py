"""Settings of a service, from environment variables with the prefix RELANCE_."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

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


Address = Annotated[str, AfterValidator(check_address)]
OptionalAddress = Annotated[str, AfterValidator(_check_address_or_empty)]
Addresses = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_check_addresses)]


class ServiceSettings(BaseSettings):
    """What all four services are told. A service that needs more derives its own class.

    Addresses are host:port. Secrets are SecretStr: they show as asterisks wherever they are printed.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: SecretStr
    """URL of PostgreSQL for the service's own role."""
    nats_url: SecretStr = SecretStr("nats://127.0.0.1:4222")
    """URL of NATS; may hold credentials."""
    listen: Address = "127.0.0.1:0"
    """Where gRPC listens; port 0: any free one."""
    advertise: OptionalAddress = ""
    """Address told to others; empty: the bound one."""
    metrics: OptionalAddress = ""
    """Where Prometheus may read; empty: nowhere."""
    health: OptionalAddress = ""
    """Where health alone is answered too, in plaintext: for probes without a certificate; empty: nowhere."""
    keyring: Path
    """JSON file of the public keys whose tokens are believed."""
    signing_key: Path | None = None
    """PEM file of the Ed25519 key that signs this service's own tokens (role service)."""
    signing_kid: str = "service-1"
    """Id of that key in the key ring."""
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
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


class MigrateSettings(BaseSettings):
    """What `migrate` is told."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    migrate_url: SecretStr
    """URL of PostgreSQL for a role that owns the schemas and may create roles."""
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"


S = TypeVar("S", bound=BaseSettings)


def load(kind: type[S]) -> S:
    """Settings of `kind` from the environment. Raises SettingsError with one line that holds no value."""
    try:
        return kind()
    except ValidationError as error:
        faults = [
            f"{PREFIX}{str(fault['loc'][0]).upper()}: {_sentence(fault['type'], fault['msg'])}"
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
        raise SettingsError("; ".join(faults)) from None


def _sentence(kind: str, message: str) -> str:
    if kind == "missing":
        return "is missing"
    return message.removeprefix("Value error, ").replace("\n", " ")
