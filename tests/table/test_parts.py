"""Parts by themselves: the heap of deadlines, hands found in a log, bytes put together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.table.support import open_request

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.eventlog import MemoryLog, MemoryStore, Unavailable
from relance.poker import Context, apply, decide, initial, prompt
from relance.poker.commands import Act, Command, OpenTable, StartHand, TakeOver, TakeSeat, TransferAnswered
from relance.poker.config import table_config
from relance.poker.deck import ScriptedDeck
from relance.runtime.clock import SimulatedClock
from relance.table import wire
from relance.table.clocks import Clocks
from relance.table.hands import hand_events, is_over, seat_in
from relance.table.recovery import recover
from relance.table.timers import NEVER, Timers


class Alarm:
    """Notes when it is called, and asks again where it was called too early."""

    def __init__(self, timers: Timers, wanted: float) -> None:
        self.timer_at = NEVER
        self.wanted = wanted
        self.rang: list[float] = []
        self._timers = timers

    def due(self, now: float) -> None:
        if now >= self.wanted:
            self.rang.append(now)
        else:
            self._timers.at(self.wanted, self)


async def test_a_deadline_that_moves_on_costs_nothing_and_rings_once_at_its_last_time() -> None:
    clock = SimulatedClock()
    timers = Timers(clock)
    alarm = Alarm(timers, 5.0)
    timers.at(5.0, alarm)
    for wanted in (6.0, 7.0, 8.0):
        alarm.wanted = wanted
        timers.at(wanted, alarm)
    await clock.advance(7.5)
    assert alarm.rang == []
    await clock.advance(1)
    assert alarm.rang == [8.0]


async def test_an_earlier_deadline_rings_before_the_one_that_was_asked_for_first() -> None:
    clock = SimulatedClock()
    timers = Timers(clock)
    late, early = Alarm(timers, 20.0), Alarm(timers, 1.0)
    timers.at(20.0, late)
    timers.at(1.0, early)
    late.wanted = 2.0
    timers.at(2.0, late)
    await clock.advance(30)
    assert (early.rang, late.rang[0]) == ([1.0], 2.0)
    timers.stop()


async def test_deadlines_that_are_forgotten_leave_nothing_behind_and_never_ring() -> None:
    clock = SimulatedClock()
    timers = Timers(clock)
    kept = Alarm(timers, 9.0)
    timers.at(9.0, kept)
    gone = [Alarm(timers, 8.0) for _ in range(10_000)]
    most = 0
    for alarm in gone:
        timers.at(8.0, alarm)
        timers.forget(alarm)
        timers.forget(alarm)
        most = max(most, len(timers))
    assert most < 200
    await clock.advance(10)
    assert (kept.rang, [alarm.rang for alarm in gone if alarm.rang]) == ([9.0], [])
    timers.at(12.0, gone[0])
    await clock.advance(3)
    assert gone[0].rang == [12.0]


def test_C1_a_clock_that_stood_still_goes_on_with_the_time_that_was_left() -> None:
    clocks = Clocks()
    clocks.ask(turn=7, seconds=20.0, now=100.0)
    clocks.stand_still(112.0)
    assert clocks.left(5_000.0) == 8.0
    clocks.go_on(5_000.0)
    assert not clocks.run_out(5_007.9, None)
    assert clocks.run_out(5_008.0, None)
    assert not clocks.run_out(5_009.0, received=5_007.9)  # what came in before the deadline counts


async def test_every_hand_is_found_in_a_long_log_with_its_events_and_no_others() -> None:
    events = _hands(25)
    log = MemoryLog("test")
    await log.create("t", events)
    head = len(events)
    for hand in range(1, 26):
        found = await hand_events(log, "t", hand, head)
        assert [event.version for event in found] == [event.version for event in events if event.hand == hand]
        assert is_over(found)
        assert (seat_in(found, "ann"), seat_in(found, "eve")) == (1, 0)
    assert await hand_events(log, "t", 26, head) == []


async def test_a_database_that_goes_while_a_table_is_read_back_is_no_fault_of_the_table() -> None:
    store = MemoryStore()
    log = MemoryLog("test", store)
    ownership = await log.create("t", _hands(2))
    await log.snapshots.save("t", 3, b"of another version")
    reading = recover(_GoesAway("test", store), {"t": ownership})
    with pytest.raises(Unavailable):
        await anext(reading)
    store.set_connected(True)
    ((found,),) = [chunk async for chunk in recover(log, {"t": ownership})]
    assert found.error is None
    assert found.table is not None
    assert found.table.version == ownership.head


class _GoesAway(MemoryLog):
    """A log whose database goes away after the first read of tables' events."""

    async def read_all(self, after: Mapping[str, int]) -> dict[str, list[bytes]]:
        found = await super().read_all(after)
        self._store.set_connected(False)
        return found


def test_bytes_put_together_are_what_protobuf_would_have_made() -> None:
    events = [events_pb2.TableEvent(table="t", version=version, hand=1) for version in (1, 2, 300)]
    for event in events:
        event.checked.seat = 3
    asked = table_pb2.Prompt(turn=300, seat=4, actions=[table_pb2.ACTION_KIND_FOLD, table_pb2.ACTION_KIND_CHECK])
    made = wire.update(wire.events_body([event.SerializeToString() for event in events]), asked.SerializeToString())
    update = table_pb2.TableUpdate(events=events, prompt=asked)
    assert made == table_pb2.PlayResponse(update=update).SerializeToString()
    assert wire.update(b"", b"") == table_pb2.PlayResponse(update=table_pb2.TableUpdate()).SerializeToString()


def _hands(count: int) -> list[events_pb2.TableEvent]:
    """The log of a table at which two players fold their way through some hands."""
    table = initial("t")
    events: list[events_pb2.TableEvent] = []

    def do(command: Command) -> None:
        for event in decide(table, command, Context(at=1_700_000_000_000_000, cards=ScriptedDeck([]))):
            apply(table, event)
            events.append(event)

    setup = table_config(open_request())
    do(OpenTable(setup.config, setup.rake, "ada"))
    do(TakeOver(1, "test", events_pb2.OWNER_REASON_OPENED))
    for seat, player in enumerate(("ann", "bob"), 1):
        do(TakeSeat(player, seat, 10_000))
        do(TransferAnswered(next(iter(table.transfers)), True))
    for _ in range(count):
        do(StartHand())
        asked = prompt(table)
        assert asked is not None
        do(Act(asked.player, asked.turn, table_pb2.ACTION_KIND_FOLD))
    return events
