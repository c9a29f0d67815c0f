"""Who is dealt in, where the button is, who posts what (S1-S5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.games import Forced
from relance.poker.table import Seat, Table
from relance.poker.terms import Terms


@dataclass(slots=True)
class Post:
    """One blind to be posted, by seat number."""

    seat: int
    kind: pb.BlindKind.ValueType
    amount: int


@dataclass(slots=True)
class Plan:
    """The next hand before it starts. Seats are numbers."""

    button: int
    dealt: list[int]
    """Clockwise from the left of the button."""
    small_blind: int = 0
    big_blind: int = 0
    dead_small_blind: int = 0
    posts: list[Post] = field(default_factory=list)
    missed: list[tuple[int, bool, bool]] = field(default_factory=list)
    """Seats that the blinds pass by, and whether the big and the small one."""


def plan_hand(table: Table) -> Plan | None:
    """The next hand's button, blinds and players; None when fewer than two can be dealt in."""
    terms = table.terms
    if terms is None:
        return None
    willing = [seat for seat in table.seats.values() if can_play(seat)]
    if len(willing) < 2:
        return None
    if terms.game.forced is not Forced.BLINDS or not terms.blinds:
        numbers = [seat.number for seat in willing]
        button = _next(table.button, numbers)
        return Plan(button, _clockwise(numbers, button))
    return _with_blinds(table, terms, willing)


def can_play(seat: Seat) -> bool:
    """Whether the seat's player wants cards and has chips to play with."""
    return not (seat.reserved or seat.sitting_out or seat.leaving) and seat.stack + seat.held > 0


def _with_blinds(table: Table, terms: Terms, willing: list[Seat]) -> Plan | None:
    restart = table.last_dealt < 2
    owing = {} if restart else {seat.number: seat for seat in willing if seat.entry or seat.missed_big}
    ready = [seat.number for seat in willing if seat.number not in owing]
    if not ready:
        owing, ready = {}, [seat.number for seat in willing]
    waiting = {number for number, seat in owing.items() if seat.wait}
    numbers = [seat.number for seat in willing]
    plan = (_dead if terms.dead_button and len(numbers) > 2 else _moving)(terms, table, numbers, ready, waiting)
    between = _between(plan.button, plan.big_blind, numbers)
    absent = {number for number in owing if number != plan.big_blind and (number in waiting or number in between)} | (
        {plan.button} & waiting - {plan.big_blind}
    )
    plan.dealt = _clockwise([number for number in numbers if number not in absent], plan.button)
    if len(plan.dealt) < 2:
        return None
    if len(plan.dealt) == 2:
        _heads_up(table, plan, waiting)
    _post(table, terms, plan, owing)
    plan.missed = _missed(table, plan)
    return plan


def _moving(terms: Terms, table: Table, numbers: list[int], ready: list[int], waiting: set[int]) -> Plan:
    """S2, S3: the button moves to the next player dealt in, the next ones post; the last of them is the big blind.

    The smaller blinds fall to players who owe nothing, the big one to whoever sits next, also to a new player (S4).
    """
    button = _next(table.button, [number for number in numbers if number not in waiting] or numbers)
    last = button
    for _ in range(min(len(terms.blinds) - 1, len(numbers) - 2)):
        later = _between(last, button, ready)
        if not later:
            break
        last = _next(last, list(later))
    later = _between(last, button, numbers)
    big = _next(last, list(later)) if later else button
    return Plan(button, [], last if last != button else 0, big)


def _dead(terms: Terms, table: Table, numbers: list[int], ready: list[int], waiting: set[int]) -> Plan:
    """S2, `button_rule=dead`: the big blind advances one player, small blind and button follow."""
    if not table.big_blind:
        return _moving(terms, table, numbers, ready, waiting)
    big = _next(table.big_blind, numbers)
    small = table.big_blind
    button = table.small_blind or table.button
    if small in ready and small != big:
        return Plan(button, [], small, big)
    return Plan(button, [], 0, big, dead_small_blind=small)


def _heads_up(table: Table, plan: Plan, waiting: set[int]) -> None:
    """S1, S2: the button posts the small blind; nobody has the big blind twice running."""
    button, big = plan.button, plan.big_blind
    if button not in plan.dealt:
        button = next(number for number in plan.dealt if number != big)
    if big not in plan.dealt or big == button:
        big = next(number for number in plan.dealt if number != button)
    if table.seats[big].player == table.big_blind_player or button in waiting:
        button, big = big, button
    plan.button, plan.small_blind, plan.big_blind, plan.dead_small_blind = button, button, big, 0
    plan.dealt = [big, button]


def _post(table: Table, terms: Terms, plan: Plan, owing: dict[int, Seat]) -> None:
    """The blinds in order, then what new and returning players owe (S4, S5)."""
    blinds = terms.blinds
    posts = plan.posts
    ring = [plan.button, *plan.dealt] if len(plan.dealt) == 2 else plan.dealt
    last = ring.index(plan.big_blind)
    blinded: set[int] = set()
    for amount, number in zip(reversed(blinds), reversed(ring[: last + 1]), strict=False):
        if number in blinded:
            continue
        if plan.dead_small_blind and amount != blinds[-1]:
            break
        small = number == plan.small_blind
        kind = pb.BLIND_KIND_BIG if number == plan.big_blind else pb.BLIND_KIND_SMALL if small else pb.BLIND_KIND_MIDDLE
        blinded.add(number)
        # A new player who is heads-up on the button owes the big blind's amount, which covers the small one.
        if number in owing and kind != pb.BLIND_KIND_BIG:
            posts.insert(0, Post(number, pb.BLIND_KIND_POST, blinds[-1]))
        else:
            posts.insert(0, Post(number, kind, amount))
    if len(blinds) == 1:
        plan.small_blind = 0
    for number in plan.dealt:
        if number in blinded:
            continue
        seat = table.seats[number]
        if number in owing:
            dead = terms.missed_dead and not seat.entry
            posts.append(Post(number, pb.BLIND_KIND_DEAD if dead else pb.BLIND_KIND_POST, blinds[-1]))
        if table.last_dealt >= 2 and seat.missed_small and len(blinds) > 1:
            posts.append(Post(number, pb.BLIND_KIND_DEAD, blinds[-2]))


def _missed(table: Table, plan: Plan) -> list[tuple[int, bool, bool]]:
    """Who sits out and was passed by a blind since the last hand (S5)."""
    away = [seat.number for seat in table.seats.values() if not seat.reserved and seat.number not in plan.dealt]
    away = [number for number in away if not table.seats[number].entry]
    if not away or not table.big_blind:
        return []
    big = _between(table.big_blind, plan.big_blind, away)
    small = _between(table.small_blind or table.button, plan.small_blind, away) if plan.small_blind else set()
    return [(number, number in big, number in small) for number in away if number in big or number in small]


def _next(seat: int, numbers: Sequence[int]) -> int:
    """The next of `numbers` to the left of a seat."""
    return min(numbers, key=lambda number: (number <= seat, number))


def _clockwise(numbers: Sequence[int], button: int) -> list[int]:
    return sorted(numbers, key=lambda number: (number <= button, number))


def _between(start: int, end: int, numbers: Sequence[int]) -> set[int]:
    """Which of `numbers` lie strictly between two seats, clockwise."""
    if start < end:
        return {number for number in numbers if start < number < end}
    return {number for number in numbers if number > start or number < end}
