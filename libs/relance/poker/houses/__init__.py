"""The houses: presets as data, one TOML file each, and the choices of the rules that they fix."""

from relance.poker.houses.choices import CHOICES, Choice
from relance.poker.houses.house import Band, BuyIn, GameOffer, House, Percentage, Rake
from relance.poker.houses.loading import HOUSES, all_houses, load, parse
from relance.poker.houses.reading import HouseFileError

__all__ = [
    "CHOICES",
    "HOUSES",
    "Band",
    "BuyIn",
    "Choice",
    "GameOffer",
    "House",
    "HouseFileError",
    "Percentage",
    "Rake",
    "all_houses",
    "load",
    "parse",
]
