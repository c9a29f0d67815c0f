"""The end of a hand: showdown, rake, pots, and what happens between two hands."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import render
from relance.poker.departures import between_hands
from relance.poker.draft import Draft
from relance.poker.hand import FOLDED, NOBODY, Hand
from relance.poker.pots import Pot, halves, pots_of, shares, uncalled
from relance.poker.rake import rake_for
from relance.poker.rounds import showing_order
from relance.poker.showdown import Comparison, compare


def uncontested(draft: Draft) -> None:
    """Everyone else folded: nothing is shown (G14), uncalled chips go back, the last player takes the pots."""
    hand = draft.hand
    at, amount = uncalled(hand)
    if amount:
        draft.emit("uncalled_returned", seat=hand.seats[at], amount=amount)
    winner = next(at for at in range(len(hand.seats)) if hand.status[at] != FOLDED)
    pots = pots_of(hand)
    _award(draft, pots, [[(pb.POT_PART_WHOLE, (winner,))] for _ in pots])


def show_down(draft: Draft) -> None:
    """G14: hands are compared and shown in order, pots go to the winners pot by pot (B10, B13)."""
    hand = draft.hand
    result = compare(hand)
    pots = pots_of(hand)
    parts = [
        [(int(pb.POT_PART_AGREED), pot.eligible)] if number in hand.agreed else result.winners(pot.eligible)
        for number, pot in enumerate(pots)
    ]
    open_pots = [number for number in range(len(pots)) if number not in hand.agreed]
    claims = {at for number in open_pots for at in pots[number].eligible}
    winners = {at for number in open_pots for _, won in parts[number] for at in won}
    _show_in_order(draft, result, claims, winners)
    if draft.hand.asked == NOBODY and draft.hand.live() > 1:
        _award(draft, pots, parts)


def _show_in_order(draft: Draft, result: Comparison, claims: set[int], winners: set[int]) -> None:
    """Until somebody must be asked. Only who has a claim to a pot that is played for shows or mucks (P2)."""
    hand = draft.hand
    order = [at for at in showing_order(hand) if at in claims]
    for turn, at in enumerate(order):
        if hand.asked != NOBODY:
            return
        if (hand.mucked >> at & 1) or (hand.shown >> at & 1 and not hand.turned_up):
            continue
        if turn == 0 or at in winners or hand.turned_up or hand.terms.show_all:
            show_hand(draft, at, result)
        else:
            draft.emit("hand_mucked", seat=hand.seats[at])


def show_hand(draft: Draft, at: int, result: Comparison | None = None, *, describe: bool = True) -> None:
    """Turn a hand up, in words once it is whole."""
    hand = draft.hand
    fields: dict[str, object] = {"seat": hand.seats[at], "cards": render(hand.hole(at))}
    if result is not None:
        fields["high"] = result.describe_high(at)
        low = result.describe_low(at)
        if low:
            fields["low"] = low
    if hand.salts[at]:
        fields["positions"] = hand.places[at]
        fields["salts"] = b"".join(hand.salts[at])
    draft.emit("hand_shown", **fields)


def _award(draft: Draft, pots: list[Pot], parts: list[list[tuple[int, tuple[int, ...]]]]) -> None:
    """Rake (K1-K3), then each pot to its winners, then the end of the hand: all in this append."""
    hand, table = draft.hand, draft.table
    amounts = [pot.amount for pot in pots]
    total, by_pot = 0, [0] * len(pots)
    if hand.players_flop and hand.terms.raked and table.rake is not None:
        total, by_pot = rake_for(table.rake, amounts, len(hand.seats))
    if total:
        draft.emit("rake_taken", amount=total, by_pot=by_pot)
    for number, (pot, rake, won) in enumerate(zip(pots, by_pot, parts, strict=True)):
        draft.emit(
            "pot_awarded",
            pot=number,
            amount=pot.amount,
            rake=rake,
            eligible=sorted([hand.seats[at] for at in pot.eligible]),
            shares=_shares(hand, pot.amount - rake, won),
        )
    end_hand(draft, sum(amounts), total)


def _shares(hand: Hand, amount: int, parts: list[tuple[int, tuple[int, ...]]]) -> list[dict[str, int]]:
    unit = hand.terms.unit
    amounts = (amount,) if len(parts) == 1 else halves(amount, unit)
    return [
        {"seat": hand.seats[at], "amount": chips, "part": part}
        for (part, winners), share in zip(parts, amounts, strict=True)
        for at, chips in shares(share, winners, unit).items()
        if chips
    ]


def end_hand(draft: Draft, pot: int, rake: int) -> None:
    """HandEnded, and everything that waited for it."""
    hand = draft.hand
    results = [
        {
            "seat": seat,
            "player": hand.players[at],
            "stack": hand.stack[at],
            "net": hand.stack[at] - hand.start[at],
            "contributed": hand.put[at] + hand.dead[at],
        }
        for seat, at in sorted(hand.index.items())
    ]
    draft.emit(
        "hand_ended",
        rake=rake,
        rake_schedule=hand.rake_label,
        results=results,
        pot=pot,
        players_flop=hand.players_flop,
    )
    between_hands(draft)


def void_hand(draft: Draft, reason: pb.VoidReason.ValueType, operator: str = "", note: str = "") -> None:
    """C3, C4, F7: every chip back to who put it in; button and marks as before the hand."""
    hand = draft.hand
    refunds = [
        {"seat": seat, "player": hand.players[at], "amount": hand.put[at] + hand.dead[at], "stack": hand.start[at]}
        for seat, at in sorted(hand.index.items())
    ]
    draft.emit("hand_voided", reason=reason, refunds=refunds, operator=operator, note=note)
