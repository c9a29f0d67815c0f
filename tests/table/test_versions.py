"""Versions side by side: what a newer one wrote is not for an older one to run (DESIGN 3)."""

from __future__ import annotations

import asyncio

import pytest
from tests.table.support import Room, bearer, open_request, until

from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.poker import Context, UnknownEvent, apply, decide, initial
from relance.poker.commands import OpenTable, TakeOver
from relance.poker.config import table_config
from relance.poker.snapshot import EDITION, UnknownSnapshot, dump, load
from relance.table import wire
from relance.table.recovery import has_unknown_value, replay

NEWER = wire.varint(1900 << 3 | 2) + b"\x05hello"
"""Field 1900, a text: no message of this version has it."""


def written_by_a_newer_version(table: str, head: int) -> dict[str, TableEvent]:
    """What no version before could have written after version `head`, by how it is new."""
    ruling = events_pb2.RulingRecorded(operator="ada", text="so it is").SerializeToString()
    event = TableEvent(table=table, version=head + 1)
    fault = TableEvent(table=table, version=head + 1)
    fault.player_left.reason = 99  # type: ignore[assignment]
    tag = TableEvent.DESCRIPTOR.fields_by_name["ruling_recorded"].number << 3 | 2
    body = ruling + NEWER
    return {
        "an event": TableEvent.FromString(event.SerializeToString() + NEWER),
        "a field of the envelope": TableEvent.FromString(
            event.SerializeToString() + wire.varint(tag) + wire.varint(len(ruling)) + ruling + NEWER
        ),
        "a field of an event": TableEvent.FromString(
            event.SerializeToString() + wire.varint(tag) + wire.varint(len(body)) + body
        ),
        "a value": fault,
    }


async def test_an_older_owner_gives_back_what_a_newer_one_wrote_and_leaves_it_to_that(room: Room) -> None:
    first = await room.start()
    kinds = list(written_by_a_newer_version("t", 1))
    tables = {kind: await room.open(first, request_id=f"open-{number}") for number, kind in enumerate(kinds)}
    sound = await room.open(first, request_id="sound")
    await room.kill(first)
    log = await room.log()
    for kind, table in tables.items():
        owned = await log.take_over(table, 1)
        event = written_by_a_newer_version(table, owned.head)[kind]
        await log.append(table, owned.head, owned.fence, [event])
        await log.release(table, owned.fence)
    old, other = await room.start(), await room.start()
    both = (old, other)
    await until(lambda: all(each.tables.given_back == set(tables.values()) for each in both))
    await until(lambda: any(sound in each.tables.actors for each in both))
    # Each has taken it once. From then on it is nobody's, whatever time goes by.
    fences = {info.stream: info.fence for info in await log.streams(tables.values()) if not info.writer}
    assert fences == dict.fromkeys(tables.values(), 4)
    looks = await log.beats.beats()

    async def looked_often() -> bool:
        now = await log.beats.beats()
        return all(now[each.tables.host.process] >= looks[each.tables.host.process] + 8 for each in both)

    for _ in range(600):
        if await looked_often():
            break
        await asyncio.sleep(0.05)
    assert await looked_often()
    infos = await log.streams(tables.values())
    assert {info.stream: (info.fence, info.writer) for info in infos} == dict.fromkeys(tables.values(), (4, ""))
    # A newer process would take it, and go on after the event that it wrote.
    for table in tables.values():
        taken = await log.take_over(table, 4)
        assert (taken.fence, taken.head) == (5, 3)
    # Followers of this version read past it; nothing of it is told to those who may not see it.
    reader = bearer(room.keys.operator("viewer"))
    asked = table_pb2.ReadStreamRequest(table=f"tables/{tables['an event']}")
    shown = [event async for answer in room.admin(old).ReadStream(asked, metadata=reader) for event in answer.events]
    assert [event.version for event in shown] == [1, 2, 3]
    assert b"hello" not in shown[-1].SerializeToString()


def test_what_a_newer_version_kept_is_replayed_from_the_log_instead() -> None:
    log = made_log()
    table = replay("t", None, log)
    kept = dump(table)
    assert load(kept).version == table.version
    newer = kept.replace(f'"edition":{EDITION}'.encode(), f'"edition":{EDITION + 1}'.encode())
    assert newer != kept
    with pytest.raises(UnknownSnapshot):
        load(newer)


def test_an_unknown_field_or_value_anywhere_is_met_like_an_unknown_event() -> None:
    log = made_log()
    for kind, event in written_by_a_newer_version("t", len(log)).items():
        with pytest.raises(UnknownEvent):
            replay("t", None, [*log, event.SerializeToString()])
        assert has_unknown_value(event) == (kind == "a value")
    assert not any(has_unknown_value(TableEvent.FromString(body)) for body in log)


def made_log() -> list[bytes]:
    """The first events of a table."""
    setup = table_config(open_request())
    table = initial("t")
    bodies = []
    for command in (OpenTable(setup.config, setup.rake, "ada"), TakeOver(1, "p", events_pb2.OWNER_REASON_OPENED)):
        for event in decide(table, command, Context(at=1)):
            apply(table, event)
            bodies.append(event.SerializeToString())
    return bodies
