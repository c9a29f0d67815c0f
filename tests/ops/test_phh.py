"""PHH: PokerKit loads what it knows and comes to the same stacks; names of any kind come back as they were."""

from __future__ import annotations

import tomllib
import warnings

import pytest
from pokerkit import HandHistory
from tests.ops.logs import ORACLE_GAMES, ListSource, oracle_room, play_hands

from relance.ops.export import phh
from relance.ops.export.record import records

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
