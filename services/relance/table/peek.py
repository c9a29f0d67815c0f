"""The table that a serialised request names, found by its wire format: nothing else of the message is looked at.

Every request that is about one table has its name as field 1 (a test goes through the contract).
"""

from __future__ import annotations

import re

_NAME = re.compile(rb"tables/([a-z0-9-]{1,40})")
_JOIN = 1  # PlayRequest.join
_TABLE = 1
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST_BITS = 70  # 64 in groups of 7


def table_of(request: bytes) -> str:
    """Id of the table that a request names; empty: none, or no valid name."""
    name = _field(request, _TABLE)
    found = _NAME.fullmatch(name) if name is not None else None
    return found[1].decode() if found is not None else ""


def joined_table(request: bytes) -> str:
    """Id of the table that a PlayRequest joins; empty: it is no Join."""
    join = _field(request, _JOIN)
    return table_of(join) if join is not None else ""


def _field(raw: bytes, number: int) -> bytes | None:
    """The first length-delimited field of this number; None where there is none or the bytes are no message."""
    at = 0
    try:
        while at < len(raw):
            key, at = _varint(raw, at)
            kind = key & 7
            if kind == _LENGTH:
                size, at = _varint(raw, at)
                if key >> 3 == number:
                    return raw[at : at + size] if at + size <= len(raw) else None
                at += size
            elif kind == _VARINT:
                _, at = _varint(raw, at)
            elif kind == _FIXED64:
                at += 8
            elif kind == _FIXED32:
                at += 4
            else:
                return None
    except IndexError:
        return None
    return None


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """A base-128 integer, and where it ends. Raises IndexError, also where it is longer than any there is."""
    byte = raw[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        if shift >= _LONGEST_BITS:
            raise IndexError
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1
