"""Reading YAML documents by what is expected in them: a field that nobody carries out is an error, never silence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Self

from relance.room.processes import RoomError


class ManifestError(RoomError):
    """A manifest that cannot be run as it says; the text says which, where and why."""


class Node:
    """A mapping of a document, with the way there for messages: `Deployment table: spec.template.spec`.

    `known` are the fields that are carried out, `passed` those that a single machine passes over (README.md lists
    them); any other raises ManifestError.
    """

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self.fields, self.where = fields, where

    def only(self, known: Collection[str], passed: Collection[str] = ()) -> Self:
        """This node, which has no other fields. Raises ManifestError."""
        for name in self.fields:
            if name not in known and name not in passed:
                raise ManifestError(f"{self._at(name)}: this runner does not carry it out")
        return self

    def text(self, name: str, default: str | None = None) -> str:
        """A text; numbers and booleans are an error, as in a cluster. Raises ManifestError."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise ManifestError(f"{self._at(name)}: a text is expected, not {value!r}")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number. Raises ManifestError."""
        value = self.fields.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ManifestError(f"{self._at(name)}: a whole number is expected, not {value!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """A boolean. Raises ManifestError."""
        value = self.fields.get(name, default)
        if not isinstance(value, bool):
            raise ManifestError(f"{self._at(name)}: true or false is expected, not {value!r}")
        return value

    def port(self, name: str, default: str | int | None = None) -> str | int:
        """A number or the name of a port. Raises ManifestError."""
        value = self.fields.get(name, default)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ManifestError(f"{self._at(name)}: a port is expected, not {value!r}")
        return value

    def has(self, name: str) -> bool:
        """Whether there is such a field, with something in it or {}."""
        return self.fields.get(name) is not None

    def node(self, name: str) -> Node:
        """A mapping; an empty one where there is none. Raises ManifestError."""
        value = self.fields.get(name)
        return Node(_mapping(value if value is not None else {}, self._at(name)), self._at(name))

    def nodes(self, name: str) -> Iterator[Node]:
        """The mappings of a list. Raises ManifestError."""
        for number, value in enumerate(self._list(name)):
            where = f"{self._at(name)}[{number}]"
            yield Node(_mapping(value, where), where)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts. Raises ManifestError."""
        found = []
        for value in self._list(name):
            if not isinstance(value, str):
                raise ManifestError(f"{self._at(name)}: texts are expected, not {value!r}")
            found.append(value)
        return tuple(found)

    def mapping(self, name: str) -> dict[str, str]:
        """A mapping of texts to texts. Raises ManifestError."""
        node = self.node(name)
        return {key: node.text(key) for key in node.fields}

    def _list(self, name: str) -> list[object]:
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ManifestError(f"{self._at(name)}: a list is expected, not {value!r}")
        return value

    def _at(self, name: str) -> str:
        return f"{self.where}.{name}" if not self.where.endswith(":") else f"{self.where} {name}"


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ManifestError(f"{where}: a mapping is expected, not {value!r}")
    return value
