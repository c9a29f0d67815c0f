"""Whose eyes a command lends: the public's, a player's, an auditor's. Everything shown or exported passes here.

An auditor sees the hidden cards of hands that are over; while a hand runs nobody does but the player they belong to,
and this command is not that player: whoever asks for a player's view is an operator too (the log of a running hand
gives a player's own cards to nobody else).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from relance.api.common.v1 import visibility_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Table, redact, view

PUBLIC, AUDITOR = "public", "auditor"

_INTERNAL: Final = attrgetter(
    *(
        field.name
        for field in pb.TableEvent.DESCRIPTOR.fields
        if field.GetOptions().Extensions[visibility_pb2.visibility] == visibility_pb2.VISIBILITY_INTERNAL
    )
)


@dataclass(slots=True)
class Viewer:
    """`who`: public, auditor, or a player's id. `running`: number of the table's running hand, 0 = none."""

    who: str = AUDITOR
    running: int = 0
    _seats: dict[str, int] = field(default_factory=dict)
    _hand: int = 0

    @property
    def player(self) -> str:
        """The player's id; empty for public and auditor."""
        return "" if self.who in {PUBLIC, AUDITOR} else self.who

    def see(self, event: pb.TableEvent) -> pb.TableEvent:
        """What the viewer may see of the next event of a table, or of one hand from its start."""
        if event.HasField("hand_started"):
            self._hand = event.hand
            self._seats = {each.player: each.seat for each in event.hand_started.players}
        over = event.hand != self.running
        if self.who == AUDITOR:
            return redact(event, disclosed=over) if not over or _internal(event) else event
        seat = self._seats.get(self.who, 0) if event.hand == self._hand and over else 0
        return redact(event, seat)

    def look(self, table: Table) -> table_pb2.TableView:
        """The table as the viewer may see it."""
        over = table.hand is None or table.hand.number != self.running
        if self.who == AUDITOR:
            return view(table, None, all_cards=over)
        return view(table, self.who if self.player and over else None)


def _internal(event: pb.TableEvent) -> bool:
    """Whether the event carries anything that is for the service alone; if not there is nothing to copy."""
    return any(_INTERNAL(event))


def players_of(events: Iterable[pb.TableEvent]) -> set[str]:
    """Ids of all players that events name."""
    found: set[str] = set()
    for event in events:
        kind = event.WhichOneof("payload")
        if kind is None:
            continue
        payload = getattr(event, kind)
        if kind == "hand_started":
            found.update(each.player for each in payload.players)
        elif kind == "hand_ended":
            found.update(each.player for each in payload.results)
        elif kind == "hand_voided":
            found.update(each.player for each in payload.refunds)
        elif "player" in type(payload).DESCRIPTOR.fields_by_name:
            found.add(payload.player)
    return found
