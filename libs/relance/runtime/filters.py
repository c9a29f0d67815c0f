"""Filters of list methods (AIP-160), read into conditions of PostgreSQL.

A filter compares fields with values: `game = "holdem" AND (big_blind <= 200 OR turbo = true) AND NOT seats_free = 0`.
Operators: = != < <= > >=. As in AIP-160, OR binds closer than AND, and two comparisons side by side are joined by AND.
Values are quoted texts, bare words, whole or decimal numbers, true and false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused

MAX_LENGTH = 1000
MAX_DEPTH = 20

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a filter may name: the SQL of its value and of what kind that is."""

    sql: str
    kind: Literal["text", "number", "bool", "word"]
    words: Mapping[str, int] = field(default_factory=dict)
    """Kind word: the numbers behind the words (of an enum), words in upper case."""


_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?![\w.]))"""
    r"""|(?P<word>[A-Za-z_][\w.-]*)|(?P<sign><=|>=|!=|[=<>()-])|(?P<end>$))"""
)
_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def to_sql(text: str, fields: Mapping[str, Field], first: int = 1) -> tuple[str, list[Value]]:
    """The condition of a filter and its parameters, numbered from $`first`; "TRUE" for an empty filter.

    Raises Refused INVALID_FILTER with the position (code points, from 0) and the fields that there are.
    """
    return _Parser(text, fields, first).whole()


class _Parser:
    """Recursive descent: one method a rule of the grammar."""

    def __init__(self, text: str, fields: Mapping[str, Field], first: int) -> None:
        self._text, self._fields, self._first = text, fields, first
        self._values: list[Value] = []
        self._position = 0
        self._depth = 0
        if len(text) > MAX_LENGTH:
            self._fail(f"is longer than {MAX_LENGTH} characters", MAX_LENGTH)
        if "\0" in text:  # no text of PostgreSQL holds one
            self._fail("has a character that means nothing", text.index("\0"))
        self._kind, self._token = "", ""
        self._advance()

    def whole(self) -> tuple[str, list[Value]]:
        if self._kind == "end":
            return "TRUE", []
        sql = self._conjunction()
        if self._kind != "end":
            self._fail(f"has {self._token!r} where AND, OR or its end should be")
        return sql, self._values

    def _conjunction(self) -> str:
        parts = [self._disjunction()]
        while self._kind != "end" and self._token != ")":
            if self._is_word("AND"):
                self._advance()
            parts.append(self._disjunction())
        return _joined(parts, "AND")

    def _disjunction(self) -> str:
        parts = [self._term()]
        while self._is_word("OR"):
            self._advance()
            parts.append(self._term())
        return _joined(parts, "OR")

    def _term(self) -> str:
        if self._is_word("NOT") or (self._kind, self._token) == ("sign", "-"):
            self._advance()
            return f"NOT {self._simple()}"
        return self._simple()

    def _simple(self) -> str:
        if (self._kind, self._token) != ("sign", "("):
            return self._comparison()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"has more than {MAX_DEPTH} parentheses inside each other")
        self._advance()
        sql = self._conjunction()
        if self._token != ")":
            self._fail("lacks a closing parenthesis")
        self._advance()
        self._depth -= 1
        return f"({sql})"

    def _comparison(self) -> str:
        if self._kind != "word" or self._token in {"AND", "OR"}:
            self._fail("lacks the name of a field")
        name = self._token
        known = self._fields.get(name)
        if known is None:
            self._fail(f"names {name!r}, which is no field")
        self._advance()
        operator = self._token
        if self._kind != "sign" or operator not in _OPERATORS:
            self._fail(f"lacks an operator (= != < <= > >=) after {name}")
        self._advance()
        if operator not in {"=", "!="} and known.kind != "number":
            self._fail(f"compares {name}, which is only equal or not")
        self._values.append(self._value(name, known))
        self._advance()
        # A number may be larger than the column's kind holds, or lie between two of its numbers.
        cast = "::numeric" if known.kind == "number" else ""
        return f"{known.sql} {'<>' if operator == '!=' else operator} ${self._first + len(self._values) - 1}{cast}"

    def _value(self, name: str, known: Field) -> Value:
        match known.kind:
            case "number" if self._kind == "number":
                number = float(self._token) if "." in self._token else int(self._token)
                if abs(number) >= 2**63:
                    self._fail("has a number that is too large")
                return number
            case "bool" if self._kind == "word" and self._token.lower() in {"true", "false"}:
                return self._token.lower() == "true"
            case "text" if self._kind in {"text", "word"}:
                return self._unquoted()
            case "word" if self._kind in {"text", "word"}:
                word = self._unquoted().upper()
                if word in known.words:
                    return known.words[word]
        wanted = {
            "number": "a number",
            "bool": "true or false",
            "text": "a text",
            "word": f"one of {', '.join(known.words)}",
        }[known.kind]
        return self._fail(f"compares {name} with {self._token or 'nothing'!r}; it is {wanted}")

    def _unquoted(self) -> str:
        return re.sub(r"\\(.)", r"\1", self._token[1:-1]) if self._kind == "text" else self._token

    def _is_word(self, word: str) -> bool:
        return self._kind == "word" and self._token == word

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position + len(self._token) if self._kind else 0)
        if match is None or match.lastgroup is None:
            rest = self._position + len(self._token)
            self._fail("has a character that means nothing", rest + _blanks(self._text[rest:]))
        self._kind, self._token = match.lastgroup, match[match.lastgroup]
        self._position = match.start(match.lastgroup)

    def _fail(self, what: str, position: int | None = None) -> NoReturn:
        at = self._position if position is None else position
        raise Refused(
            reason_pb2.REASON_INVALID_FILTER,
            f"The filter {what} (at {at}).",
            position=at, fields=",".join(sorted(self._fields)),
        )  # fmt: skip


def _joined(parts: list[str], word: str) -> str:
    return parts[0] if len(parts) == 1 else "(" + f" {word} ".join(parts) + ")"


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())
