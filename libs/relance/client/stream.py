"""A table followed live: a view kept by events, over as many connections as it takes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import grpc
import structlog

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.client import wishes
from relance.client.backoff import Backoff
from relance.client.channels import Peer
from relance.client.connection import Connection, TableProcess
from relance.client.credentials import Credentials, bearer
from relance.client.errors import RETRIABLE, RelanceError, ResumeImpossible, Unavailable, from_rpc
from relance.client.events import Event, Events, event_of
from relance.client.proofs import KINDS, ProofFailed, Proofs
from relance.client.view import LiveView

log = structlog.get_logger(__name__)

# What a stream may end with and be taken up again: the process went, drained, or dropped a slow reader. A bare code
# comes from a library on the way, for example when a process is killed.
_RESUMABLE = RETRIABLE | {"SLOW_WATCHER", "INTERNAL", "UNKNOWN"}

_WatchCall = grpc.aio.UnaryStreamCall[table_pb2.WatchRequest, table_pb2.PlayResponse]
_PlayCall = grpc.aio.StreamStreamCall[table_pb2.PlayRequest, table_pb2.PlayResponse]
Call = TypeVar("Call", _WatchCall, _PlayCall)


class TableStream(Generic[Call]):
    """A live table. `view` is the table as this client may see it, kept by applying events; versions have no gaps.

    When the connection goes, the stream finds the table's process and resumes from the last version, for at most
    `patience` seconds in a row; after that, or on a refusal that no retry helps, everything that waits on it raises.
    """

    def __init__(self, connection: Connection, table: str, credentials: Credentials, player: str) -> None:
        self.table = table
        self.player = player
        self.server_version = ""
        self.reconnects = 0
        self.notices: deque[table_pb2.Notice] = deque(maxlen=50)
        self.talk: deque[table_pb2.ChatMessage] = deque(maxlen=100)
        """What was said at the table, oldest first."""
        self.preferences = wishes.usual()
        """How the player's seat plays by itself; without a seat as a new one would."""
        #: Every card seen, checked against what the room committed to before the deal (PROOFS.md).
        self.proofs = Proofs()
        self._connection = connection
        self._credentials = credentials
        self._place = TableProcess(connection, table, credentials)
        self._live_view = LiveView(player)
        self._readers: list[Events] = []
        self._ahead: table_pb2.TableView | None = None
        self._gap_at = 0
        self._signal = asyncio.Event()
        self._live = False
        self._alive_at = 0.0
        self._failure: RelanceError | None = None
        self._ended = False
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether the stream is up at this moment."""
        return self._live

    @property
    def view(self) -> table_pb2.TableView:
        """The table now; read it, never change it."""
        return self._live_view.shown

    @property
    def version(self) -> int:
        """Version of the last event applied."""
        return self.view.version

    def events(self) -> Events:
        """The events from now on, as an async iterator."""
        events = Events(self._readers.remove)
        self._readers.append(events)
        if self._ended:
            events.end(self._failure)
        return events

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name=f"{type(self).__name__} {self.table}")
        try:
            await self.until(lambda: bool(self.version))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the stream. A seat is kept: leaving it is another thing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._end(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on `view` holds; it is asked after each update. Raises what ended the stream."""
        while not condition():
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise Unavailable("UNAVAILABLE", "the stream was closed")
            self._signal.clear()
            await self._signal.wait()

    async def _run(self) -> None:
        """Connect again and again until closed or refused."""
        backoff = Backoff()
        self._alive_at = time.monotonic()
        while True:
            try:
                await self._session()
                refusal: RelanceError = Unavailable("UNAVAILABLE", "the server ended the stream")
            except grpc.aio.AioRpcError as failure:
                refusal = from_rpc(failure)
            except RelanceError as failure:
                refusal = failure
            except TimeoutError:
                refusal = Unavailable("UNAVAILABLE", f"no welcome within {self._connection.timeout:g} s")
            if self._live:
                self._live = False
                self._alive_at = time.monotonic()
                backoff.reset()
            if refusal.reason == "TOKEN_EXPIRED" and self._credentials.expired():
                refusal = Unavailable(refusal.reason, refusal.message, refusal.metadata)
            elif refusal.reason not in _RESUMABLE:
                self._end(refusal)
                return
            if time.monotonic() - self._alive_at > self._connection.patience:
                self._end(refusal)
                return
            self._place.moved(refusal.metadata.get("address", ""))
            await backoff.wait()
            self.reconnects += 1

    async def _session(self) -> None:
        """One connection, from joining to its end."""
        peer = self._connection.channels.peer(await self._place.address())
        token = await self._credentials.token()
        call = self._open(peer, token)
        try:
            async with asyncio.timeout(self._connection.timeout):
                await self._join(call)
                first = await call.read()
            if isinstance(first, table_pb2.PlayResponse):
                self._receive(first)
                await self._talk(call, token)
        finally:
            call.cancel()

    def _open(self, peer: Peer, token: str) -> Call:
        raise NotImplementedError

    async def _join(self, call: Call) -> None:
        """Say which table and from which version, where the opening did not."""

    async def _talk(self, call: Call, token: str) -> None:
        """Read until the server ends the stream."""
        while isinstance(message := await call.read(), table_pb2.PlayResponse):
            self._receive(message)

    def _receive(self, message: table_pb2.PlayResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "update":
            self._updated(message.update)
        elif kind == "welcome":
            self._welcomed(message.welcome)
        elif kind == "chat":
            if not self.talk or message.chat.number > self.talk[-1].number:
                self.talk.append(message.chat)
                self._changed()
        elif kind == "notice":
            self.notices.append(message.notice)
            if message.notice.kind == "MOVED":
                raise Unavailable("TABLE_MOVED", message.notice.text, {"address": message.notice.address})

    def _welcomed(self, welcome: table_pb2.Welcome) -> None:
        self.server_version = welcome.server_version
        self.preferences = welcome.preferences if welcome.HasField("preferences") else wishes.usual()
        self._live = True
        if self.version in {0, welcome.view.version}:
            self._live_view.replace(welcome.view)
        elif welcome.view.version > self.version:
            # The events in between follow; at their end this is the view.
            self._ahead = welcome.view
        else:
            raise ResumeImpossible(
                "RESUME_IMPOSSIBLE",
                f"this client saw version {self.version}, the server is at {welcome.view.version}",
                {"version": str(self.version), "head": str(welcome.view.version)},
            )
        self._changed()

    def _updated(self, update: table_pb2.TableUpdate) -> None:
        for raw in update.events:
            self._happened(raw)
        if update.HasField("prompt"):
            self.view.prompt.CopyFrom(update.prompt)
        if self._ahead is not None and self.version >= self._ahead.version:
            if self.version == self._ahead.version:
                self._live_view.replace(self._ahead)
            self._ahead = None
        self._changed()

    def _happened(self, raw: events_pb2.TableEvent) -> None:
        if raw.version <= self.version:
            return
        if raw.version != self.version + 1:
            self._missed(raw.version)
        self._live_view.apply(raw)
        if raw.WhichOneof("payload") in wishes.KINDS:
            wishes.follow(self.preferences, raw, self.player)
        if raw.WhichOneof("payload") in KINDS:
            self._prove(event_of(raw))
        if self._readers or self._listens(raw):
            event = event_of(raw)
            self._heard(event)
            for reader in tuple(self._readers):
                reader.put(event)

    def _prove(self, event: Event) -> None:
        """Check the cards of an event; one that is not what the room committed to is said loudly."""
        try:
            self.proofs.check(event)
        except ProofFailed as failure:
            log.error("card_not_as_committed", table=self.table, hand=event.hand, failure=str(failure))

    def _missed(self, version: int) -> None:
        """Versions are missing. Once, the server may send them again; a second time there is no way to have them."""
        metadata = {"version": str(self.version), "head": str(version)}
        text = f"version {version} came after {self.version}"
        if self._gap_at == self.version:
            raise ResumeImpossible("RESUME_IMPOSSIBLE", text, metadata)
        self._gap_at = self.version
        raise Unavailable("UNAVAILABLE", text, metadata)

    def _listens(self, raw: events_pb2.TableEvent) -> bool:
        """Whether `_heard` wants this event."""
        return False

    def _heard(self, event: Event) -> None:
        """An event that was applied."""

    def _changed(self) -> None:
        self._signal.set()

    def _end(self, failure: RelanceError | None) -> None:
        if not self._ended:
            self._ended, self._failure, self._live = True, failure, False
            for reader in tuple(self._readers):
                reader.end(failure)
            self._changed()


class Watch(TableStream[_WatchCall]):
    """A table watched without a seat."""

    def _open(self, peer: Peer, token: str) -> _WatchCall:
        request = table_pb2.WatchRequest(table=self.table, resume_version=self.version)
        return peer.table.Watch(request, metadata=bearer(token))
