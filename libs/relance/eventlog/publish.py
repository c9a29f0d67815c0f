"""Publishing: after an append is durable, one message about it, in order per stream.

Messages are copies and wake-ups; the log is the truth. So a stream whose messages cannot be sent falls behind and is
sent again from the log later: NATS being away neither holds an append up nor fills the memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import nats.errors
import nats.js.api
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog.errors import LogError, Unavailable
from relance.eventlog.port import Appended, EventLog

STREAM = "RELANCE_TABLES"
SUBJECT = "relance.table."
TYPES, VERSION, MESSAGE_ID = "Relance-Types", "Relance-Version", "Nats-Msg-Id"

MAX_WAITING = 64
"""Messages of one stream that wait in memory for the one before them; beyond that it falls behind."""
ACK_TIMEOUT = 5.0
"""Seconds after which a message without an acknowledgement is sent again from the log."""
MARK_EVERY = 1.0
"""Seconds between two writes of the marks."""
REPAIR_EVENTS = 500
"""Events read from the log at a time for a stream that is behind."""

_logger = structlog.get_logger("relance.eventlog")


Told: TypeAlias = tuple[Mapping[str, str], Callable[[], None]]
"""Headers that a message has besides, and what is called when NATS has it."""


@dataclass(slots=True)
class _Message:
    first: int
    last: int
    types: str
    body: bytes
    told: Told | None = None


@dataclass(slots=True)
class _Line:
    """A stream: what NATS has of it, what is on its way, what waits."""

    stream: str
    acked: int
    head: int
    number: int
    sent: _Message | None = None
    sent_at: float = 0.0
    waiting: deque[_Message] = field(default_factory=deque)
    behind: bool = False
    stuck: bool = False  # its events cannot be redacted
    ending: bool = False  # nothing will be added: forgotten once NATS has it all


class Publisher:
    """Publishes the streams of this process.

    `redact(events)` answers the body of a message: what everybody may see of the events of one append, serialised.
    Of each stream one message is on its way at a time, which keeps the order; the streams do not wait for each other.
    `tell(stream)`, where it is given, is asked in the context of each `publish` what else the message shall tell.
    """

    def __init__(
        self,
        log: EventLog,
        client: Client,
        redact: Callable[[Sequence[TableEvent]], bytes],
        tell: Callable[[str], Told | None] | None = None,
    ) -> None:
        self._log, self._client, self._redact, self._tell = log, client, redact, tell
        self._lines: dict[str, _Line] = {}
        self._numbered: dict[int, _Line] = {}
        self._numbers = 0
        self._to_mark: dict[str, int] = {}
        self._outbox: deque[tuple[_Line, _Message]] = deque()
        self._to_send = asyncio.Event()
        self._repair = asyncio.Event()
        self._ready = False
        self._inbox = ""
        self._loop = asyncio.get_running_loop()
        self._marks_due = 0.0

    @property
    def behind(self) -> int:
        """Streams of which NATS lacks messages that are not in memory."""
        return sum(line.behind for line in list(self._lines.values()))

    @property
    def lag(self) -> int:
        """Messages that wait or are on their way, and streams that are behind. From any thread."""
        lines = list(self._lines.values())
        return sum(line.behind + len(line.waiting) + (line.sent is not None) for line in lines)

    async def adopt(self, stream: str, head: int) -> None:
        """Begin to publish a stream whose owner this process became; what its mark says is missing is sent first.

        Raises Unavailable.
        """
        marks = await self._log.marks.read([stream])
        self.adopt_at(stream, head, marks[stream])

    def adopt_at(self, stream: str, head: int, mark: int) -> None:
        """The same for who has read the marks of many streams at once."""
        self.drop(stream)
        self._numbers += 1
        line = _Line(stream, acked=mark, head=head, number=self._numbers, behind=mark < head)
        self._lines[stream] = self._numbered[line.number] = line
        if line.behind:
            self._repair.set()

    def finish(self, stream: str) -> None:
        """Stop publishing a stream that is over, once NATS has all of it. Whoever loses a stream drops it instead."""
        line = self._lines.get(stream)
        if line is not None:
            line.ending = True
            self._forget_if_over(line)

    def _forget_if_over(self, line: _Line) -> None:
        if line.ending and line.sent is None and not line.behind and not line.waiting:
            self.drop(line.stream)

    def drop(self, stream: str) -> None:
        """Stop publishing a stream, at once."""
        line = self._lines.pop(stream, None)
        if line is not None:
            del self._numbered[line.number]

    def publish(self, stream: str, events: Sequence[TableEvent], body: bytes | None = None) -> None:
        """Send the events of one append that is durable; `body`, where the caller has it, saves redacting them again.

        Never waits. The stream must have been adopted, and appends must come in order.
        """
        line = self._lines[stream]
        first, last = events[0].version, events[-1].version
        if last <= line.head:
            return  # a repair read it from the log already
        if first != line.head + 1:
            raise ValueError(f"{stream}: version {first} published after {line.head}")
        line.head = last
        if line.behind or line.stuck:
            return
        if not self._ready or not self._client.is_connected or len(line.waiting) >= MAX_WAITING:
            self._fall_behind(line)
            return
        types = dict.fromkeys(event.WhichOneof("payload") or "" for event in events)
        message = _Message(first, last, ",".join(types), self._redact(events) if body is None else body)
        if self._tell is not None:
            message.told = self._tell(stream)
        if line.sent is None:
            self._send(line, message)
        else:
            line.waiting.append(message)

    async def run(self) -> None:
        """Send, and keep the JetStream stream, the marks and the streams that are behind in order.

        Ends by cancellation.
        """
        sending = self._loop.create_task(self._send_all(), name="publisher")
        connection = -1
        try:
            while True:
                self._repair.clear()
                if not self._client.is_connected:
                    self._ready = False
                elif not self._ready or connection != self._client.stats["reconnects"]:
                    connection = self._client.stats["reconnects"]
                    await self._begin()
                self._expire()
                if self._ready:
                    await self._catch_up()
                if self._loop.time() >= self._marks_due:
                    await self._write_marks()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(MARK_EVERY):
                        await self._repair.wait()
        finally:
            self._ready = False
            sending.cancel()
            await self._write_marks()

    async def _begin(self) -> None:
        """After every (re)connection: the stream may be gone, and so may what was on its way."""
        self._ready = False
        for line in self._lines.values():
            if line.sent is not None or line.waiting:
                self._fall_behind(line)
        try:
            if not self._inbox:
                inbox = self._client.new_inbox() + "."
                await self._client.subscribe(inbox + "*", cb=self._acked)
                self._inbox = inbox
            await ensure_stream(self._client)
        except (nats.errors.Error, OSError, TimeoutError) as error:
            _logger.warning("stream_not_ready", error=repr(error))
            return
        self._ready = True

    def _send(self, line: _Line, message: _Message) -> None:
        line.sent, line.sent_at = message, self._loop.time()
        self._outbox.append((line, message))
        self._to_send.set()

    async def _send_all(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            while self._outbox:
                line, message = self._outbox.popleft()
                if line.sent is not message:
                    continue
                headers = {
                    MESSAGE_ID: f"{line.stream}/{message.first}",
                    VERSION: str(message.last),
                    TYPES: message.types,
                    **(message.told[0] if message.told is not None else {}),
                }
                reply = f"{self._inbox}{line.number}-{message.last}"
                try:
                    await self._client.publish(SUBJECT + line.stream, message.body, reply=reply, headers=headers)
                except (nats.errors.Error, OSError) as error:
                    _logger.warning("not_published", stream=line.stream, error=repr(error))
                    self._fall_behind(line)

    async def _acked(self, reply: Msg) -> None:
        number, _, last = reply.subject.rpartition(".")[2].partition("-")
        line = self._numbered.get(int(number))
        if line is None or line.sent is None or line.sent.last != int(last):
            return
        if reply.headers is not None or b'"error"' in reply.data:  # nobody keeps the stream, or it refuses
            _logger.warning("publication_refused", stream=line.stream, answer=reply.data.decode(errors="replace"))
            self._ready = False
            self._fall_behind(line)
            return
        if line.sent.told is not None:
            line.sent.told[1]()
        line.acked = line.sent.last
        self._to_mark[line.stream] = line.acked
        if line.waiting:
            self._send(line, line.waiting.popleft())
            return
        line.sent = None
        if line.behind:
            self._repair.set()
        self._forget_if_over(line)

    def _fall_behind(self, line: _Line) -> None:
        line.behind, line.sent = True, None
        line.waiting.clear()
        if self._ready:
            self._repair.set()

    def _expire(self) -> None:
        now = self._loop.time()
        for line in self._lines.values():
            if line.sent is not None and now - line.sent_at > ACK_TIMEOUT:
                # Where followers listen, a message is taken though no JetStream stream keeps it, and nobody answers.
                self._ready = False
                self._fall_behind(line)

    async def _catch_up(self) -> None:
        """Fill the lines of streams that are behind from the log; the rest goes as the acknowledgements come."""
        for line in [line for line in self._lines.values() if line.behind and line.sent is None]:
            try:
                appends = await self._log.read_appends(line.stream, line.acked, REPAIR_EVENTS)
            except Unavailable:
                return
            if self._lines.get(line.stream) is not line or line.sent is not None:
                continue
            try:
                line.waiting.extend(self._message_of(append) for append in appends)
            except Exception as error:  # noqa: BLE001 - redact is foreign: its failure stops one stream, loudly
                _logger.error("publication_stopped", stream=line.stream, after=line.acked, error=repr(error))
                line.waiting.clear()
                line.behind, line.stuck = False, True
                self._forget_if_over(line)
                continue
            reached = appends[-1].last if appends else line.acked
            if reached >= line.head:
                line.head, line.behind = reached, False
            if line.waiting:
                self._send(line, line.waiting.popleft())
            self._forget_if_over(line)

    def _message_of(self, append: Appended) -> _Message:
        events = [TableEvent.FromString(body) for body in append.bodies]
        types = dict.fromkeys(event.WhichOneof("payload") or "" for event in events)
        return _Message(append.first, append.last, ",".join(types), self._redact(events))

    async def _write_marks(self) -> None:
        self._marks_due = self._loop.time() + MARK_EVERY
        marks, self._to_mark = self._to_mark, {}
        if not marks:
            return
        try:
            await self._log.marks.write(marks)
        except LogError as error:  # a mark is a lower bound: the next one serves as well
            self._to_mark = marks | self._to_mark
            _logger.warning("marks_not_written", error=str(error))


async def ensure_stream(client: Client) -> None:
    """Create the JetStream stream of the tables, or bring it to its settings. Raises nats.errors.Error."""
    config = nats.js.api.StreamConfig(
        name=STREAM,
        subjects=[SUBJECT + "*"],
        max_age=24 * 3600,
        max_bytes=256 * 1024 * 1024,
        duplicate_window=120,
    )
    manager = client.jetstream()
    try:
        await manager.add_stream(config)
    except nats.js.errors.BadRequestError:
        await manager.update_stream(config)
