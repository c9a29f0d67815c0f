"""Reading a house file with types: a mistake says the file, the key, and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class HouseFileError(ValueError):
    """A house file that cannot be used: ``boulevard.toml: games.holdem.seats: 12 is not allowed; allowed: 2 to 10``."""


class Section:
    """One table of a TOML file. Each key is read once, by the type that it must have; `close` refuses what is left."""

    def __init__(self, file: str, path: str, values: Mapping[str, object]) -> None:
        self._file = file
        self._path = path
        self._left = dict(values)
        self._known: list[str] = []

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty. Without a default the key must be there."""
        value = self._take(key, default)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, value, "a text")
        return value

    def word(self, key: str, allowed: Sequence[str], default: str | None = None) -> str:
        """One of the allowed words."""
        value = self._take(key, default)
        if not isinstance(value, str) or value not in allowed:
            raise self.wrong(key, value, ", ".join(allowed))
        return value

    def words(self, key: str, allowed: Sequence[str]) -> tuple[str, ...]:
        """A list of allowed words, at least one, none twice."""
        value = self._take(key, None)
        if not isinstance(value, list) or not value:
            raise self.wrong(key, value, "a list of " + ", ".join(allowed))
        for word in value:
            if word not in allowed or value.count(word) > 1:
                raise self.wrong(key, word, "each once of " + ", ".join(allowed))
        return tuple(value)

    def whole(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number within bounds."""
        value = self._take(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, value, f"{least} to {most}")
        return value

    def wholes(self, key: str, least: int, most: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of whole numbers within bounds."""
        value = self._take(key, None if default is None else list(default))
        if not isinstance(value, list):
            raise self.wrong(key, value, f"a list of whole numbers, {least} to {most}")
        for number in value:
            if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
                raise self.wrong(key, number, f"{least} to {most}")
        return tuple(value)

    def switch(self, key: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true, false")
        return value

    def section(self, key: str, *, optional: bool = False) -> Section:
        """A table below this one; an empty one when it is optional and absent."""
        value = self._take(key, {} if optional else None)
        if not isinstance(value, dict):
            raise self.wrong(key, value, "a table of keys and values")
        return Section(self._file, self._name(key), value)

    def sections(self, key: str) -> list[Section]:
        """A list of tables; no list is an empty one."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(key, value, "a list of tables")
        return [Section(self._file, f"{self._name(key)}[{at}]", one) for at, one in enumerate(value)]

    def unread(self) -> tuple[str, ...]:
        """The keys not read yet."""
        return tuple(self._left)

    def has(self, key: str) -> bool:
        """Whether a key is there and not read yet."""
        return key in self._left

    def close(self) -> None:
        """Refuse keys that nobody has read."""
        for key, value in self._left.items():
            known = ", ".join(sorted(self._known)) or "no keys here"
            raise HouseFileError(f"{self._file}: {self._name(key)}: no such key ({value!r}); allowed: {known}")

    def wrong(self, key: str, found: object, allowed: str) -> HouseFileError:
        """The error for a value that is not allowed, to be raised."""
        what = "is missing" if found is None else f"{found!r} is not allowed"
        return HouseFileError(f"{self._file}: {self._name(key)}: {what}; allowed: {allowed}")

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        return self._left.pop(key, default)

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key
