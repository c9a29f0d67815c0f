"""The stakes of a table: what may be asked for, and what follows from it (S1, S3, S7, G9, B3, B4, B14, B15)."""

from __future__ import annotations

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.games import Forced, Game
from relance.poker.houses.house import House
from relance.poker.money import check_amount
from relance.poker.rejected import Rejected

LARGEST_STAKE = 10**11
"""The largest blind, ante or limit: ten thousand of them are still an amount."""

SPREAD = {2: (1, 3), 4: (1, 1, 2, 3), 5: (1, 1, 2, 3, 3)}
"""B4: the largest bet of spread limit in low limits, by the game's number of betting rounds."""

_AMOUNTS = ("ante", "bring_in", "low_limit", "high_limit", "min_bet", "max_bet")


def full_stakes(
    asked: game_pb2.Stakes, house: House, game: Game, limit: game_pb2.Limit.ValueType, seats: int
) -> game_pb2.Stakes:
    """The stakes of a table with everything filled in that follows from what was asked.

    Raises Rejected: INVALID_AMOUNT, FIELD_MISSING, FIELD_INVALID, NOT_SPREAD (metadata field, allowed or min, max).
    """
    stakes = game_pb2.Stakes()
    stakes.CopyFrom(asked)
    for field in _AMOUNTS:
        check_amount(getattr(stakes, field), f"stakes.{field}", least=0, most=LARGEST_STAKE)
    for blind in stakes.blinds:
        check_amount(blind, "stakes.blinds", most=LARGEST_STAKE)
    match game.forced:
        case Forced.BLINDS:
            _blinds(stakes, house, seats)
        case Forced.BRING_IN:
            _bring_in(stakes, limit)
        case Forced.ANTES:
            _antes(stakes)
    if game.forced is not Forced.BRING_IN:
        _none(stakes.bring_in, "bring_in", f"{game.name} has no bring-in")
    if game.forced is not Forced.BLINDS and stakes.blinds:
        raise invalid("stakes.blinds", str(list(stakes.blinds)), "none", f"{game.name} has no blinds")
    if game.forced is not Forced.ANTES:
        _none(stakes.min_bet, "min_bet", f"the smallest bet in {game.name} is the low limit (B5, B15)")
        _none(stakes.max_bet, "max_bet", f"{game.name} has no largest bet (B14)")
    if stakes.ante > stakes.low_limit:
        raise invalid("stakes.ante", str(stakes.ante), f"0 to {stakes.low_limit}", "not above the low limit")
    _sizes(stakes, limit, rounds=len(game.streets))
    return stakes


def invalid(field: str, found: str, allowed: str, why: str) -> Rejected:
    """A FIELD_INVALID refusal, to be raised."""
    return Rejected(
        reason_pb2.REASON_FIELD_INVALID,
        f"{field}: {found} is not allowed ({why}); allowed: {allowed}",
        {"field": field, "allowed": allowed},
    )


def missing(field: str, why: str) -> Rejected:
    """A FIELD_MISSING refusal, to be raised."""
    return Rejected(reason_pb2.REASON_FIELD_MISSING, f"{field} is missing: {why}", {"field": field})


def _blinds(stakes: game_pb2.Stakes, house: House, seats: int) -> None:
    """S1, S3: one, two, more blinds, or an ante only; two follow from a low limit alone."""
    if not stakes.blinds and not stakes.ante:
        if not stakes.low_limit:
            raise missing("stakes.blinds", "give the blinds from the left of the button on, or a low limit, or an ante")
        stakes.blinds.extend((max(1, stakes.low_limit // 2), stakes.low_limit))
    blinds = list(stakes.blinds)
    structure = {0: "ante_only", 1: "one", 2: "two"}.get(len(blinds), "more")
    if structure not in house.blind_structures:
        allowed = ", ".join(house.blind_structures)
        raise Rejected(
            reason_pb2.REASON_NOT_SPREAD,
            f"{house.name} does not spread {structure.replace('_', ' ')} (S3); allowed: {allowed}",
            {"field": "stakes.blinds", "allowed": allowed},
        )
    if not blinds:
        stakes.low_limit = stakes.low_limit or stakes.ante
        return
    if len(blinds) > seats:
        raise invalid("stakes.blinds", f"{len(blinds)} blinds", f"at most {seats}", "each needs a seat")
    if blinds != sorted(blinds):
        raise invalid("stakes.blinds", str(blinds), "none smaller than the one before", "S3: the last is the largest")
    big = blinds[-1]
    least = max(1, big // 2)
    if len(blinds) == 2 and blinds[0] < least:
        raise invalid("stakes.blinds", f"a small blind of {blinds[0]}", f"{least} to {big}", "S1: half the big blind")
    if stakes.low_limit not in {0, big}:
        raise invalid("stakes.low_limit", str(stakes.low_limit), f"0 or {big}", "the big blind is the low limit")
    stakes.low_limit = big


def _bring_in(stakes: game_pb2.Stakes, limit: game_pb2.Limit.ValueType) -> None:
    """G9: a bring-in below the low limit, by default twice the ante. B15: without fixed sizes that may be the ante."""
    if not stakes.low_limit:
        if limit in {game_pb2.LIMIT_FIXED, game_pb2.LIMIT_SPREAD} or not stakes.ante:
            raise missing("stakes.low_limit", "stud has no blinds to take it from")
        stakes.low_limit = stakes.ante
    stakes.bring_in = stakes.bring_in or 2 * stakes.ante
    if not stakes.bring_in:
        raise missing("stakes.bring_in", "without an ante it does not follow from anything (G9)")
    if stakes.bring_in >= stakes.low_limit:
        allowed = f"1 to {stakes.low_limit - 1}"
        raise invalid("stakes.bring_in", str(stakes.bring_in), allowed, "G9: below the low limit")


def _antes(stakes: game_pb2.Stakes) -> None:
    """B14, B15: every player antes; the smallest bet is the ante unless the table sets another."""
    if not stakes.ante:
        raise missing("stakes.ante", "every player antes (G13)")
    stakes.min_bet = stakes.min_bet or stakes.low_limit or stakes.ante
    if stakes.min_bet < stakes.ante:
        raise invalid("stakes.min_bet", str(stakes.min_bet), f"at least {stakes.ante}", "not below the ante")
    if stakes.low_limit not in {0, stakes.min_bet}:
        raise invalid(
            "stakes.low_limit", str(stakes.low_limit), f"0 or {stakes.min_bet}", "it is the smallest bet (B15)"
        )
    stakes.low_limit = stakes.min_bet
    if 0 < stakes.max_bet < stakes.min_bet:
        raise invalid("stakes.max_bet", str(stakes.max_bet), f"0 (none) or at least {stakes.min_bet}", "B14")


def _sizes(stakes: game_pb2.Stakes, limit: game_pb2.Limit.ValueType, *, rounds: int) -> None:
    """What the limits need besides the low limit (B3, B4)."""
    low = stakes.low_limit
    if limit == game_pb2.LIMIT_FIXED:
        stakes.high_limit = stakes.high_limit or 2 * low
        if stakes.high_limit < low:
            raise invalid("stakes.high_limit", str(stakes.high_limit), f"at least {low}", "B3: not below the low limit")
    else:
        _none(stakes.high_limit, "high_limit", "only fixed limit has a high limit (B3)")
    if limit == game_pb2.LIMIT_SPREAD:
        if not stakes.spread_max:
            stakes.spread_max.extend(low * part for part in SPREAD[rounds])
        if len(stakes.spread_max) > rounds:
            found = f"{len(stakes.spread_max)} rounds"
            raise invalid("stakes.spread_max", found, f"at most {rounds}", "one for each betting round")
        for most in stakes.spread_max:
            check_amount(most, "stakes.spread_max", least=low, most=LARGEST_STAKE)
        if not 0 <= stakes.bets_cap <= 100:
            raise invalid("stakes.bets_cap", str(stakes.bets_cap), "0 (none) to 100", "B4")
    else:
        if stakes.spread_max:
            raise invalid("stakes.spread_max", str(list(stakes.spread_max)), "none", "only spread limit has it (B4)")
        _none(stakes.bets_cap, "bets_cap", "only spread limit can set one (B3-B7)")


def _none(amount: int, field: str, why: str) -> None:
    if amount:
        raise invalid(f"stakes.{field}", str(amount), "0", why)
