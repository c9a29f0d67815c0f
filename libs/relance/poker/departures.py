"""Leaving a seat, money that goes with it, and what happens between two hands."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.draft import Draft
from relance.poker.table import Seat


def request_transfer(draft: Draft, seat: int, player: str, purpose: pb.TransferPurpose.ValueType, amount: int) -> None:
    """Ask the wallet to move money. The id stands in the event: asking again moves nothing twice."""
    table = draft.table
    transfer = f"{table.id}-{table.version + 1}"
    draft.emit("transfer_requested", transfer=transfer, seat=seat, player=player, purpose=purpose, amount=amount)


def depart(draft: Draft, seat: Seat, reason: int) -> None:
    """A player leaves between hands; the chips are cashed out. Amount 0: no transfer."""
    amount = seat.stack + seat.held
    draft.emit("player_left", seat=seat.number, player=seat.player, amount=amount, reason=reason)
    if amount:
        request_transfer(draft, seat.number, seat.player, pb.TRANSFER_PURPOSE_CASH_OUT, amount)


def between_hands(draft: Draft) -> None:
    """After a hand: who leaves leaves, who has no chips sits out, a table that is given up is drained."""
    table = draft.table
    terms, config = table.terms, table.config
    assert terms is not None
    assert config is not None
    for seat in list(table.seats.values()):
        broke = not seat.reserved and seat.stack + seat.held == 0
        if table.closed and not seat.reserved:
            depart(draft, seat, pb.LEAVE_REASON_TABLE_CLOSED)
        elif seat.leaving:
            depart(draft, seat, seat.leaving)
        elif broke and not seat.transfer and terms.game.bust_leaves:
            depart(draft, seat, pb.LEAVE_REASON_BUSTED)
        elif terms.away_hands and seat.sitting_out and seat.away >= terms.away_hands:
            depart(draft, seat, pb.LEAVE_REASON_AWAY)
        elif broke and not seat.sitting_out:
            out = pb.SIT_OUT_REASON_NO_CHIPS
            draft.emit("player_sat_out", seat=seat.number, player=seat.player, reason=out)
        elif seat.auto_top_up > seat.stack + seat.held and not (seat.transfer or seat.sitting_out or seat.reserved):
            wanted = min(seat.auto_top_up, config.max_buy_in or seat.auto_top_up) - seat.stack - seat.held
            if wanted > 0:
                request_transfer(draft, seat.number, seat.player, pb.TRANSFER_PURPOSE_TOP_UP, wanted)
    if draft.context.draining:
        draft.emit("table_drained")
