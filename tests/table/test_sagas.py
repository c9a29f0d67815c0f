"""Kill points of every saga between table and wallet: dead at each step, on either side, and nobody loses a cent.

    a request -> [asked] append -> [requested] ask the wallet -> [before] the wallet's commit -> [after] its answer
    -> [answered] append -> [settled] everybody knows

The ports at each step stop for ever at the point that is armed; then the process is killed there and rebuilt on the
same database. A player's total, account and stack, is what they deposited: nobody plays a hand to its end here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Keys, Room, bearer, beside, until

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.ops.audit import audit
from relance.room.embedded import Nats, Postgres
from relance.room.ports import free_port
from relance.runtime.clock import SystemClock
from relance.table.process import Process
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

POINTS = ("asked", "requested", "before", "after", "answered", "settled")
REQUESTED, SETTLED = "transfer_requested", "transfer_settled"
FUNDS, BUY_IN, TOP_UP = 10_000, 4_000, 1_000


class Kill:
    """The point at which to die; `reached` once somebody stands there."""

    def __init__(self) -> None:
        self.point = ""
        self.reached = asyncio.Event()

    def arm(self, point: str) -> None:
        """The next one who comes to the point stops there."""
        self.point = point
        self.reached.clear()

    def here(self, point: str) -> bool:
        """Whether to stop at this point, for ever."""
        if self.point != point:
            return False
        self.point = ""
        self.reached.set()
        return True


class MortalLog:
    """The real log, with the points before and after an append that asks for a transfer or knows its answer."""

    def __init__(self, real: Any, kill: Kill) -> None:
        self._real, self._kill = real, kill

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def append(self, stream: str, expected: int, fence: int, events: Sequence[TableEvent]) -> asyncio.Future[int]:
        kinds = {event.WhichOneof("payload") for event in events}
        before, after = ("asked", "requested") if REQUESTED in kinds else ("answered", "settled")
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if not kinds & {REQUESTED, SETTLED}:
            return self._real.append(stream, expected, fence, events)  # type: ignore[no-any-return]
        if self._kill.here(before):
            return never
        if self._kill.point == after:
            future = self._real.append(stream, expected, fence, events)
            future.add_done_callback(lambda _: self._kill.here(after))
            return never
        return self._real.append(stream, expected, fence, events)  # type: ignore[no-any-return]


class MortalWallet(wallet_pb2_grpc.LedgerServiceServicer):
    """Stands between tables and the wallet: dies before or after its commit, asks twice at once, or is not there."""

    def __init__(self, kill: Kill) -> None:
        self.kill = kill
        self.real: wallet_pb2_grpc.LedgerServiceAsyncStub
        self.down = False
        self.twice = False
        self.lost: set[str] = set()
        """Points at which the wallet dies instead of the table: its caller gets no answer."""

    async def BatchTransfer(self, request: wallet_pb2.BatchTransferRequest, context: Any) -> Any:
        metadata = [(key, value) for key, value in context.invocation_metadata() if key == "authorization"]
        if self.down:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "down")
        if "before" in self.lost:
            self.lost.remove("before")
            await context.abort(grpc.StatusCode.UNAVAILABLE, "died before it did anything")
        if self.kill.here("before"):
            await asyncio.Event().wait()
        calls = [self.real.BatchTransfer(request, metadata=metadata) for _ in range(1 + self.twice)]
        answers = await asyncio.gather(*calls)
        if "after" in self.lost:
            self.lost.remove("after")
            await context.abort(grpc.StatusCode.UNAVAILABLE, "died after its commit")
        if self.kill.here("after"):
            await asyncio.Event().wait()
        return random.choice(answers)


class Sagas:
    """A room whose table process dies where it is told to."""

    def __init__(self, room: Room, wallet: MortalWallet, address: str) -> None:
        self.room, self.wallet, self.kill, self._address = room, wallet, wallet.kill, address
        self.tables = 0
        self.players: dict[str, int] = {}
        self.process: Process

    async def start(self, clock: SystemClock | None = None) -> Process:
        """A table process; the tables of the one that died are its own soon."""
        self.process = await self.room.start(wallet=self._address, lease=0.2, clock=clock)
        host = self.process.tables.host
        host.log = MortalLog(host.log, self.kill)
        return self.process

    async def die(self) -> None:
        """Die at the point that was armed, and begin again as another process."""
        async with asyncio.timeout(20):
            await self.kill.reached.wait()
        await self.room.kill(self.process)
        await self.start()

    async def table(self, player: str, *, seated: int = 0) -> str:
        """A new table and a new player with money, in seat 1 with some of it."""
        self.tables += 1
        table = await self.room.open(self.process, request_id=f"open-{self.tables}")
        await self.room.deposit(player, FUNDS)
        self.players[player] = FUNDS
        if seated:
            await self.ask("TakeSeat", player, table, seat=1, buy_in=seated)
            await self.settled()
        return table

    async def ask(self, method: str, player: str, table: str, **fields: Any) -> None:
        """Ask for something and wait for the answer."""
        await self.begin(method, player, table, **fields)

    def begin(self, method: str, player: str, table: str, **fields: Any) -> Any:
        """Ask for something; the answer may never come."""
        kind = getattr(table_pb2, f"{method}Request")
        request = kind(table=f"tables/{table}", request_id=f"{method}-{player}", **fields)
        stub = self.room.tables(self.process)
        return getattr(stub, method)(request, metadata=bearer(self.room.keys.player(player)))

    async def settled(self) -> None:
        """Wait until every table runs here and no transfer is open."""
        actors = self.process.tables.actors

        def calm() -> bool:
            running = [actor for actor in actors.values() if actor.why is None]
            return len(running) == self.tables and not any(actor.table.transfers for actor in running)

        await until(calm, 30)

    async def as_the_model_says(self) -> None:
        """Every player has what they deposited, and the audit finds nothing."""
        await self.settled()
        stacks: dict[str, int] = {}
        for actor in self.process.tables.actors.values():
            for seat in actor.table.seats.values():
                stacks[seat.player] = stacks.get(seat.player, 0) + seat.stack + seat.held
        for player, funds in self.players.items():
            assert await self.room.balance(player) + stacks.get(player, 0) == funds, player
        report = await audit(self.room.database)
        assert report.ok, [str(finding) for finding in report.findings]
        assert report.figures.in_flight == 0


@pytest_asyncio.fixture
async def sagas(migrated: Migrated, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Sagas]:
    """A wallet, and a table process that dies where it is told to."""
    url = await migrated("relance.eventlog", "relance.table", "relance.wallet")
    keys = Keys(tmp_path)
    settings = WalletSettings(
        database_url=SecretStr(url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
        signing_key=keys.service_key,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        address = await beside(stack, started(settings))
        room = Room(stack, keys, url, nats_server.url, address)
        wallet = MortalWallet(Kill())  # type: ignore[abstract]
        wallet.real = room.ledger
        server = grpc.aio.server()
        wallet_pb2_grpc.add_LedgerServiceServicer_to_server(wallet, server)
        between = f"127.0.0.1:{free_port()}"
        server.add_insecure_port(between)
        await server.start()
        stack.push_async_callback(server.stop, 0)
        made = Sagas(room, wallet, between)
        await made.start()
        yield made


async def buy_in(sagas: Sagas, player: str) -> Any:
    table = await sagas.table(player)
    return lambda: sagas.begin("TakeSeat", player, table, seat=1, buy_in=BUY_IN)


async def top_up(sagas: Sagas, player: str) -> Any:
    table = await sagas.table(player, seated=BUY_IN)
    return lambda: sagas.begin("AddChips", player, table, amount=TOP_UP)


async def cash_out(sagas: Sagas, player: str) -> Any:
    table = await sagas.table(player, seated=BUY_IN)
    return lambda: sagas.begin("LeaveSeat", player, table)


@pytest.mark.parametrize("saga", [buy_in, top_up, cash_out])
async def test_a_table_process_that_dies_at_any_step_loses_and_doubles_nothing(sagas: Sagas, saga: Any) -> None:
    for point in POINTS:
        begin = await saga(sagas, f"p-{point}")
        sagas.kill.arm(point)
        call = asyncio.ensure_future(_outcome(begin()))
        await sagas.die()
        await call
        await sagas.as_the_model_says()


@pytest.mark.parametrize("saga", [buy_in, top_up, cash_out])
async def test_a_wallet_that_dies_before_or_after_its_commit_loses_and_doubles_nothing(sagas: Sagas, saga: Any) -> None:
    for point in ("before", "after"):
        begin = await saga(sagas, f"p-{point}")
        sagas.wallet.lost.add(point)
        await begin()
        await until(lambda: not sagas.wallet.lost)
        await sagas.as_the_model_says()


async def test_C3_the_cash_outs_after_a_crash_survive_a_death_at_any_step(sagas: Sagas) -> None:
    for point in POINTS:
        table = await sagas.table(f"p-{point}", seated=BUY_IN)
        await sagas.room.kill(sagas.process)
        sagas.kill.arm(point)
        await sagas.start()  # takes the table over, and dies of it
        await sagas.die()
        await sagas.as_the_model_says()
        assert sagas.process.tables.actors[table].table.seats == {}
        assert await sagas.room.balance(f"p-{point}") == FUNDS


async def test_the_same_order_twice_at_once_moves_once(sagas: Sagas) -> None:
    sagas.wallet.twice = True
    for saga in (buy_in, top_up, cash_out):
        await (await saga(sagas, f"p-{saga.__name__.replace('_', '-')}"))()
    await sagas.as_the_model_says()


async def test_a_wallet_that_is_down_for_long_stops_no_play_and_everything_settles_later(sagas: Sagas) -> None:
    table = await sagas.table("ann", seated=BUY_IN)
    await sagas.room.deposit("bob", FUNDS)
    sagas.players["bob"] = FUNDS
    await sagas.ask("TakeSeat", "bob", table, seat=2, buy_in=BUY_IN)
    await sagas.settled()
    sagas.wallet.down = True
    cat = await sagas.table("cat")
    await sagas.ask("TakeSeat", "cat", cat, seat=1, buy_in=BUY_IN)
    await sagas.ask("AddChips", "ann", table, amount=TOP_UP)
    actor = sagas.process.tables.actors[table]
    clients = {n: await sagas.room.join(sagas.process, table, player) for n, player in ((1, "ann"), (2, "bob"))}
    hands = actor.table.last_hand
    last = 0
    while actor.table.last_hand < hands + 3:  # fold, hand after hand
        await _asked(clients, last)
        asked = max((c.prompt for c in clients.values() if c.prompt is not None), key=lambda prompt: prompt.turn)
        last = asked.turn
        await clients[asked.seat].act(table_pb2.ACTION_KIND_FOLD, turn=asked.turn)
    assert len(actor.table.transfers) == 1
    sagas.wallet.down = False
    await sagas.settled()
    assert sagas.process.tables.actors[cat].table.seats[1].stack == BUY_IN
    # Between hands or in one: a seat's stack counts what its player has in the pot.
    chips = sum(seat.stack + seat.held for seat in actor.table.seats.values())
    assert await sagas.room.balance("ann") + await sagas.room.balance("bob") + chips == 2 * FUNDS
    assert (await audit(sagas.room.database)).ok


class JumpingClock(SystemClock):
    """A wall clock that somebody sets by a day, back and forth, all the time."""

    def now_us(self) -> int:
        return super().now_us() + random.randrange(-86_400_000_000, 86_400_000_000)


async def test_a_clock_that_jumps_moves_no_money_twice(sagas: Sagas) -> None:
    await sagas.room.kill(sagas.process)
    await sagas.start(JumpingClock())
    outcomes = set()
    for number in range(3):
        for name, saga in (("in", buy_in), ("more", top_up), ("out", cash_out)):
            begin = await saga(sagas, f"p{number}-{name}")
            outcomes.add(await _outcome(begin()))
    # A seat whose time ran out under its buy-in is free, and the money is back with the player.
    assert outcomes <= {"OK", "FAILED_PRECONDITION"}
    await sagas.as_the_model_says()


async def test_the_database_shot_while_players_come_and_go(sagas: Sagas, postgres: Postgres) -> None:
    begins = [await saga(sagas, f"p{n}-{name}") for n in range(3) for name, saga in (("in", buy_in), ("out", cash_out))]
    calls = [asyncio.ensure_future(_outcome(begin())) for begin in begins]
    await asyncio.sleep(0)
    postgres.stop(fast=False)
    postgres.start()  # on this thread: a server started by another one ends with it
    await asyncio.wait(calls)
    await sagas.as_the_model_says()


async def _outcome(call: Any) -> str:
    """The gRPC code that a call ended with."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


async def _asked(clients: Any, after: int) -> None:
    await until(lambda: any(c.prompt is not None and c.prompt.turn > after for c in clients.values()))
