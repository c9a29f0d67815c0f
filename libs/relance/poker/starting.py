"""Starting a hand: chips that wait join the stacks, the button moves, antes and blinds are posted (S1-S5, B9)."""

from __future__ import annotations

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker.blinds import Plan, can_play, plan_hand
from relance.poker.cards import FULL_DECK
from relance.poker.draft import Context, Draft, from_head
from relance.poker.flow import post_antes, run
from relance.poker.hand import POSTING
from relance.poker.rejected import Rejected
from relance.poker.table import Table
from relance.poker.terms import RULES_VERSION, Terms, deck_size


def ready_to_start(table: Table) -> bool:
    """Whether a hand can be started now: open, not paused or drained, no hand running, two players to deal in."""
    if table.hand is not None or not table.open or table.paused or table.drained:
        return False
    willing = [seat for seat in table.seats.values() if can_play(seat)]
    return len(willing) >= 2 and plan_hand(table) is not None


def start_hand(table: Table, context: Context) -> list[pb.TableEvent]:
    """The next hand, up to the first question. Raises Rejected NOTHING_TO_CHANGE when none can start."""
    if table.hand is not None or table.paused:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "a hand is running or the table is paused", {})
    plan = plan_hand(table)
    terms = table.terms
    if plan is None or terms is None:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "fewer than two players can be dealt in", {})
    draft = Draft(table, context)
    while plan is not None and plan.big_blind and draft.table.seats[plan.big_blind].sit_out_next_big_blind:
        seat = draft.table.seats[plan.big_blind]
        why = pb.SIT_OUT_REASON_REQUESTED
        draft.emit("player_sat_out", seat=seat.number, player=seat.player, reason=why)
        plan = plan_hand(draft.table)
    if plan is None:
        return draft.decision()
    for seat in table.seats.values():
        if seat.held and not seat.reserved:
            draft.emit("chips_added", seat=seat.number, player=seat.player, amount=seat.held)
    _open(draft, terms, plan)
    for number, big, small in plan.missed:
        player = draft.table.seats[number].player
        draft.emit("blind_missed", seat=number, player=player, big=big, small=small)
    _antes(draft, terms)
    for post in plan.posts:
        _blind(draft, post.seat, post.kind, post.amount)
    run(draft)
    return draft.decision()


def rake_label(table: Table) -> str:
    """The schedule in force as HandStarted names it: id/band@version; empty: none."""
    rake = table.rake
    if rake is None or not rake.tiers:
        return ""
    return f"{rake.id}/{rake.band}@{rake.version}"


def _open(draft: Draft, terms: Terms, plan: Plan) -> None:
    table, context = draft.table, draft.context
    size = deck_size(terms, len(plan.dealt))
    hashes = draft.cards.begin(FULL_DECK[52 - size :], commit=terms.commitments)
    event = pb.TableEvent(table=table.id, hand=table.last_hand + 1)
    started = event.hand_started
    if context.rake is not None and context.rake != table.rake:
        started.new_rake.CopyFrom(context.rake)
        table.rake = context.rake
    add, seats = started.players.add, table.seats
    for number in sorted(plan.dealt):
        player, seat = add(), seats[number]
        player.seat, player.player, player.stack = number, seat.player, seat.stack
    started.button = plan.button
    started.rake_schedule = rake_label(table)
    started.rules_version = RULES_VERSION
    started.deck_commitments = hashes
    started.deck_size = size
    started.small_blind, started.big_blind = plan.small_blind, plan.big_blind
    started.dead_small_blind = plan.dead_small_blind
    draft.take(event, "hand_started", started)


def _antes(draft: Draft, terms: Terms) -> None:
    """S3: antes before blinds."""
    hand = draft.hand
    if terms.ante and hand.phase != POSTING:
        post_antes(draft, range(len(hand.seats)))


def _blind(draft: Draft, seat: int, kind: pb.BlindKind.ValueType, amount: int) -> None:
    """B9: what the stack covers. A big blind of nothing is posted too: the others face the full one."""
    hand = draft.hand
    at = hand.index[seat]
    stack = hand.stack[at]
    amount = min(amount, stack)
    if amount or kind == pb.BLIND_KIND_BIG:
        event = from_head(hand.head)
        posted = event.blind_posted
        posted.seat, posted.kind, posted.amount, posted.all_in = seat, kind, amount, amount == stack
        draft.take(event, "blind_posted", posted)
