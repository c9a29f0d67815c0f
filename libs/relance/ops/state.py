"""`relance state`: a table as it was at any version, and what changed between two."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from google.protobuf.message import Message

from relance.ops.drawing import draw
from relance.ops.events import running_of
from relance.ops.messages import plain
from relance.ops.names import Names
from relance.ops.output import Out
from relance.ops.source import Connection, LogSource
from relance.ops.states import state_at
from relance.ops.viewer import AUDITOR, Viewer
from relance.poker import Table
from relance.poker.cards import render

_SECRET = frozenset({"down", "gone", "muck", "salts"})
_INTERNAL = frozenset({"requests", "terms", "game", "streets"})
"""What is the service's own, and what the configuration says already."""
_CARDS = frozenset({"board", "down", "up", "gone", "muck", "set_aside"})


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs between two versions; None where it is not there."""

    path: str
    before: Any
    after: Any


def facts(table: Table, *, disclosed: bool) -> dict[str, Any]:
    """The whole state as plain values, what is internal to the service left out, hidden cards unless disclosed."""
    found: dict[str, Any] = {}
    for name, value in vars(table).items():
        if name in _INTERNAL:
            continue
        found[name] = _plain(value, disclosed)
    return found


def _plain(value: Any, disclosed: bool) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: _field(each.name, getattr(value, each.name), disclosed)
            for each in fields(value)
            if each.name not in _INTERNAL and (disclosed or each.name not in _SECRET)
        }
    if isinstance(value, dict):
        return {str(key): _plain(each, disclosed) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict(), disclosed)
    if isinstance(value, list | tuple):
        return [_plain(each, disclosed) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.name if isinstance(value, Enum) else value


def _field(name: str, value: Any, disclosed: bool) -> Any:
    """Cards read As Td, one text a hand."""
    if name not in _CARDS or not isinstance(value, list | tuple):
        return _plain(value, disclosed)
    return [render(each) for each in value] if any(isinstance(each, tuple) for each in value) else render(value)


def changes(before: Any, after: Any, path: str = "") -> list[Change]:
    """Where two states differ, by path: ``seats.3.stack``."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: list[Change] = []
        for name in [*before, *(name for name in after if name not in before)]:
            found += changes(before.get(name), after.get(name), f"{path}.{name}" if path else str(name))
        return found
    return [] if before == after else [Change(path, before, after)]


async def show_state(
    source: LogSource, connection: Connection | None, table: str, at: int | None, who: str, out: Out
) -> None:
    """Print the table at a version (None: the last) as a viewer may see it. Raises NoAnswer."""
    head = (await source.streams([table]))[0].head
    viewer = Viewer(who, running=await running_of(source, table, head))
    state = await state_at(source, table, at)
    if out.json:
        over = state.hand is None or state.hand.number != viewer.running
        out.document({**facts(state, disclosed=over and who == AUDITOR), "view": plain(viewer.look(state))})
        return
    names = Names()
    await names.look_up(connection, [seat.player for seat in state.seats.values()])
    out.console.print(draw(viewer.look(state), names))
    books = f"bought in {state.bought_in}, cashed out {state.cashed_out}, rake {state.rake_taken}"
    out.line(f"  fence {state.fence}, owner {state.process or 'nobody'}; {books} (minor units)")
    for transfer in state.transfers.values():
        out.line(
            f"  transfer {transfer.id} of {transfer.amount} for seat {transfer.seat} waits for the wallet", "yellow"
        )


async def show_changes(source: LogSource, table: str, first: int, second: int, who: str, out: Out) -> None:
    """Print what changed from one version to another. Raises NoAnswer."""
    head = (await source.streams([table]))[0].head
    running = await running_of(source, table, head)
    states = [await state_at(source, table, version) for version in (first, second)]
    disclosed = who == AUDITOR and all(state.hand is None or state.hand.number != running for state in states)
    before, after = (facts(state, disclosed=disclosed) for state in states)
    found = changes(before, after)
    if out.json:
        out.document([{"path": each.path, "before": each.before, "after": each.after} for each in found])
        return
    for each in found:
        out.line(f"{each.path}: {_short(each.before)} -> {_short(each.after)}")
    if not found:
        out.line("nothing changed")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else text[:119] + "…"
