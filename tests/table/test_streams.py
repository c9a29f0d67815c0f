"""Streams that resume, that are too slow, that go without a word, whose token runs out; a mailbox that is full."""

from __future__ import annotations

import asyncio

import asyncpg
import grpc
import pytest
from tests.table.support import Client, Room, bearer, open_request, refusal, until
from tests.table.test_hand import CALL, heads_up, play

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.poker.commands import RecordRuling
from relance.runtime.errors import code_of, from_call, reason_name
from relance.table.mail import MAILBOX
from relance.table.streams import MAX_WAITING


async def test_versions_on_a_stream_have_no_gap_and_a_resumed_one_has_what_was_missed(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    watcher = await room.watch(process, table)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    first, other = await heads_up(players)
    await play(first, CALL)
    seen = other.events[-1].version
    other.vanish()
    await watcher.saw("connection_lost")
    back = await room.join(process, table, other.player, resume=seen)
    assert back.messages[0].HasField("welcome")
    head = process.tables.actors[table].table.version
    await until(lambda: bool(back.events) and back.events[-1].version >= head)
    assert [event.version for event in back.events] == list(range(seen + 1, back.events[-1].version + 1))
    await until(lambda: watcher.events[-1].version >= head)
    begin = watcher.welcome.view.version + 1
    assert [event.version for event in watcher.events] == list(range(begin, watcher.events[-1].version + 1))


async def test_a_version_that_is_not_there_cannot_be_resumed_from(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    head = process.tables.actors[table].table.version
    for version in (head + 1, -1):
        client = Client(room, process, table, "ann")
        await client.send(table_pb2.PlayRequest(join=table_pb2.Join(table=f"tables/{table}", resume_version=version)))
        await client.end()
        assert client.refused().reason == reason_pb2.REASON_RESUME_IMPOSSIBLE
        assert client.refused().metadata == {"version": str(version), "head": str(head)}


async def test_a_slow_watcher_is_dropped_with_a_reason_and_the_others_do_not_notice(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    good = await room.watch(process, table)
    watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = room.channel(process.address).unary_stream(
        "/relance.api.table.v1.TableService/Watch"
    )
    request = table_pb2.WatchRequest(table=f"tables/{table}").SerializeToString()
    slow = watch(request, metadata=bearer(room.keys.player("snail")))
    await slow.read()
    text = "x" * 20_000
    told = 0
    audience = process.tables.actors[table]._audience
    assert audience is not None
    while len(audience.streams) == 2:
        # How much the connection takes before the server notices is its own affair.
        assert told < 4_000
        for number in range(told, told + MAX_WAITING):
            process.tables.tell(table, RecordRuling("operators/ada", 0, f"{number} {text}"))
        told += MAX_WAITING
        await until(lambda told=told: len(good.events) >= told)  # type: ignore[misc]
    assert not good.ended
    with pytest.raises(grpc.aio.AioRpcError) as dropped:
        await everything(slow)
    refused = from_call(dropped.value)
    assert refused is not None
    assert refused.reason == reason_pb2.REASON_SLOW_WATCHER


async def test_a_full_mailbox_refuses_and_other_tables_do_not_notice(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    other = await room.open(process, request_id="open-2")
    floor = bearer(room.keys.operator("floor"))

    def ruling(name: str, number: int) -> table_pb2.RecordRulingRequest:
        return table_pb2.RecordRulingRequest(table=f"tables/{name}", request_id=f"r{number}", text="looked at")

    stub = room.admin(process)
    lock = await asyncpg.connect(room.database)
    async with lock.transaction():
        await lock.execute("SELECT * FROM log.stream WHERE stream = $1 FOR UPDATE", table)
        calls = [asyncio.ensure_future(wait(stub, ruling(table, number), floor)) for number in range(MAILBOX + 1)]
        await until(lambda: process.tables.actors[table].waiting == MAILBOX)
        refused = await refusal(stub.RecordRuling(ruling(table, 1000), metadata=floor))
        assert reason_name(refused.reason) == "MAILBOX_FULL"
        assert refused.metadata == {"limit": str(MAILBOX)}
        assert (await stub.RecordRuling(ruling(other, 1), metadata=floor)).version == 3
    await lock.close()
    versions = await asyncio.gather(*calls)
    assert sorted(versions) == list(range(3, MAILBOX + 4))


async def test_a_caller_that_gives_up_does_not_take_its_command_back(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    floor = bearer(room.keys.operator("floor"))
    stub = room.admin(process)
    request = table_pb2.RecordRulingRequest(table=f"tables/{table}", request_id="r", text="looked at")
    lock = await asyncpg.connect(room.database)
    async with lock.transaction():
        await lock.execute("SELECT * FROM log.stream WHERE stream = $1 FOR UPDATE", table)
        call = stub.RecordRuling(request, metadata=floor, timeout=0.2)
        assert await call.code() is code_of(reason_pb2.REASON_DEADLINE)
    await lock.close()
    await until(lambda: process.tables.actors[table].table.version == 3)
    assert (await stub.RecordRuling(request, metadata=floor)).version == 3


async def test_a_table_whose_opener_gives_up_runs_all_the_same(room: Room) -> None:
    process = await room.start()
    floor = bearer(room.keys.operator("floor"))
    lock = await asyncpg.connect(room.database)
    async with lock.transaction():
        await lock.execute("LOCK TABLE log.stream IN SHARE MODE")
        call = room.admin(process).OpenTable(open_request(), metadata=floor, timeout=0.2)
        assert await call.code() is code_of(reason_pb2.REASON_DEADLINE)
    await lock.close()
    table = await room.open(process)
    await until(lambda: table in process.tables.actors)
    assert (await room.join(process, table, "ann")).welcome.view.version == 2


async def test_a_player_whose_last_stream_goes_is_disconnected_until_one_is_back(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    watcher = await room.watch(process, table)
    await room.deposit("ann", 2000)
    one = await room.join(process, table, "ann")
    await one.take_seat(1, 2000)
    two = await room.join(process, table, "ann")
    one.vanish()
    two.vanish()
    assert (await watcher.saw("connection_lost")).connection_lost.player == "ann"
    seat = process.tables.actors[table].table.seats[1]
    assert not seat.connected
    await room.join(process, table, "ann")
    await watcher.saw("connection_restored")
    names = [event.WhichOneof("payload") for event in watcher.events]
    assert names.count("connection_lost") == names.count("connection_restored") == 1
    await until(lambda: process.tables.actors[table].table.seats[1].connected)


async def test_a_stream_ends_with_its_token_and_goes_on_with_a_refreshed_one(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    streams = [Client(room, process, table, "ann", room.keys.player("ann", seconds=2)) for _ in range(3)]
    for stream in streams:
        await stream.join()
    kept, foreign, silent = streams
    refresh = table_pb2.RefreshToken(token=room.keys.player("ann"))
    await kept.send(table_pb2.PlayRequest(refresh_token=refresh))
    await foreign.send(table_pb2.PlayRequest(refresh_token=table_pb2.RefreshToken(token=room.keys.player("bob"))))
    await silent.end()
    await foreign.end()
    assert silent.refused().reason == reason_pb2.REASON_TOKEN_EXPIRED
    assert foreign.messages[1].refusal.reason == "TOKEN_INVALID"
    answer = await kept.ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
    assert answer.refusal.reason == "NOT_SEATED"


async def test_streams_that_come_and_go_leave_nothing_behind(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    watcher = await room.watch(process, table)
    timers = process.tables.host.timers
    for _ in range(10):
        clients = [await room.join(process, table, f"p{number}") for number in range(20)]
        for client in clients:
            client.vanish()
    await until(lambda: len(timers) < 150)
    answer = await watcher.ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
    assert answer.refusal.reason == "NOT_SEATED"


async def test_a_stream_may_have_sixteen_commands_waiting_and_no_more(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    await room.deposit("ann", 2000)
    ann = await room.join(process, table, "ann")
    await ann.take_seat(1, 2000)
    lock = await asyncpg.connect(room.database)
    most = ann.welcome.max_pending_commands
    async with lock.transaction():
        await lock.execute("SELECT * FROM log.stream WHERE stream = $1 FOR UPDATE", table)
        for number in range(most + 1):
            out = table_pb2.SitOutRequest(request_id=f"r{number}")
            await ann.send(table_pb2.PlayRequest(sit_out=out))
        await until(lambda: ann.messages[-1].HasField("refusal"))
        assert ann.messages[-1].refusal.reason == "MAILBOX_FULL"
        assert ann.messages[-1].refusal.request_id == f"r{most}"
    await lock.close()
    await ann.saw("player_sat_out")


async def wait(stub: object, request: table_pb2.RecordRulingRequest, metadata: tuple[tuple[str, str], ...]) -> int:
    """The version that a ruling made."""
    answer: table_pb2.CommandResponse = await stub.RecordRuling(request, metadata=metadata)  # type: ignore[attr-defined]
    return answer.version


async def everything(call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
    """Read a stream to its end."""
    while await call.read() is not grpc.aio.EOF:
        pass
