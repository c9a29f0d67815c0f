"""Dealing faults of the live-dealt house (F1-F5): the floor reports one, the room applies the procedure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import render
from relance.poker.commands import ReportDealingFault
from relance.poker.departures import between_hands
from relance.poker.draft import Context, Draft
from relance.poker.flow import run
from relance.poker.hand import BETTING, Hand
from relance.poker.rejected import Rejected
from relance.poker.settle import void_hand
from relance.poker.table import Table


def report_fault(table: Table, command: ReportDealingFault, context: Context) -> list[pb.TableEvent]:
    """A dealing fault, and what the rules make of it.

    Raises Rejected: NO_ACTIVE_HAND, ACTION_NOT_OFFERED where the fault cannot have happened now (metadata offered),
    FIELD_INVALID for a seat without cards.
    """
    hand = table.hand
    if hand is None:
        raise Rejected(reason_pb2.REASON_NO_ACTIVE_HAND, "no hand is running", {})
    possible = [fault for fault, (when, _) in _PROCEDURES.items() if hand.terms.burn and when(hand)]
    if command.fault not in possible:
        names = ", ".join(pb.DealingFault.Name(fault).removeprefix("DEALING_FAULT_") for fault in possible)
        raise Rejected(
            reason_pb2.REASON_ACTION_NOT_OFFERED,
            f"this fault cannot have happened now; {names or 'none'} can",
            {"offered": names},
        )
    draft = Draft(table, context)
    _PROCEDURES[command.fault][1](draft, command)
    run(draft)
    return draft.decision()


def _just_dealt(hand: Hand) -> bool:
    return hand.street == 0 and _untouched(hand)


def _untouched(hand: Hand) -> bool:
    """Whether nobody has spoken in this round."""
    return hand.phase == BETTING and all(faced < 0 for faced in hand.faced)


def _fresh_flop(hand: Hand) -> bool:
    return hand.street == 1 and _untouched(hand)


def _betting_on(street: int) -> Callable[[Hand], bool]:
    return lambda hand: hand.phase == BETTING and hand.street == street and hand.restock_at != street + 1


def _rule(draft: Draft, command: ReportDealingFault, procedure: str, exposed: str = "") -> None:
    fields: dict[str, object] = {"fault": command.fault, "seat": command.seat, "operator": command.operator}
    draft.emit("dealing_fault_ruled", **fields, procedure=procedure, exposed=exposed)


def _misdeal(draft: Draft, command: ReportDealingFault) -> None:
    """F1, F5, F7."""
    _rule(draft, command, "MISDEAL")
    void_hand(draft, pb.VOID_REASON_MISDEAL, command.operator)
    between_hands(draft)


def _exposed_card(draft: Draft, command: ReportDealingFault) -> None:
    """F1: the last card dealt to the seat is replaced and becomes the first burn card, or its owner keeps it."""
    hand = draft.hand
    at = hand.index.get(command.seat)
    if at is None or not hand.down[at]:
        raise Rejected(
            reason_pb2.REASON_FIELD_INVALID,
            f"seat {command.seat} has no cards",
            {"field": "seat", "allowed": ", ".join(map(str, sorted(hand.seats)))},
        )
    exposed = render(hand.down[at][-1:])
    if command.keep and hand.terms.owner_chooses:
        _rule(draft, command, "KEEP", exposed)
        return
    _rule(draft, command, "REPLACE", exposed)
    place = hand.stub[0]
    card = render([draft.cards.card(place)])
    fields: dict[str, object] = {"seat": command.seat, "down": card, "down_count": 1}
    if hand.terms.commitments:
        fields["positions"], fields["down_salts"] = [place], draft.cards.salt(place)
    draft.emit("cards_dealt", **fields)


def _extra_card(draft: Draft, command: ReportDealingFault) -> None:
    """F5: the card goes back and is the first burn card."""
    _rule(draft, command, "FIRST_BURN")
    draft.emit("card_burnt", position=draft.hand.stub[0])


def _flop_again(draft: Draft, command: ReportDealingFault) -> None:
    """F2, F3."""
    _rule(draft, command, "REDEAL_FLOP", render(draft.hand.board))


def _early(count: int, procedure: str) -> Callable[[Draft, ReportDealingFault], None]:
    def rule(draft: Draft, command: ReportDealingFault) -> None:
        """F3, F4: a card was burnt and the next ones exposed; betting is finished, then the procedure follows."""
        if not draft.hand.burnt:
            draft.emit("card_burnt", position=draft.hand.stub[0])
        _rule(draft, command, procedure, render([draft.cards.card(place) for place in draft.hand.stub[:count]]))

    return rule


_Procedure = tuple[Callable[[Hand], bool], Callable[[Draft, ReportDealingFault], None]]
_PROCEDURES: Final[dict[pb.DealingFault.ValueType, _Procedure]] = {
    pb.DEALING_FAULT_FIRST_CARD_EXPOSED: (_just_dealt, _misdeal),
    pb.DEALING_FAULT_CARDS_EXPOSED: (_just_dealt, _misdeal),
    pb.DEALING_FAULT_EXTRA_CARDS: (_just_dealt, _misdeal),
    pb.DEALING_FAULT_CARD_EXPOSED: (_just_dealt, _exposed_card),
    pb.DEALING_FAULT_EXTRA_CARD: (_just_dealt, _extra_card),
    pb.DEALING_FAULT_FLOP_TOO_MANY: (_fresh_flop, _flop_again),
    pb.DEALING_FAULT_FLOP_EARLY: (_betting_on(0), _early(3, "REDEAL_FLOP")),
    pb.DEALING_FAULT_TURN_EARLY: (_betting_on(1), _early(1, "SET_ASIDE_TURN")),
    pb.DEALING_FAULT_RIVER_EARLY: (_betting_on(2), _early(1, "REDEAL_RIVER")),
}
"""When each fault can have happened, and what is done about it."""
