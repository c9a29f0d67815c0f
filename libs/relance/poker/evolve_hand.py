"""What the events of a hand do to it. No games here: streets, openers and sizes are read from the game's row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.evolve_cards import CARD_APPLIERS, running
from relance.poker.hand import ACTIVE, ALL_IN, BETTING, DRAWING, FOLDED, FROZEN, NOBODY, POSTING, SHOWDOWN, Hand
from relance.poker.rounds import (
    ask_to_show,
    close_street,
    end_offer,
    first_to_act,
    next_answer,
    next_drawer,
    next_post,
    shows_pair,
)
from relance.poker.table import BANK_HANDS, Notice, Table, put_last

Applier = Callable[[Table, Any, pb.TableEvent], None]


def _hand_started(table: Table, started: pb.HandStarted, event: pb.TableEvent) -> None:
    terms = table.terms
    assert terms is not None
    if started.HasField("new_rake"):
        table.rake = started.new_rake
    button = started.button
    rows = [(player.seat, player.player, player.stack) for player in started.players]
    rows = [row for row in rows if row[0] > button] + [row for row in rows if row[0] <= button]
    count = len(rows)
    seats, players, start = zip(*rows, strict=True)
    table.last_hand = event.hand
    table.hand = Hand.begun(
        number=event.hand,
        terms=terms,
        game=terms.game,
        streets=terms.game.streets,
        seats=seats,
        players=players,
        start=start,
        button=button,
        small_blind=started.small_blind,
        big_blind=started.big_blind,
        dead_small_blind=started.dead_small_blind,
        deck=started.deck_size,
        index={seat: at for at, seat in enumerate(seats)},
        rake_label=started.rake_schedule,
        head=pb.TableEvent(table=table.id, hand=event.hand).SerializeToString(),
        stack=list(start),
        bet=[0] * count,
        put=[0] * count,
        dead=[0] * count,
        status=[ACTIVE] * count,
        faced=[NOBODY] * count,
        posted=[False] * count,
        down=[()] * count,
        up=[()] * count,
        gone=[()] * count,
        places=[()] * count,
        salts=[()] * count,
        stub=list(range(started.deck_size)),
        deck_end=started.deck_size,
        muck=[],
        step=terms.min_bet,
        turn=table.version,
        asks_to_muck=sum([1 << at for at, seat in enumerate(seats) if not table.seats[seat].auto_muck]),
    )
    if terms.ante and not terms.blinds:
        table.hand.asks_to_post = sum(1 << at for at, seat in enumerate(seats) if not table.seats[seat].auto_post)
        if table.hand.asks_to_post:
            table.hand.phase = POSTING
            next_post(table.hand, table.version)


def _blind_missed(table: Table, missed: pb.BlindMissed, event: pb.TableEvent) -> None:
    hand = running(table)
    hand.missed += ((missed.seat, missed.big, missed.small),)


def _ante_posted(table: Table, ante: pb.AntePosted, event: pb.TableEvent) -> None:
    hand = running(table)
    ante_posted(hand, hand.index[ante.seat], ante.amount, table.version)


def ante_posted(hand: Hand, at: int, amount: int, version: int) -> None:
    """B9, S7: the ante is live; who is asked before posting comes next."""
    hand.posted[at] = True
    _put(hand, at, amount)
    if hand.phase == POSTING:
        next_post(hand, version)


def _blind_posted(table: Table, blind: pb.BlindPosted, event: pb.TableEvent) -> None:
    """B9: the others face the full blind, whatever its poster could pay."""
    hand = running(table)
    at = hand.index[blind.seat]
    if blind.kind == pb.BLIND_KIND_DEAD:
        hand.stack[at] -= blind.amount
        hand.dead[at] += blind.amount
        hand.pot += blind.amount
        if not hand.stack[at]:
            hand.status[at] = ALL_IN
        return
    _put(hand, at, blind.amount)
    hand.bet[at] += blind.amount
    hand.current = max(hand.current, hand.bet[at])
    if blind.kind == pb.BLIND_KIND_BIG:
        full = hand.terms.big_blind
        hand.level, hand.bets, hand.current = full, 1, max(hand.current, full)
        hand.floor = full if blind.amount < full else 0


def _bring_in_posted(table: Table, brought: pb.BringInPosted, event: pb.TableEvent) -> None:
    hand = running(table)
    at = hand.index[brought.seat]
    _put(hand, at, brought.amount)
    hand.bet[at] += brought.amount
    hand.current = hand.terms.bring_in
    hand.floor = hand.current if brought.amount < hand.current else 0
    hand.bring_in = False
    spoke(hand, at, table.version)


def _put(hand: Hand, at: int, amount: int) -> None:
    """Live chips from the stack to the pot."""
    stack = hand.stack[at] - amount
    hand.stack[at] = stack
    hand.put[at] += amount
    hand.pot += amount
    if not stack:
        hand.status[at] = ALL_IN


def spoke(hand: Hand, at: int, version: int) -> None:
    """The player has spoken; the next one is asked. That is all there is to a check."""
    hand.faced[at] = hand.current
    hand.asked = hand.next_to_act(at)
    hand.turn = version


def _checked(table: Table, checked: pb.Checked, event: pb.TableEvent) -> None:
    hand = running(table)
    spoke(hand, hand.index[checked.seat], table.version)


def _called(table: Table, called: pb.Called, event: pb.TableEvent) -> None:
    hand = table.hand
    assert hand is not None
    at = hand.index[called.seat]
    amount = called.amount
    _put(hand, at, amount)
    hand.bet[at] += amount
    spoke(hand, at, table.version)


def _bet_made(table: Table, bet: pb.BetMade, event: pb.TableEvent) -> None:
    hand = running(table)
    _raise(hand, hand.index[bet.seat], bet.amount, bet.to, table.version)


def _raised(table: Table, raised: pb.Raised, event: pb.TableEvent) -> None:
    hand = running(table)
    _raise(hand, hand.index[raised.seat], raised.amount, raised.to, table.version)


def _raise(hand: Hand, at: int, amount: int, to: int, version: int) -> None:
    """B2, B8: what counts as a full bet or raise, and what it makes of the next one."""
    _put(hand, at, amount)
    hand.bet[at] = to
    fixed = hand.terms.limit.fixed
    grown = to - (hand.level if fixed or not hand.bets else hand.current)
    full = grown * 2 >= hand.sizes[0] if fixed else grown >= hand.step or not hand.bets
    if full:
        hand.raised = hand.bets > 0
        hand.bets += 1
        hand.level = to
        hand.step = max(hand.step, grown) if not hand.raised else grown
        if fixed and grown >= hand.sizes[-1]:
            hand.sizes = hand.sizes[-1:]
    hand.current = to
    hand.aggressor = at
    hand.bring_in = False
    spoke(hand, at, version)


def _folded(table: Table, folded: pb.Folded, event: pb.TableEvent) -> None:
    hand = running(table)
    at = hand.index[folded.seat]
    hand.status[at] = FOLDED
    if hand.game.restock_folded:
        hand.muck += hand.hole(at)
    if hand.phase == DRAWING:
        if hand.drawer == at:
            hand.owed = 0
            next_drawer(hand, table.version)
    elif hand.offering:
        # P1: a fold only drops the folder's claims.
        hand.accepted &= ~(1 << at)
        if hand.live() > 1 and (hand.answerer == at or not hand.accepted):
            next_answer(hand, table.version)
    elif hand.phase == BETTING:
        _fold_in_betting(hand, at, table.version)
    elif hand.phase == SHOWDOWN:
        ask_to_show(hand, table.version)
    elif hand.phase == POSTING:
        next_post(hand, table.version)
    if len(hand.sizes) > 1 and hand.terms.open_pair == "pair" and not shows_pair(hand):
        hand.sizes = hand.sizes[:1]
    if hand.live() == 1:
        hand.asked = NOBODY


def _fold_in_betting(hand: Hand, at: int, version: int) -> None:
    if hand.bring_in and at == hand.asked:
        hand.asked = first_to_act(hand)
        hand.turn = version
    elif at == hand.asked:
        hand.asked = hand.next_to_act(at)
        hand.turn = version
    elif hand.asked != NOBODY and hand.next_to_act(hand.asked - 1) != hand.asked:
        # A fold out of turn (S6) can leave nothing to ask.
        hand.asked = hand.next_to_act(hand.asked - 1)
        hand.turn = version


def _protection_used(table: Table, used: pb.ProtectionUsed, event: pb.TableEvent) -> None:
    """C2: all-in for what is in; the rest of the stack stays out of reach."""
    hand = running(table)
    at = hand.index[used.seat]
    hand.status[at] = FROZEN
    hand.bring_in = False
    hand.asked = hand.next_to_act(at)
    hand.turn = table.version


def _uncalled_returned(table: Table, returned: pb.UncalledReturned, event: pb.TableEvent) -> None:
    """B11; when a leaver's bet goes back the amount to call drops with it (S6)."""
    hand = running(table)
    at = hand.index[returned.seat]
    hand.bet[at] -= returned.amount
    hand.put[at] -= returned.amount
    hand.stack[at] += returned.amount
    hand.pot -= returned.amount
    if hand.status[at] == ALL_IN:
        hand.status[at] = ACTIVE
    before = hand.current
    hand.current = max(hand.floor, *hand.bet)
    hand.level = min(hand.level, hand.current)
    if hand.status[at] == FOLDED:
        if hand.aggressor == at:
            hand.aggressor = NOBODY
        if not hand.current:
            # Nothing is left of what they bet: the next bet is the first of the round.
            hand.bets, hand.raised, hand.step = 0, False, hand.terms.min_bet
    if hand.asked != NOBODY and hand.current != before:
        hand.asked = hand.next_to_act(hand.asked - 1)
        hand.turn = table.version


def _round_ended(table: Table, ended: pb.RoundEnded, event: pb.TableEvent) -> None:
    round_ended(running(table), table.version)


def round_ended(hand: Hand, version: int) -> None:
    """The bets are the pot's (B16); on to the next street."""
    count = len(hand.seats)
    hand.bet = [0] * count
    hand.faced = [NOBODY] * count
    hand.current = hand.floor = hand.level = hand.bets = hand.barred = 0
    hand.raised = False
    hand.step = hand.terms.min_bet
    last = hand.street == len(hand.streets) - 1
    hand.last_aggressor = hand.aggressor if last else NOBODY
    hand.aggressor = NOBODY
    close_street(hand, version)


def _hand_shown(table: Table, shown: pb.HandShown, event: pb.TableEvent) -> None:
    hand = running(table)
    hand.shown |= 1 << hand.index[shown.seat]
    if hand.phase == SHOWDOWN:
        ask_to_show(hand, table.version)
    else:
        hand.turned_up = True


def _hand_mucked(table: Table, mucked: pb.HandMucked, event: pb.TableEvent) -> None:
    hand = running(table)
    hand.mucked |= 1 << hand.index[mucked.seat]
    ask_to_show(hand, table.version)


def _split_offered(table: Table, offered: pb.SplitOffered, event: pb.TableEvent) -> None:
    hand = running(table)
    at = hand.index[offered.seat]
    hand.offering, hand.answerer, hand.accepted, hand.refused = True, at, 1 << at, 0
    next_answer(hand, table.version)


def _split_answered(table: Table, answered: pb.SplitAnswered, event: pb.TableEvent) -> None:
    """P3: an all-in player's refusal concerns only the pots in which they have a claim."""
    hand = running(table)
    at = hand.index[answered.seat]
    if answered.accepted:
        hand.accepted |= 1 << at
        next_answer(hand, table.version)
    elif hand.status[at] == ACTIVE:
        end_offer(hand, at, table.version)
    else:
        hand.refused |= 1 << at
        next_answer(hand, table.version)


def _rake_taken(table: Table, taken: pb.RakeTaken, event: pb.TableEvent) -> None:
    hand = running(table)
    hand.rake = taken.amount
    hand.pot -= taken.amount


def _pot_awarded(table: Table, awarded: pb.PotAwarded, event: pb.TableEvent) -> None:
    hand = running(table)
    for share in awarded.shares:
        hand.stack[hand.index[share.seat]] += share.amount
        hand.pot -= share.amount
    hand.awarded += 1


def _hand_ended(table: Table, ended: pb.HandEnded, event: pb.TableEvent) -> None:
    """Stacks, button and marks become what the hand made of them; until here they were as before it."""
    hand = running(table)
    assert hand.pot == 0, f"{table.id}@{table.version}: {hand.pot} chips left in the pot"
    full = hand.terms.time_bank_ms
    for result in ended.results:
        seat = table.seats[result.seat]
        seat.stack = result.stack
        seat.played = True
        seat.away = 0
        seat.hands += 1
        if seat.time_bank < full:
            seat.time_bank = min(full, seat.time_bank + full // BANK_HANDS)
        seat.entry = seat.wait = seat.missed_big = seat.missed_small = False
    for number, big, small in hand.missed:
        seat = table.seats[number]
        seat.missed_big |= big
        seat.missed_small |= small
    for seat in table.seats.values():
        if seat.sitting_out and seat.number not in hand.index:
            seat.away += 1
    table.rake_taken += ended.rake
    table.button, table.big_blind = hand.button, hand.big_blind
    # Under the dead button that is where it goes next, whether somebody sits there or not (S2).
    table.small_blind = hand.small_blind or hand.dead_small_blind
    table.big_blind_player = hand.players[hand.index[hand.big_blind]] if hand.big_blind in hand.index else ""
    table.last_dealt = len(hand.seats)
    _over(table, hand)


def _hand_voided(table: Table, voided: pb.HandVoided, event: pb.TableEvent) -> None:
    """C3, F7: as if the hand had not been. Whose chips came back finds a notice, there or on coming back."""
    if voided.reason in _NOTICED:
        notices = dict(table.notices)
        for refund in voided.refunds:
            if refund.amount:
                put_last(notices, refund.player, Notice(event.hand, refund.amount, voided.reason, event.time_us, 0))
        table.notices = notices
    _over(table, running(table))


def _over(table: Table, hand: Hand) -> None:
    table.last_over = hand.number
    table.hand = None
    table.conservation()


def _timed_out(table: Table, timed_out: pb.TimedOut, event: pb.TableEvent) -> None:
    """What the time-out led to follows."""
    if timed_out.time_bank_used_ms:
        table.seats[timed_out.seat].time_bank -= timed_out.time_bank_used_ms


def _time_bank_used(table: Table, used: pb.TimeBankUsed, event: pb.TableEvent) -> None:
    table.seats[used.seat].time_bank = used.left_ms


_NOTICED: Final = frozenset({pb.VOID_REASON_CRASH, pb.VOID_REASON_DRAIN, pb.VOID_REASON_OPERATOR})
"""Why hands are void behind the players' backs."""


HAND_APPLIERS: Final[dict[str, Applier]] = {
    **CARD_APPLIERS,
    "hand_started": _hand_started,
    "blind_missed": _blind_missed,
    "ante_posted": _ante_posted,
    "blind_posted": _blind_posted,
    "bring_in_posted": _bring_in_posted,
    "checked": _checked,
    "called": _called,
    "bet_made": _bet_made,
    "raised": _raised,
    "folded": _folded,
    "timed_out": _timed_out,
    "time_bank_used": _time_bank_used,
    "protection_used": _protection_used,
    "uncalled_returned": _uncalled_returned,
    "round_ended": _round_ended,
    "split_offered": _split_offered,
    "split_answered": _split_answered,
    "hand_shown": _hand_shown,
    "hand_mucked": _hand_mucked,
    "rake_taken": _rake_taken,
    "pot_awarded": _pot_awarded,
    "hand_ended": _hand_ended,
    "hand_voided": _hand_voided,
}
"""What each event of a hand does, by the name of its payload."""
