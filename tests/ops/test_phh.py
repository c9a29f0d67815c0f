"""PHH: PokerKit loads what it knows and comes to the same stacks; names of any kind come back as they were."""

from __future__ import annotations

import random
import tomllib
import warnings

import pytest
from pokerkit import HandHistory
from tests.ops.logs import ORACLE_GAMES, ListSource, LoggedRoom, draws_without_a_bet, oracle_room, play_hands
from tests.poker import playing

from relance.api.common.v1 import game_pb2
from relance.ops.checking import check
from relance.ops.export import phh
from relance.ops.export.record import records
from relance.poker import prompt
from relance.poker.deck import ScriptedDeck

KNOWN = [name for name, game in ORACLE_GAMES.items() if (game.id, game.limit) in phh.STANDARD]
HANDS = 8


@pytest.mark.parametrize("name", KNOWN)
async def test_pokerkit_loads_every_hand_and_reaches_the_same_stacks(name: str) -> None:
    compared = flagged = 0
    for seed in range(2):
        room = oracle_room(ORACLE_GAMES[name], seed)
        play_hands(room, HANDS, seed)
        async for hand in records(ListSource(room.appends), None, "t", "auditor"):
            text = phh.write(hand)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # cards from a deck of which PokerKit has burnt some
                try:
                    *_, end = HandHistory.loads(text)
                    stacks: list[object] = list(end.stacks)
                except (ValueError, KeyError) as error:  # what PokerKit raises where its rules are others
                    stacks = [str(error)]
            if stacks == hand.stacks_after:
                compared += 1
            else:
                assert "_rules" in tomllib.loads(text), (text, stacks)
                flagged += 1
    assert compared > 2 * flagged, (compared, flagged)


@pytest.mark.parametrize("size", [0, -1])
async def test_a_high_bet_on_fourth_street_for_an_open_pair_is_a_rule_of_its_own_and_checked_by_it(size: int) -> None:
    game = ORACLE_GAMES["fl-stud7"]
    rules = game_pb2.TableRules(fourth_street_high="pair")
    room = LoggedRoom(playing.config(game.id, game.limit, seats=2, stakes=game.stakes(10), rules=rules))
    room.sit(1, 10_000)
    room.sit(2, 10_000)
    deck = list(range(52))
    offered: tuple[int, ...] = ()
    chance = random.Random(1)
    while len(offered) < 2:
        chance.shuffle(deck)
        room.at += 60_000_000
        room.start(ScriptedDeck(deck))
        while (asked := prompt(room.table)) is not None:
            hand, offer = room.table.hand, asked.offer
            if hand is not None and hand.street == 1 and playing.BET in offer.actions and len(offer.raise_sizes) == 2:
                offered = offer.raise_sizes
                room.act(asked.seat, playing.BET, offered[size])
                continue
            kinds = (playing.BRING_IN, playing.CHECK, playing.CALL, playing.SHOW)
            room.act(asked.seat, next(kind for kind in kinds if kind in offer.actions))
    hands = [tomllib.loads(phh.write(hand)) async for hand in records(ListSource(room.appends), None, "t", "auditor")]
    assert [hand.get("_rules") for hand in hands] == [None] * (len(hands) - 1) + [["G11"] if size else None]
    assert {check("file", "1", hand).state for hand in hands} == {"same"}


async def test_draws_that_follow_one_another_without_a_bet_have_each_their_cards() -> None:
    room = draws_without_a_bet()
    (played,) = [each async for each in records(ListSource(room.appends), None, "t", "auditor")]
    text = phh.write(played)
    assert "_rules" not in tomllib.loads(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cards from a deck of which PokerKit has burnt some
        *_, end = HandHistory.loads(text)
    assert list(end.stacks) == played.stacks_after
    assert check("file", "1", tomllib.loads(text)).state == "same"
