"""The only door through which an event leaves for anyone. What is secret is marked in the schema."""

from __future__ import annotations

from typing import Final

from relance.api.common.v1 import visibility_pb2
from relance.api.events.v1 import events_pb2 as pb


def _fields(descriptor: object, level: int) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in descriptor.fields  # type: ignore[attr-defined]
        if field.GetOptions().Extensions[visibility_pb2.visibility] == level
    )


_INTERNAL: Final = _fields(pb.TableEvent.DESCRIPTOR, visibility_pb2.VISIBILITY_INTERNAL)
_SECRET: Final[dict[str, tuple[str, ...]]] = {
    field.name: secret
    for field in pb.TableEvent.DESCRIPTOR.fields
    if field.message_type is not None and (secret := _fields(field.message_type, visibility_pb2.VISIBILITY_SEAT))
}
"""Fields for the eyes of the event's seat only, by the name of the payload."""


def has_secret(event: pb.TableEvent) -> bool:
    """Whether the event shows its seat more than everyone."""
    return event.WhichOneof("payload") in _SECRET


def redact(event: pb.TableEvent, seat: int = 0, *, disclosed: bool = False) -> pb.TableEvent:
    """A copy of the event as a viewer may see it.

    seat: of the viewer, 0 = the public. disclosed: an operator after the hand, who sees the cards. Fields for the
    service alone are stripped always.
    """
    shown = pb.TableEvent()
    shown.CopyFrom(event)
    for name in _INTERNAL:
        shown.ClearField(name)  # type: ignore[arg-type]
    kind = event.WhichOneof("payload")
    secret = _SECRET.get(kind) if kind is not None else None
    if secret and not disclosed:
        payload = getattr(shown, str(kind))
        if not seat or payload.seat != seat:
            for name in secret:
                payload.ClearField(name)
    return shown


def public_bytes(event: pb.TableEvent) -> bytes:
    """The event for everyone, serialised once."""
    return redact(event).SerializeToString()
