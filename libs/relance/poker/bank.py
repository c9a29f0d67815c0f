"""The time bank (C1): betting decisions may take longer than their time, until the bank is empty.

Full at sitting down; a twentieth comes back with every paid hand that the player was dealt into.
"""

from __future__ import annotations

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.commands import ActLate
from relance.poker.draft import Context, Draft
from relance.poker.hand import NOBODY
from relance.poker.play import act
from relance.poker.table import Table


def act_late(table: Table, command: ActLate, context: Context) -> list[pb.TableEvent]:
    """An action within the time bank. Raises Rejected as `act` does; then nothing of the bank is used."""
    hand = table.hand
    seat = table.seat_of(command.act.player)
    if hand is None or seat is None or hand.asked == NOBODY or hand.seats[hand.asked] != seat.number:
        return act(table, command.act, context)
    draft = Draft(table, context)
    used = min(command.used_ms, seat.time_bank)
    left = seat.time_bank - used
    draft.emit("time_bank_used", seat=seat.number, player=seat.player, used_ms=used, left_ms=left)
    first = draft.decision()
    later = Context(context.at, context.cards, draining=context.draining, rake=context.rake)
    return [*first, *act(draft.table, command.act, later)]
