"""Rake: figures from a schedule (K2, K3).

Schedules are data of the houses; whether a hand has come far enough to be raked (K1) is known to the hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.money import MAX_AMOUNT
from relance.poker.rejected import Rejected

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import Currency, Limit, RakeSchedule, RakeTier
    from relance.poker.houses import House

MOST_PLAYERS = 10
ALL_BASIS_POINTS = 10_000

_COVER = f"every number of players from 2 to {MOST_PLAYERS} in exactly one tier"


def rake_for(schedule: RakeSchedule, pots: Sequence[int], players: int) -> tuple[int, list[int]]:
    """The rake of a hand and what each pot bears (K3).

    pots: from the main pot up, uncalled chips returned, minor units. players: dealt in (K2).
    The parts sum to the whole. Where a small side pot lifts the total over a step (499 and 1 at 5 per 100), it bears no
    more than it holds and the pots below it bear the rest.
    """
    tier = _tier(schedule, players)
    if tier is None:
        return 0, [0] * len(pots)
    whole = _rate(tier, sum(pots))
    if len(pots) == 1:
        return whole, [whole]
    borne = [0]
    for reached in accumulate(pots):
        borne.append(min(whole, max(borne[-1], _rate(tier, reached))))
    for at in range(len(pots), 0, -1):
        borne[at - 1] = max(borne[at - 1], borne[at] - pots[at - 1])
    return whole, [after - before for before, after in pairwise(borne)]


def no_rake() -> RakeSchedule:
    """The schedule of tables that are never raked: no tiers."""
    return game_pb2.RakeSchedule(id="none", version=1, band="none")


def quote(schedule: RakeSchedule, pots: Sequence[int], players: int) -> list[str]:
    """How `rake_for` comes to its figures: a sentence for each step."""
    tier = _tier(schedule, players)
    if tier is None:
        return [f"Schedule {schedule.id}, band {schedule.band}, has no rake for {players} players dealt in: 0."]
    whole, by_pot = rake_for(schedule, pots, players)
    total = sum(pots)
    steps = [
        f"Schedule {schedule.id} version {schedule.version}, band {schedule.band}: {players} players were dealt in.",
        f"The pots hold {total} after uncalled chips went back.",
        _rate_in_words(tier, total),
    ]
    if tier.cap:
        reached = "it is not passed" if _uncapped(tier, total) <= tier.cap else f"the rake is {whole}"
        steps.append(f"The cap for {players} players is {tier.cap}: {reached}.")
    for number, (pot, part) in enumerate(zip(pots, by_pot, strict=True)):
        name = "The main pot" if number == 0 else f"Side pot {number}"
        on_so_far = _rate(tier, sum(pots[: number + 1]))
        steps.append(f"{name} of {pot} bears {part}; the schedule on the pots up to it gives {on_so_far}.")
    return steps


def schedule_for(
    house: House,
    limit: Limit.ValueType,
    low_limit: int,
    currency: Currency.ValueType,
    *,
    basis_points: int | None = None,
    cap: int | None = None,
) -> RakeSchedule:
    """The rake of a table (K4-K7): the last band whose lowest low limit is not above the table's, below all the first.

    basis_points and cap are a table's own settings in houses that take a percentage (K6); None: the house's default.
    Play money has none (K1). Raises Rejected SCHEDULE_NOT_FOUND when no band of the house is for the limit.
    """
    if currency == game_pb2.CURRENCY_CREDIT:
        return no_rake()
    version, percentage = house.rake.version, house.rake.percentage
    if percentage:
        part = percentage.default if basis_points is None else basis_points
        most = percentage.cap if cap is None else cap
        if not part:
            return no_rake()
        tier = game_pb2.RakeTier(min_players=2, max_players=MOST_PLAYERS, basis_points=part, cap=most)
        return game_pb2.RakeSchedule(id=house.name, version=version, band="percentage", tiers=[tier])
    if not house.rake.bands:
        return no_rake()
    bands = sorted((band for band in house.rake.bands if limit in band.limits), key=lambda band: band.lowest)
    if not bands:
        raise Rejected(
            reason_pb2.REASON_SCHEDULE_NOT_FOUND,
            f"{house.name} has no rake schedule for this limit",
            {"schedule": house.name},
        )
    reached = [band for band in bands if band.lowest <= low_limit]
    band = reached[-1] if reached else bands[0]
    return game_pb2.RakeSchedule(id=house.name, version=version, band=band.id, tiers=band.tiers)


def check_tiers(tiers: Sequence[RakeTier]) -> None:
    """Whether tiers make a schedule: every number of players from 2 to 10 in exactly one, figures that make sense.

    No tiers at all is right too: no rake. Raises Rejected FIELD_INVALID (metadata field, allowed).
    """
    reached = 1
    for tier in sorted(tiers, key=lambda tier: tier.min_players):
        if tier.min_players != reached + 1 or not tier.min_players <= tier.max_players <= MOST_PLAYERS:
            raise _invalid("tiers", f"players {tier.min_players} to {tier.max_players}", _COVER)
        reached = tier.max_players
    if tiers and reached != MOST_PLAYERS:
        raise _invalid("tiers", f"no tier above {reached} players", _COVER)
    for number, tier in enumerate(tiers):
        where = f"tiers[{number}]"
        if tier.cap < 0 or tier.cap > MAX_AMOUNT:
            raise _invalid(f"{where}.cap", str(tier.cap), f"0 (no cap) to {MAX_AMOUNT}")
        if tier.basis_points:
            if not 0 < tier.basis_points <= ALL_BASIS_POINTS:
                raise _invalid(f"{where}.basis_points", str(tier.basis_points), f"1 to {ALL_BASIS_POINTS}")
            if tier.step or tier.rake_per_step or tier.small_pot_below or tier.small_step or tier.small_rake:
                raise _invalid(f"{where}.basis_points", "with steps", "either basis_points or steps")
            continue
        if not 0 < tier.step <= MAX_AMOUNT:
            raise _invalid(f"{where}.step", str(tier.step), f"1 to {MAX_AMOUNT}, or basis_points instead")
        if not 0 <= tier.rake_per_step <= tier.step:
            raise _invalid(f"{where}.rake_per_step", str(tier.rake_per_step), f"0 to the step, {tier.step}")
        if tier.small_pot_below:
            if not 0 < tier.small_pot_below <= MAX_AMOUNT:
                raise _invalid(f"{where}.small_pot_below", str(tier.small_pot_below), f"0 (none) to {MAX_AMOUNT}")
            if not 0 < tier.small_step <= tier.small_pot_below:
                raise _invalid(f"{where}.small_step", str(tier.small_step), f"1 to {tier.small_pot_below}")
            if not 0 <= tier.small_rake <= tier.small_step:
                raise _invalid(f"{where}.small_rake", str(tier.small_rake), f"0 to the small step, {tier.small_step}")


def _tier(schedule: RakeSchedule, players: int) -> RakeTier | None:
    for tier in schedule.tiers:
        if tier.min_players <= players <= tier.max_players:
            return tier
    return None


def _rate(tier: RakeTier, total: int) -> int:
    """The schedule on one amount, capped."""
    rake = _uncapped(tier, total)
    return min(rake, tier.cap) if tier.cap else rake


def _uncapped(tier: RakeTier, total: int) -> int:
    if tier.basis_points:
        return total * tier.basis_points // ALL_BASIS_POINTS
    if total < tier.small_pot_below:
        return total // tier.small_step * tier.small_rake
    return total // tier.step * tier.rake_per_step


def _rate_in_words(tier: RakeTier, total: int) -> str:
    if tier.basis_points:
        percent = f"{tier.basis_points // 100}.{tier.basis_points % 100:02}%"
        return f"{percent} of {total}, rounded down, is {_uncapped(tier, total)}."
    if total < tier.small_pot_below:
        steps, size, rake = total // tier.small_step, tier.small_step, tier.small_rake
        why = f"A pot under {tier.small_pot_below} pays {rake} for each whole {size}"
    else:
        steps, size, rake = total // tier.step, tier.step, tier.rake_per_step
        why = f"A pot pays {rake} for each whole {size}"
    return f"{why}: {steps} whole steps make {steps * rake}."


def _invalid(field: str, found: str, allowed: str) -> Rejected:
    return Rejected(
        reason_pb2.REASON_FIELD_INVALID,
        f"{field}: {found} is not allowed; {allowed} would be accepted",
        {"field": field, "allowed": allowed},
    )
