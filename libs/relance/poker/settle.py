"""The end of a hand: showdown, rake, pots, and what happens between two hands."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import render
from relance.poker.departures import between_hands
from relance.poker.draft import Draft, from_head
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
            event = from_head(hand.head)
            event.hand_mucked.seat = hand.seats[at]
            draft.take(event, "hand_mucked", event.hand_mucked)


def show_hand(draft: Draft, at: int, result: Comparison | None = None, *, describe: bool = True) -> None:
    """Turn a hand up, in words once it is whole."""
    hand = draft.hand
    event = from_head(hand.head)
    shown = event.hand_shown
    shown.seat, shown.cards = hand.seats[at], render(hand.hole(at))
    if result is not None:
        shown.high, shown.low = result.describe_high(at), result.describe_low(at)
    if hand.salts[at]:
        shown.positions.extend(hand.places[at])
        shown.salts = b"".join(hand.salts[at])
    draft.take(event, "hand_shown", shown)


def _award(draft: Draft, pots: list[Pot], parts: list[list[tuple[int, tuple[int, ...]]]]) -> None:
    """Rake (K1-K3), then each pot to its winners, then the end of the hand: all in this append."""
    hand, table = draft.hand, draft.table
    amounts = [pot.amount for pot in pots]
    total, by_pot = 0, [0] * len(pots)
    if hand.players_flop and hand.terms.raked and table.rake is not None:
        total, by_pot = rake_for(table.rake, amounts, len(hand.seats))
    if total:
        event = from_head(hand.head)
        event.rake_taken.amount = total
        event.rake_taken.by_pot.extend(by_pot)
        draft.take(event, "rake_taken", event.rake_taken)
    for number, (pot, rake, won) in enumerate(zip(pots, by_pot, parts, strict=True)):
        event = from_head(hand.head)
        awarded = event.pot_awarded
        awarded.pot, awarded.amount, awarded.rake = number, pot.amount, rake
        awarded.eligible.extend(sorted([hand.seats[at] for at in pot.eligible]))
        _share_out(awarded, hand, pot.amount - rake, won)
        draft.take(event, "pot_awarded", awarded)
    end_hand(draft, sum(amounts), total)


def _share_out(awarded: pb.PotAwarded, hand: Hand, amount: int, parts: list[tuple[int, tuple[int, ...]]]) -> None:
    unit, add = hand.terms.unit, awarded.shares.add
    amounts = (amount,) if len(parts) == 1 else halves(amount, unit)
    for (part, winners), whole in zip(parts, amounts, strict=True):
        for at, chips in shares(whole, winners, unit).items():
            if chips:
                share = add()
                share.seat, share.amount, share.part = hand.seats[at], chips, part  # type: ignore[assignment]


def end_hand(draft: Draft, pot: int, rake: int) -> None:
    """HandEnded, and everything that waited for it."""
    hand = draft.hand
    event = from_head(hand.head)
    ended = event.hand_ended
    ended.rake, ended.rake_schedule, ended.pot, ended.players_flop = rake, hand.rake_label, pot, hand.players_flop
    add = ended.results.add
    for seat, at in sorted(hand.index.items()):
        result, stack = add(), hand.stack[at]
        result.seat, result.player, result.stack = seat, hand.players[at], stack
        result.net, result.contributed = stack - hand.start[at], hand.put[at] + hand.dead[at]
    draft.own()
    draft.take(event, "hand_ended", ended)
    between_hands(draft)


def void_hand(draft: Draft, reason: pb.VoidReason.ValueType, operator: str = "", note: str = "") -> None:
    """C3, C4, F7: every chip back to who put it in; button and marks as before the hand."""
    hand = draft.hand
    refunds = [
        {"seat": seat, "player": hand.players[at], "amount": hand.put[at] + hand.dead[at], "stack": hand.start[at]}
        for seat, at in sorted(hand.index.items())
    ]
    draft.emit("hand_voided", reason=reason, refunds=refunds, operator=operator, note=note)
