"""Lists that the lobby keeps up to date: tables, and offers of seats. They go on over lost connections."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from relance.api.lobby.v1 import lobby_pb2, waiting_pb2
from relance.client.backoff import Backoff
from relance.client.channels import Peer
from relance.client.connection import Connection
from relance.client.credentials import Credentials, Metadata, bearer
from relance.client.errors import RETRIABLE, RelanceError, Unavailable, from_rpc

M = TypeVar("M", bound=Message)
Answer_co = TypeVar("Answer_co", bound=Message, covariant=True)


class _Call(AsyncIterable[Answer_co], Protocol[Answer_co]):
    """A stream of answers."""

    def cancel(self) -> bool:
        """End it."""


# What a stream may end with and be taken up again.
_RESUMABLE = RETRIABLE | {"SLOW_WATCHER", "INTERNAL", "UNKNOWN"}


# Told of each connection that was lost or could not be made, before the next is tried.
Lost = Callable[[RelanceError], None]


async def tables(
    connection: Connection, credentials: Credentials, filter: str, lost: Lost | None = None
) -> AsyncGenerator[dict[str, lobby_pb2.Table], None]:
    """The tables that the filter lets through, by name, each time that something has changed."""
    known: dict[str, lobby_pb2.Table] = {}
    request = lobby_pb2.WatchTablesRequest(filter=filter)
    messages = _messages(connection, credentials, lambda peer, who: peer.lobby.WatchTables(request, metadata=who), lost)
    async for first, message in messages:
        if first:
            known = {}
        known.update((table.name, table) for table in message.tables)
        for name in message.removed:
            known.pop(name, None)
        if message.complete:
            yield dict(known)


async def offers(
    connection: Connection, credentials: Credentials, lost: Lost | None = None
) -> AsyncGenerator[waiting_pb2.Offer, None]:
    """Offers that are new or changed, each change once."""
    known: dict[str, tuple[int, int]] = {}
    request = waiting_pb2.WatchOffersRequest()
    messages = _messages(
        connection, credentials, lambda peer, who: peer.waiting.WatchOffers(request, metadata=who), lost
    )
    async for _first, message in messages:
        offer = message.offer
        state = offer.state, offer.expire_time_us
        if known.get(offer.name) != state:
            known[offer.name] = state
            yield offer


async def _messages(
    connection: Connection,
    credentials: Credentials,
    open: Callable[[Peer, Metadata], _Call[M]],
    lost: Lost | None,
) -> AsyncGenerator[tuple[bool, M], None]:
    """Messages of a stream of the lobby's, and whether each is the first of a connection.

    Raises RelanceError: a refusal that no retry helps, or what stood in the way for longer than patience lasts.
    """
    backoff, alive_at = Backoff(), time.monotonic()
    while True:
        try:
            peer = connection.channels.peer(await connection.lobby.address())
            call = open(peer, bearer(await credentials.token()))
            try:
                first = True
                async for message in call:
                    alive_at = time.monotonic()
                    backoff.reset()
                    yield first, message
                    first = False
            finally:
                call.cancel()
            refusal: RelanceError = Unavailable("UNAVAILABLE", "the server ended the stream")
        except grpc.aio.AioRpcError as failure:
            refusal = from_rpc(failure)
        except Unavailable as failure:
            refusal = failure
        if refusal.reason == "TOKEN_EXPIRED" and credentials.expired():
            continue
        if refusal.reason not in _RESUMABLE or time.monotonic() - alive_at > connection.patience:
            raise refusal
        if lost is not None:
            lost(refusal)
        await backoff.wait()
