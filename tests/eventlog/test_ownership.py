"""Heartbeats and silence, on both logs."""

from __future__ import annotations

import pytest
import pytest_asyncio

from relance.eventlog import EventLog, Heartbeat, MemoryLog, MemoryStore, Observer, Ownership, Takeable, Unavailable

from .conftest import Events, OpenLog


class Watch:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Room:
    """Two processes, `ada` who owns t-1 and `bob` who watches with a lease of 10 s."""

    def __init__(self, ada: EventLog, bob: EventLog) -> None:
        self.ada, self.bob = ada, bob
        self.watch = Watch()
        self.beating = Heartbeat(ada, "ada:1")
        self.observer = Observer(bob, Heartbeat(bob, "bob:1"), lease=10.0, monotonic=self.watch)

    async def pass_time(self, seconds: int, *, ada_beats: bool) -> list[Takeable]:
        """Look every other second; the last answer."""
        found: list[Takeable] = []
        for _ in range(seconds // 2):
            self.watch.now += 2
            if ada_beats:
                await self.beating.beat()
            found = await self.observer.look()
        return found


@pytest_asyncio.fixture
async def room(open_log: OpenLog, events: Events) -> Room:
    room = Room(await open_log("ada"), await open_log("bob"))
    await room.beating.beat()
    await room.ada.create("t-1", events("t-1", 0))
    return room


TAKEABLE = [Takeable("t-1", 1, "ada")]


async def test_a_beating_owner_keeps_its_streams(room: Room) -> None:
    assert await room.pass_time(60, ada_beats=True) == []


async def test_a_silent_owner_loses_its_streams_after_the_lease(room: Room) -> None:
    await room.pass_time(4, ada_beats=True)
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE
    assert await room.bob.take_over("t-1", 1) == Ownership(2, 1)
    assert await room.pass_time(20, ada_beats=False) == []


async def test_one_beat_restarts_the_lease(room: Room) -> None:
    await room.pass_time(10, ada_beats=False)
    await room.pass_time(2, ada_beats=True)
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE


async def test_an_owner_without_a_row_is_silent_too(room: Room) -> None:
    await room.beating.retire()
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE


async def test_a_released_stream_may_be_taken_at_once(room: Room) -> None:
    await room.ada.release("t-1", 1)
    assert await room.observer.look() == [Takeable("t-1", 1, "")]


async def test_a_new_fence_restarts_the_lease(room: Room) -> None:
    await room.pass_time(8, ada_beats=False)
    await room.ada.take_over("t-1", 1)
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == [Takeable("t-1", 2, "ada")]


async def test_a_pause_of_the_observer_restarts_every_observation(room: Room) -> None:
    await room.pass_time(8, ada_beats=False)
    room.watch.now += 60
    assert await room.observer.look() == []
    assert await room.pass_time(8, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE


async def test_an_outage_of_the_database_restarts_every_observation(events: Events) -> None:
    store = MemoryStore()
    room = Room(MemoryLog("ada", store), MemoryLog("bob", store))
    await room.beating.beat()
    await room.ada.create("t-1", events("t-1", 0))
    await room.pass_time(8, ada_beats=False)
    store.set_connected(False)
    for _ in range(10):
        room.watch.now += 2
        with pytest.raises(Unavailable):
            await room.observer.look()
    store.set_connected(True)
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE


async def test_a_blink_between_two_looks_restarts_every_observation(events: Events) -> None:
    store = MemoryStore()
    room = Room(MemoryLog("ada", store), MemoryLog("bob", store))
    await room.ada.create("t-1", events("t-1", 0))
    await room.pass_time(10, ada_beats=False)
    store.set_connected(False)
    store.set_connected(True)
    assert await room.pass_time(10, ada_beats=False) == []
    assert await room.pass_time(2, ada_beats=False) == TAKEABLE
