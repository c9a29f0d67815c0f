"""The recount of rake: right for every hand of every game, from public events alone; and it notices what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.poker import playing
from tests.poker.playing import CALL, CHECK, FOLD, RAISE, room
from tests.poker.test_properties import Player, stakes_of

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.poker import ready_to_start, redact
from relance.poker.deck import VirtualDeck
from relance.poker.games import GAMES
from relance.poker.houses import load
from relance.poker.rake import schedule_for
from relance.rake.recount import Gap, Paid, Seen

BOULEVARD = schedule_for(load("boulevard"), game_pb2.LIMIT_NO_LIMIT, 100, game_pb2.CURRENCY_EUR)


def recount(events: list[TableEvent]) -> list[Paid]:
    """What the recount makes of a table's events, public ones; its state goes through JSON at every step."""
    seen, paid = Seen("t"), []
    for event in events:
        seen = Seen.load(seen.dump())
        hand = seen.take(redact(event))
        if hand is not None:
            paid.append(hand)
    return paid


def heads_up(stacks: list[int] | None = None) -> playing.Room:
    """A raked table before its first hand."""
    return room(stacks or [5000, 5000, 5000], rake=BOULEVARD)


def played() -> list[TableEvent]:
    """A hand that saw the flop and was raked 25."""
    table = heads_up()
    table.start(VirtualDeck(random.Random(1).shuffle, random.Random(1).randbytes))
    table.act(1, RAISE, 250)
    table.act(2, CALL)
    table.act(3, FOLD)
    table.passive()
    return table.log


@pytest.mark.parametrize("game", [name for name in GAMES if GAMES[name].seats])
def test_K1_K3_the_recount_agrees_with_every_hand_of_every_game(game: str) -> None:
    raked = 0
    for seed in range(12):
        limit = playing.NO_LIMIT if seed % 2 else playing.FIXED
        player = Player(seed, game, limit)
        stacks = [
            player.random.choice([60, 999, 5000]) for _ in range(player.random.randint(2, min(GAMES[game].seats, 6)))
        ]
        player.room = room(stacks, game, limit, stakes=stakes_of(game), rake=BOULEVARD, button=None)
        while ready_to_start(player.room.table) and player.room.table.last_hand < 5:
            player.hand()
        paid = recount(player.room.log)
        assert [hand.mismatch for hand in paid] == [""] * len(paid)
        assert sum(hand.rake for hand in paid) == player.room.table.rake_taken
        raked += sum(1 for hand in paid if hand.rake)
    assert raked > 3


def test_K1_no_flop_no_drop() -> None:
    table = heads_up()
    table.start(VirtualDeck(random.Random(1).shuffle, random.Random(1).randbytes))
    table.act(1, RAISE, 1000)
    table.act(2, FOLD)
    table.act(3, FOLD)
    (hand,) = recount(table.log)
    assert (hand.rake, hand.expected, hand.mismatch, hand.pot) == (0, 0, "", 250)


def test_K3_a_raked_hand_says_what_it_was() -> None:
    (hand,) = recount(played())
    assert (hand.rake, hand.expected, hand.mismatch, hand.pot, hand.players) == (30, 30, "", 600, 3)
    assert hand.schedule == "boulevard/no_limit@1"


def _change(payload: str, change: Callable[[Any], None]) -> Callable[[list[TableEvent]], None]:
    def apply(events: list[TableEvent]) -> None:
        change(getattr(next(event for event in events if event.WhichOneof("payload") == payload), payload))

    return apply


def _drop(payload: str) -> Callable[[list[TableEvent]], None]:
    def apply(events: list[TableEvent]) -> None:
        events.remove(next(event for event in events if event.WhichOneof("payload") == payload))

    return apply


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_change("hand_ended", lambda e: setattr(e, "rake", 31)), "the hand bore a rake of 31, the schedule gives 30"),
        (_change("rake_taken", lambda e: setattr(e, "amount", 29)), "RakeTaken bore a rake of 29"),
        (_change("pot_awarded", lambda e: setattr(e, "rake", 0)), "the pots bore a rake of 0"),
        (_change("hand_ended", lambda e: setattr(e, "pot", 700)), "the hand ended with 700"),
        (_change("called", lambda e: setattr(e, "amount", 500)), "chips put in"),
        (_change("hand_started", lambda e: setattr(e, "rake_schedule", "boulevard/no_limit@2")), "at the start"),
        (_change("hand_ended", lambda e: setattr(e, "rake_schedule", "")), "at the end"),
        (_change("table_opened", lambda e: e.rake.tiers[1].ClearField("rake_per_step")), "the schedule gives 0"),
        (_drop("rake_taken"), "RakeTaken bore a rake of 0"),
    ],
)
def test_what_is_not_as_the_schedule_says_is_a_mismatch(fault: Callable[[list[TableEvent]], None], said: str) -> None:
    events = [TableEvent.FromString(event.SerializeToString()) for event in played()]
    fault(events)
    (hand,) = recount(events)
    assert said in hand.mismatch


def test_a_hand_whose_start_is_missing_is_not_guessed() -> None:
    events = [event for event in played() if event.WhichOneof("payload") != "hand_started"]
    with pytest.raises(Gap, match="its start was not seen"):
        recount(events)


def test_K1_play_money_is_never_raked() -> None:
    table = playing.Room(playing.config(currency=game_pb2.CURRENCY_CREDIT), BOULEVARD)
    for seat in (1, 2):
        table.sit(seat, 5000)
    table.start(VirtualDeck(random.Random(1).shuffle, random.Random(1).randbytes))
    while table.table.hand is not None:
        asked = table.asked()
        table.act(asked.seat, CALL if CALL in asked.offer.actions else CHECK)
    (hand,) = recount(table.log)
    assert (hand.rake, hand.expected, hand.mismatch) == (0, 0, "")
