"""Who runs a table: crash, take-over, two owners, hand-over (C3, DESIGN 5)."""

from __future__ import annotations

import hashlib

import asyncpg
import pytest
from tests.table.support import Room, bearer, open_request, refusal, until
from tests.table.test_hand import CALL, FOLD, RAISE, heads_up, in_turn, play, to_act

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.eventlog import Fenced
from relance.poker.commands import RecordRuling
from relance.room.demo import open_at


async def test_PROTO_07_after_a_crash_every_chip_goes_back_to_its_owner_once(room: Room) -> None:
    first = await room.start()
    table = await room.open(first)
    stacks = {"ann": 5000, "bob": 3000, "cyd": 8000, "dan": 2000, "eve": 4000}
    for player, more in {"bob": 700, "eve": 1000}.items():
        await room.deposit(player, more)
    players = await room.seated(first, table, stacks)
    order = in_turn(players, await to_act(players))
    await play(order[0], RAISE, 500)
    await play(order[1], RAISE, 1200)
    await play(order[2], CALL)
    await play(order[3], FOLD)
    await room.kill(first)
    second = await room.start()
    await until(lambda: table in second.tables.actors)
    actor = second.tables.actors[table]
    await until(lambda: not actor.table.seats and not actor.table.transfers)
    balances = {player: await room.balance(player) for player in stacks}
    assert balances == {"ann": 5000, "bob": 3700, "cyd": 8000, "dan": 2000, "eve": 5000}
    assert (actor.table.hand, actor.table.rake_taken) == (None, 0)
    await room.kill(second)
    third = await room.start()
    await until(lambda: table in third.tables.actors and third.tables.actors[table].why is None)
    log = await room.log()
    events = await log.read(table)
    assert [event.WhichOneof("payload") for event in events].count("hand_voided") == 1
    assert {player: await room.balance(player) for player in stacks} == balances


async def test_C3_keep_seats_gives_the_pot_back_and_plays_on(room: Room) -> None:
    first = await room.start()
    table = await room.open(first, choices={"after_crash": "keep_seats"})
    players = await room.seated(first, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    await play(button, RAISE, 300)
    await room.kill(first)
    second = await room.start()
    await until(lambda: table in second.tables.actors and second.tables.actors[table].table.last_hand == 2)
    log = await room.log()
    voided = [event.hand_voided for event in await log.read(table) if event.HasField("hand_voided")]
    assert {refund.player: refund.stack for refund in voided[0].refunds} == {"ann": 2000, "bob": 2000}
    started = [event.hand_started for event in await log.read(table) if event.HasField("hand_started")]
    assert started[0].button == started[1].button


async def test_of_two_owners_the_older_one_is_shut_out_and_stops_that_table_alone(room: Room) -> None:
    old = await room.start(lease=60)
    table = await room.open(old)
    other = await room.open(old, request_id="open-2")
    players = await room.seated(old, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    log = await room.log()
    await log.take_over(table, 1)
    answer = await button.act(RAISE, 300)
    assert answer.refusal.reason == "TABLE_UNAVAILABLE"
    await button.end()
    assert button.refused().reason == reason_pb2.REASON_TABLE_UNAVAILABLE
    assert button.messages[-1].notice.kind == "MOVED"
    assert list(old.tables.actors) == [other]
    assert "raised" not in {event.WhichOneof("payload") for event in await log.read(table)}


async def test_an_owner_that_was_stopped_for_longer_than_its_lease_notices_without_being_asked(room: Room) -> None:
    old = await room.start()
    table = await room.open(old)
    watcher = await room.watch(old, table)
    log = await room.log()
    await log.take_over(table, 1)
    await watcher.end()
    assert table not in old.tables.actors
    with pytest.raises(Fenced):
        await log.append(table, 2, 1, [events_pb2.TableEvent(table=table, version=3)])


async def test_a_drained_table_goes_on_elsewhere_with_seats_stacks_and_button_as_they_were(room: Room) -> None:
    first = await room.start()
    table = await room.open(first)
    players = await room.seated(first, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    await play(button, RAISE, 300)
    second = await room.start()
    before = first.tables.actors[table].table
    await first.drain(0.05)
    await button.end()
    assert button.refused().reason == reason_pb2.REASON_TABLE_UNAVAILABLE
    assert "DRAINING" in [message.notice.kind for message in button.messages]
    await until(lambda: table in second.tables.actors and second.tables.actors[table].why is None)
    after = second.tables.actors[table].table
    log = await room.log()
    events = await log.read(table)
    voided = next(event.hand_voided for event in events if event.HasField("hand_voided"))
    assert voided.reason == events_pb2.VOID_REASON_DRAIN
    owners = [event.owner_started.reason for event in events if event.HasField("owner_started")]
    assert owners == [events_pb2.OWNER_REASON_OPENED, events_pb2.OWNER_REASON_HANDOVER]
    assert {seat.player: seat.stack for seat in after.seats.values()} == {"ann": 2000, "bob": 2000}
    assert after.button == before.button
    again = await room.join(second, table, button.player, resume=button.welcome.view.version)
    await again.saw("table_drained")


async def test_a_hand_that_ends_in_time_is_paid_before_its_table_is_drained(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    drain = room.background(process.drain(30))
    await until(lambda: process.tables.host.draining)
    await play(button, FOLD)
    await drain
    log = await room.log()
    names = [event.WhichOneof("payload") for event in await log.read(table)]
    assert "hand_voided" not in names
    assert names.index("hand_ended") < names.index("table_drained")
    info = (await log.streams([table]))[0]
    assert info.writer == ""


async def test_a_request_is_known_after_the_owner_changed(room: Room) -> None:
    first = await room.start()
    table = await room.open(first, choices={"after_crash": "keep_seats"})
    players = await room.seated(first, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)

    def raise_to(amount: int) -> table_pb2.ActRequest:
        action = table_pb2.Action(kind=RAISE, amount=amount)
        return table_pb2.ActRequest(table=f"tables/{table}", request_id="r1", action=action)

    me = bearer(room.keys.player(button.player))
    once = await room.tables(first).Act(raise_to(300), metadata=me)
    await room.kill(first)
    second = await room.start()
    await until(lambda: table in second.tables.actors and second.tables.actors[table].why is None)
    assert await room.tables(second).Act(raise_to(300), metadata=me) == once
    refused = await refusal(room.tables(second).Act(raise_to(400), metadata=me))
    assert refused.reason == reason_pb2.REASON_REQUEST_ID_REUSED


async def test_a_table_that_was_archived_is_not_opened_again_and_a_room_starts_without_it(room: Room) -> None:
    process = await room.start()
    gone, there = open_request(request_id="gone"), open_request(request_id="there")
    name = hashlib.sha256(b"operators/ada\ngone").hexdigest()[:12]
    connection = await asyncpg.connect(room.database)
    archived = "INSERT INTO log.archived (stream, head, digest, manifest, removed_by) VALUES ($1, 1, '', '', 'test')"
    await connection.execute(archived, f"holdem-{name}")
    await connection.close()
    floor = room.keys.operator("floor")
    refused = await refusal(room.admin(process).OpenTable(gone, metadata=bearer(floor)))
    assert refused.reason == reason_pb2.REASON_TABLE_CLOSED
    assert len(await open_at(process.address, floor, [gone, there])) == 1


async def test_any_process_says_where_a_table_lives_and_a_wrong_one_names_the_right_one(room: Room) -> None:
    owner, other = await room.start(), await room.start()
    table = await room.open(owner)
    me = bearer(room.keys.player("ann"))
    name = f"tables/{table}"
    await until(lambda: owner.tables.host.log.connected)
    located = await room.tables(other).Locate(table_pb2.LocateRequest(table=name), metadata=me)
    assert (located.address, located.fence) == (owner.address, 1)
    refused = await refusal(room.tables(other).GetTable(table_pb2.GetTableRequest(table=name), metadata=me))
    assert refused.reason == reason_pb2.REASON_TABLE_MOVED
    assert refused.metadata == {"table": name, "address": owner.address}
    unknown = table_pb2.LocateRequest(table="tables/none")
    assert (await refusal(room.tables(other).Locate(unknown, metadata=me))).reason == reason_pb2.REASON_TABLE_NOT_FOUND


async def test_a_table_that_cannot_be_replayed_is_quarantined(room: Room) -> None:
    first = await room.start()
    broken, sound = [await room.open(first, request_id=f"open-{number}") for number in range(2)]
    await room.kill(first)
    log = await room.log()
    owned = await log.take_over(broken, 1)
    event = events_pb2.TableEvent(table=broken, version=owned.head + 1)
    event.player_left.seat = 3
    await log.append(broken, owned.head, owned.fence, [event])
    await log.release(broken, owned.fence)
    second = await room.start()
    await until(lambda: sound in second.tables.actors and broken in second.tables.stopped)
    me = bearer(room.keys.player("ann"))
    get = table_pb2.GetTableRequest(table=f"tables/{broken}")
    assert (await refusal(room.tables(second).GetTable(get, metadata=me))).reason == reason_pb2.REASON_TABLE_QUARANTINED


async def test_a_fault_in_the_state_of_one_table_stops_that_table_alone(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    other = await room.open(process, request_id="open-2")
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    process.tables.actors[table].table.bought_in += 1  # a chip out of nowhere
    process.tables.tell(table, RecordRuling("operators/ada", 0, "looked at"))
    await players["ann"].end()
    assert players["ann"].refused().reason == reason_pb2.REASON_TABLE_QUARANTINED
    me = bearer(room.keys.player("ann"))
    seen = await room.tables(process).GetTable(table_pb2.GetTableRequest(table=f"tables/{other}"), metadata=me)
    assert seen.version
