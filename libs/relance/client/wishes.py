"""How a player's seat plays by itself, followed by events."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2

KINDS = frozenset(
    {
        "seat_reserved", "seat_preferences_changed", "player_sat_in", "player_sat_out", "player_left", "seat_released",
        "hand_ended",
    }
)  # fmt: skip


def usual() -> table_pb2.SeatPreferences:
    """Those of a new seat."""
    return table_pb2.SeatPreferences(auto_post=True, auto_muck=True)


def follow(wishes: table_pb2.SeatPreferences, event: events_pb2.TableEvent, player: str) -> None:
    """Move the preferences of a player's seat on by an event of one of `KINDS`."""
    kind = event.WhichOneof("payload") or ""
    data = getattr(event, kind)
    if kind == "hand_ended":
        if any(result.player == player for result in data.results):
            wishes.wait_for_big_blind = False
        return
    if data.player != player:
        return
    if kind == "seat_preferences_changed":
        for name in table_pb2.SeatPreferences.DESCRIPTOR.fields_by_name:
            setattr(wishes, name, getattr(data, name))
    elif kind == "player_sat_in":
        wishes.wait_for_big_blind = data.wait_for_big_blind
    elif kind == "player_sat_out":
        wishes.sit_out_next_big_blind = False
    else:
        wishes.CopyFrom(usual())
        if kind == "seat_reserved":
            wishes.wait_for_big_blind, wishes.auto_post = data.wait_for_big_blind, not data.ask_to_post
