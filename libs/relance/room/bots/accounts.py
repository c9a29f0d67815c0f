"""Who the bots are: names, passwords and last tables, kept in one file of the data folder."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

_NAMES = (
    "Ada", "Alma", "Anton", "Bela", "Bruno", "Carla", "Celeste", "Dario", "Edith", "Emil", "Fanny",
    "Felix", "Greta", "Hugo", "Ida", "Irma", "Jonas", "Jules", "Karla", "Lea", "Leon", "Lotte",
    "Marius", "Mila", "Nadja", "Nils", "Odile", "Oskar", "Paula", "Quentin", "Rosa", "Rufus", "Selma",
    "Simon", "Thea", "Tilo", "Ulla", "Vera", "Willem", "Xenia", "Yara", "Zeno",
)  # fmt: skip


@dataclass(slots=True)
class Account:
    """One bot's account.

    table: where it took a seat last, tables/{table}; empty: nowhere. registered: whether the room knows it.
    """

    name: str
    password: str
    table: str = ""
    registered: bool = False


class Accounts:
    """The accounts of a fleet. Only the owner of the file may read it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.accounts = [Account(**row) for row in json.loads(file.read_text())] if file.exists() else []

    def get(self, count: int) -> list[Account]:
        """The first `count` accounts, new ones where there were fewer."""
        while len(self.accounts) < count:
            place = len(self.accounts)
            round_, name = divmod(place, len(_NAMES))
            suffix = f" {round_ + 1}" if round_ else ""
            self.accounts.append(Account(f"{_NAMES[name]}{suffix}", secrets.token_urlsafe(16)))
        self.save()
        return self.accounts[:count]

    def save(self) -> None:
        """Write the file anew, whole or not at all."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_suffix(".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump([asdict(account) for account in self.accounts], out, indent=1)
        draft.replace(self._file)
