"""What a player is told of a void hand or a seat that is gone: at once, on coming back, and when asked for."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Table

_BACK = "The hand is void; your chips are back."
_PAID_OUT = "Your seat was given up after a fault of the server; your stack is on its way to your account."


def refund(hand: int, amount: int, reason: int, time_us: int) -> table_pb2.Notice:
    """The chips of a void hand are back. `reason`: VoidReason."""
    return _notice("REFUND", _BACK, hand, amount, reason, time_us)


def for_player(table: Table, player: str) -> list[table_pb2.Notice]:
    """What the player has not acknowledged."""
    found = table.notices.get(player)
    if found is None:
        return []
    told = [refund(found.hand, found.refund, found.reason, found.at)] if found.refund else []
    if found.taken:
        told.append(_notice("CASHED_OUT", _PAID_OUT, found.hand, found.taken, found.reason, found.at))
    return told


def _notice(kind: str, text: str, hand: int, amount: int, reason: int, time_us: int) -> table_pb2.Notice:
    word = events_pb2.VoidReason.DESCRIPTOR.values_by_number[reason].name.removeprefix("VOID_REASON_")
    return table_pb2.Notice(kind=kind, text=text, hand=hand, amount=amount, reason=word, time_us=time_us)
