"""Pages of list methods: the order that a client asks for, and tokens that say where a page ended (AIP-132, 158).

A page goes on behind the last entry of the one before (by its values, not by counting), so entries that come or go
in between shift nothing. Page tokens are opaque, signed, and good only for the query that they were given for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused
from relance.runtime.validation import invalid, text

Position = list[str | int | float | bool]

_TAG_BYTES = 16
_MAX_TOKEN = 1000


class PageTokens:
    """Makes and reads page tokens with a secret that all replicas of a service share."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def make(self, position: Sequence[str | int | float | bool], *query: str) -> str:
        """The token for what follows `position` in the answer to `query`."""
        body = json.dumps(list(position), separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._tag(body, query) + body).decode().rstrip("=")

    def read(self, token: str, *query: str) -> Position | None:
        """The position in a token, None for the empty one: the first page. Raises Refused INVALID_PAGE_TOKEN."""
        if not token:
            return None
        try:
            raw = base64.urlsafe_b64decode(token[:_MAX_TOKEN] + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            raw = b""
        tag, body = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(body, query)):
            raise Refused(
                reason_pb2.REASON_INVALID_PAGE_TOKEN,
                "The page token is not one of ours, or was given for another filter, order or parent.",
            )
        position: Position = json.loads(body)
        return position

    def _tag(self, body: bytes, query: tuple[str, ...]) -> bytes:
        message = hashlib.sha256(json.dumps(query).encode()).digest() + body
        return hmac.digest(self._secret, message, "sha256")[:_TAG_BYTES]


@dataclass(frozen=True, slots=True)
class Order:
    """What a page is ordered by: SQL expressions (never null), each descending or not; the last one is unique."""

    columns: tuple[tuple[str, bool], ...]

    def by(self) -> str:
        """The list after ORDER BY."""
        return ", ".join(f"{sql} DESC" if descending else sql for sql, descending in self.columns)

    def after(self, first: int) -> str:
        """The condition of what comes after a position whose values are the parameters from $`first` on."""
        choices = []
        for index, (sql, descending) in enumerate(self.columns):
            same = [f"{earlier} = ${first + k}" for k, (earlier, _) in enumerate(self.columns[:index])]
            choices.append(" AND ".join([*same, f"{sql} {'<' if descending else '>'} ${first + index}"]))
        return "(" + " OR ".join(f"({choice})" for choice in choices) + ")"


def order_of(order_by: str, fields: Mapping[str, str], *, usual: str, unique: str) -> Order:
    """The order that `order_by` asks for: fields (name -> SQL), comma-separated, each with an optional " desc".

    `usual` is taken for the empty one; `unique` is the SQL that decides between equals. Raises Refused FIELD_INVALID.
    """
    text(order_by, "order_by", longest=200, required=False)
    columns: list[tuple[str, bool]] = []
    for part in (order_by.strip() or usual).split(","):
        name, *direction = part.split()[:3] or [""]
        if name not in fields or direction not in ([], ["asc"], ["desc"]) or fields[name] in dict(columns):
            raise invalid("order_by", f"each of {', '.join(sorted(fields))} once, with an optional desc")
        columns.append((fields[name], direction == ["desc"]))
    return Order((*columns, (unique, False)))
