"""Channels to the room's processes, shared by address."""

from __future__ import annotations

from functools import cached_property

from relance.api.lobby.v1 import (
    houses_pb2_grpc,
    lobby_pb2_grpc,
    private_pb2_grpc,
    templates_pb2_grpc,
    waiting_pb2_grpc,
)
from relance.api.rake.v1 import rake_pb2_grpc
from relance.api.table.v1 import table_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2_grpc
from relance.transport import Tls, open_channel

_OPTIONS = (
    # A connection that died without a word is noticed within half a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # The SDK retries itself, with the same request_id.
    ("grpc.enable_retries", 0),
)


class Peer:
    """One process of the room: its channel and the stubs of the services that it may serve."""

    def __init__(self, address: str, tls: Tls | None) -> None:
        self.address = address
        self.channel = open_channel(address, tls, _OPTIONS)

    @cached_property
    def lobby(self) -> lobby_pb2_grpc.LobbyServiceAsyncStub:
        return lobby_pb2_grpc.LobbyServiceStub(self.channel)

    @cached_property
    def waiting(self) -> waiting_pb2_grpc.WaitingServiceAsyncStub:
        return waiting_pb2_grpc.WaitingServiceStub(self.channel)

    @cached_property
    def private(self) -> private_pb2_grpc.PrivateTableServiceAsyncStub:
        return private_pb2_grpc.PrivateTableServiceStub(self.channel)

    @cached_property
    def templates(self) -> templates_pb2_grpc.TemplateServiceAsyncStub:
        return templates_pb2_grpc.TemplateServiceStub(self.channel)

    @cached_property
    def houses(self) -> houses_pb2_grpc.HouseServiceAsyncStub:
        return houses_pb2_grpc.HouseServiceStub(self.channel)

    @cached_property
    def table(self) -> table_pb2_grpc.TableServiceAsyncStub:
        return table_pb2_grpc.TableServiceStub(self.channel)

    @cached_property
    def admin(self) -> table_pb2_grpc.TableAdminServiceAsyncStub:
        return table_pb2_grpc.TableAdminServiceStub(self.channel)

    @cached_property
    def wallet(self) -> wallet_pb2_grpc.WalletServiceAsyncStub:
        return wallet_pb2_grpc.WalletServiceStub(self.channel)

    @cached_property
    def ledger(self) -> wallet_pb2_grpc.LedgerServiceAsyncStub:
        return wallet_pb2_grpc.LedgerServiceStub(self.channel)

    @cached_property
    def rake(self) -> rake_pb2_grpc.RakeServiceAsyncStub:
        return rake_pb2_grpc.RakeServiceStub(self.channel)


class Channels:
    """A pool of peers: many players in one program need one connection a process, not one each.

    The pool made by `connect` belongs to its room; one given to `connect` stays open for its other users. `tls`: how
    all processes of the room are reached; None: in plaintext.
    """

    def __init__(self, tls: Tls | None = None) -> None:
        self._tls = tls
        self._peers: dict[str, Peer] = {}

    def peer(self, address: str) -> Peer:
        """The peer at host:port; connects on first use."""
        peer = self._peers.get(address)
        if peer is None:
            peer = self._peers[address] = Peer(address, self._tls)
        return peer

    async def close(self) -> None:
        """Close every connection; calls under way are cancelled."""
        peers, self._peers = list(self._peers.values()), {}
        for peer in peers:
            await peer.channel.close()
