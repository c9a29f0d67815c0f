"""One table without a network: the real actor on a log in memory, a simulated clock and a wallet that a test drives."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry

from relance.api.common.v1.game_pb2 import Currency, TableConfig
from relance.api.events.v1 import events_pb2 as pb
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.eventlog import MemoryLog
from relance.eventlog.memory import MemoryStore
from relance.poker import Rejected, Request, Seat, Table, Transfer
from relance.poker.commands import Command, OpenTable, TransferAnswered
from relance.poker.deck import VirtualDeck
from relance.runtime.clock import SimulatedClock
from relance.runtime.errors import Refused
from relance.table.actor import Actor
from relance.table.host import Host
from relance.table.metrics import TableMetrics
from relance.table.streams import Stream
from relance.table.tables import Tables
from relance.table.timers import Timers

TABLE = "t"
INBOUND = frozenset({pb.TRANSFER_PURPOSE_BUY_IN, pb.TRANSFER_PURPOSE_TOP_UP})


class Wallet:
    """Accounts, and what is asked of them. Answers when it is told to; a known transfer has the same answer."""

    def __init__(self, balance: int) -> None:
        self.first = balance
        self.balances: dict[str, int] = {}
        self.escrow = 0
        self.open: dict[str, Transfer] = {}
        self.answers: dict[str, bool] = {}

    def ask(self, table: str, currency: Currency.ValueType, asked: Iterable[Transfer]) -> None:
        """See Asking."""
        self.open.update({each.id: each for each in asked})

    def cash_out(self, account: str) -> str:
        """See Asking."""
        return ""

    def forget(self, table: str) -> None:
        """See Asking."""
        self.open.clear()

    def answer(self, transfer: Transfer) -> TransferAnswered:
        """The final answer to one transfer."""
        del self.open[transfer.id]
        if transfer.id not in self.answers:
            balance = self.balances.setdefault(transfer.player, self.first)
            inbound = transfer.purpose in INBOUND
            settled = not inbound or balance >= transfer.amount
            moved = (transfer.amount if inbound else -transfer.amount) if settled else 0
            self.balances[transfer.player] = balance - moved
            self.escrow += moved
            self.answers[transfer.id] = settled
        settled = self.answers[transfer.id]
        return TransferAnswered(transfer.id, settled, "" if settled else "NO_MONEY")


class Silent:
    """Nobody follows: what a table needs of NATS."""

    def adopt_at(self, stream: str, head: int, mark: int) -> None:
        """See Publishing."""

    def finish(self, stream: str) -> None:
        """See Publishing."""

    def drop(self, stream: str) -> None:
        """See Publishing."""

    def publish(self, stream: str, events: Sequence[TableEvent], body: bytes | None = None) -> None:
        """See Publishing."""


class Lobby:
    """Two protections a player (C2)."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def use(self, table: Table, seat: Seat, answer: Callable[[bool], None]) -> None:
        """See Protections."""
        self.used[seat.player] = self.used.get(seat.player, 0) + 1
        answer(self.used[seat.player] <= 2)


class Simulation:
    """A table with its process, which may crash and be taken over by the next one."""

    def __init__(self, config: TableConfig, seed: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = SimulatedClock()
        self.random = random.Random(seed)
        self.store = MemoryStore()
        self.wallet = Wallet(10_000)
        self.streams: dict[str, list[tuple[Stream, asyncio.Future[None]]]] = {}
        self.lobby = Lobby()
        self.requests = 0
        self.tables = self._process("p1")
        self.run(self.tables.open(TABLE, OpenTable(config), Request("open", b"", "")))
        self.log = MemoryLog("reader", self.store)

    def _process(self, name: str) -> Tables:
        rnd = self.random
        host = Host(
            process=name, log=MemoryLog(name, self.store), clock=self.clock, timers=Timers(self.clock),
            metrics=TableMetrics(CollectorRegistry()), publisher=Silent(), transfers=self.wallet,
            protections=self.lobby, deck=lambda table: VirtualDeck(rnd.shuffle, rnd.randbytes),
            rake=lambda table: None,
        )  # fmt: skip
        return Tables(host)

    def run(self, work: object) -> None:
        """Run to the end, and what it wakes up."""

        async def whole() -> None:
            await work  # type: ignore[misc]
            await self.clock.advance(0)

        self.loop.run_until_complete(whole())

    @property
    def actor(self) -> Actor:
        """The table's owner."""
        return self.tables.actors[TABLE]

    @property
    def table(self) -> Table:
        """The live state."""
        return self.actor.table

    def ask(self, player: str, command: Command) -> str:
        """A player's command; the reason of its refusal, or nothing."""
        self.requests += 1
        outcome: list[str] = []

        async def asked() -> None:
            request = Request(str(self.requests), b"", player)
            waiting = asyncio.ensure_future(self.actor.ask(command, request))
            await self.clock.advance(0)
            try:
                await asyncio.wait_for(waiting, 1)
                outcome.append("")
            except (Rejected, Refused) as refused:
                outcome.append(str(refused))

        self.run(asked())
        assert "fault" not in outcome[0], f"{command}: {outcome[0]}"
        return outcome[0]

    def join(self, player: str) -> None:
        """A Play stream of the player's."""

        async def joined() -> None:
            stream = Stream(player, seated=True)
            self.actor.attach(stream, table_pb2.Welcome(), [])

            async def read(message: bytes) -> None:
                table_pb2.PlayResponse.FromString(message)

            reader = asyncio.ensure_future(stream.write_all(read))
            self.streams.setdefault(player, []).append((stream, reader))

        self.run(joined())

    def drop(self, player: str) -> None:
        """The connection breaks."""
        streams = self.streams.pop(player, [])

        async def dropped() -> None:
            for stream, reader in streams:
                self.actor.detach(stream)
                stream.end(None)
                await reader

        self.run(dropped())

    def pass_time(self, seconds: float) -> None:
        """Time goes by."""
        self.run(self.clock.advance(seconds))

    def settle(self, count: int) -> None:
        """The wallet answers what was asked first."""
        for transfer in list(self.wallet.open.values())[:count]:
            command = self.wallet.answer(transfer)

            async def told(command: TransferAnswered = command) -> None:
                self.tables.tell(TABLE, command)

            self.run(told())

    def crash(self, name: str) -> None:
        """The process is gone and another takes the table over; its players' streams are gone with it."""
        before = self.tables
        fence = self.actor.fence

        async def over() -> None:
            for streams in self.streams.values():
                for stream, reader in streams:
                    stream.end(None)
                    await reader
            self.streams.clear()
            before.host.timers.stop()
            self.tables = self._process(name)
            await self.tables.claim({TABLE: fence})

        self.run(over())

    def events(self) -> list[TableEvent]:
        """The whole log."""
        return self.loop.run_until_complete(self.log.read(TABLE))

    def close(self) -> None:
        """End."""
        for player in list(self.streams):
            self.drop(player)
        self.loop.close()
