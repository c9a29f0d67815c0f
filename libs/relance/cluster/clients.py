"""The clients: bots in a few programs, each with connections of its own, that know one address."""

from __future__ import annotations

import json
import secrets
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from relance.room.play import BotPlan, play_command
from relance.room.processes import Child
from relance.room.services import inherited

PROGRAMS = 4
"""A Service spreads connections, and bots of one program share theirs."""


@dataclass(slots=True)
class Complaints:
    """What bots met that the client library did not absorb: refusals and failures by reason, and deaths."""

    reasons: Counter[str] = field(default_factory=Counter)
    last: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.reasons.values())

    def __str__(self) -> str:
        return ", ".join(f"{reason} {count} ({self.last[reason]})" for reason, count in self.reasons.most_common())


class Clients:
    """Bots against the lobby's address, as programs that this one keeps."""

    def __init__(self, folder: Path, lobby: str, bots: int, pace: str, seed: int) -> None:
        self._children: list[Child] = []
        self._read: dict[Path, int] = {}
        self._commands = []
        for number in range(PROGRAMS):
            place = folder / f"clients-{number + 1}"
            count = bots // PROGRAMS + (number < bots % PROGRAMS)
            _make_accounts(place, number, count)
            self._commands.append(play_command(BotPlan(count, pace, seed + number), lobby, place))
            self._children.append(Child(place.name, place / "pid", folder / f"{place.name}.log", signal.SIGKILL))

    def start(self) -> None:
        """Let them play."""
        for child, command in zip(self._children, self._commands, strict=True):
            child.start(command, inherited())

    def stop(self) -> None:
        """Let them end; seats are kept."""
        for child in self._children:
            child.send(signal.SIGTERM)
        for child in self._children:
            child.stop(signal.SIGTERM, 10)

    def complaints(self) -> Complaints:
        """What bots complained of since this was asked last."""
        found = Complaints()
        for child in self._children:
            for line in self._lines(child.log):
                entry = _entry(line)
                kind = str(entry.get("event"))
                if kind in ("bot_refused", "bot_died", "card_not_as_committed"):
                    reason = str(entry.get("reason", kind.upper()))
                    found.reasons[reason] += 1
                    found.last[reason] = str(entry.get("message", ""))[:160]
            if not child.running:
                found.reasons["PROGRAM_DIED"] += 1
                found.last["PROGRAM_DIED"] = child.last_words()
        return found

    def strangers(self, known: Callable[[str], bool]) -> set[str]:
        """Addresses that the bots are connected to and that are not `known`."""
        remote = {
            connection.raddr.ip.removeprefix("::ffff:")
            for child in self._children
            if child.running and child.pid is not None
            for connection in psutil.Process(child.pid).net_connections("tcp")
            if connection.raddr
        }
        return {address for address in remote if not known(address)}

    def _lines(self, log: Path) -> list[str]:
        if not log.exists():
            return []
        with log.open("rb") as file:
            start = self._read.get(log, 0)
            file.seek(start if start <= log.stat().st_size else 0)
            whole, _, _ = file.read().rpartition(b"\n")
            self._read[log] = (start if start <= log.stat().st_size else 0) + len(whole) + bool(whole)
        return whole.decode(errors="replace").splitlines()


def _make_accounts(folder: Path, number: int, count: int) -> None:
    """Names that no other program takes."""
    folder.mkdir(parents=True)
    rows = [{"name": f"Bot {number + 1} {bot + 1}", "password": secrets.token_urlsafe(16)} for bot in range(count)]
    (folder / "bots.json").write_text(json.dumps(rows))


def _entry(line: str) -> dict[str, object]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
