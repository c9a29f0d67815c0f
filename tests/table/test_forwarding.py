"""Calls for tables that another process runs, passed on to it (RELANCE_ROUTING=forward)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import grpc
import pytest
import pytest_asyncio
from tests.table.support import Room, bearer, open_request, refusal, until
from tests.table.test_hand import CALL, RAISE, heads_up, play

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import link_pb2, table_pb2, table_pb2_grpc
from relance.runtime.errors import from_call
from relance.runtime.server import MAX_REQUEST_BYTES
from relance.table.actor import Actor
from relance.table.landing import Landed
from relance.table.outbox import BATCH_BYTES, Outbox
from relance.table.peek import joined_table, table_of
from relance.table.process import Process
from relance.table.routing import ANYWHERE
from relance.table.streams import MAX_WAITING, Stream


class Pair:
    """A table with two players, at its owner; and another process that passes calls on."""

    def __init__(self, room: Room, owner: Process, front: Process, table: str) -> None:
        self.room, self.owner, self.front, self.table = room, owner, front, table
        self.name = f"tables/{table}"
        self.stub: table_pb2_grpc.TableServiceAsyncStub = room.tables(front)

    async def streams_at_owner(self, count: int) -> None:
        """Wait until the table has so many streams."""
        actor = self.owner.tables.actors[self.table]
        await until(lambda: (0 if actor._audience is None else len(actor._audience.streams)) == count)


@pytest_asyncio.fixture
async def pair(room: Room) -> AsyncIterator[Pair]:
    owner = await room.start(lease=60)
    table = await room.open(owner)
    front = await room.start(lease=60, routing="forward")
    yield Pair(room, owner, front, table)


async def test_a_hand_is_played_through_a_process_that_does_not_run_the_table(pair: Pair) -> None:
    room = pair.room
    players = await room.seated(pair.front, pair.table, {"ann": 2000, "bob": 2000})
    direct = await room.watch(pair.owner, pair.table)
    assert pair.front.tables.actors == {}
    button, other = await heads_up(players)
    await play(button, RAISE, 300)
    await play(other, CALL)
    # Refusals inside a stream, and what the owner knows of the token: its player's own cards only.
    refused = await button.act(RAISE, 10_000_000)
    assert refused.refusal.reason in {"AMOUNT_OUT_OF_RANGE", "NOT_YOUR_TURN"}
    dealt = [event.cards_dealt for event in button.events if event.HasField("cards_dealt")]
    assert {bool(each.down) for each in dealt if each.seat == button.seat} == {True}
    assert {bool(each.down) for each in dealt if each.seat == other.seat} == {False}
    # What several see went over the link once and came out as it went in.
    await until(lambda: bool(direct.events) and direct.events[-1].version == button.events[-1].version)
    public = {event.version: event for event in direct.events if not event.HasField("cards_dealt")}
    for client in players.values():
        for event in client.events:
            assert public.get(event.version, event) == event
    # The end of a stream in order, by a half-close, gets there.
    await button.call.done_writing()
    await button.end()
    assert button.error is None
    await pair.streams_at_owner(2)
    other.vanish()
    await pair.streams_at_owner(1)
    assert pair.front.router.passed_on >= 2
    await until(lambda: not pair.front.links.calls)


async def test_unary_calls_and_their_refusals_come_back_as_the_owner_gave_them(pair: Pair) -> None:
    room, me = pair.room, bearer(pair.room.keys.player("ann"))
    direct = room.tables(pair.owner)
    get = table_pb2.GetTableRequest(table=pair.name)
    assert await pair.stub.GetTable(get, metadata=me) == await direct.GetTable(get, metadata=me)

    async def same(method: str, request: object, metadata: tuple[tuple[str, str], ...]) -> grpc.aio.AioRpcError:
        errors = []
        for stub in (pair.stub, direct):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await getattr(stub, method)(request, metadata=metadata)
            errors.append(caught.value)
        here, there = errors
        assert (here.code(), here.details()) == (there.code(), there.details())
        assert tuple(here.trailing_metadata()) == tuple(there.trailing_metadata())
        return here

    await same("GetSession", table_pb2.GetSessionRequest(table=pair.name), me)
    error = await same("TakeSeat", table_pb2.TakeSeatRequest(table=pair.name, request_id="s", seat=99, buy_in=500), me)
    refused = from_call(error)
    assert refused is not None
    assert refused.reason == reason_pb2.REASON_SEAT_OUT_OF_RANGE
    await same("Act", table_pb2.ActRequest(table=pair.name), me)
    await same("GetTable", get, bearer("forged"))
    await same("GetTable", table_pb2.GetTableRequest(table="tables/none"), me)
    await same("GetTable", table_pb2.GetTableRequest(table="no name"), me)
    await same("GetTable", table_pb2.GetTableRequest(), me)
    # Operators' methods go the same way, with the operator's role.
    pause = table_pb2.PauseTableRequest(table=pair.name, request_id="p1")
    assert (await refusal(room.admin(pair.front).PauseTable(pause, metadata=me))).reason == (
        reason_pb2.REASON_ROLE_REQUIRED
    )
    answer = await room.admin(pair.front).PauseTable(pause, metadata=bearer(room.keys.operator("floor")))
    assert answer.version == pair.owner.tables.actors[pair.table].table.version
    # What is about no table in particular is answered by whoever is asked, whatever it names.
    heads = table_pb2.ListHeadsRequest(tables=["tables/none", pair.name])
    known = await room.admin(pair.front).ListHeads(heads, metadata=bearer(room.keys.service()))
    assert [head.table for head in known.heads] == [pair.name]
    opening = open_request(request_id="tables/none")
    assert (await room.admin(pair.front).OpenTable(opening, metadata=bearer(room.keys.operator("floor")))).table
    # Where the table is told, so is that nobody has to go there.
    located = await pair.stub.Locate(table_pb2.LocateRequest(table=pair.name), metadata=me)
    assert (located.address, located.forwards) == (pair.owner.address, True)


async def test_sizes_deadlines_and_cancellation_are_those_of_a_direct_call(pair: Pair) -> None:
    me = bearer(pair.room.keys.player("ann"))
    await pair.room.deposit("ann", 2000)

    def talk(size: int) -> table_pb2.SendChatRequest:
        request = table_pb2.SendChatRequest(table=pair.name, request_id="c", text="")
        request.text = "x" * (size - request.ByteSize() - 4)
        return request

    fits = await refusal(pair.stub.SendChat(talk(MAX_REQUEST_BYTES), metadata=me))
    assert fits.reason == reason_pb2.REASON_FIELD_TOO_LONG
    for stub in (pair.stub, pair.room.tables(pair.owner)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.SendChat(talk(MAX_REQUEST_BYTES + 100), metadata=me)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    # Much metadata, of many calls at once, is no more than the link takes.
    heavy = (*me, *((f"x-{number}", "x" * 1000) for number in range(6)))
    get = table_pb2.GetTableRequest(table=pair.name)
    await asyncio.gather(*(_got(pair.stub.GetTable(get, metadata=heavy)) for _ in range(40)))
    # A command that waits at the owner: the caller's deadline ends the call, not the command.
    actor = pair.owner.tables.actors[pair.table]
    actor._asking = True
    take = table_pb2.TakeSeatRequest(table=pair.name, request_id="sit", seat=1, buy_in=500)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await pair.stub.TakeSeat(take, metadata=me, timeout=0.1)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert actor.waiting == 1
    await until(lambda: not pair.front.links.calls and not pair.owner.landing.calls)
    actor._asking = False
    actor._step()
    again = await pair.stub.TakeSeat(take, metadata=me)
    assert again.version


async def _got(call: Awaitable[table_pb2.TableView]) -> table_pb2.TableView:
    return await call


async def test_who_does_not_read_loses_the_stream_alone(pair: Pair) -> None:
    room = pair.room
    watcher = await room.watch(pair.front, pair.table)
    slow: grpc.aio.StreamStreamCall[bytes, bytes] = room.channel(pair.front.address).stream_stream(
        "/relance.api.table.v1.TableService/Play"
    )(metadata=bearer(room.keys.player("slow")))
    await slow.write(table_pb2.PlayRequest(join=table_pb2.Join(table=pair.name)).SerializeToString())
    assert isinstance(await slow.read(), bytes)
    await pair.streams_at_owner(2)
    actor = pair.owner.tables.actors[pair.table]
    body = table_pb2.PlayResponse(notice=table_pb2.Notice(text="x" * 60_000)).SerializeToString()
    sent = 0

    async def more() -> None:
        nonlocal sent
        while pair.front.router.passed_on == 2 and actor._audience is not None and len(actor._audience.streams) == 2:
            actor.say(bytes(bytearray(body)))
            sent += 1
            await asyncio.sleep(0.001)

    async with asyncio.timeout(20):
        await more()
    assert sent > MAX_WAITING
    await until(lambda: len(watcher.messages) > sent)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _to_the_end(slow)
    refused = from_call(caught.value)
    assert refused is not None
    assert refused.reason == reason_pb2.REASON_SLOW_WATCHER
    assert not watcher.ended


async def test_a_mistake_of_ours_in_one_stream_ends_no_other_of_the_link(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    watcher = await pair.room.watch(pair.front, pair.table)
    for process in (pair.front, pair.owner):
        ann = await pair.room.join(process, pair.table, "ann")
        with monkeypatch.context() as patched:
            patched.setattr(Actor, "post", broken)
            await ann.send(table_pb2.PlayRequest(sit_out=table_pb2.SitOutRequest(request_id="r")))
            await ann.end()
        assert ann.refused().reason == reason_pb2.REASON_INTERNAL
    await pair.streams_at_owner(1)
    assert not watcher.ended


async def _to_the_end(stream: grpc.aio.StreamStreamCall[bytes, bytes]) -> None:
    while isinstance(await stream.read(), bytes):
        pass


async def test_a_table_that_moved_is_looked_for_once_more_and_nothing_is_passed_on_twice(room: Room) -> None:
    first = await room.start(routing="forward", lease=2)
    table = await room.open(first)
    front = await room.start(routing="forward", lease=2)
    me = bearer(room.keys.player("ann"))
    get = table_pb2.GetTableRequest(table=f"tables/{table}")
    await room.tables(front).GetTable(get, metadata=me)  # front knows where it was
    second = await room.start(routing="forward", lease=2)
    floor = bearer(room.keys.operator("floor"))
    await until(lambda: any(row.address == second.address for row in first.observer.living), 30)
    hand = table_pb2.HandOverTableRequest(table=f"tables/{table}", process=second.address)
    handed = await room.admin(front).HandOverTable(hand, metadata=floor)
    assert handed.address == second.address
    assert (await room.tables(front).GetTable(get, metadata=me)).name == f"tables/{table}"
    # Two processes that each take the other for the owner do not send a call back and forth.
    landed = first.landing.calls
    first.router._located[table] = front.address
    front.router._located[table] = first.address
    assert (await room.tables(front).GetTable(get, metadata=me)).name == f"tables/{table}"
    assert first.landing.calls == landed
    # Whoever owns it but does not answer: unavailable, to be asked for again.
    await room.kill(second)
    refused = await refusal(room.tables(front).GetTable(get, metadata=me, timeout=5))
    assert refused.reason == reason_pb2.REASON_TABLE_UNAVAILABLE


def test_every_method_about_one_table_names_it_first() -> None:
    for service in table_pb2.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            field = method.input_type.fields_by_number.get(1)
            if field is None or field.name != "table":
                assert method.name == "Play" or method.name in ANYWHERE, method.name
                assert "table" not in method.input_type.fields_by_name
            else:
                assert field.type == field.TYPE_STRING
    methods = {method.name for service in table_pb2.DESCRIPTOR.services_by_name.values() for method in service.methods}
    assert methods > ANYWHERE


def test_the_table_is_found_wherever_it_stands_in_a_request_and_in_nothing_that_is_none() -> None:
    request = table_pb2.ActRequest(table="tables/t-1", request_id="r", action=table_pb2.Action(turn=2**40))
    raw = request.SerializeToString()
    assert table_of(raw) == "t-1"
    name = table_pb2.ActRequest(table="tables/t-1").SerializeToString()
    rest = table_pb2.ActRequest(request_id="r" * 300, action=request.action).SerializeToString()
    fixed = b"\x79" + b"\0" * 8 + b"\x7d" + b"\0" * 4 + b"\x70\xff\xff\x03"
    assert table_of(fixed + rest + name) == "t-1"
    join = table_pb2.PlayRequest(join=table_pb2.Join(table="tables/t-1", resume_version=7)).SerializeToString()
    assert joined_table(join) == "t-1"
    act = table_pb2.PlayRequest(act=request).SerializeToString()
    endless = b"\x08" + b"\xff" * 10 + b"\x01" + name  # no parser takes a number of more than ten bytes
    for none in (b"", b"\x0a", b"\x0a\xff", raw[:5], b"\x0b\x01", b"\xff" * 20, rest, endless):
        assert table_of(none) == ""
    assert joined_table(act) == joined_table(raw) == ""
    assert table_of(table_pb2.ActRequest(table="tables/A").SerializeToString()) == ""


async def test_what_goes_over_a_link_is_batched_shared_and_cut() -> None:
    outbox = Outbox(link_pb2.LinkResponse, 10 * BATCH_BYTES, lambda: None)
    shared, long = b"shared", bytes(range(256)) * 1000
    for call in (1, 2, 3):
        outbox.push(call, shared)
    outbox.push(2, b"own")
    outbox.push(1, shared)
    outbox.push(4, long)
    outbox.push(5, b"")
    written: list[bytes] = []

    async def write(raw: bytes) -> None:
        written.append(raw)

    outbox.close()
    await outbox.write_all(write)
    assert max(map(len, written)) < MAX_REQUEST_BYTES
    frames = [frame for raw in written for frame in link_pb2.LinkResponse.FromString(raw).frames]
    assert [(list(frame.calls), frame.body) for frame in frames[:3]] == [
        ([1, 2, 3], shared), ([2], b"own"), ([1], shared)
    ]  # fmt: skip
    parts = [frame for frame in frames if list(frame.calls) == [4]]
    assert b"".join(frame.body for frame in parts) == long
    assert [frame.partial for frame in parts] == [True] * (len(parts) - 1) + [False]
    assert list(frames[-1].calls) == [5]
    assert frames[-1].HasField("body")


async def test_what_many_have_missed_waits_until_there_is_room_on_the_link() -> None:
    dropped: list[None] = []
    outbox = Outbox(link_pb2.LinkResponse, 4 * BATCH_BYTES, lambda: dropped.append(None))
    calls = [Landed(number, link_pb2.LinkCall(), outbox, "peer") for number in (1, 2, 3)]
    streams = [Stream("", seated=False, send=call.send) for call in calls]
    for stream in streams:
        for part in range(8):
            stream.push(bytes([part]) * (BATCH_BYTES // 2))
    frames: list[link_pb2.LinkFrame] = []

    async def write(raw: bytes) -> None:
        frames.extend(link_pb2.LinkResponse.FromString(raw).frames)

    async with asyncio.TaskGroup() as group:
        for stream, call in zip(streams, calls, strict=True):
            group.create_task(stream.write_all(call.write))
        group.create_task(outbox.write_all(write))
        await until(lambda: len(frames) == 24)
        now = b"now"
        for stream in streams:  # who has caught up shares what goes to all
            stream.push(now)
            stream.end(None)
        await until(lambda: len(frames) == 25)
        outbox.close()
    assert not dropped
    for number in (1, 2, 3):
        assert [frame.body[:1] for frame in frames if number in frame.calls] == [bytes([part]) for part in range(8)] + [
            b"n"
        ]
    assert list(frames[-1].calls) == [1, 2, 3]
