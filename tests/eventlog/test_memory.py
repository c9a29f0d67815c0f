"""What the log in memory adds for simulations: an outage."""

from __future__ import annotations

import asyncio

import pytest

from relance.eventlog import MemoryLog, MemoryStore, Ownership, Unavailable

from .conftest import Events


async def test_writes_ride_an_outage_out_and_reads_say_so(events: Events) -> None:
    store = MemoryStore()
    log = MemoryLog("ada", store)
    seen: list[bool] = []
    log.on_connection(seen.append)
    await log.create("t-1", events("t-1", 0))
    store.set_connected(False)
    append = log.append("t-1", 1, 1, events("t-1", 1))
    taking = asyncio.create_task(MemoryLog("bob", store).take_over("t-1", 1))
    with pytest.raises(Unavailable):
        await log.read("t-1")
    assert not append.done()
    store.set_connected(True)
    assert await append == 2
    assert (await taking).fence == 2
    assert await log.take_over("t-1", 2) == Ownership(3, 2)
    assert seen == [False, True]
