"""Where a hand was played by a rule that readers of hand histories may not share.

Whoever plays the written actions again by other rules may come to other bounds or stacks. Such a hand says so, with the
ids of the rules (RULES.md), instead of being bent until it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.export.record import HandRecord
from relance.poker.games import GAMES, Forced

_BLINDS: Final = frozenset({pb.BLIND_KIND_SMALL, pb.BLIND_KIND_BIG, pb.BLIND_KIND_MIDDLE, pb.BLIND_KIND_POST})


@dataclass(slots=True)
class _Seen:
    """The hand so far: chips, and which rules it needed."""

    hand: HandRecord
    stack: dict[int, int]
    stud: bool
    bet: dict[int, int] = field(default_factory=dict)
    folded: set[int] = field(default_factory=set)
    step: int = 0
    street: int = 0
    rules: set[str] = field(default_factory=set)
    low: list[bool] = field(default_factory=list)

    def put(self, seat: int, chips: int) -> None:
        self.stack[seat] -= chips
        self.bet[seat] = self.bet.get(seat, 0) + chips

    @property
    def current(self) -> int:
        return max(self.bet.values(), default=0)


def rules_of_its_own(hand: HandRecord) -> list[str]:
    """Ids of the rules by which the hand may differ from what another program makes of it; none: it is common poker."""
    stud = GAMES[hand.config.game].forced is Forced.BRING_IN
    seen = _Seen(hand, {each.seat: each.stack for each in hand.players}, stud, step=_least(hand.config))
    for kind, payload in hand.told:
        step = _STEPS.get(kind)
        if step is not None:
            step(seen, payload)
    if any(seen.low) and not all(seen.low):
        seen.rules.add("H5")
    return sorted(seen.rules)


def _least(config: game_pb2.TableConfig) -> int:
    stakes = config.stakes
    return stakes.blinds[-1] if stakes.blinds else stakes.low_limit or stakes.min_bet


def _ante(seen: _Seen, e: pb.AntePosted) -> None:
    seen.stack[e.seat] -= e.amount
    if e.all_in and seen.stud:
        seen.rules.add("G9")


def _blind(seen: _Seen, e: pb.BlindPosted) -> None:
    if e.kind == pb.BLIND_KIND_DEAD:
        seen.stack[e.seat] -= e.amount
        return
    seen.put(e.seat, e.amount)
    if e.all_in and e.kind in _BLINDS:
        seen.rules.add("B9")


def _bring_in(seen: _Seen, e: pb.BringInPosted) -> None:
    seen.put(e.seat, e.amount)
    if e.all_in:
        seen.rules.add("G9")


def _called(seen: _Seen, e: pb.Called) -> None:
    seen.put(e.seat, e.amount)


def _raised(seen: _Seen, e: Any) -> None:
    """B8: short all-ins. B16: nobody can put in more than is bet already. G11: a stud's high bet before its time."""
    before = seen.current
    others = [seat for seat in seen.stack if seat != e.seat and seat not in seen.folded and seen.stack[seat]]
    if all(seen.bet.get(seat, 0) + seen.stack[seat] <= before for seat in others):
        seen.rules.add("B16")
    size = e.to - before
    config = seen.hand.config
    if seen.stud and seen.street == 1 and config.limit == game_pb2.LIMIT_FIXED and size > config.stakes.low_limit:
        seen.rules.add("G11")
    if size >= seen.step:
        seen.step = size
    elif e.all_in:
        seen.rules.add("B8")
    seen.put(e.seat, e.amount)


def _folded(seen: _Seen, e: pb.Folded) -> None:
    seen.folded.add(e.seat)
    if e.reason in {pb.FOLD_REASON_LEFT, pb.FOLD_REASON_DISCONNECTED}:
        seen.rules.add("S6")
    elif e.reason == pb.FOLD_REASON_THROWN_AWAY:
        seen.rules.add("F6")


def _round(seen: _Seen, e: pb.RoundEnded) -> None:
    """G10: among whom the next round of a stud is opened."""
    seen.bet, seen.street = {}, seen.street + 1
    config = seen.hand.config
    high = seen.street >= len(GAMES[config.game].streets) // 2 and config.limit == game_pb2.LIMIT_FIXED
    seen.step = config.stakes.high_limit if high and config.stakes.high_limit else _least(config)
    live = [seat for seat in seen.stack if seat not in seen.folded]
    if seen.stud and any(not seen.stack[seat] for seat in live):
        seen.rules.add("G10")


def _returned(seen: _Seen, e: pb.UncalledReturned) -> None:
    seen.put(e.seat, -e.amount)


def _board(seen: _Seen, e: pb.BoardDealt) -> None:
    if seen.stud:
        seen.rules.add("D7")


def _awarded(seen: _Seen, e: pb.PotAwarded) -> None:
    """B13: several odd units, or odd units in several pots."""
    if len(e.eligible) > 1:
        seen.low.append(any(share.part == pb.POT_PART_LOW for share in e.shares))
    by_part: dict[int, list[int]] = {}
    for share in e.shares:
        by_part.setdefault(share.part, []).append(share.amount)
        if share.part == pb.POT_PART_AGREED:
            seen.rules.add("P2")
    for amounts in by_part.values():
        odd = sum(amount > min(amounts) for amount in amounts)
        if odd > 1 or (odd and e.pot):
            seen.rules.add("B13")


def _rule(name: str) -> Callable[[_Seen, Any], None]:
    return lambda seen, payload: seen.rules.add(name)


_STEPS: Final[dict[str, Callable[[_Seen, Any], None]]] = {
    "ante_posted": _ante,
    "blind_posted": _blind,
    "bring_in_posted": _bring_in,
    "called": _called,
    "bet_made": _raised,
    "raised": _raised,
    "folded": _folded,
    "round_ended": _round,
    "uncalled_returned": _returned,
    "board_dealt": _board,
    "pot_awarded": _awarded,
    "protection_used": _rule("C2"),
    "hand_voided": _rule("C3"),
    "dealing_fault_ruled": _rule("F"),
    "split_offered": _rule("P1"),
}
"""What each event may need."""
