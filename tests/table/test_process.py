"""Table processes as the operating system sees them: stopped, continued, killed, told to end."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.table.support import Room, bearer, until
from tests.table.test_hand import CALL, RAISE, heads_up, play

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2


async def test_an_owner_stopped_past_its_lease_ends_fenced_and_loses_nothing(room: Room, tmp_path: Path) -> None:
    old = await room.spawn(tmp_path)
    table = await room.open(old)
    players = await room.seated(old, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    await play(button, RAISE, 300)
    new = await room.start(lease=1.0, routing="forward")
    watcher = await room.watch(new, table)  # passed on
    old.process.send_signal(signal.SIGSTOP)
    await until(lambda: table in new.tables.actors and new.tables.actors[table].why is None, 20)
    await until(lambda: watcher.ended, 20)  # nobody waits for one who hangs
    assert watcher.refused().reason == reason_pb2.REASON_TABLE_UNAVAILABLE
    await room.watch(new, table)
    action = table_pb2.Action(kind=CALL)
    await other.send(table_pb2.PlayRequest(act=table_pb2.ActRequest(request_id="late", action=action)))
    old.process.send_signal(signal.SIGCONT)
    await other.end()
    assert other.refused().reason == reason_pb2.REASON_TABLE_UNAVAILABLE
    me = bearer(room.keys.player("ann"))
    located = await room.tables(old).Locate(table_pb2.LocateRequest(table=f"tables/{table}"), metadata=me)
    assert (located.address, located.fence) == (new.address, 2)
    actor = new.tables.actors[table]
    await until(lambda: not actor.table.transfers)
    assert [await room.balance(player) for player in ("ann", "bob")] == [2000, 2000]
    log = await room.log()
    names = [event.WhichOneof("payload") for event in await log.read(table)]
    assert (names.count("called"), names.count("hand_voided")) == (0, 1)
    old.process.send_signal(signal.SIGTERM)
    assert await old.process.wait() == 0


async def test_a_process_that_is_told_to_end_hands_its_tables_over_and_its_heartbeat_goes(
    room: Room, tmp_path: Path
) -> None:
    old = await room.spawn(tmp_path)
    table = await room.open(old)
    await room.deposit("ann", 2000)
    ann = await room.join(old, table, "ann")
    await ann.take_seat(1, 2000)
    old.process.send_signal(signal.SIGTERM)
    assert await old.process.wait() == 0
    await ann.end()
    assert [message.notice.kind for message in ann.messages if message.HasField("notice")] == ["DRAINING"]
    log = await room.log()
    assert await log.beats.beats() == {}
    new = await room.start()
    await until(lambda: table in new.tables.actors and new.tables.actors[table].why is None)
    seats = new.tables.actors[table].table.seats
    assert [(seat.player, seat.stack) for seat in seats.values()] == [("ann", 2000)]
    owners = [event.owner_started.reason for event in await log.read(table) if event.HasField("owner_started")]
    assert owners[-1] == events_pb2.OWNER_REASON_HANDOVER
