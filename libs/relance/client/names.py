"""Resource names and words: people write plain ids and "eur", the contract wants tables/{id} and enums."""

from __future__ import annotations

from typing import Literal

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2

CurrencyName = Literal["eur", "credit"]
LimitName = Literal["fixed", "spread", "pot", "half_pot", "no_limit"]

CURRENCIES: dict[str, game_pb2.Currency.ValueType] = {
    "eur": game_pb2.CURRENCY_EUR,
    "credit": game_pb2.CURRENCY_CREDIT,
}
LIMITS: dict[str, game_pb2.Limit.ValueType] = {
    "fixed": game_pb2.LIMIT_FIXED,
    "spread": game_pb2.LIMIT_SPREAD,
    "pot": game_pb2.LIMIT_POT,
    "half_pot": game_pb2.LIMIT_HALF_POT,
    "no_limit": game_pb2.LIMIT_NO_LIMIT,
}


def table_name(table: str | lobby_pb2.Table) -> str:
    """tables/{id} of a plain id, a resource name or a table of the catalogue."""
    name = table if isinstance(table, str) else table.name
    return name if name.startswith("tables/") else f"tables/{name}"


def player_name(player: str) -> str:
    """players/{id} of a plain id or a resource name."""
    return player if player.startswith("players/") else f"players/{player}"


def plain_id(name: str) -> str:
    """The id at the end of a resource name."""
    return name.rpartition("/")[2]
