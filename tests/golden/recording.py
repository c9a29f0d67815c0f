"""Golden logs: what was asked of a table, the events that it caused, and the state that they led to, as files.

A log is three files: `<name>.log` holds the events (length-prefixed, as protobuf's own streams), `<name>.commands` one
command a line (JSON), `<name>.state` the state after the last event (JSON). Decks are no part of it: they are made of
hashes, so that they are the same on every machine in every year.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Request, Table, view
from relance.poker import commands as cmd
from relance.poker.deck import VirtualDeck

FOLDER = Path(__file__).parent
_MESSAGES: dict[str, Callable[[bytes], Message]] = {
    "config": game_pb2.TableConfig.FromString,
    "rake": game_pb2.RakeSchedule.FromString,
}


class Step(NamedTuple):
    """One command as it was given. deck: seed of the cards from here on; empty: as before."""

    at: int
    command: cmd.Command
    request: Request | None = None
    deck: str = ""


class SeededDeck(VirtualDeck):
    """A deck whose order and salts are hashes of a seed."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count = seed, 0
        super().__init__(self._arrange, self._bytes)

    def _arrange(self, cards: list[int]) -> None:
        self._count += 1
        cards.sort(key=lambda card: sha256(f"{self._seed}/{self._count}/{card}".encode()).digest())

    def _bytes(self, count: int) -> bytes:
        made = b""
        while len(made) < count:
            made += sha256(f"{self._seed}/salt/{self._count}/{len(made)}".encode()).digest()
        return made[:count]


def names() -> list[str]:
    """Every golden log."""
    return sorted(path.stem for path in FOLDER.glob("*.log"))


def write(name: str, steps: Sequence[Step], events: Sequence[pb.TableEvent], table: Table) -> None:
    """Write the three files."""
    log = BytesIO()
    for event in events:
        serialize_length_prefixed(event, log)
    (FOLDER / f"{name}.log").write_bytes(log.getvalue())
    (FOLDER / f"{name}.commands").write_text("".join(f"{json.dumps(_line(step))}\n" for step in steps))
    (FOLDER / f"{name}.state").write_text(json.dumps(state_of(table), indent=1, sort_keys=True) + "\n")


def events_of(name: str) -> list[pb.TableEvent]:
    """The events of a log."""
    log = BytesIO((FOLDER / f"{name}.log").read_bytes())
    events = []
    while (event := parse_length_prefixed(pb.TableEvent, log)) is not None:
        events.append(event)
    return events


def steps_of(name: str) -> list[Step]:
    """The commands of a log."""
    return [_step(json.loads(line)) for line in (FOLDER / f"{name}.commands").read_text().splitlines()]


def stored_state(name: str) -> dict[str, Any]:
    """The state that the log led to when it was made."""
    state: dict[str, Any] = json.loads((FOLDER / f"{name}.state").read_text())
    return state


def state_of(table: Table) -> dict[str, Any]:
    """What a table is, by names that do not depend on how the state is kept."""
    shown = MessageToDict(view(table, all_cards=True), preserving_proto_field_name=True)
    books = {name: getattr(table, name) for name in ("bought_in", "cashed_out", "rake_taken", "loose", "last_over")}
    blinds = {name: getattr(table, name) for name in ("small_blind", "big_blind", "big_blind_player", "last_dealt")}
    marks = {
        str(seat.number): [seat.entry, seat.wait, seat.missed_big, seat.missed_small] for seat in table.seats.values()
    }
    open_transfers = [list(transfer) for transfer in table.transfers.values()]
    took = {player: list(taken) for player, taken in table.took_along.items()}
    state = {"view": shown, "books": books, "blinds": blinds, "marks": marks, "took_along": took}
    result: dict[str, Any] = json.loads(json.dumps({**state, "transfers": open_transfers}))
    return result


def differences(stored: Any, found: Any, path: str = "") -> list[str]:
    """Where a state is not the stored one. What later versions add is no difference."""
    if isinstance(stored, dict) and isinstance(found, dict):
        missing = [f"{path}/{key} is gone" for key in stored if key not in found]
        return missing + [
            line for key in stored if key in found for line in differences(stored[key], found[key], f"{path}/{key}")
        ]
    if isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        return differences(dict(enumerate(stored)), dict(enumerate(found)), path)
    return [] if stored == found else [f"{path}: was {stored!r}, is {found!r}"]


def _line(step: Step) -> dict[str, Any]:
    command = step.command
    given = {name: _plain(getattr(command, name)) for name in type(command).__annotations__}
    line: dict[str, Any] = {"at": step.at, "command": type(command).__name__, "with": given}
    if step.request is not None:
        line["request"] = [step.request.id, step.request.hash.hex(), step.request.player]
    if step.deck:
        line["deck"] = step.deck
    return line


def _plain(value: object) -> object:
    return b64encode(value.SerializeToString(deterministic=True)).decode() if isinstance(value, Message) else value


def _step(line: dict[str, Any]) -> Step:
    given = {
        name: _MESSAGES[name](b64decode(value)) if name in _MESSAGES and value is not None else value
        for name, value in line["with"].items()
    }
    request = line.get("request")
    who = Request(request[0], bytes.fromhex(request[1]), request[2]) if request else None
    return Step(line["at"], getattr(cmd, line["command"])(**given), who, line.get("deck", ""))
