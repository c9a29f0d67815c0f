"""Who is dealt in, where the button is, who posts what (S1-S5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

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
    numbers = [seat.number for seat in willing]
    if len(willing) == len(table.seats) > 2 and not terms.dead_button:
        for seat in willing:
            if seat.entry or seat.missed_big or seat.missed_small:
                break
        else:
            return _all_alike(terms.blinds, table.button, tuple(numbers))
    owing = {seat.number: seat for seat in willing if seat.entry or seat.missed_big}
    ready = [number for number in numbers if number not in owing] if owing else numbers
    restart = table.last_dealt < 2 or len(ready) < 2
    if restart:
        # S4: where no game can go on without those who owe, one begins, and nobody owes anything.
        owing, ready = {}, numbers
    waiting = {number for number, seat in owing.items() if seat.wait}
    if terms.dead_button and len(numbers) > 2:
        plan = _dead(terms.blinds, table, numbers, ready, waiting)
    else:
        plan = _moving(terms.blinds, table.button, numbers, ready, waiting)
    if owing:
        numbers = _dealt_in(plan, numbers, owing, waiting)
    plan.dealt = _clockwise(numbers, plan.button)
    if len(plan.dealt) < 2:
        return None
    if len(plan.dealt) == 2:
        _heads_up(table, plan, waiting)
    _post_blinds(terms.blinds, plan, owing)
    if not restart and (owing or any(seat.missed_small for seat in willing)):
        _post_owed(table, terms, plan, owing)
    if len(plan.dealt) < len(table.seats):
        plan.missed = _missed(table, plan)
    return plan


@lru_cache(maxsize=16_384)
def _all_alike(blinds: tuple[int, ...], button: int, numbers: tuple[int, ...]) -> Plan:
    """The plan of three or more players of whom nobody owes, waits or is away: most hands. It is not to be changed."""
    plan = _moving(blinds, button, numbers, numbers, set())
    plan.dealt = _clockwise(numbers, plan.button)
    _post_blinds(blinds, plan, {})
    return plan


def _dealt_in(plan: Plan, numbers: list[int], owing: dict[int, Seat], waiting: set[int]) -> list[int]:
    """S4: who waits for the big blind is not dealt in, nor is who owes and sits between the button and it."""
    between = _between(plan.button, plan.big_blind, numbers)
    return [
        number
        for number in numbers
        if number not in owing or number == plan.big_blind or (number not in waiting and number not in between)
    ]


def _moving(
    blinds: Sequence[int], button: int, numbers: Sequence[int], ready: Sequence[int], waiting: set[int]
) -> Plan:
    """S2, S3: the button moves to the next player dealt in, the next ones post; the last of them is the big blind.

    The smaller blinds fall to players who owe nothing, the big one to whoever sits next, also to a new player (S4).
    """
    button = _next(button, [number for number in numbers if number not in waiting] or numbers)
    last = button
    for _ in range(min(len(blinds) - 1, len(numbers) - 2)):
        later = _between(last, button, ready)
        if not later:
            break
        last = later[0]
    later = _between(last, button, numbers)
    big = later[0] if later else button
    return Plan(button, [], last if last != button else 0, big)


def _dead(blinds: Sequence[int], table: Table, numbers: Sequence[int], ready: Sequence[int], waiting: set[int]) -> Plan:
    """S2, `button_rule=dead`: the big blind advances one player, small blind and button follow."""
    if not table.big_blind:
        return _moving(blinds, table.button, numbers, ready, waiting)
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


def _post_blinds(blinds: Sequence[int], plan: Plan, owing: dict[int, Seat]) -> None:
    """The blinds, in order."""
    single, posts = len(blinds) == 1, plan.posts
    ring = [plan.button, *plan.dealt] if len(plan.dealt) == 2 else plan.dealt
    last = ring.index(plan.big_blind)
    if plan.dead_small_blind:
        blinds = blinds[-1:]
    blinded: set[int] = set()
    for amount, number in zip(reversed(blinds), reversed(ring[: last + 1]), strict=False):
        if number in blinded:
            continue
        blinded.add(number)
        if number == plan.big_blind:
            posts.insert(0, Post(number, pb.BLIND_KIND_BIG, amount))
        elif number in owing:
            # A new player who is heads-up on the button owes the big blind's amount, which covers the small one.
            posts.insert(0, Post(number, pb.BLIND_KIND_POST, blinds[-1]))
        else:
            kind = pb.BLIND_KIND_SMALL if number == plan.small_blind else pb.BLIND_KIND_MIDDLE
            posts.insert(0, Post(number, kind, amount))
    if single:
        plan.small_blind = 0


def _post_owed(table: Table, terms: Terms, plan: Plan, owing: dict[int, Seat]) -> None:
    """What new and returning players owe who have no blind to post (S4, S5)."""
    blinds, posts = terms.blinds, plan.posts
    blinded = {post.seat for post in posts}
    for number in plan.dealt:
        if number in blinded:
            continue
        seat = table.seats[number]
        if number in owing:
            dead = terms.missed_dead and not seat.entry
            posts.append(Post(number, pb.BLIND_KIND_DEAD if dead else pb.BLIND_KIND_POST, blinds[-1]))
        if seat.missed_small and len(blinds) > 1:
            posts.append(Post(number, pb.BLIND_KIND_DEAD, blinds[-2]))


def _missed(table: Table, plan: Plan) -> list[tuple[int, bool, bool]]:
    """Who sits out and was passed by a blind since the last hand (S5)."""
    away = [seat.number for seat in table.seats.values() if not seat.reserved and seat.number not in plan.dealt]
    away = [number for number in away if not table.seats[number].entry]
    if not away or not table.big_blind:
        return []
    big = _between(table.big_blind, plan.big_blind, away)
    small = _between(table.small_blind or table.button, plan.small_blind, away) if plan.small_blind else []
    return [(number, number in big, number in small) for number in away if number in big or number in small]


def _next(seat: int, numbers: Sequence[int]) -> int:
    """The next of `numbers`, which rise, to the left of a seat."""
    for number in numbers:
        if number > seat:
            return number
    return numbers[0]


def _clockwise(numbers: Sequence[int], button: int) -> list[int]:
    """Rising `numbers` from the left of the button round to it."""
    return [number for number in numbers if number > button] + [number for number in numbers if number <= button]


def _between(start: int, end: int, numbers: Sequence[int]) -> list[int]:
    """Which of `numbers`, which rise, lie strictly between two seats, clockwise."""
    if start < end:
        return [number for number in numbers if start < number < end]
    return [number for number in numbers if number > start] + [number for number in numbers if number < end]
