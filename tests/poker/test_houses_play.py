"""Every house's tables are played: what `table_config` makes, the engine plays."""

from __future__ import annotations

import random

import pytest
from tests.poker.playing import BRING_IN, CALL, CHECK, DISCARD, FOLD, Room

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Prompt, prompt
from relance.poker.cards import render
from relance.poker.config import TableSetup, table_config
from relance.poker.deck import VirtualDeck
from relance.poker.games import GAMES, Forced
from relance.poker.houses import all_houses


def everything() -> list[tuple[str, TableSetup]]:
    """All listed tables, and every game and limit that a house spreads."""
    found: list[tuple[str, TableSetup]] = []
    for house in all_houses():
        for number, request in enumerate(house.tables):
            found.append((f"{house.name}-{number}", table_config(request)))
        for offer in house.games.values():
            for limit in offer.limits:
                request = table_pb2.OpenTableRequest(
                    house=house.name, game=offer.game, limit=limit, currency=house.currencies[0]
                )
                match GAMES[offer.game].forced:
                    case Forced.BLINDS:
                        request.stakes.blinds.extend((50, 100))
                    case Forced.BRING_IN:
                        request.stakes.ante, request.stakes.low_limit = 10, 100
                    case Forced.ANTES:
                        request.min_buy_in = 200
                name = game_pb2.Limit.Name(limit).removeprefix("LIMIT_").lower()
                found.append((f"{house.name}-{offer.game}-{name}", table_config(request)))
    return found


def act(room: Room, asked: Prompt, dice: random.Random) -> None:
    """One legal action at random, folding seldom."""
    offer, hand = asked.offer, room.table.hand
    assert hand is not None
    kinds = [kind for kind in offer.actions if kind != FOLD or (len(offer.actions) == 1 or dice.random() < 0.3)]
    kind = dice.choice(kinds)
    if kind == DISCARD:
        held = hand.down[hand.asked]
        cards = dice.sample(list(held), dice.randint(0, min(len(held), offer.max_discards)))
        room.act(asked.seat, kind, cards=render(cards))
        return
    if kind in {CHECK, CALL, FOLD, BRING_IN} or not offer.max_raise_to:
        room.act(asked.seat, kind)
        return
    sizes = offer.raise_sizes or (offer.min_raise_to, offer.max_raise_to)
    room.act(asked.seat, kind, dice.choice(sizes))


@pytest.mark.parametrize(("name", "setup"), everything(), ids=lambda one: one if isinstance(one, str) else "")
def test_a_table_of_a_house_is_played_hand_after_hand_and_keeps_every_chip(name: str, setup: TableSetup) -> None:
    config, rake = setup
    dice = random.Random(name)
    room = Room(config, rake)
    for seat in range(1, config.seats + 1):
        room.sit(seat, config.min_buy_in if seat % 2 else config.max_buy_in or 3 * config.min_buy_in)
    chips = sum(room.stacks().values())
    for _ in range(6):
        if sum(stack > 0 for stack in room.stacks().values()) < 2:
            break
        room.start(VirtualDeck(dice.shuffle, dice.randbytes))
        while (asked := prompt(room.table)) is not None:
            act(room, asked, dice)
        assert room.table.hand is None
        room.settle()
    assert room.table.last_over > 0
    table = room.table
    assert sum(room.stacks().values()) + table.rake_taken + table.cashed_out == chips
    assert rake.tiers or table.rake_taken == 0
