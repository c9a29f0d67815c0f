"""Hands from elsewhere: the same hand comes to the same stacks, another is told with its reason."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from pokerkit import Automation, HandHistory, NoLimitTexasHoldem
from tests.ops.logs import ORACLE_GAMES, ListSource, oracle_room, play_hands

from relance.ops.checking import check
from relance.ops.export import phh
from relance.ops.export.record import records

KNOWN = [name for name, game in ORACLE_GAMES.items() if (game.id, game.limit) in phh.STANDARD]


async def exported(name: str) -> list[dict[str, Any]]:
    room = oracle_room(ORACLE_GAMES[name], 3)
    play_hands(room, 6, 3)
    source = ListSource(room.appends)
    return [tomllib.loads(phh.write(hand)) async for hand in records(source, None, "t", "auditor")]


@pytest.mark.parametrize("name", KNOWN)
async def test_our_own_hands_come_out_the_same(name: str) -> None:
    hands = await exported(name)
    for hand in hands:
        result = check("file", "1", hand)
        assert result.state == "same" or hand.get("_rules"), result
    assert sum(check("file", "1", hand).state == "same" for hand in hands) > len(hands) // 2


async def test_other_stacks_are_told_by_player() -> None:
    hand = (await exported("nl-holdem"))[0]
    hand["finishing_stacks"][0] += 5
    result = check("file", "1", hand)
    assert result.state == "differs"
    assert any(hand["players"][0] in line for line in result.lines)


async def test_an_action_that_the_rules_refuse_is_told() -> None:
    hand = (await exported("nl-holdem"))[0]
    at = next(number for number, action in enumerate(hand["actions"]) if action[0] == "p")
    player = hand["actions"][at].split()[0]
    hand["actions"][at] = f"{player} cbr 101"
    result = check("file", "1", hand)
    assert result.state == "refused"
    assert "AMOUNT_OUT_OF_RANGE" in result.lines[0]


def test_a_hand_that_pokerkit_wrote_comes_out_the_same() -> None:
    automations = (Automation.ANTE_POSTING, Automation.BET_COLLECTION, Automation.BLIND_OR_STRADDLE_POSTING,
                   Automation.CARD_BURNING, Automation.HAND_KILLING, Automation.CHIPS_PUSHING,
                   Automation.CHIPS_PULLING)  # fmt: skip
    game = NoLimitTexasHoldem(automations, True, 0, (50, 100), 100)
    state = game((10_000, 8_000, 6_000), 3)
    for cards in ("AsAd", "KcKh", "7h2d"):
        state.deal_hole(cards)
    state.complete_bet_or_raise_to(300)
    state.check_or_call()
    state.fold()
    state.deal_board("Ks7c2s")
    state.check_or_call()
    state.complete_bet_or_raise_to(500)
    state.check_or_call()
    for card in ("3d", "9h"):
        state.deal_board(card)
        state.check_or_call()
        state.check_or_call()
    while state.can_show_or_muck_hole_cards():
        state.show_or_muck_hole_cards()
    told = tomllib.loads(HandHistory.from_game_state(game, state).dumps())
    told["finishing_stacks"] = list(state.stacks)
    result = check("file", "1", told)
    assert result.state == "same", result


def test_a_variant_that_nobody_here_plays_is_unknown() -> None:
    result = check("file", "1", {"variant": "N2L1D", "actions": [], "antes": [0, 0], "starting_stacks": [1, 1]})
    assert result.state == "unknown"
    assert "N2L1D" in result.lines[0]
