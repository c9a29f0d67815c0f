"""Several table processes: who gets which tables, and how they change hands while people play (DESIGN 5)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import pytest
from tests.table.support import Room, bearer, refusal, until
from tests.table.test_hand import FOLD, heads_up, play

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.cli.rebalance import Processes, plan, rebalance
from relance.client import Seat, StaleAction, connect
from relance.eventlog import Load, ProcessInfo
from relance.ops.output import Out
from relance.table.placement import Placement
from relance.table.process import Process

LONG = 60.0
LEASE = 2.0
"""Seconds: long enough for processes on a busy machine to keep seeing one another."""


async def see_one_another(processes: Sequence[Process]) -> None:
    """Wait until each knows all others."""
    count = len(processes) - 1
    await until(lambda: all(len(each.observer.living) == count for each in processes), LONG)


def tables_of(process: Process) -> set[str]:
    """The tables that run at a process, with nothing left to do before they go on."""
    return {table for table, actor in process.tables.actors.items() if actor.why is None}


async def test_new_tables_go_where_there_is_least_and_a_dead_owners_are_spread_over_the_survivors(room: Room) -> None:
    first = await room.start(lease=LEASE)
    tables = {await room.open(first, request_id=f"open-{number}") for number in range(24)}
    assert tables_of(first) == tables
    second, third = await room.start(lease=LEASE), await room.start(lease=LEASE)
    await see_one_another([first, second, third])
    more = {await room.open(first, request_id=f"more-{number}") for number in range(8)}
    before = [len(tables_of(each)) for each in (second, third)]
    # Each counts what it gave away itself, but a beat may come between giving and running.
    assert min(before) >= 2
    assert tables_of(first) | tables_of(second) | tables_of(third) == tables | more
    again = await room.open(third, request_id="more-3")  # a repeat, asked elsewhere, is the same table
    assert again in more
    await room.kill(first)
    await until(lambda: tables_of(second) | tables_of(third) == tables | more, LONG)
    assert all(len(tables_of(each)) > count for each, count in zip((second, third), before, strict=True))
    assert not tables_of(second) & tables_of(third)


async def test_a_drained_table_is_anothers_before_the_drain_is_over(room: Room) -> None:
    first = await room.start(lease=LEASE)
    tables = {await room.open(first, request_id=f"open-{number}") for number in range(3)}
    table = min(tables)
    players = await room.seated(first, table, {"ann": 2000, "bob": 3000})
    button, _ = await heads_up(players)
    before = first.tables.actors[table].table
    second = await room.start(lease=LEASE)
    await see_one_another([first, second])
    drain = room.background(first.drain(30))
    await until(lambda: first.tables.host.draining)
    await play(button, FOLD)  # the hand ends, and is paid
    await drain
    assert tables_of(second) == tables
    after = second.tables.actors[table].table
    log = await room.log()
    events = await log.read(table)
    kinds = [event.WhichOneof("payload") for event in events]
    assert "hand_voided" not in kinds
    assert kinds[kinds.index("table_drained") :][1] == "owner_started"
    owners = [event.owner_started.reason for event in events if event.HasField("owner_started")]
    assert owners == [events_pb2.OWNER_REASON_OPENED, events_pb2.OWNER_REASON_HANDOVER]
    assert after.button == before.button
    assert sum(seat.stack for seat in after.seats.values()) + after.rake_taken == 5000


async def test_the_floor_hands_a_table_over_by_name_once_its_hand_is_over(room: Room) -> None:
    first, second = [await room.start(routing="forward", lease=LEASE) for _ in range(2)]
    await see_one_another([first, second])
    table = await room.open(first)
    owner, other = (first, second) if table in first.tables.actors else (second, first)
    players = await room.seated(other, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    floor = bearer(room.keys.operator("floor"))
    admin = room.admin(other)
    name = f"tables/{table}"
    move = table_pb2.HandOverTableRequest(table=name, process=other.tables.host.process)
    unknown = table_pb2.HandOverTableRequest(table=name, process="nobody")
    assert (await refusal(admin.HandOverTable(unknown, metadata=floor))).reason == (reason_pb2.REASON_PROCESS_NOT_FOUND)
    refused = await refusal(admin.HandOverTable(move, metadata=bearer(room.keys.operator("viewer"))))
    assert refused.reason == reason_pb2.REASON_ROLE_REQUIRED
    # Asked twice, the first time by somebody who does not wait for the end of the hand.
    with pytest.raises(Exception, match="DEADLINE_EXCEEDED"):
        await admin.HandOverTable(move, metadata=floor, timeout=0.2)
    waiting = asyncio.ensure_future(admin.HandOverTable(move, metadata=floor))
    await until(lambda: bool(owner.tables.actors[table].leaving))
    pause = table_pb2.PauseTableRequest(table=name, request_id="pause-2")
    await admin.PauseTable(pause, metadata=floor)  # no hand will be in the way of going back
    await play(button, FOLD)
    handed = await waiting
    assert (handed.process, handed.address, handed.fence) == (other.tables.host.process, other.address, 2)
    assert tables_of(other) == {table}
    await button.end()
    assert button.refused().reason == reason_pb2.REASON_TABLE_UNAVAILABLE
    back = table_pb2.HandOverTableRequest(table=name, process=owner.address)
    assert (await room.admin(owner).HandOverTable(back, metadata=floor)).fence == 3
    same = await room.admin(owner).HandOverTable(back, metadata=floor)  # it is there already
    assert (same.address, same.fence) == (owner.address, 3)
    listed = await admin.ListProcesses(table_pb2.ListProcessesRequest(tables=True), metadata=floor)
    found = {
        each.address: [(each.table, each.seats) for each in row.running] for row in listed.processes for each in [row]
    }
    assert found[owner.address] == [(name, 2)]


class Players:
    """People at tables, with the client library, who check or call for ever."""

    def __init__(self, room: Room, lobby: str) -> None:
        self._room, self._lobby = room, lobby
        self.stack = AsyncExitStack()
        self.tasks: list[asyncio.Task[None]] = []
        self.seats: dict[str, Seat] = {}
        self.too_late = 0

    async def sit(self, table: str, *players: str) -> None:
        for player in players:
            await self._room.deposit(player, 100_000)
            client = await self.stack.enter_async_context(connect(self._lobby))
            client.use_token(self._room.keys.player(player))
            seat = self.seats[player] = await self.stack.enter_async_context(client.play(f"tables/{table}"))
            await seat.sit(buy_in=100_000)
            self.tasks.append(asyncio.create_task(self._play(seat)))

    async def _play(self, seat: Seat) -> None:
        while True:
            try:
                async for turn in seat.hand():
                    await turn.check_or_call()
            except StaleAction:  # the hand was voided meanwhile
                self.too_late += 1

    def hands(self) -> Counter[str]:
        """Number of the hand that each sees."""
        return Counter({player: seat.view.last_hand for player, seat in self.seats.items()})

    async def more_hands(self, count: int = 2) -> None:
        """Wait until everyone has seen some more hands. Raises what a player's client raised."""
        before = self.hands()

        def played() -> bool:
            for task in self.tasks:
                if task.done():
                    task.result()
            now = self.hands()
            return all(now[player] >= before[player] + count for player in before)

        await until(played, LONG)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.stack.aclose()


async def test_people_play_on_through_a_rebalance_an_update_of_every_process_and_the_death_of_one(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    first = await room.start(routing="forward", lease=LEASE)
    tables = [
        await room.open(first, request_id=f"open-{number}", choices={"after_crash": "keep_seats"})
        for number in range(4)
    ]
    second = await room.start(routing="forward", lease=LEASE)
    await see_one_another([first, second])
    players = Players(room, await room.lobby((first.address,)))  # one address for everybody
    for number, table in enumerate(tables):
        await players.sit(table, f"ann-{number}", f"bob-{number}")
    await players.more_hands()
    floor = room.keys.operator("floor")
    # By command: half of the tables go to the other process, each between two hands.
    async with AsyncExitStack() as stack:
        processes = Processes(stack, first.address, floor, None, patience=LONG)
        assert await rebalance(processes, Out(), dry_run=True)
        assert len(tables_of(first)) == 4
        capsys.readouterr()
        assert await rebalance(processes, Out(), dry_run=False)
        assert capsys.readouterr().out.count(" moved") == 2
        assert await rebalance(processes, Out(), dry_run=False)
        assert "nothing to move" in capsys.readouterr().out
    assert (len(tables_of(first)), len(tables_of(second))) == (2, 2)
    await players.more_hands()
    # An update: each process ends, another takes its address.
    for old in (first, second):
        address = old.address
        await old.drain(LONG)
        await room.kill(old)
        new = await room.start(routing="forward", lease=LEASE, listen=address)
        if old is first:
            first = new
        else:
            second = new
        await players.more_hands()
        await see_one_another([first, second])
    log = await room.log()
    kinds = [event.WhichOneof("payload") for table in tables for event in await log.read(table)]
    assert "hand_voided" not in kinds
    assert not players.too_late
    # A death: void are the hands of its own tables alone.
    async with AsyncExitStack() as stack:
        assert await rebalance(Processes(stack, first.address, floor, None, patience=LONG), Out(), dry_run=False)
    await players.more_hands()
    own, others = tables_of(second), tables_of(first)
    assert (len(own), len(others)) == (2, 2)
    await room.kill(second)
    await players.more_hands()
    for table in tables:
        voided = [event for event in await log.read(table) if event.HasField("hand_voided")]
        assert len(voided) <= (1 if table in own else 0)
    await players.end()


def test_a_plan_evens_out_what_processes_carry_and_leaves_alone_who_is_being_stopped() -> None:
    def process(address: str, *seats: int, takes: bool = True) -> table_pb2.TableProcess:
        running = [table_pb2.RunningTable(table=f"tables/{address}{n}", seats=each) for n, each in enumerate(seats)]
        return table_pb2.TableProcess(
            id=address, address=address, takes_tables=takes, tables=len(seats), seats=sum(seats), running=running
        )

    def after(*processes: table_pb2.TableProcess) -> dict[str, int]:
        carried = {each.address: each.tables + each.seats for each in processes}
        for move in plan(processes):
            carried[move.source] -= 1 + move.seats
            carried[move.target] += 1 + move.seats
        return carried

    assert plan([process("a", 6, 6, 6)]) == []
    assert plan([process("a", 6), process("b", 6)]) == []
    assert plan([process("a", 6), process("b")]) == []
    assert after(process("a", 6, 6, 6, 6), process("b"), process("c", 2)) == {"a": 14, "b": 7, "c": 10}
    assert after(process("a", *[0] * 10), process("b"), process("c")) == {"a": 4, "b": 3, "c": 3}
    assert plan([process("a", 6, 6), process("b", takes=False)]) == []
    silent = process("b")
    silent.tables = 9
    assert plan([process("a", 6, 6), silent]) == []


def test_many_who_choose_at_once_do_not_all_choose_the_same() -> None:
    others = [ProcessInfo(f"p{number}", f"p{number}:1", 7, Load(number, 0)) for number in range(10)]
    others.append(ProcessInfo("stopping", "s:1", 7, None))
    chosen: Counter[str] = Counter()
    for _ in range(200):
        home = Placement("me", lambda: others, lambda: Load(100, 0)).home()
        assert home is not None
        chosen[home.id] += 1
    assert "stopping" not in chosen
    assert max(chosen.values()) < 100
    assert chosen["p0"] > chosen["p8"]
    one = Placement("me", lambda: others[:2], lambda: Load(3, 0))
    homes = [one.home() for _ in range(6)]
    assert Counter("me" if home is None else home.id for home in homes) == {"p0": 3, "p1": 2, "me": 1}
    assert Placement("me", list, lambda: None).home() is None
    assert Placement("me", list, lambda: None).heir() is None
