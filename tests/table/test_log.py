"""What a table leaves behind: messages on NATS, snapshots that are only a cache, transfers that are asked again."""

from __future__ import annotations

import asyncio

import asyncpg
import nats
from nats.aio.msg import Msg
from tests.table.support import PATIENCE, Room, bearer, until

from relance.api.table.v1 import table_pb2
from relance.poker.commands import RecordRuling
from relance.room.embedded import Nats
from relance.table.actor import SNAPSHOT_EVERY


async def test_every_append_is_published_redacted_and_in_order(room: Room, nats_server: Nats) -> None:
    client = await nats.connect(nats_server.url)
    process = await room.start()
    room.holes = {"ann": "AsAh", "bob": "QdQh"}
    bodies: list[bytes] = []
    seen: list[int] = []

    async def take(message: Msg) -> None:
        bodies.append(message.data)
        seen.extend(event.version for event in table_pb2.TableUpdate.FromString(message.data).events)

    table = await room.open(process)
    await client.subscribe(f"relance.table.{table}", cb=take)
    await client.flush()
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    started = await players["ann"].saw("hand_started")
    await until(lambda: bool(seen) and seen[-1] > started.version)
    first = seen[0]
    assert seen == list(range(first, first + len(seen)))
    assert not any(form in body for body in bodies for form in (b"AsAh", b"AhAs", b"QdQh", b"QhQd"))
    assert not any(b"ann-1-" in body for body in bodies)  # request ids are for the service alone
    await client.close()


async def test_a_snapshot_is_made_between_hands_and_only_makes_recovery_faster(room: Room) -> None:
    first = await room.start()
    table = await room.open(first, choices={"after_crash": "keep_seats"})
    await room.deposit("ann", 2000)
    ann = await room.join(first, table, "ann")
    await ann.take_seat(1, 2000)
    actor = first.tables.actors[table]
    for number in range(SNAPSHOT_EVERY):
        actor.tell(RecordRuling("operators/ada", 0, f"{number}"))
    await until(lambda: actor.table.version > SNAPSHOT_EVERY)
    log = await room.log()
    snapshot = None
    while snapshot is None:
        snapshot = await log.snapshots.latest(table)
    assert snapshot.version >= SNAPSHOT_EVERY
    await room.kill(first)
    second = await room.start()
    await until(lambda: table in second.tables.actors and second.tables.actors[table].why is None)
    with_snapshot = second.tables.actors[table].table
    assert {seat.player: seat.stack for seat in with_snapshot.seats.values()} == {"ann": 2000}
    await room.kill(second)
    await log.snapshots.delete_all()
    third = await room.start()
    await until(lambda: table in third.tables.actors and third.tables.actors[table].why is None)
    without = third.tables.actors[table].table
    assert without.seats == with_snapshot.seats
    assert without.requests == with_snapshot.requests


async def test_the_heads_of_all_tables_and_of_some(room: Room) -> None:
    process = await room.start()
    tables = [await room.open(process, request_id=f"open-{number}") for number in range(3)]
    viewer = bearer(room.keys.operator("viewer"))
    stub = room.admin(process)
    heads = await stub.ListHeads(table_pb2.ListHeadsRequest(), metadata=viewer)
    assert {head.table: head.version for head in heads.heads} == {f"tables/{table}": 2 for table in tables}
    some = table_pb2.ListHeadsRequest(tables=[f"tables/{tables[1]}", "tables/none"])
    assert [head.table for head in (await stub.ListHeads(some, metadata=viewer)).heads] == [f"tables/{tables[1]}"]
    pages = [
        event.version
        async for page in stub.ReadStream(
            table_pb2.ReadStreamRequest(table=f"tables/{tables[0]}", after=1, limit=1),
            metadata=bearer(room.keys.service()),
        )
        for event in page.events
    ]
    assert pages == [2]


async def test_a_closed_table_is_published_to_its_end_by_the_next_owner_too(room: Room) -> None:
    first = await room.start()
    table = await room.open(first)
    floor = bearer(room.keys.operator("floor"))
    close = table_pb2.CloseTableRequest(table=f"tables/{table}", request_id="close", reason="end of the day")
    await room.admin(first).CloseTable(close, metadata=floor)
    log = await room.log()

    async def published() -> None:
        head = (await log.heads([table]))[table]
        while (await log.marks.read([table]))[table] < head:  # noqa: ASYNC110 - what is waited for lies in NATS
            await asyncio.sleep(0.01)

    async with asyncio.timeout(PATIENCE):
        await published()
    await room.kill(first)
    database = await asyncpg.connect(room.database)
    await database.execute("DELETE FROM log.mark WHERE stream = $1", table)
    await database.close()
    assert await log.marks.read([table]) == {table: 0}
    await room.start()
    async with asyncio.timeout(PATIENCE):
        await published()
