"""Account names and what they say: the kind, the currency and, for players and tables, whose account it is."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from relance.api.common.v1 import game_pb2

PATTERN = "players/{player}/{currency}, tables/{table}, house/{currency}, world/{currency} or issuance/credit"
CURRENCIES = {"eur": game_pb2.CURRENCY_EUR, "credit": game_pb2.CURRENCY_CREDIT}
CURRENCY_NAMES = {number: name for name, number in CURRENCIES.items()}

_NAME = re.compile(
    r"(?P<player>players)/(?P<id>[a-z0-9-]{1,40})/(?P<player_currency>eur|credit)"
    r"|(?P<escrow>tables)/(?P<table>[a-z0-9-]{1,40})"
    r"|(?P<own>house|world)/(?P<own_currency>eur|credit)"
    r"|(?P<issuance>issuance)/credit"
)


class Kind(enum.StrEnum):
    """What an account is for."""

    PLAYER = "player"
    ESCROW = "escrow"
    HOUSE = "house"
    WORLD = "world"
    ISSUANCE = "issuance"


@dataclass(frozen=True, slots=True)
class Account:
    """A parsed account name. `currency` is None for escrow: it takes the currency of its first transfer."""

    name: str
    kind: Kind
    currency: str | None
    owner: str = ""


def parse(name: str) -> Account | None:
    """The account that `name` names, or None when it names none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match["player"]:
        return Account(name, Kind.PLAYER, match["player_currency"], match["id"])
    if match["escrow"]:
        return Account(name, Kind.ESCROW, None, match["table"])
    if match["own"]:
        return Account(name, Kind(match["own"]), match["own_currency"])
    return Account(name, Kind.ISSUANCE, "credit")


def player(player_id: str, currency: str) -> str:
    """Account of a player in one currency."""
    return f"players/{player_id}/{currency}"


def outside(currency: str) -> str:
    """Where a player's money comes from and goes to: the world, or for credits their issuance (V1)."""
    return "issuance/credit" if currency == "credit" else f"world/{currency}"
