"""`relance houses`: what the house files say, for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from relance.poker.houses import CHOICES, HOUSES, House, load
from relance.poker.houses.house import LIMIT_WORDS
from relance.room.processes import RoomError


def describe(console: Console, name: str | None) -> None:
    """Print all houses, or one with its games and choices. Raises RoomError for an unknown one."""
    if name is None:
        table = Table("house", "what it is", "games", box=None)
        for house in HOUSES:
            loaded = load(house)
            table.add_row(house, loaded.about, ", ".join(loaded.games))
        console.print(table)
        return
    if name not in HOUSES:
        raise RoomError(f"there is no house {name!r}; houses are {', '.join(HOUSES)}")
    house_of_choice = load(name)
    console.print(f"{name}: {house_of_choice.about}\n")
    console.print(_games(house_of_choice), "")
    console.print(_choices(house_of_choice))


def _games(house: House) -> Table:
    table = Table("game", "seats", "limits", box=None)
    for offer in house.games.values():
        table.add_row(offer.game, str(offer.seats), ", ".join(LIMIT_WORDS[limit] for limit in offer.limits))
    return table


def _choices(house: House) -> Table:
    table = Table("choice", "here", "allowed", "rule", "about", box=None)
    for choice in CHOICES.values():
        value = house.choices[choice.name]
        here = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        table.add_row(choice.name, here, choice.allowed, choice.rule, choice.about)
    return table
