"""The checks of simulated play can fail: a log that is wrong in one thing is noticed, by the check that is for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.table.checks import Replay
from tests.table.simulated import TABLE, Simulation
from tests.table.support import open_request

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.poker import commands as cmd
from relance.poker import prompt
from relance.poker.config import table_config


def simulation(*players: str) -> Simulation:
    """A table at which players sit with 1000 each."""
    timers = game_pb2.Timers(between_hands_ms=1000, decision_ms=8000)
    room = Simulation(table_config(open_request(seats=4, timers=timers)).config, seed=3)
    for seat, player in enumerate(players, 1):
        room.join(player)
        room.ask(player, cmd.TakeSeat(player, seat, 1000))
    room.settle(9)
    return room


def hand(room: Simulation) -> None:
    """A hand that is checked and called to its end."""
    room.pass_time(1.1)
    while (asked := prompt(room.table)) is not None:
        kinds = asked.offer.actions
        kind = next(each for each in (table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL) if each in kinds)
        room.ask(asked.player, cmd.Act(asked.player, asked.turn, kind))


def logged(room: Simulation) -> list[bytes]:
    """The whole log."""
    events = room.events()
    room.close()
    return [event.SerializeToString() for event in events]


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    """Hands of three, a clock that runs out, and one who leaves and comes back."""
    room = simulation("ann", "bob", "cid")
    for _ in range(3):
        hand(room)
    room.pass_time(1.1)
    late = prompt(room.table)
    assert late is not None
    room.pass_time(9)
    room.ask(late.player, cmd.SitIn(late.player))
    hand(room)
    room.ask("ann", cmd.LeaveSeat("ann"))
    room.pass_time(60)
    room.settle(9)
    room.ask("ann", cmd.TakeSeat("ann", 0, 2000))
    room.settle(9)
    return logged(room)


@pytest.fixture(scope="module")
def duel() -> list[bytes]:
    """Hands of two, one of whom loses the connection whenever they are asked."""
    room = simulation("ann", "bob")
    for _ in range(4):
        room.pass_time(1.1)
        while (asked := prompt(room.table)) is not None and asked.player == "ann":
            room.drop("ann")
            room.pass_time(9)
            room.join("ann")
            room.ask("ann", cmd.SitIn("ann"))
        hand(room)
    return logged(room)


def of(events: list[TableEvent], kind: str) -> list[TableEvent]:
    """The events of a kind."""
    return [event for event in events if event.WhichOneof("payload") == kind]


def early(events: list[TableEvent]) -> None:
    of(events, "timed_out")[0].time_us -= 1_000_000


def another_clock(events: list[TableEvent]) -> None:
    of(events, "timed_out")[0].timed_out.seat = of(events, "timed_out")[0].timed_out.seat % 3 + 1


def less(events: list[TableEvent]) -> None:
    of(events, "seat_reserved")[-1].seat_reserved.amount = 100


def second_seat(events: list[TableEvent]) -> None:
    first, second = of(events, "seat_reserved")[:2]
    second.seat_reserved.player = first.seat_reserved.player


def taken(events: list[TableEvent]) -> None:
    first, second = of(events, "seat_reserved")[:2]
    second.seat_reserved.seat = first.seat_reserved.seat


def chips_from_nowhere(events: list[TableEvent]) -> None:
    of(events, "player_sat")[0].player_sat.stack += 1


def gap(events: list[TableEvent]) -> None:
    del events[7]


def big_blind_twice(events: list[TableEvent]) -> None:
    for event in of(events, "blind_posted"):
        if event.hand == 2:
            small = event.blind_posted.kind == pb.BLIND_KIND_SMALL
            event.blind_posted.kind = pb.BLIND_KIND_BIG if small else pb.BLIND_KIND_SMALL


def fewer_protections(events: list[TableEvent]) -> None:
    events[0].table_opened.config.rules.protections_per_24h = 1


Change = Callable[[list[TableEvent]], None]
WRONGS: list[tuple[str, Change, str]] = [
    ("log", early, "of 8000 ms"),
    ("log", another_clock, "the clock fired for seat"),
    ("log", less, "came back with 100"),
    ("log", second_seat, "has a seat"),
    ("log", taken, "is taken"),
    ("log", chips_from_nowhere, "chips"),
    ("log", gap, "follows"),
    ("duel", big_blind_twice, "has the big blind twice running"),
    ("duel", fewer_protections, "ann was protected 2 times, 1 are allowed"),
]


@pytest.mark.parametrize("name", ["log", "duel"])
def test_a_log_with_nothing_wrong_passes_and_what_it_is_about_happened(
    name: str, request: pytest.FixtureRequest
) -> None:
    replay = Replay(TABLE)
    replay.see(map(TableEvent.FromString, request.getfixturevalue(name)))
    assert replay.clocks.fired
    assert (replay.ratholes.guarded, replay.protected.used) == ((1, 0) if name == "log" else (0, 2))


@pytest.mark.parametrize(("name", "change", "says"), WRONGS, ids=[change.__name__ for _, change, _ in WRONGS])
def test_one_wrong_thing_is_noticed(name: str, change: Change, says: str, request: pytest.FixtureRequest) -> None:
    events = [TableEvent.FromString(body) for body in request.getfixturevalue(name)]
    change(events)
    with pytest.raises(AssertionError, match=says):
        Replay(TABLE).see(events)
