"""Checks of what a gRPC request says. Each returns the checked value or raises Refused with what is allowed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused

if TYPE_CHECKING:
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper

    EnumType = _EnumTypeWrapper[Any]

MAX_AMOUNT = 10**15
"""Largest amount anywhere, minor units."""
MAX_REQUEST_ID = 64

ID = re.compile(r"[a-z0-9-]{1,40}")
"""An id of a table or player."""

_REQUEST_ID = re.compile(r"[!-~]+")


def table_id(name: str, field: str = "table") -> str:
    """The id in tables/{id}."""
    return resource(name, "tables/", ID.pattern, field)


def player_id(name: str, field: str = "player") -> str:
    """The id in players/{id}."""
    return resource(name, "players/", ID.pattern, field)


def resource(name: str, prefix: str, id_pattern: str, field: str) -> str:
    """The id in a resource name that begins with `prefix`."""
    if not name:
        raise missing(field)
    text = name.removeprefix(prefix)
    if len(text) == len(name) or re.fullmatch(id_pattern, text) is None:
        pattern = prefix + id_pattern
        raise Refused(
            reason_pb2.REASON_INVALID_NAME, f"{field} must be a name like {pattern}.", field=field, pattern=pattern
        )
    return text


def request_id(value: str, field: str = "request_id") -> str:
    """An id chosen by the client: 1 to 64 visible ASCII characters."""
    if not value:
        raise missing(field)
    if len(value) > MAX_REQUEST_ID:
        raise too_long(field, MAX_REQUEST_ID)
    if _REQUEST_ID.fullmatch(value) is None:
        raise invalid(field, "visible ASCII characters")
    return value


def text(value: str, field: str, *, longest: int, required: bool = True) -> str:
    """A text of at most `longest` code points."""
    if required and not value:
        raise missing(field)
    if len(value) > longest:
        raise too_long(field, longest)
    return value


def amount(value: int, field: str = "amount", *, least: int = 1, most: int = MAX_AMOUNT) -> int:
    """An amount of money, minor units."""
    if not least <= value <= most:
        raise Refused(
            reason_pb2.REASON_INVALID_AMOUNT,
            f"{field} is {value}; an amount is a whole number from {least} to {most}.",
            field=field, min=least, max=most,
        )  # fmt: skip
    return value


def whole(value: int, field: str, *, least: int, most: int) -> int:
    """A whole number that is no money."""
    if not least <= value <= most:
        raise invalid(field, f"{least} to {most}")
    return value


def enum(value: int, kind: EnumType, field: str) -> int:
    """A value of the enum that is given (not 0) and known to this program."""
    if value == 0:
        raise missing(field)
    if value not in kind.DESCRIPTOR.values_by_number:
        names = ", ".join(entry.name for entry in kind.DESCRIPTOR.values if entry.number != 0)
        raise invalid(field, names)
    return value


def present(message: Message, field: str) -> None:
    """The message field `field` is there."""
    if not message.HasField(field):
        raise missing(field)


def page_size(value: int, *, usual: int, most: int) -> int:
    """Entries of a page: `usual` where none is asked for, `most` where more are (AIP-158)."""
    if value < 0:
        raise invalid("page_size", f"0 to {most}")
    return min(value or usual, most)


def missing(field: str) -> Refused:
    """The refusal of a request without `field`."""
    return Refused(reason_pb2.REASON_FIELD_MISSING, f"{field} is missing.", field=field)


def invalid(field: str, allowed: str) -> Refused:
    """The refusal of a field that has another value than is allowed."""
    return Refused(
        reason_pb2.REASON_FIELD_INVALID,
        f"{field} has no legal value; allowed: {allowed}.",
        field=field,
        allowed=allowed,
    )


def too_long(field: str, longest: int) -> Refused:
    """The refusal of a text of more than `longest` characters."""
    return Refused(
        reason_pb2.REASON_FIELD_TOO_LONG, f"{field} is longer than {longest} characters.", field=field, max=longest
    )
