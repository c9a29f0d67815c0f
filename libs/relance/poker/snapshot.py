"""A table between hands as bytes: a cache that saves replaying, never the truth."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import fields
from typing import Any, Final

from google.protobuf.descriptor import Descriptor

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.poker.table import Hold, Notice, Seat, Session, Table, Transfer
from relance.poker.terms import terms_of

FORMAT: Final = 3
"""Raised whenever the shape of the state changes; older snapshots are then replayed from the log."""


def _fields(message: Descriptor) -> int:
    return len(message.fields) + sum(map(_fields, message.nested_types))


EDITION: Final = sum(
    _fields(message)
    for file in (events_pb2.DESCRIPTOR, game_pb2.DESCRIPTOR)
    for message in file.message_types_by_name.values()
)
"""Fields of all events: it only ever rises. What a newer version kept may come of events that are not known here."""

_PLAIN: Final = tuple(
    row.name
    for row in fields(Table)
    if row.name not in {"config", "terms", "rake", "seats", "hand", "transfers", "parked", "requests", "took_along"}
    and row.name not in {"holds", "sessions", "notices"}
)
_SEAT: Final = tuple(row.name for row in fields(Seat))


class UnknownSnapshot(Exception):
    """The snapshot was written in another format; replay from the log."""


def dump(table: Table) -> bytes:
    """The state as bytes. Raises ValueError while a hand runs or before the table is open."""
    if table.hand is not None or table.config is None:
        raise ValueError(f"{table.id}: snapshots are made between hands")
    state: dict[str, Any] = {name: getattr(table, name) for name in _PLAIN}
    state["format"], state["edition"] = FORMAT, EDITION
    state["config"] = _text(table.config.SerializeToString(deterministic=True))
    state["rake"] = _text(table.rake.SerializeToString(deterministic=True)) if table.rake is not None else None
    state["seats"] = [[getattr(seat, name) for name in _SEAT] for seat in table.seats.values()]
    state["transfers"] = [list(transfer) for transfer in table.transfers.values()]
    state["parked"] = [list(transfer) for transfer in table.parked.values()]
    state["requests"] = {
        player: {key: [_text(digest), version] for key, (digest, version) in known.items()}
        for player, known in table.requests.items()
    }
    state["took_along"] = {player: list(took) for player, took in table.took_along.items()}
    state["holds"] = [[number, *hold] for number, hold in table.holds.items()]
    state["sessions"] = {player: list(session) for player, session in table.sessions.items()}
    state["notices"] = {player: list(notice) for player, notice in table.notices.items()}
    return json.dumps(state, separators=(",", ":")).encode()


def load(data: bytes) -> Table:
    """The state of a snapshot. Raises UnknownSnapshot for any other format."""
    try:
        state: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise UnknownSnapshot("not a snapshot") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UnknownSnapshot("another format")
    if state.get("edition", 0) > EDITION:
        raise UnknownSnapshot("a newer version's")
    table = Table(state["id"])
    for name in _PLAIN:
        setattr(table, name, state[name])
    table.config = game_pb2.TableConfig.FromString(b64decode(state["config"]))
    table.terms = terms_of(table.config)
    if state["rake"] is not None:
        table.rake = game_pb2.RakeSchedule.FromString(b64decode(state["rake"]))
    for values in state["seats"]:
        seat = Seat(*values)
        table.seats[seat.number] = seat
    table.transfers = {values[0]: Transfer(*values) for values in state["transfers"]}
    table.parked = {values[0]: Transfer(*values) for values in state["parked"]}
    table.requests = {
        player: {key: (b64decode(digest), version) for key, (digest, version) in known.items()}
        for player, known in state["requests"].items()
    }
    table.took_along = {player: (took[0], took[1]) for player, took in state["took_along"].items()}
    table.holds = {number: Hold(player, until) for number, player, until in state["holds"]}
    table.sessions = {player: Session(*values) for player, values in state["sessions"].items()}
    table.notices = {player: Notice(*values) for player, values in state["notices"].items()}
    return table


def _text(data: bytes) -> str:
    return b64encode(data).decode()
