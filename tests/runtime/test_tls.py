"""TLS of servers and channels, of the database and of NATS: who gets in, and what happens when the files change."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import grpc
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from prometheus_client import REGISTRY
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests.runtime.certificates import Authority, replaced

from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.client import Tls, Unavailable, connect
from relance.room.embedded import Nats, Postgres, nats_bin, wait_for
from relance.runtime import database, nats
from relance.runtime.auth import Context, KeyRing, TokenSigner
from relance.runtime.server import ListenError, Server
from relance.runtime.settings import ServiceSettings, SettingsError, load
from relance.transport import TlsError, open_channel

LOBBY = "/relance.api.lobby.v1.LobbyService"


class Lobby(lobby_pb2_grpc.LobbyServiceServicer):
    """Tells who calls by their certificate; a watcher gets one message for each that is let through."""

    def __init__(self) -> None:
        self.through: asyncio.Queue[None] = asyncio.Queue()

    async def GetRoom(self, request: lobby_pb2.GetRoomRequest, context: Context) -> lobby_pb2.Room:
        names = list(context.auth_context().get("x509_common_name", [b"nobody"]))
        return lobby_pb2.Room(wallet_address=names[0].decode())

    async def WatchTables(
        self, request: lobby_pb2.WatchTablesRequest, context: Context
    ) -> AsyncIterator[lobby_pb2.WatchTablesResponse]:
        while True:
            await self.through.get()
            yield lobby_pb2.WatchTablesResponse()


class Place:
    """A server with TLS in a folder of certificates, and clients of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.ca = self.authority.write(folder / "ca.crt")
        self.address = ""
        self.lobby = Lobby()  # type: ignore[abstract]

    def issue(self, who: str, name: str, *hosts: str) -> tuple[Path, Path]:
        """Make or replace somebody's certificate."""
        return self.authority.issue(self.folder / who, name, hosts or ("127.0.0.1",))

    def client(self, who: str = "client", name: str = "ann", server_name: str = "") -> Tls:
        """TLS of a client that shows a certificate."""
        cert, key = self.issue(who, name)
        return Tls(ca=self.ca, cert=cert, key=key, server_name=server_name)

    def settings(self, **changes: Any) -> ServiceSettings:
        """Settings of the server."""
        ring = self.folder / "keyring.json"
        ring.write_text(json.dumps({"keys": {"test-1": TokenSigner.generate("test-1").entry("player")}}))
        plain: dict[str, Any] = {"database_url": SecretStr("postgresql://127.0.0.1"), "keyring": ring}
        files = self.folder / "server"
        tls = {"tls_ca": self.ca, "tls_cert": files / "tls.crt", "tls_key": files / "tls.key"}
        return ServiceSettings(**{**plain, **tls, **changes})

    @asynccontextmanager
    async def serving(self, **changes: Any) -> AsyncIterator[Server]:
        """The server, running."""
        settings = self.settings(**changes)
        public = {f"{LOBBY}/GetRoom", f"{LOBBY}/WatchTables"}
        async with Server(settings, keyring=KeyRing(settings.keyring), public=public) as server:
            server.add(lobby_pb2_grpc.add_LobbyServiceServicer_to_server, self.lobby)
            self.address = await server.start()
            yield server

    @asynccontextmanager
    async def stub(self, tls: Tls | None) -> AsyncIterator[lobby_pb2_grpc.LobbyServiceAsyncStub]:
        """A stub of the server."""
        async with open_channel(self.address, tls) as channel:
            yield lobby_pb2_grpc.LobbyServiceStub(channel)

    async def shown(self) -> str:
        """The name in the certificate that a new connection is shown."""
        return await asyncio.to_thread(self._shown)

    def _shown(self) -> str:
        host, _, port = self.address.rpartition(":")
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        with (
            socket.create_connection((host, int(port)), 5) as plain,
            context.wrap_socket(plain, server_hostname=host) as t,
        ):
            own = x509.load_der_x509_certificate(t.getpeercert(True) or b"")
            return str(own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder of certificates with one for the server."""
    made = Place(tmp_path)
    made.issue("server", "first")
    return made


async def caller(stub: lobby_pb2_grpc.LobbyServiceAsyncStub) -> str:
    """Who the server says that the caller is; the gRPC code where it does not answer."""
    try:
        return (await stub.GetRoom(lobby_pb2.GetRoomRequest(), timeout=5)).wallet_address
    except grpc.aio.AioRpcError as error:
        return error.code().name


async def test_with_mtls_only_who_shows_a_certificate_of_the_authority_gets_in(place: Place, tmp_path: Path) -> None:
    foreign = Authority("foreign").issue(tmp_path / "foreign", "eve")
    async with place.serving():
        for tls, expected in (
            (place.client(), "ann"),
            (Tls(ca=place.ca), "UNAVAILABLE"),
            (Tls(ca=place.ca, cert=foreign[0], key=foreign[1]), "UNAVAILABLE"),
            (Tls(ca=Authority().write(tmp_path / "other.crt")), "UNAVAILABLE"),
            (None, "UNAVAILABLE"),
        ):
            async with place.stub(tls) as stub:
                assert await caller(stub) == expected
        async with connect(place.address, tls=place.client()) as room:
            assert (await room.services()).wallet_address == "ann"
        async with connect(place.address, patience=0) as room:
            with pytest.raises(Unavailable):
                await room.services()


async def test_without_client_auth_a_certificate_is_not_asked_for(place: Place) -> None:
    async with place.serving(tls_client_auth="none"), place.stub(Tls(ca=place.ca)) as stub:
        assert await caller(stub) == "nobody"


async def test_a_server_reached_by_an_address_is_known_by_the_name_that_all_have(place: Place) -> None:
    place.issue("server", "pod", "table.relance.svc", "relance.internal")
    async with place.serving():
        async with place.stub(place.client()) as stub:
            assert await caller(stub) == "UNAVAILABLE"
        async with place.stub(place.client(server_name="relance.internal")) as stub:
            assert await caller(stub) == "ann"


async def test_new_connections_get_new_certificates_and_old_calls_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relance.transport.tls.LOOK_SECONDS", 0.0)
    async with place.serving(), place.stub(place.client()) as stub:
        watch = stub.WatchTables(lobby_pb2.WatchTablesRequest())
        place.lobby.through.put_nowait(None)
        assert isinstance(await watch.read(), lobby_pb2.WatchTablesResponse)
        place.issue("server", "second")
        assert await place.shown() == "second"
        place.issue("client", "ben")
        assert await caller(stub) == "ben"
        place.lobby.through.put_nowait(None)
        assert isinstance(await watch.read(), lobby_pb2.WatchTablesResponse)
        assert await caller(stub) == "ben"
        watch.cancel()


async def test_another_authority_is_believed_as_soon_as_the_file_holds_it(place: Place, tmp_path: Path) -> None:
    fresh = Authority("next")
    cert, key = fresh.issue(tmp_path / "new", "new")
    async with place.serving():
        async with place.stub(Tls(ca=place.ca, cert=cert, key=key)) as stub:
            assert await caller(stub) == "UNAVAILABLE"
        both = Tls(ca=replaced(place.ca, place.authority.pem + fresh.pem), cert=cert, key=key)
        async with place.stub(both) as stub:
            assert await caller(stub) == "new"
        fresh.issue(place.folder / "server", "newer", ("127.0.0.1",))
        async with place.stub(both) as stub:
            assert await caller(stub) == "new"


async def test_a_broken_or_half_written_pair_is_not_used_and_told_loudly(place: Place) -> None:
    files = place.folder / "server"
    async with place.serving():
        for broken, content in ((files / "tls.crt", place.authority.pair("half")[0]), (files / "tls.key", b"junk")):
            before = sample("relance_tls_refused_total")
            replaced(broken, content)
            with capture_logs() as lines:
                assert await place.shown() == "first"
                assert await place.shown() == "first"
            assert [line["log_level"] for line in lines if "OF NO USE" in line["event"]] == ["error"]
            assert sample("relance_tls_refused_total") == before + 1
        (files / "tls.crt").unlink()
        assert await place.shown() == "first"
        ends = sample("relance_tls_expires_seconds")
        place.authority.issue(files, "whole", ("127.0.0.1",), days=30)
        assert await place.shown() == "whole"
        assert sample("relance_tls_expires_seconds") > ends + 28 * 86_400


def sample(name: str) -> float:
    """A metric's value now."""
    value = REGISTRY.get_sample_value(name, {"use": "grpc"})
    assert value is not None
    return value


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\n", None])
def test_a_process_does_not_start_with_certificates_that_do_not_do(place: Place, content: bytes | None) -> None:
    cert = place.folder / "server" / "tls.crt"
    if content is None:
        cert.unlink()
    else:
        replaced(cert, content)
    with pytest.raises(TlsError, match=r"tls\.crt: "):
        place.settings().tls  # noqa: B018  is read when asked for


@pytest.fixture
def environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a service that keeps to this machine."""
    monkeypatch.setenv("RELANCE_DATABASE_URL", "postgresql://lobby:hunter2@127.0.0.1/relance")
    monkeypatch.setenv("RELANCE_KEYRING", "/etc/relance/keyring.json")
    return monkeypatch


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("LISTEN", "0.0.0.0:7001", "RELANCE_LISTEN: 0.0.0.0:7001 is open to a network"),
        ("LISTEN", "[::]:7001", r"RELANCE_LISTEN: \[::\]:7001 is open to a network"),
        ("TABLE_ADDRESSES", "127.0.0.1:1,table:7001", "ADDRESS: table:7001 would be called without TLS"),
        ("DATABASE_URL", "postgresql://u:hunter2@db:5432/r", "RELANCE_DATABASE_URL: db would be asked without TLS"),
        ("DATABASE_URL", "postgresql://u:hunter2@db/r?sslmode=prefer", "RELANCE_DATABASE_URL: db would be"),
        ("NATS_URL", "nats://u:hunter2@nats:4222", "RELANCE_NATS_URL: nats would be asked without TLS"),
        ("NATS_URL", "nats:4222", "RELANCE_NATS_URL: nats would be asked without TLS"),
    ],
)
def test_plaintext_over_a_network_is_refused_at_start_unless_it_is_allowed(
    environment: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    environment.setenv(f"RELANCE_{variable}", value)
    with pytest.raises(SettingsError, match=said) as caught:
        load(ServiceSettings)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
    environment.setenv("RELANCE_PLAINTEXT", "allow")
    assert len(load(ServiceSettings).in_the_open()) == 1


def test_with_tls_everywhere_nothing_is_refused(environment: pytest.MonkeyPatch, place: Place) -> None:
    tls = place.settings()
    for variable, value in {
        "LISTEN": "0.0.0.0:7001",
        "TABLE_ADDRESSES": "table:7001",
        "DATABASE_URL": "postgresql://u:p@db/r?sslmode=verify-full",
        "NATS_URL": "nats://nats:4222",
        "NATS_CA": str(place.ca),
        **{f"TLS_{name}": str(getattr(tls, f"tls_{name.lower()}")) for name in ("CA", "CERT", "KEY")},
    }.items():
        environment.setenv(f"RELANCE_{variable}", value)
    assert load(ServiceSettings).asks_clients
    environment.delenv("RELANCE_TLS_CA")
    assert not load(ServiceSettings).asks_clients
    environment.setenv("RELANCE_TLS_CLIENT_AUTH", "require")
    with pytest.raises(SettingsError, match="needs RELANCE_TLS_CA"):
        load(ServiceSettings)
    environment.delenv("RELANCE_TLS_KEY")
    with pytest.raises(SettingsError, match="both are needed"):
        load(ServiceSettings)


async def test_a_server_is_not_open_to_a_network_without_tls(place: Place) -> None:
    plain = {"tls_ca": None, "tls_cert": None, "tls_key": None}
    with pytest.raises(ListenError, match="is open to a network"):
        async with place.serving(listen="0.0.0.0:0", **plain):
            raise AssertionError("it serves")
    async with place.serving(listen="0.0.0.0:0", advertise="127.0.0.1:1", plaintext="allow", **plain) as server:
        assert server.address == "127.0.0.1:1"


# The database


@asynccontextmanager
async def behind_tls(url: str, cert: Path, key: Path) -> AsyncIterator[str]:
    """The URL of a PostgreSQL that talks TLS alone. The embedded server is built without it: a proxy in front of it
    answers a client's request for TLS as the server would, and passes on what comes over it.
    """
    parts = urlsplit(url)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            assert await reader.readexactly(8) == struct.pack("!II", 8, 80877103), "no request for TLS"
            writer.write(b"S")
            await writer.drain()
            await writer.start_tls(context)
            behind = await asyncio.open_connection(parts.hostname, parts.port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_passed(reader, behind[1]))
                group.create_task(_passed(behind[0], writer))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        login = parts.netloc.rpartition("@")[0]
        yield urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{port}"))


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_the_database_is_believed_by_its_certificate_and_the_file_is_read_for_each_connection(
    postgres: Postgres, place: Place, tmp_path: Path
) -> None:
    file = Authority("another").write(tmp_path / "db-ca.crt")
    async with behind_tls(postgres.url, *place.issue("database", "database")) as secure:
        url = f"{secure}?sslmode=verify-full&sslrootcert={file}"
        async with database.pool(url, name="test") as pool:
            with capture_logs() as lines:
                assert not await database.answers(pool)
            assert any("CERTIFICATE_VERIFY_FAILED" in str(line.get("text")) for line in lines)
            place.authority.write(file)
            assert await database.answers(pool)


async def test_a_certificate_of_another_host_is_not_the_databases(
    postgres: Postgres, place: Place, tmp_path: Path
) -> None:
    async with (
        behind_tls(postgres.url, *place.issue("database", "database", "db.example")) as secure,
        database.pool(f"{secure}?sslmode=verify-full&sslrootcert={place.ca}", name="test") as pool,
    ):
        assert not await database.answers(pool)


# NATS


@pytest.fixture
def secure_nats(place: Place, tmp_path: Path) -> Iterator[Nats]:
    """A nats-server that takes nobody without a certificate."""
    server = Nats(tmp_path / "nats")
    server.folder.mkdir()
    cert, key = place.issue("nats", "nats")
    server.child.start(
        [nats_bin(), "-a", "127.0.0.1", "-p", str(server.port), "--tls", "--tlscert", cert, "--tlskey", key,
         "--tlscacert", place.ca, "--tlsverify"]
    )  # fmt: skip
    server._started = float("inf")
    wait_for(server.ready)
    yield server
    server.stop()


async def test_nats_is_reached_with_certificates_that_are_read_again_for_each_connection(
    secure_nats: Nats, place: Place, tmp_path: Path
) -> None:
    cert, key = Authority("foreign").issue(tmp_path / "service", "wallet")
    tls = Tls(ca=place.ca, cert=cert, key=key)
    async with nats.link(secure_nats.url, name="test", tls=tls) as link:
        await asyncio.sleep(0)
        assert not link.connected
        place.authority.issue(tmp_path / "service", "wallet")
        await asyncio.wait_for(link.wait_connected(), 10)
        got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def heard(message: Any) -> None:
            got.set_result(message.data)

        await link.client.subscribe("greeting", cb=heard)
        await link.client.publish("greeting", b"hello")
        assert await asyncio.wait_for(got, 10) == b"hello"
    async with nats.link(secure_nats.url, name="test") as plain:
        await asyncio.sleep(0.3)
        assert not plain.connected
