"""Opening a table: what a request leaves open follows from its house; what a house lacks is refused with a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.games import GAMES, Forced
from relance.poker.houses import CHOICES, HOUSES, House, load
from relance.poker.houses.choices import Value, table_rules
from relance.poker.houses.house import CURRENCY_WORDS, LIMIT_WORDS, GameOffer
from relance.poker.houses.loading import LONGEST_MS, parse_ratio
from relance.poker.houses.stakes import LARGEST_STAKE, full_stakes, invalid, missing
from relance.poker.money import MAX_AMOUNT, check_amount, show
from relance.poker.names import check_name
from relance.poker.rake import schedule_for
from relance.poker.rejected import Rejected

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import Limit, RakeSchedule, Stakes, TableConfig, Timers
    from relance.api.table.v1.table_pb2 import ChangeSettingsRequest, OpenTableRequest

LONGEST_TABLE_NAME = 64
"""Code points of a table's name."""

TIMERS = ("decision_ms", "draw_ms", "time_bank_ms", "between_hands_ms", "reservation_ms", "answer_ms")

_BUY_IN_CAPPED = (game_pb2.LIMIT_POT, game_pb2.LIMIT_HALF_POT, game_pb2.LIMIT_NO_LIMIT)
_RAKE_CHOICES: tuple[Literal["rake_basis_points"], Literal["rake_cap"]] = ("rake_basis_points", "rake_cap")


class TableSetup(NamedTuple):
    """All that a table needs to be opened."""

    config: TableConfig
    rake: RakeSchedule


def table_config(request: OpenTableRequest) -> TableSetup:
    """The complete configuration and rake schedule of a table that a house spreads.

    What the request leaves open follows from the house: seats, buy-ins, clocks, choices, the rest of the stakes.
    Raises Rejected: NOT_SPREAD (metadata field, allowed) for what the house does not have; FIELD_MISSING,
    FIELD_INVALID, FIELD_TOO_LONG, INVALID_AMOUNT for values that make no table.
    """
    house = _house(request.house)
    offer = _offer(house, request.game, request.limit)
    game = GAMES[offer.game]
    _currency(house, request.currency)
    seats = _seats(offer, request.seats)
    choices, special = _choices(house, offer, request)
    asked, cave = request.stakes, request.min_buy_in
    if game.forced is Forced.ANTES and house.ante_ratio:
        asked, cave = _cave(request, special.get("ante_ratio"), house.ante_ratio)
    stakes = full_stakes(asked, house, game, request.limit, seats)
    least, most = _buy_ins(request, house, stakes, cave)
    basis_points, cap = (_rake_choice(house, name, special) for name in _RAKE_CHOICES)
    config = game_pb2.TableConfig(
        house=house.name,
        game=game.id,
        limit=request.limit,
        stakes=stakes,
        seats=seats,
        currency=request.currency,
        min_buy_in=least,
        max_buy_in=most,
        timers=_timers(request, house),
        rules=table_rules(choices),
        display_name=_name(request, game.name, stakes),
        turbo=request.turbo,
        micro=request.currency == game_pb2.CURRENCY_EUR and stakes.low_limit <= house.micro_max,
        private=request.private,
    )
    rake = schedule_for(house, request.limit, stakes.low_limit, request.currency, basis_points=basis_points, cap=cap)
    return TableSetup(config, rake)


def _house(name: str) -> House:
    allowed = ", ".join(HOUSES)
    if not name:
        raise missing("house", f"one of {allowed}")
    if name not in HOUSES:
        raise _not_spread("house", f"there is no house {name[:40]!r}", allowed)
    return load(name)


def _offer(house: House, game: str, limit: Limit.ValueType) -> GameOffer:
    if not game:
        raise missing("game", "one of " + ", ".join(house.games))
    if game not in house.games:
        raise _not_spread("game", f"{house.name} does not spread {game[:40]!r}", ", ".join(house.games))
    offer = house.games[game]
    allowed = ", ".join(LIMIT_WORDS[one] for one in offer.limits)
    if limit == game_pb2.LIMIT_UNSPECIFIED:
        raise missing("limit", f"one of {allowed}")
    if limit not in offer.limits:
        word = LIMIT_WORDS.get(limit, str(limit))
        raise _not_spread("limit", f"{house.name} does not spread {game} with limit {word}", allowed)
    return offer


def _currency(house: House, currency: game_pb2.Currency.ValueType) -> None:
    allowed = ", ".join(CURRENCY_WORDS[one] for one in house.currencies)
    if currency == game_pb2.CURRENCY_UNSPECIFIED:
        raise missing("currency", f"one of {allowed}")
    if currency not in house.currencies:
        word = CURRENCY_WORDS.get(currency, str(currency))
        raise _not_spread("currency", f"{house.name} does not play in {word}", allowed)


def _seats(offer: GameOffer, seats: int) -> int:
    """D3; 2 seats are a heads-up table (T2)."""
    if seats and not 2 <= seats <= offer.seats:
        raise _not_spread("seats", f"{offer.game} is not spread with {seats} seats (D3)", f"2 to {offer.seats}")
    return seats or offer.seats


def _choices(house: House, offer: GameOffer, request: OpenTableRequest) -> tuple[dict[str, Value], dict[str, str]]:
    """The choices of the table, and the asked settings that are not fields of the rules: antes and rake."""
    values = house.choices_for(offer.game)
    special: dict[str, str] = {}
    known = {name for name, choice in CHOICES.items() if not choice.games or offer.game in choice.games}
    extra = set(_RAKE_CHOICES) if house.rake.percentage else set()
    if house.ante_ratio:
        extra.add("ante_ratio")
    for name, text in request.choices.items():
        if name in known:
            values[name] = CHOICES[name].parse(text)
        elif name in extra:
            special[name] = text
        else:
            allowed = ", ".join(sorted(known | extra))
            raise invalid("choices", repr(name[:40]), allowed, f"no such choice for {offer.game} in {house.name}")
    if request.currency == game_pb2.CURRENCY_CREDIT and "rathole_minutes" not in request.choices:
        values["rathole_minutes"] = 0  # S8 is for real money
    return values, special


def _cave(request: OpenTableRequest, asked: str | None, preset: tuple[int, int]) -> tuple[Stakes, int]:
    """S7: the ante is a fixed part of the cave, the least buy-in; either follows from the other. Stakes and cave."""
    ratio = preset if asked is None else parse_ratio(asked)
    if ratio is None:
        raise invalid("choices.ante_ratio", repr(asked), "a part such as 1/20", "S7")
    over, under = ratio
    stakes = game_pb2.Stakes()
    stakes.CopyFrom(request.stakes)
    if not request.min_buy_in and not stakes.ante:
        raise missing("min_buy_in", "the cave of the table, from which the ante follows (S7)")
    cave = request.min_buy_in or -(-check_amount(stakes.ante, "stakes.ante", most=LARGEST_STAKE) * under // over)
    ante = check_amount(cave, "min_buy_in", least=-(-under // over)) * over // under
    if stakes.ante not in {0, ante}:
        raise invalid("stakes.ante", str(stakes.ante), f"0 or {ante}", f"S7: {over}/{under} of the cave")
    stakes.ante = ante
    return stakes, cave


def _buy_ins(request: OpenTableRequest, house: House, stakes: Stakes, cave: int) -> tuple[int, int]:
    """B1, S7: the least buy-in, and the largest where the limit has one (0 = none)."""
    preset = house.buy_ins[request.limit]
    least = cave or stakes.low_limit * preset.least
    check_amount(least, "min_buy_in", least=max(stakes.low_limit, stakes.ante))
    if request.limit not in _BUY_IN_CAPPED:
        if request.max_buy_in:
            raise invalid("max_buy_in", str(request.max_buy_in), "0", "B1: fixed and spread limit have no maximum")
        return least, 0
    if not request.max_buy_in:
        return least, max(least, stakes.low_limit * preset.most) if preset.most else 0
    return least, check_amount(request.max_buy_in, "max_buy_in", least=least)


def _timers(request: OpenTableRequest, house: House) -> Timers:
    """C1, G12, T1: the house's clocks, the shorter decision at turbo tables, and what the request sets."""
    timers = game_pb2.Timers()
    timers.CopyFrom(house.timers)
    if request.turbo:
        timers.decision_ms = house.turbo_decision_ms
    _set_timers(timers, request.timers)
    return timers


def _set_timers(timers: Timers, wanted: Timers) -> None:
    """Set what is asked for; 0 leaves what is there."""
    for field in TIMERS:
        asked: int = getattr(wanted, field)
        if not 0 <= asked <= LONGEST_MS:
            raise invalid(f"timers.{field}", str(asked), f"0 (as it is) to {LONGEST_MS}", "milliseconds")
        if asked:
            setattr(timers, field, asked)


def changed(config: TableConfig, request: ChangeSettingsRequest) -> TableConfig:
    """A running table's configuration with what a request changes in it: name, clocks, buy-ins.

    Raises Rejected: FIELD_INVALID, FIELD_TOO_LONG, INVALID_AMOUNT.
    """
    new = game_pb2.TableConfig()
    new.CopyFrom(config)
    if request.display_name:
        new.display_name = check_name(request.display_name, longest=LONGEST_TABLE_NAME)
    _set_timers(new.timers, request.timers)
    if request.min_buy_in:
        least = max(config.stakes.low_limit, config.stakes.ante, 1)
        new.min_buy_in = check_amount(request.min_buy_in, "min_buy_in", least=least)
    if request.max_buy_in:
        if config.limit not in _BUY_IN_CAPPED:
            raise invalid("max_buy_in", str(request.max_buy_in), "0", "B1: fixed and spread limit have no maximum")
        new.max_buy_in = check_amount(request.max_buy_in, "max_buy_in", least=new.min_buy_in)
    if new.max_buy_in and new.min_buy_in > new.max_buy_in:
        raise invalid("min_buy_in", str(new.min_buy_in), f"up to {new.max_buy_in}", "B1")
    return new


def changed_rake(config: TableConfig, rake: RakeSchedule, request: ChangeSettingsRequest) -> RakeSchedule | None:
    """A running table's percentage with what a request changes in it, as its next version; None: nothing (K6).

    Raises Rejected FIELD_INVALID.
    """
    wanted = [field for field in _RAKE_CHOICES if request.HasField(field)]
    if not wanted:
        return None
    percentage = load(config.house).rake.percentage
    if percentage is None or config.currency == game_pb2.CURRENCY_CREDIT:
        why = "K6: a table's own setting only in a house that takes a percentage, and never for credits"
        raise invalid(wanted[0], str(getattr(request, wanted[0])), "left out", why)
    now = rake.tiers[0] if rake.tiers else game_pb2.RakeTier()
    part = request.rake_basis_points if "rake_basis_points" in wanted else now.basis_points
    cap = request.rake_cap if "rake_cap" in wanted else now.cap
    for field, figure, most in (("rake_basis_points", part, percentage.most), ("rake_cap", cap, MAX_AMOUNT)):
        if not 0 <= figure <= most:
            raise invalid(field, str(figure), f"0 to {most}", "K6")
    new = schedule_for(
        load(config.house), config.limit, config.stakes.low_limit, config.currency, basis_points=part, cap=cap
    )
    new.version = max(rake.version, new.version) + 1
    return new


def _rake_choice(house: House, name: str, special: dict[str, str]) -> int | None:
    """K6: a table's own percentage or cap; None: the house's."""
    if name not in special or house.rake.percentage is None:
        return None
    most = house.rake.percentage.most if name == "rake_basis_points" else MAX_AMOUNT
    text = special[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= 16 and int(text) <= most):
        raise invalid(f"choices.{name}", repr(text[:40]), f"0 to {most}", "K6")
    return int(text)


def _name(request: OpenTableRequest, game: str, stakes: Stakes) -> str:
    if request.display_name:
        return check_name(request.display_name, longest=LONGEST_TABLE_NAME)
    blinds = stakes.blinds or [stakes.low_limit, stakes.high_limit or stakes.low_limit]
    sizes = [stakes.low_limit, stakes.high_limit] if request.limit == game_pb2.LIMIT_FIXED else blinds
    amounts = "/".join(show(amount, request.currency) for amount in dict.fromkeys(sizes))
    return f"{game} {LIMIT_WORDS[request.limit].replace('_', ' ')} {amounts}"


def _not_spread(field: str, what: str, allowed: str) -> Rejected:
    return Rejected(reason_pb2.REASON_NOT_SPREAD, f"{what}; allowed: {allowed}", {"field": field, "allowed": allowed})
