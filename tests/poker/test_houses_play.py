"""Every game, limit and house that can be opened can be played."""

from __future__ import annotations

import random

import pytest
from tests.poker.playing import Room

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import commands as cmd
from relance.poker.config import table_config
from relance.poker.deck import VirtualDeck
from relance.poker.games import GAMES, Forced
from relance.poker.houses import HOUSES, load


def spread() -> list[tuple[str, str, game_pb2.Limit.ValueType]]:
    """House, game and limit of everything that is spread."""
    return [
        (house, game, limit) for house in HOUSES for game, offer in load(house).games.items() for limit in offer.limits
    ]


@pytest.mark.parametrize(("house", "game", "limit"), spread())
def test_D3_a_full_table_of_what_a_house_spreads_plays_to_the_end(
    house: str, game: str, limit: game_pb2.Limit.ValueType
) -> None:
    """D3, K6: with the house's seats, choices and rake."""
    request = table_pb2.OpenTableRequest(house=house, game=game, limit=limit, currency=game_pb2.CURRENCY_EUR)
    request.stakes.CopyFrom(stakes(game))
    if house == "club":
        request.currency = game_pb2.CURRENCY_CREDIT
    setup = table_config(request)
    made = Room(setup.config, setup.rake)
    rng = random.Random(1)
    for seat in range(1, setup.config.seats + 1):
        made.sit(seat, setup.config.min_buy_in or 1000)
    for _ in range(2):
        made.cards = VirtualDeck(rng.shuffle, rng.randbytes)
        made.do(cmd.StartHand())
        made.passive()
    assert made.table.last_over == 2


def stakes(game: str) -> game_pb2.Stakes:
    """Stakes that fit the game's forced bets."""
    forced = GAMES[game].forced
    if forced is Forced.BLINDS:
        return game_pb2.Stakes(blinds=[50, 100])
    if forced is Forced.BRING_IN:
        return game_pb2.Stakes(ante=10, bring_in=20, low_limit=100)
    return game_pb2.Stakes(ante=10)
