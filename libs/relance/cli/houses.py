"""`relance houses`: what the house files say, for people and for programs."""

from __future__ import annotations

from google.protobuf.json_format import MessageToDict

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.ops.output import Json, Out
from relance.poker.games import GAMES
from relance.poker.houses import CHOICES, HOUSES, House, load
from relance.poker.houses.choices import Value
from relance.poker.houses.house import CURRENCY_WORDS, LIMIT_WORDS, Band
from relance.room.processes import RoomError


def describe(out: Out, name: str | None) -> None:
    """Print all houses, or one with everything that its file says. Raises RoomError for an unknown one."""
    if name is not None and name not in HOUSES:
        raise RoomError(f"there is no house {name!r}; houses are {', '.join(HOUSES)}")
    if out.json:
        out.document(document(load(name)) if name else [document(load(house)) for house in HOUSES])
    elif name:
        _one(out, load(name))
    else:
        _all(out)


def document(house: House) -> dict[str, Json]:
    """A house as JSON. Amounts in minor units, times in milliseconds; choices as each game is played."""
    games: list[Json] = [
        {
            "game": offer.game,
            "name": GAMES[offer.game].name,
            "seats": offer.seats,
            "limits": [LIMIT_WORDS[limit] for limit in offer.limits],
            "choices": dict(house.choices_for(offer.game)),
        }
        for offer in house.games.values()
    ]
    return {
        "house": house.name,
        "about": house.about,
        "currencies": [CURRENCY_WORDS[currency] for currency in house.currencies],
        "blind_structures": list(house.blind_structures),
        "games": games,
        "buy_ins": {LIMIT_WORDS[limit]: [rule.least, rule.most] for limit, rule in house.buy_ins.items()},
        "timers": MessageToDict(house.timers, preserving_proto_field_name=True),
        "turbo_decision_ms": house.turbo_decision_ms,
        "micro_max": house.micro_max,
        "rake": [_band(band) for band in house.rake.bands],
        "rake_percentage": _percentage(house),
        "tables": [MessageToDict(table, preserving_proto_field_name=True) for table in house.tables],
    }


def _band(band: Band) -> Json:
    tiers: list[Json] = [MessageToDict(tier, preserving_proto_field_name=True) for tier in band.tiers]
    limits = [LIMIT_WORDS[limit] for limit in band.limits]
    return {"band": band.id, "limits": limits, "lowest_low_limit": band.lowest, "tiers": tiers}


def _percentage(house: House) -> Json:
    part = house.rake.percentage
    return None if part is None else {"most": part.most, "default": part.default, "cap": part.cap}


def _all(out: Out) -> None:
    rows = []
    for house in map(load, HOUSES):
        limits = {LIMIT_WORDS[limit]: None for offer in house.games.values() for limit in offer.limits}
        currencies = ", ".join(CURRENCY_WORDS[currency] for currency in house.currencies)
        rows.append((house.name, ", ".join(house.games), ", ".join(limits), currencies, house.about))
    out.table(("house", "games", "limits", "currencies", "what it is"), rows)


def _one(out: Out, house: House) -> None:
    out.line(f"{house.name}: {house.about}", "bold")
    out.line(f"currencies: {', '.join(CURRENCY_WORDS[currency] for currency in house.currencies)}")
    out.line(f"blinds (S3): {', '.join(house.blind_structures)}, each also with an ante")
    timers = house.timers
    out.line(
        f"clocks (C1, G12): {timers.decision_ms / 1000:g} s, turbo {house.turbo_decision_ms / 1000:g} s, "
        f"draws {timers.draw_ms / 1000:g} s, answers {timers.answer_ms / 1000:g} s"
    )
    out.line("")
    games = [
        (offer.game, GAMES[offer.game].name, offer.seats, ", ".join(LIMIT_WORDS[limit] for limit in offer.limits))
        for offer in house.games.values()
    ]
    out.table(("game", "name", "seats>", "limits"), games)
    out.line("")
    buy_ins = [(LIMIT_WORDS[limit], rule.least, rule.most or "no maximum") for limit, rule in house.buy_ins.items()]
    out.table(("buy-in, in low limits", "least>", "most>"), buy_ins)
    out.line("")
    out.table(("choice", "here", "in single games", "allowed", "rule", "about"), _choices(house))
    out.line("")
    _rake(out, house)
    out.line("")
    out.table(("tables of a new room", "limit", "stakes", "seats"), map(_table, house.tables))


def _choices(house: House) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for choice in CHOICES.values():
        usual = house.choices[choice.name]
        others = [
            f"{game}: {_word(value)}"
            for game in house.games
            if (value := house.choices_for(game)[choice.name]) != usual
        ]
        rows.append((choice.name, _word(usual), ", ".join(others), choice.allowed, choice.rule, choice.about))
    return rows


def _word(value: Value) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _rake(out: Out, house: House) -> None:
    part = house.rake.percentage
    if part is not None:
        cap = f", at most {part.cap}" if part.cap else ""
        out.line(f"rake (K6): {part.default / 100:g}% of the pot{cap}; a table may set 0% to {part.most / 100:g}%")
    elif not house.rake.bands:
        out.line("rake (K6): none")
    rows = [
        (
            f"{', '.join(LIMIT_WORDS[limit] for limit in band.limits)} from {band.lowest}",
            f"{tier.min_players}-{tier.max_players}",
            f"{tier.rake_per_step} per {tier.step}",
            tier.cap,
            f"under {tier.small_pot_below}: {tier.small_rake} per {tier.small_step}" if tier.small_pot_below else "",
        )
        for band in house.rake.bands
        for tier in band.tiers
    ]
    if rows:
        out.table(("rake: limits from low limit", "players", "rake", "cap>", "small pots"), rows)


def _table(table: table_pb2.OpenTableRequest) -> tuple[str, ...]:
    stakes = table.stakes
    parts = [f"blinds {'/'.join(map(str, stakes.blinds))}" if stakes.blinds else ""]
    parts += [
        f"{word.replace('_', ' ')} {amount}"
        for word in ("ante", "bring_in", "low_limit", "max_bet")
        if (amount := getattr(stakes, word))
    ]
    parts += [f"cave {table.min_buy_in}" if table.min_buy_in else "", "turbo" if table.turbo else ""]
    parts += ["play money" if table.currency == game_pb2.CURRENCY_CREDIT else ""]
    words = ", ".join(part for part in parts if part)
    return table.game, LIMIT_WORDS[table.limit], words, str(table.seats or "all")
