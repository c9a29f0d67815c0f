"""Play and Watch: streams of raw bytes, so that what many watch is encoded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version as package_version

import structlog
from google.protobuf.message import DecodeError

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.eventlog import EventLog
from relance.poker import Rejected
from relance.poker.commands import Command, TakeSeat
from relance.runtime import logging, validation
from relance.runtime.auth import PLAYER, Context, Identity, KeyRing, identity, require
from relance.runtime.errors import Refused, code_number, code_of, reason_name
from relance.runtime.invitations import is_invited
from relance.runtime.pipeline import fault
from relance.runtime.server import MAX_REQUEST_BYTES
from relance.table import requests, wire
from relance.table.actor import Actor
from relance.table.chat import Chat
from relance.table.landing import Landed
from relance.table.mail import Mail, Outcome
from relance.table.resume import missed
from relance.table.streams import Stream
from relance.table.tables import Tables
from relance.table.timers import NEVER
from relance.transport import tracing

log = structlog.get_logger(__name__)

_PLAY = "relance.api.table.v1.TableService/Play"
SERVER_VERSION = package_version("relance")
MAX_PENDING = 16
"""Commands of one stream that may wait for an answer."""
JOIN_SECONDS = 10.0
LAST_WORDS_SECONDS = 2.0
"""How long a stream that ends may take to read what was sent before its end."""


class Play:
    """The two streaming methods of TableService."""

    def __init__(self, tables: Tables, log: EventLog, keyring: KeyRing, chat: Chat) -> None:
        self._tables = tables
        self._log = log
        self._keyring = keyring
        self._chat = chat

    async def play(self, context: Context, first: bytes | None = None) -> None:
        """Play at a table: a Join first (`first`: read already), then commands up and what happens down."""
        caller = require(context, PLAYER)
        first = await first_message(context) if first is None else first
        try:
            message = table_pb2.PlayRequest.FromString(first)
        except DecodeError:
            raise validation.invalid("message", "a PlayRequest") from None
        if message.WhichOneof("message") != "join":
            raise validation.missing("join")
        actor = await self._tables.find(validation.table_id(message.join.table))
        stream = Stream(caller.player, seated=True, send=_send(context))
        await self._admit(actor, stream, message.join.resume_version)
        session = _Session(self._tables, actor, stream, caller, self._keyring, self._chat)
        await _run(actor, stream, context, session)

    async def watch(self, raw: bytes, context: Context) -> None:
        """Watch a table without a seat."""
        caller = identity(context)
        try:
            request = table_pb2.WatchRequest.FromString(raw)
        except DecodeError:
            raise validation.invalid("message", "a WatchRequest") from None
        actor = await self._tables.find(validation.table_id(request.table))
        stream = Stream(caller.player if caller.has(PLAYER) else "", seated=False, send=_send(context))
        await self._admit(actor, stream, request.resume_version)
        await _run(actor, stream, context, _Session(self._tables, actor, stream, caller, self._keyring, self._chat))

    async def _admit(self, actor: Actor, stream: Stream, resume_version: int) -> None:
        talk = await self._chat.on_join(actor.id)
        updates = await missed(self._log, actor, stream.player, resume_version)
        # No await from here on: the view, what was missed before it and what comes after it fit together.
        welcome = table_pb2.Welcome(
            server_version=SERVER_VERSION, max_request_bytes=MAX_REQUEST_BYTES, max_pending_commands=MAX_PENDING
        )
        actor.attach(stream, welcome, updates)
        for message in talk:
            stream.push(message)


async def first_message(context: Context) -> bytes:
    """What a Play stream begins with. Raises Refused FIELD_MISSING where nothing comes."""
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            first = await context.read()
    except TimeoutError:
        raise validation.missing("join") from None
    if not isinstance(first, bytes):
        raise validation.missing("join")
    return first


def _send(context: Context) -> Callable[[bytes], None] | None:
    """Messages go on a link at once, where what is for many goes over it once."""
    return context.send if isinstance(context, Landed) else None


class _Session:
    """Who is at the other end of a stream: their token's time, and the commands that they send."""

    def __init__(
        self, tables: Tables, actor: Actor, stream: Stream, caller: Identity, keyring: KeyRing, chat: Chat
    ) -> None:
        self._tables = tables
        self._host = tables.host
        self._chat = chat
        self._actor = actor
        self._stream = stream
        self._caller = caller
        self._keyring = keyring
        self._name = f"tables/{actor.id}"
        self._origin = tracing.present() if tracing.on() else None
        self.pending = 0
        self.timer_at = NEVER
        self._watch_token()

    def _watch_token(self) -> None:
        left = (self._caller.expires_at - self._host.clock.now_us()) / 1e6
        self._host.timers.at(self._host.clock.monotonic() + max(0.0, left), self)

    def due(self, _now: float) -> None:
        """The token should have been refreshed by now (Timers)."""
        if self._stream.ended.done():
            return
        if self._host.clock.now_us() >= self._caller.expires_at:
            self._stream.end(
                Refused(reason_pb2.REASON_TOKEN_EXPIRED, "The token has expired and no other was given in time.")
            )
        else:
            self._watch_token()

    def close(self) -> None:
        """The stream is over: nobody waits for its token's end."""
        self._host.timers.forget(self)

    async def read_all(self, context: Context) -> None:
        """Take what the client sends until it sends no more."""
        if isinstance(context, Landed):
            context.listen(self._take)
        while isinstance(raw := await context.read(), bytes):
            self._take(raw)
        self._stream.end(None)

    def _take(self, raw: bytes) -> None:
        try:
            self._command(raw)
        except Exception:  # the boundary of the process: a link that it came by has other callers' streams, too
            log.exception("message of a stream failed", table=self._actor.id)
            self._stream.end(fault(logging.request_id.get()))

    def _command(self, raw: bytes) -> None:
        received = self._host.clock.monotonic()
        request_id = ""
        span = None
        try:
            try:
                message = table_pb2.PlayRequest.FromString(raw)
            except DecodeError:
                raise validation.invalid("message", "a PlayRequest") from None
            kind = message.WhichOneof("message")
            if kind is None:
                raise validation.missing("message")
            if kind == "join":
                raise validation.invalid("message", "a command: the stream has joined a table")
            if kind == "refresh_token":
                self._refresh(message.refresh_token.token)
                return
            command = getattr(message, kind)
            request_id = command.request_id
            logging.follow(request_id)
            if tracing.on():
                links = () if self._origin is None else (self._origin,)
                span = tracing.enter(
                    f"{_PLAY}/{kind}", links=links, table=self._actor.id, request=logging.request_id.get()
                )
            if command.table not in {"", self._name}:
                raise validation.invalid("table", f"{self._name}, or left out")
            if self.pending >= MAX_PENDING:
                raise Refused(
                    reason_pb2.REASON_MAILBOX_FULL, f"{MAX_PENDING} commands of this stream wait.", limit=MAX_PENDING
                )
            if kind == "chat":
                self.pending += 1
                self._tables.keep(self._say(command, span))
                return
            invitation = command.invitation if kind == "take_seat" else ""
            order, request = requests.read(kind, command, self._caller.subject)
            if invitation:
                order = admitted(self._keyring, invitation, order, self._actor.id, self._host.clock.now_us())
        except Refused as refused:
            self._stream.push(wire.refusal(_refusal(request_id, refused)))
            if span is not None:
                tracing.end(span, code_of(refused.reason).name)
            return
        self.pending += 1
        mail = Mail(order, request, received, _Answer(self, self._stream, request_id, span))
        if self._tables.cash_outs.asked_for(self._actor.table, order, request):
            self._tables.keep(self._buy(mail))
        else:
            self._actor.post(mail)

    async def _buy(self, mail: Mail) -> None:
        try:
            await self._tables.cash_outs.confirm_none(self._actor.table, mail.command)
        except Refused as refused:
            mail.answer(refused)
        else:
            self._actor.post(mail)

    async def _say(self, request: table_pb2.SendChatRequest, span: tracing.Span | None) -> None:
        answer = _Answer(self, self._stream, request.request_id, span)
        try:
            await self._chat.say(self._actor, self._caller.subject, request)
        except (Refused, Rejected) as refused:
            answer(refused)
        else:
            answer(0)

    def _refresh(self, token: str) -> None:
        caller = self._keyring.verify(token, self._host.clock.now_us())
        if caller.subject != self._caller.subject or not caller.has(PLAYER):
            raise Refused(reason_pb2.REASON_TOKEN_INVALID, "The token is another caller's.")
        self._caller = caller
        self._watch_token()


def admitted(keyring: KeyRing, invitation: str, order: Command, table: str, now_us: int) -> Command:
    """A TakeSeat with what its invitation is worth at a private table."""
    assert isinstance(order, TakeSeat)
    return replace(order, invited=is_invited(keyring, invitation, order.player, table, now_us=now_us))


class _Answer:
    """The answer of a command, on the stream that it came by; with it the command's span ends."""

    __slots__ = ("_request_id", "_session", "_span", "_stream")

    def __init__(self, session: _Session, stream: Stream, request_id: str, span: tracing.Span | None) -> None:
        self._session, self._stream, self._request_id, self._span = session, stream, request_id, span

    def __call__(self, outcome: Outcome) -> None:
        self._session.pending -= 1
        if isinstance(outcome, int):
            self._stream.push(wire.result(self._request_id, outcome))
        else:
            self._stream.push(wire.refusal(_refusal(self._request_id, outcome)))
        if self._span is not None:
            tracing.end(self._span, "OK" if isinstance(outcome, int) else code_of(outcome.reason).name)


def _refusal(request_id: str, refused: Refused | Rejected) -> table_pb2.Refusal:
    return table_pb2.Refusal(
        request_id=request_id,
        code=code_number(refused.reason),
        reason=reason_name(refused.reason),
        message=refused.message,
        metadata=refused.metadata,
    )


async def _run(actor: Actor, stream: Stream, context: Context, session: _Session) -> None:
    """Keep a stream until it ends. Raises Refused where it ends with a reason."""
    writer = asyncio.create_task(stream.write_all(context.write))
    reader = asyncio.create_task(session.read_all(context)) if stream.seated else None
    children = [writer] if reader is None else [writer, reader]
    for child in children:
        child.add_done_callback(lambda _: stream.end(None))
    try:
        why = await stream.ended
        # Who is too slow to read would be too slow for last words.
        if why is None or why.reason != reason_pb2.REASON_SLOW_WATCHER:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await asyncio.wait([writer])
    finally:
        actor.detach(stream)
        stream.end(None)
        session.close()
        for child in children:
            child.cancel()
        await asyncio.gather(*children, return_exceptions=True)
    if why is not None:
        raise why
