"""Protobuf messages as plain JSON values: numbers stay numbers, enums are words, bytes are hexadecimal."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2 as pb


def plain(message: Message) -> dict[str, Any]:
    """The fields that are set, by name."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_repeated:
            found[field.name] = [_value(field, each) for each in value]
        else:
            found[field.name] = _value(field, value)
    return found


def event_record(event: pb.TableEvent) -> dict[str, Any]:
    """An event as one flat record: envelope, type, and what it carries under `data`."""
    kind = event.WhichOneof("payload")
    return {
        "table": event.table,
        "version": event.version,
        "hand": event.hand,
        "time_us": event.time_us,
        "type": kind or "",
        "data": plain(getattr(event, kind)) if kind else {},
    }


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    if isinstance(value, bytes):
        return value.hex()
    return value
