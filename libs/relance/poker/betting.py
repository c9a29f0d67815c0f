"""What the player asked may do: the legal actions and their bounds (B1-B16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.poker.hand import ACTIVE, BET, DRAW, POST, SHOW, SPLIT, Hand
from relance.poker.limits import NO_RAISE, raise_bounds
from relance.poker.money import MAX_AMOUNT
from relance.poker.rejected import Rejected

FOLD: Final = pb.ACTION_KIND_FOLD
CHECK: Final = pb.ACTION_KIND_CHECK
CALL: Final = pb.ACTION_KIND_CALL
BET_: Final = pb.ACTION_KIND_BET
RAISE: Final = pb.ACTION_KIND_RAISE
ALL_IN_: Final = pb.ACTION_KIND_ALL_IN
BRING_IN: Final = pb.ACTION_KIND_BRING_IN
COMPLETE: Final = pb.ACTION_KIND_COMPLETE
DISCARD: Final = pb.ACTION_KIND_DISCARD
OFFER_SPLIT: Final = pb.ACTION_KIND_OFFER_SPLIT
ACCEPT_SPLIT: Final = pb.ACTION_KIND_ACCEPT_SPLIT
REFUSE_SPLIT: Final = pb.ACTION_KIND_REFUSE_SPLIT
POST_: Final = pb.ACTION_KIND_POST
SHOW_: Final = pb.ACTION_KIND_SHOW
MUCK: Final = pb.ACTION_KIND_MUCK


@dataclass(frozen=True, slots=True)
class Offer:
    """What the player asked may do. Amounts as in table.proto's Prompt: `call` chips to add, totals for the round."""

    actions: tuple[pb.ActionKind.ValueType, ...]
    call: int = 0
    min_raise_to: int = 0
    max_raise_to: int = 0
    raise_sizes: tuple[int, ...] = ()
    max_discards: int = 0

    def names(self) -> str:
        """The actions, for people and metadata."""
        return ", ".join(pb.ActionKind.Name(kind).removeprefix("ACTION_KIND_") for kind in self.actions)


def offer_of(hand: Hand) -> Offer:
    """The offer to the player asked (there must be one)."""
    asks = hand.asks
    if asks == BET:
        return _betting(hand, hand.asked)
    if asks == DRAW:
        return Offer((DISCARD,), max_discards=hand.streets[hand.street].draw)
    if asks == SPLIT:
        return Offer((ACCEPT_SPLIT, REFUSE_SPLIT))
    if asks == POST:
        return Offer((POST_, FOLD))
    assert asks == SHOW
    return Offer((SHOW_, MUCK))


def may_check(hand: Hand, at: int) -> bool:
    """Whether checking is free for the player (G13)."""
    if hand.bet[at] < hand.current or hand.bring_in:
        return False
    return hand.game.checks or hand.current > 0 or (hand.street > 0 and hand.terms.check_after_exchange)


def owes(hand: Hand, at: int) -> int:
    """Chips that the player must add to call, as far as the stack goes."""
    return min(hand.current - hand.bet[at], hand.stack[at])


def raise_kind(hand: Hand) -> pb.ActionKind.ValueType:
    """What raising is called now."""
    if hand.current == 0 and not hand.bring_in:
        return BET_
    return RAISE if hand.bets else COMPLETE


def _betting(hand: Hand, at: int) -> Offer:
    if hand.bring_in:
        least, most, sizes = bring_in_bounds(hand, at)
        kinds = (BRING_IN, COMPLETE) if most else (BRING_IN,)
        return Offer(kinds, min(hand.terms.bring_in, hand.stack[at]), least, most, sizes)
    call = owes(hand, at)
    least, most, sizes = raise_bounds(hand, at)
    actions = [FOLD]
    if call:
        actions.append(CALL)
    elif may_check(hand, at):
        actions.append(CHECK)
    if most:
        actions.append(raise_kind(hand))
    stack = hand.stack[at]
    if call == stack or (most and most == hand.bet[at] + stack):
        actions.append(ALL_IN_)
    if hand.game.split_offers and can_offer_split(hand, at):
        actions.append(OFFER_SPLIT)
    if hand.offering:
        actions.append(ACCEPT_SPLIT)
    return Offer(tuple(actions), call, least, most, sizes)


def bring_in_bounds(hand: Hand, at: int) -> tuple[int, int, tuple[int, ...]]:
    """What completing at once may make it (G9)."""
    if hand.stack[at] <= hand.terms.bring_in:
        return NO_RAISE
    return raise_bounds(hand, at)


def can_offer_split(hand: Hand, at: int) -> bool:
    """P1: the first to act in the round after the draw; under `stays` whoever is asked before the first bet.

    Not who missed the draw clock: to them the answers alone remain (G12).
    """
    if hand.street == 0 or hand.offering or hand.offer_over or hand.current > 0 or hand.status[at] != ACTIVE:
        return False
    if hand.barred >> at & 1:
        return False
    return hand.terms.offer_stays or all(faced < 0 for faced in hand.faced)


def check_amount(amount: object) -> int:
    """The amount, if it is one at all: a whole number from 1 to 10^15. Raises Rejected INVALID_AMOUNT.

    This is the boundary where anything may come in: floats, bools, texts and None are no amounts.
    """
    if type(amount) is int and 0 < amount <= MAX_AMOUNT:
        return amount
    raise Rejected(
        reason_pb2.REASON_INVALID_AMOUNT,
        f"{amount!r} is no amount: a whole number of minor units from 1 to {MAX_AMOUNT} is",
        {"min": "1", "max": str(MAX_AMOUNT)},
    )


def check_raise(hand: Hand, at: int, amount: int, bounds: tuple[int, int, tuple[int, ...]]) -> int:
    """The total that the player may bet or raise to. Raises Rejected RAISE_NOT_ALLOWED, AMOUNT_OUT_OF_RANGE."""
    least, most, sizes = bounds
    if not most:
        offered = offer_of(hand).names()
        raise Rejected(
            reason_pb2.REASON_RAISE_NOT_ALLOWED, f"no bet or raise is offered now, but {offered}", {"offered": offered}
        )
    if sizes:
        if amount in sizes:
            return amount
        totals = ", ".join(map(str, sizes))
        raise Rejected(
            reason_pb2.REASON_AMOUNT_OUT_OF_RANGE,
            f"{amount} is no legal total; {totals} would be accepted",
            {"min": str(least), "max": str(most), "amounts": totals},
        )
    if least <= amount <= most:
        return amount
    raise Rejected(
        reason_pb2.REASON_AMOUNT_OUT_OF_RANGE,
        f"{amount} is no legal total; {least} to {most} would be accepted",
        {"min": str(least), "max": str(most)},
    )


def not_offered(hand: Hand) -> Rejected:
    """The refusal of an action that is not offered now."""
    offered = offer_of(hand).names()
    return Rejected(reason_pb2.REASON_ACTION_NOT_OFFERED, f"not offered now, but {offered}", {"offered": offered})
