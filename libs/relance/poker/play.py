"""What players do in a hand: act, run out of time, leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import betting
from relance.poker.betting import check_amount, check_raise, may_check, not_offered, owes
from relance.poker.cards import parse
from relance.poker.commands import Act, Timeout
from relance.poker.draft import Context, Draft, Single, Step, from_head, sign
from relance.poker.evolve_cards import stood_pat
from relance.poker.evolve_hand import spoke
from relance.poker.flow import return_uncalled, run
from relance.poker.hand import ACTIVE, BET, DRAW, FOLDED, NOBODY, POST, SHOW, SPLIT, Hand
from relance.poker.limits import NO_RAISE, raise_bounds
from relance.poker.rake import MOST_PLAYERS
from relance.poker.rejected import Rejected
from relance.poker.settle import show_hand
from relance.poker.showdown import compare
from relance.poker.table import Table

Filled = tuple[str, Any]
"""Name of the payload that was filled in, and the payload."""


def act(table: Table, command: Act, context: Context) -> list[pb.TableEvent]:
    """A player's action (B1-B16, D6, D8, G9).

    Raises Rejected: NO_ACTIVE_HAND, NOT_SEATED, NOT_YOUR_TURN, STALE_TURN, ACTION_NOT_OFFERED, RAISE_NOT_ALLOWED,
    INVALID_AMOUNT, AMOUNT_OUT_OF_RANGE, INVALID_CARDS.
    """
    hand = table.hand
    if hand is None:
        raise Rejected(reason_pb2.REASON_NO_ACTIVE_HAND, "no hand is running", {})
    at = hand.asked
    if at == NOBODY or hand.players[at] != command.player:
        raise _not_yours(table, hand, command.player)
    if command.turn and command.turn != hand.turn:
        raise Rejected(
            reason_pb2.REASON_STALE_TURN,
            f"turn {command.turn} is over; turn {hand.turn} is asked",
            {"turn": str(hand.turn)},
        )
    if hand.asks == SHOW:
        return _answer_to_show(table, hand, at, command, context)
    if command.kind == betting.CHECK:
        if hand.asks == BET and not hand.offering and may_check(hand, at) and _another_bets(hand, at, "checked"):
            return _step(table, context, hand, at, _CHECKED, spoke)
    elif command.kind == betting.DISCARD and hand.asks == DRAW and not command.cards and _another_draws(hand, at):
        return _step(table, context, hand, at, _PAT, stood_pat)
    event = from_head(hand.head)
    name, payload = _ACTIONS.get(command.kind, _unknown)(hand, at, command, event)
    if hand.asks == BET and not hand.offering and name in _OPEN_TO_ANSWERS and _another_bets(hand, at, name):
        # One event then, and nothing is copied.
        event.version, event.time_us = table.version + 1, context.at
        if context.request is not None:
            sign(event, context)
        decision = Single((event,))
        decision.name, decision.payload = name, payload
        return decision
    draft = Draft(table, context)
    if hand.offering and name not in {"split_answered", "folded"}:
        # P1: a check, a bet or an all-in refuses the offer.
        draft.emit("split_answered", seat=hand.seats[at], accepted=False)
    draft.take(event, name, payload)
    if hand.asks == POST and name == "folded":
        refuse_to_post(draft, at)
    run(draft)
    return draft.decision()


def refuse_to_post(draft: Draft, at: int) -> None:
    """S7: who does not post cannot stay."""
    hand = draft.hand
    seat = draft.table.seats[hand.seats[at]]
    if not seat.leaving:
        why = pb.LEAVE_REASON_REQUESTED
        draft.emit("leave_requested", seat=seat.number, player=seat.player, reason=why)


def _step(
    table: Table, context: Context, hand: Hand, at: int, payloads: list[bytes], step: Callable[[Hand, int, int], None]
) -> Step:
    """The decision of an event that only says who acted, where all that follows is the question to the next player."""
    event = from_head(hand.head + payloads[hand.seats[at]])
    event.version, event.time_us = table.version + 1, context.at
    if context.request is not None:
        sign(event, context)
    decision = Step((event,))
    decision.at, decision.step = at, step
    return decision


def _another_draws(hand: Hand, at: int) -> bool:
    """Whether all that standing pat leads to is the question to the next player. Says no when in doubt."""
    status = hand.status
    # After the last to draw the first to bet is asked, if two can bet.
    if hand.absent or status.count(ACTIVE) < 2:
        return False
    for later in range(at + 1, len(status)):
        if status[later] != FOLDED:
            return status[later] == ACTIVE
    return True


def _another_bets(hand: Hand, at: int, name: str) -> bool:
    """Whether all that a betting action leads to is the question to the next player. Says no when in doubt."""
    status, faced = hand.status, hand.faced
    following = at + 1 if at + 1 < len(status) else 0
    if status[following] == ACTIVE and faced[following] < 0 and status.count(ACTIVE) > 2:
        return True
    if name in _RAISING:
        return True
    bet, current = hand.bet, hand.current
    others = 0
    waits = False
    for other, state in enumerate(status):
        if other != at and state == ACTIVE:
            others += 1
            if bet[other] < current or faced[other] < 0:
                waits = True
    return waits and others > 1


_SEATS: Final = range(MOST_PLAYERS + 1)
_CHECKED: Final = [pb.TableEvent(checked=pb.Checked(seat=seat)).SerializeToString() for seat in _SEATS]
_PAT: Final = [pb.TableEvent(cards_discarded=pb.CardsDiscarded(seat=seat)).SerializeToString() for seat in _SEATS]
"""By seat: what follows the head of an event that says no more."""

_RAISING: Final = frozenset({"bet_made", "raised"})
_OPEN_TO_ANSWERS: Final = _RAISING | {"checked", "called", "folded", "bring_in_posted"}


def _answer_to_show(table: Table, hand: Hand, at: int, command: Act, context: Context) -> list[pb.TableEvent]:
    """G14: show a beaten hand or muck it. Where all hands are shown, mucking throws the hand away (F6)."""
    draft = Draft(table, context)
    if command.kind == betting.SHOW_:
        show_hand(draft, at, compare(hand))
    elif command.kind == betting.MUCK:
        muck(draft, at)
    else:
        raise not_offered(hand)
    run(draft)
    return draft.decision()


def muck(draft: Draft, at: int) -> None:
    """The hand is not shown; where all are shown that gives up every claim (F6)."""
    hand = draft.hand
    if hand.terms.show_all:
        draft.emit("folded", seat=hand.seats[at], reason=pb.FOLD_REASON_THROWN_AWAY)
    else:
        draft.emit("hand_mucked", seat=hand.seats[at])


def _not_yours(table: Table, hand: Hand, player: str) -> Rejected:
    if table.seat_of(player) is None:
        return Rejected(reason_pb2.REASON_NOT_SEATED, "you have no seat at this table", {})
    seat = str(hand.seats[hand.asked]) if hand.asked != NOBODY else ""
    return Rejected(reason_pb2.REASON_NOT_YOUR_TURN, f"seat {seat} is to act", {"seat": seat})


def _unknown(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    raise not_offered(hand)


def _expect(hand: Hand, asks: int) -> None:
    if hand.asks != asks:
        raise not_offered(hand)


def _fold(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """B16: folding is always offered; a bring-in is forced (G9)."""
    if hand.asks not in {BET, POST} or hand.bring_in:
        raise not_offered(hand)
    return _folded(hand, at, event, pb.FOLD_REASON_ACTION)


def _folded(hand: Hand, at: int, event: pb.TableEvent, reason: pb.FoldReason.ValueType) -> Filled:
    folded = event.folded
    folded.seat, folded.reason = hand.seats[at], reason
    return "folded", folded


def _check(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    if hand.asks != BET or not may_check(hand, at):
        raise not_offered(hand)
    event.checked.seat = hand.seats[at]
    return "checked", event.checked


def _call(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    amount = owes(hand, at)
    if hand.asks != BET or amount <= 0 or hand.bring_in:
        raise not_offered(hand)
    called = event.called
    called.seat, called.amount = hand.seats[at], amount
    if amount == hand.stack[at]:
        called.all_in = True
    return "called", called


def _raise(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """A bet, raise or completion. The word must fit: a bet opens, a raise (or completion) follows one."""
    _expect(hand, BET)
    opens = betting.raise_kind(hand) == betting.BET_
    bounds = bounds_of(hand, at)
    given = command.amount
    if command.kind == betting.COMPLETE and given == 0 and len(bounds[2]) == 1:
        given = bounds[0]
    amount = check_amount(given)
    if bounds != NO_RAISE and opens != (command.kind == betting.BET_):
        raise not_offered(hand)
    if command.kind == betting.COMPLETE and hand.bets and hand.current == hand.level:
        raise not_offered(hand)
    return _raised(hand, at, check_raise(hand, at, amount, bounds), event)


def bounds_of(hand: Hand, at: int) -> tuple[int, int, tuple[int, ...]]:
    """What the player asked may bet or raise to."""
    return betting.bring_in_bounds(hand, at) if hand.bring_in else raise_bounds(hand, at)


def _raised(hand: Hand, at: int, to: int, event: pb.TableEvent) -> Filled:
    """The event of a legal bet or raise to a total."""
    name = "bet_made" if hand.current == 0 and not hand.bring_in else "raised"
    raised = getattr(event, name)
    amount = to - hand.bet[at]
    raised.seat, raised.amount, raised.to = hand.seats[at], amount, to
    if amount == hand.stack[at]:
        raised.all_in = True
    if name == "raised":
        raised.raise_by = to - hand.current
        if not hand.bets or (hand.terms.limit.fixed and to - hand.level == hand.sizes[0] and hand.current > hand.level):
            raised.completes = True
    return name, raised


def _all_in(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """Everything: as a call, a bet or a raise, whichever it is."""
    _expect(hand, BET)
    stack = hand.stack[at]
    total = hand.bet[at] + stack
    if hand.bring_in and stack <= hand.terms.bring_in:
        return _bring_in(hand, at, command, event)
    if not hand.bring_in and total <= hand.current:
        return _call(hand, at, command, event)
    return _raised(hand, at, check_raise(hand, at, total, bounds_of(hand, at)), event)


def _bring_in(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    _expect(hand, BET)
    if not hand.bring_in:
        raise not_offered(hand)
    return _brought_in(hand, at, event)


def _brought_in(hand: Hand, at: int, event: pb.TableEvent) -> Filled:
    brought = event.bring_in_posted
    amount = min(hand.terms.bring_in, hand.stack[at])
    brought.seat, brought.amount, brought.all_in = hand.seats[at], amount, amount == hand.stack[at]
    return "bring_in_posted", brought


def _discard(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """D8: none = stand pat."""
    if hand.asks != DRAW:
        raise not_offered(hand)
    discarded = event.cards_discarded
    discarded.seat = hand.seats[at]
    if not command.cards:
        return "cards_discarded", discarded
    most = hand.streets[hand.street].draw
    try:
        cards = parse(command.cards)
    except ValueError as error:
        raise Rejected(reason_pb2.REASON_INVALID_CARDS, str(error), {"min": "0", "max": str(most)}) from error
    if len(cards) > most or not set(cards) <= set(hand.down[at]):
        raise Rejected(
            reason_pb2.REASON_INVALID_CARDS,
            f"{command.cards}: up to {most} cards that you hold may be discarded",
            {"min": "0", "max": str(most)},
        )
    discarded.count, discarded.cards = len(cards), command.cards.replace(" ", "")
    return "cards_discarded", discarded


def _offer(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """P1."""
    _expect(hand, BET)
    if not hand.game.split_offers or not betting.can_offer_split(hand, at):
        raise not_offered(hand)
    event.split_offered.seat = hand.seats[at]
    return "split_offered", event.split_offered


def _answer_offer(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """P1. Who has chips refuses by a normal action."""
    accepted = command.kind == betting.ACCEPT_SPLIT
    if not hand.offering or (hand.asks == BET and not accepted):
        raise not_offered(hand)
    answered = event.split_answered
    answered.seat, answered.accepted = hand.seats[at], accepted
    return "split_answered", answered


def _post(hand: Hand, at: int, command: Act, event: pb.TableEvent) -> Filled:
    """S7."""
    _expect(hand, POST)
    ante = event.ante_posted
    amount = min(hand.terms.ante, hand.stack[at])
    ante.seat, ante.amount, ante.all_in = hand.seats[at], amount, amount == hand.stack[at]
    return "ante_posted", ante


_ACTIONS: Final[dict[int, Callable[[Hand, int, Act, pb.TableEvent], Filled]]] = {
    betting.FOLD: _fold,
    betting.CHECK: _check,
    betting.CALL: _call,
    betting.BET_: _raise,
    betting.RAISE: _raise,
    betting.COMPLETE: _raise,
    betting.ALL_IN_: _all_in,
    betting.BRING_IN: _bring_in,
    betting.DISCARD: _discard,
    betting.OFFER_SPLIT: _offer,
    betting.ACCEPT_SPLIT: _answer_offer,
    betting.REFUSE_SPLIT: _answer_offer,
    betting.POST_: _post,
}


def time_out(table: Table, command: Timeout, context: Context) -> list[pb.TableEvent]:
    """The clock won (C1, C2, G12). Nothing when the prompt is not asked any more."""
    hand = table.hand
    if hand is None or hand.asked == NOBODY or command.turn != hand.turn:
        return []
    at = hand.asked
    seat, player = hand.seats[at], hand.players[at]
    draft = Draft(table, context)
    bank = table.seats[seat].time_bank if hand.asks == BET else 0
    draft.emit("timed_out", seat=seat, player=player, time_bank_used_ms=bank)
    if hand.asks == SHOW:
        muck(draft, at)
        run(draft)
        return draft.decision()
    if hand.asks == POST:
        draft.emit("folded", seat=seat, reason=pb.FOLD_REASON_TIMED_OUT)
        refuse_to_post(draft, at)
    else:
        event = from_head(hand.head)
        name, payload = _DEFAULTS[hand.asks](hand, at, command, event)
        if hand.offering and name in {"checked", "protection_used"}:
            draft.emit("split_answered", seat=seat, accepted=False)
        draft.take(event, name, payload)
    holder = draft.table.seats[seat]
    if not holder.sitting_out and not holder.leaving:
        why = pb.SIT_OUT_REASON_TIMED_OUT if command.connected else pb.SIT_OUT_REASON_DISCONNECTED
        draft.emit("player_sat_out", seat=seat, player=player, reason=why)
    run(draft)
    return draft.decision()


def _late_bet(hand: Hand, at: int, command: Timeout, event: pb.TableEvent) -> Filled:
    if hand.bring_in:
        return _brought_in(hand, at, event)
    if may_check(hand, at):
        event.checked.seat = hand.seats[at]
        return "checked", event.checked
    if command.connected:
        return _folded(hand, at, event, pb.FOLD_REASON_TIMED_OUT)
    if hand.terms.protections and command.protection_left and hand.put[at] + hand.dead[at] > 0:
        used = event.protection_used
        used.seat, used.player = hand.seats[at], hand.players[at]
        return "protection_used", used
    return _folded(hand, at, event, pb.FOLD_REASON_DISCONNECTED)


def _late_draw(hand: Hand, at: int, command: Timeout, event: pb.TableEvent) -> Filled:
    discarded = event.cards_discarded
    discarded.seat, discarded.timed_out = hand.seats[at], True
    return "cards_discarded", discarded


def _late_answer(hand: Hand, at: int, command: Timeout, event: pb.TableEvent) -> Filled:
    """P1: silence or disconnection refuses."""
    event.split_answered.seat = hand.seats[at]
    return "split_answered", event.split_answered


_DEFAULTS: Final[dict[int, Callable[[Hand, int, Timeout, pb.TableEvent], Filled]]] = {
    BET: _late_bet,
    DRAW: _late_draw,
    SPLIT: _late_answer,
}


def fold_leaver(draft: Draft, at: int, reason: pb.FoldReason.ValueType) -> None:
    """S6: who leaves and is not all-in folds at once, in or out of turn; what they bet above the others goes back."""
    hand = draft.hand
    highest = max(hand.bet)
    draft.emit("folded", seat=hand.seats[at], reason=reason)
    if highest and hand.bet[at] == highest:
        return_uncalled(draft)
    run(draft)
