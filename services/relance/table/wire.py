"""Bytes of Play and Watch messages, put together from parts that are encoded once.

A public event is serialised once per table whatever the number of watchers; NATS gets the same bytes. Protobuf
messages concatenate: a `TableUpdate` is its events one after another, then its prompt, each behind tag and length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.message import Message

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.poker import public_bytes, redact

_LENGTH_DELIMITED = 2


def _tag(message: type[Message], field: str) -> bytes:
    number = message.DESCRIPTOR.fields_by_name[field].number
    return varint(number << 3 | _LENGTH_DELIMITED)


def varint(value: int) -> bytes:
    """A non-negative integer in protobuf's base 128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_EVENT = _tag(table_pb2.TableUpdate, "events")
_PROMPT = _tag(table_pb2.TableUpdate, "prompt")
_WELCOME = _tag(table_pb2.PlayResponse, "welcome")
_UPDATE = _tag(table_pb2.PlayResponse, "update")
_RESULT = _tag(table_pb2.PlayResponse, "result")
_REFUSAL = _tag(table_pb2.PlayResponse, "refusal")
_NOTICE = _tag(table_pb2.PlayResponse, "notice")
_CHAT = _tag(table_pb2.PlayResponse, "chat")


def update(body: bytes, prompt: bytes) -> bytes:
    """A PlayResponse with a TableUpdate: events as `TableUpdate` bytes, and a serialised prompt (empty: none)."""
    tail = b"%b%b%b" % (_PROMPT, varint(len(prompt)), prompt) if prompt else b""
    return b"%b%b%b%b" % (_UPDATE, varint(len(body) + len(tail)), body, tail)


def events_body(events: Iterable[bytes]) -> bytes:
    """The events of a TableUpdate from serialised events."""
    return b"".join(part for event in events for part in (_EVENT, varint(len(event)), event))


def _wrapped(tag: bytes, message: Message) -> bytes:
    body = message.SerializeToString()
    return b"%b%b%b" % (tag, varint(len(body)), body)


def welcome(message: table_pb2.Welcome) -> bytes:
    """A PlayResponse with a Welcome."""
    return _wrapped(_WELCOME, message)


def result(request_id: str, version: int) -> bytes:
    """A PlayResponse with the answer of an accepted command."""
    return _wrapped(_RESULT, table_pb2.CommandResponse(request_id=request_id, version=version))


def refusal(message: table_pb2.Refusal) -> bytes:
    """A PlayResponse with a refusal."""
    return _wrapped(_REFUSAL, message)


def notice(message: table_pb2.Notice) -> bytes:
    """A PlayResponse with a notice."""
    return _wrapped(_NOTICE, message)


def chat(message: table_pb2.ChatMessage) -> bytes:
    """A PlayResponse with what somebody said."""
    return _wrapped(_CHAT, message)


class Encoded:
    """The events of one append as everyone may see them, and as each owner of a secret in them may.

    `owners` gives for each event with a secret the player whose it is; others are public.
    """

    __slots__ = ("body", "events", "private")

    def __init__(self, events: Sequence[TableEvent], owners: dict[int, tuple[int, str]]) -> None:
        parts = [public_bytes(event) for event in events]
        self.events = events
        self.body = events_body(parts)
        self.private: dict[str, bytes] = {}
        for player in {player for _, player in owners.values()}:
            own = [
                redact(event, owners[place][0]).SerializeToString()
                if owners.get(place, (0, ""))[1] == player
                else parts[place]
                for place, event in enumerate(events)
            ]
            self.private[player] = events_body(own)
