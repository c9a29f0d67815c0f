"""What every event log promises: the same suite for PostgreSQL and for memory."""

from __future__ import annotations

import asyncio

import pytest

from relance.eventlog import EventLog, Fenced, Ownership, Snapshot, StreamExists, StreamInfo

from .conftest import Events, OpenLog, versions


async def test_a_stream_begins_with_its_first_append(log: EventLog, events: Events) -> None:
    assert await log.create("t-1", events("t-1", 0, 2)) == Ownership(fence=1, head=2)
    assert await log.read("t-1") == events("t-1", 0, 2)


async def test_a_stream_begins_once(log: EventLog, open_log: OpenLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    other = await open_log("bob")
    with pytest.raises(StreamExists):
        await other.create("t-1", events("t-1", 0, text="mine"))
    assert await log.read("t-1") == events("t-1", 0)


async def test_of_many_who_begin_a_stream_one_does(open_log: OpenLog, events: Events) -> None:
    logs = [await open_log(f"p{i}") for i in range(4)]
    answers = await asyncio.gather(*(log.create("t-1", events("t-1", 0, 3)) for log in logs), return_exceptions=True)
    assert sorted(type(a).__name__ for a in answers) == ["Ownership", "StreamExists", "StreamExists", "StreamExists"]
    assert await logs[0].heads() == {"t-1": 3}


async def test_an_append_answers_the_new_head(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    assert await log.append("t-1", 1, 1, events("t-1", 1, 3)) == 4
    assert versions(await log.read("t-1")) == [1, 2, 3, 4]


async def test_appends_of_a_stream_keep_their_order(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    appends = [log.append("t-1", head, 1, events("t-1", head)) for head in range(1, 20)]
    assert await asyncio.gather(*appends) == list(range(2, 21))


async def test_a_wrong_head_is_fenced_and_writes_nothing(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 2))
    for expected in (1, 3):
        with pytest.raises(Fenced):
            await log.append("t-1", expected, 1, events("t-1", expected, 3))
    assert await log.read("t-1") == events("t-1", 0, 2)


async def test_an_unknown_stream_is_fenced(log: EventLog, events: Events) -> None:
    with pytest.raises(Fenced):
        await log.append("t-none", 1, 1, events("t-none", 1))
    with pytest.raises(Fenced):
        await log.take_over("t-none", 1)
    assert await log.read("t-none") == []
    assert await log.heads(["t-none"]) == {}


async def test_an_append_in_a_batch_with_a_fenced_one_is_not_harmed(log: EventLog, events: Events) -> None:
    for stream in ("t-1", "t-2", "t-3"):
        await log.create(stream, events(stream, 0))
    answers = await asyncio.gather(
        log.append("t-1", 1, 1, events("t-1", 1)),
        log.append("t-2", 1, 9, events("t-2", 1)),
        log.append("t-3", 1, 1, events("t-3", 1, 2)),
        return_exceptions=True,
    )
    assert answers[0] == 2
    assert isinstance(answers[1], Fenced)
    assert answers[2] == 3


@pytest.mark.parametrize("stream", ["T 1", "", "x" * 41, "t_1"])
async def test_a_stream_has_a_plain_name(log: EventLog, events: Events, stream: str) -> None:
    with pytest.raises(ValueError, match="stream name"):
        await log.create(stream, events(stream, 0))


async def test_events_out_of_place_are_a_bug(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    for misplaced in (events("t-1", 2), events("t-2", 1), events("t-1", 1) + events("t-1", 3)):
        with pytest.raises(ValueError, match="in the place of t-1 version"):
            await log.append("t-1", 1, 1, misplaced)


async def test_an_append_without_events_is_a_bug(log: EventLog) -> None:
    with pytest.raises(ValueError, match="0 events"):
        await log.append("t-1", 0, 1, [])


async def test_a_take_over_shuts_the_old_owner_out(open_log: OpenLog, events: Events) -> None:
    ada, bob = await open_log("ada"), await open_log("bob")
    await ada.create("t-1", events("t-1", 0, 2))
    assert await bob.take_over("t-1", 1) == Ownership(fence=2, head=2)
    with pytest.raises(Fenced):
        await ada.append("t-1", 2, 1, events("t-1", 2))
    assert await bob.append("t-1", 2, 2, events("t-1", 2)) == 3
    assert await bob.streams() == [StreamInfo("t-1", head=3, fence=2, writer="bob", address="")]


async def test_of_two_who_take_over_one_does(open_log: OpenLog, events: Events) -> None:
    ada, bob = await open_log("ada"), await open_log("bob")
    await ada.create("t-1", events("t-1", 0))
    answers = await asyncio.gather(ada.take_over("t-1", 1), bob.take_over("t-1", 1), return_exceptions=True)
    assert sorted(type(a).__name__ for a in answers) == ["Fenced", "Ownership"]


async def test_taking_many_over_leaves_out_those_that_moved(open_log: OpenLog, events: Events) -> None:
    ada, bob = await open_log("ada"), await open_log("bob")
    for stream in ("t-1", "t-2", "t-3"):
        await ada.create(stream, events(stream, 0))
    await ada.take_over("t-2", 1)
    taken = await bob.take_over_all({"t-1": 1, "t-2": 1, "t-3": 1, "t-4": 1})
    assert taken == {"t-1": Ownership(2, 1), "t-3": Ownership(2, 1)}


async def test_two_owners_cannot_both_append(open_log: OpenLog, events: Events) -> None:
    ada, bob = await open_log("ada"), await open_log("bob")
    await ada.create("t-1", events("t-1", 0))
    answers = await asyncio.gather(
        ada.append("t-1", 1, 1, events("t-1", 1, 3, "ada")),
        bob.append("t-1", 1, 1, events("t-1", 1, 5, "bob")),
        return_exceptions=True,
    )
    won = [a for a in answers if isinstance(a, int)]
    assert won in ([4], [6])
    assert {e.ruling_recorded.text for e in await ada.read("t-1", after=1)} == {"ada" if won == [4] else "bob"}
    assert await ada.heads() == {"t-1": won[0]}


async def test_who_stops_waiting_does_not_stop_an_append(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))

    async def waits() -> int:
        return await log.append("t-1", 1, 1, events("t-1", 1))

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await log.append("t-1", 2, 1, events("t-1", 2)) == 3


async def test_a_released_stream_has_no_writer(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    await log.release("t-1", 1)
    assert (await log.streams())[0].writer == ""
    with pytest.raises(Fenced):
        await log.release("t-1", 2)


async def test_reading_is_by_version(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 10))
    assert versions(await log.read("t-1", after=4)) == [5, 6, 7, 8, 9, 10]
    assert versions(await log.read("t-1", after=4, limit=2)) == [5, 6]
    assert await log.read("t-1", after=10) == []
    assert await log.read_raw("t-1", after=9) == [events("t-1", 9)[0].SerializeToString()]
    assert [body async for page in log.replay("t-1", 7, 9) for body in page] == await log.read_raw("t-1", 7, 2)
    assert [body async for page in log.replay("t-1") for body in page] == await log.read_raw("t-1")


async def test_many_streams_are_read_at_once(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 3))
    await log.create("t-2", events("t-2", 0, 2))
    found = await log.read_all({"t-1": 1, "t-2": 2, "t-3": 0})
    assert found == {"t-1": await log.read_raw("t-1", 1), "t-2": [], "t-3": []}


async def test_appends_are_read_as_they_were_made(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 2))
    await log.append("t-1", 2, 1, events("t-1", 2, 3))
    await log.append("t-1", 5, 1, events("t-1", 5, 1))

    async def spans(after: int, limit: int) -> list[tuple[int, int]]:
        return [(a.first, a.last) for a in await log.read_appends("t-1", after, limit)]

    assert await spans(0, 100) == [(1, 2), (3, 5), (6, 6)]
    assert await spans(0, 1) == [(1, 2)]
    assert await spans(0, 3) == [(1, 2), (3, 5)]
    assert await spans(5, 1) == [(6, 6)]
    assert await spans(6, 5) == []


async def test_heads_of_all_or_of_some(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0, 3))
    await log.create("t-2", events("t-2", 0, 2))
    assert await log.heads() == {"t-1": 3, "t-2": 2}
    assert await log.heads(["t-2", "t-9"]) == {"t-2": 2}
    assert [info.stream for info in await log.streams(["t-1"])] == ["t-1"]


async def test_snapshots_keep_the_newest_and_every_third(log: EventLog) -> None:
    for version in range(10, 80, 10):
        await log.snapshots.save("t-1", version, b"state %d" % version)
    await log.snapshots.save("t-1", 70, b"again")
    assert await log.snapshots.latest("t-1") == Snapshot(70, b"state 70")
    assert await log.snapshots.latest("t-1", at=69) == Snapshot(60, b"state 60")
    assert await log.snapshots.latest("t-1", at=59) == Snapshot(30, b"state 30")
    assert await log.snapshots.latest("t-1", at=29) is None
    assert await log.snapshots.latest_of(["t-1", "t-2"]) == {"t-1": Snapshot(70, b"state 70")}


async def test_snapshots_can_be_forgotten(log: EventLog) -> None:
    for stream in ("t-1", "t-2", "t-3"):
        await log.snapshots.save(stream, 5, b"state")
    await log.snapshots.delete_all("t-1")
    assert set(await log.snapshots.latest_of(["t-1", "t-2", "t-3"])) == {"t-2", "t-3"}
    await log.snapshots.delete_all()
    assert await log.snapshots.latest("t-2") is None


async def test_a_mark_never_goes_back(log: EventLog) -> None:
    await log.marks.write({"t-1": 5, "t-2": 7})
    await log.marks.write({"t-1": 3, "t-2": 9})
    assert await log.marks.read(["t-1", "t-2", "t-3"]) == {"t-1": 5, "t-2": 9, "t-3": 0}


async def test_a_beating_process_has_an_address(log: EventLog, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    await log.beats.beat("ada", "10.0.0.1:7000")
    await log.beats.beat("ada", "10.0.0.1:7001")
    assert await log.beats.beats() == {"ada": 2}
    assert (await log.streams())[0].address == "10.0.0.1:7001"
    assert await log.beats.silent(["ada"]) == []
    await log.beats.retire("ada")
    assert [(s.stream, s.writer, s.beat) for s in await log.beats.silent([])] == [("t-1", "ada", None)]


async def test_it_says_that_it_is_connected(log: EventLog) -> None:
    await log.wait_connected()
    assert log.connected
