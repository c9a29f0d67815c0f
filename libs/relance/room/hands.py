"""The hands of a room as its log tells them: which run, with how many chips in the pot, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import asyncpg
import grpc

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.room.folder import OPERATOR_ROLES, DataFolder

READ_TIMEOUT = 10.0
STILL_SECONDS = 0.05
# The table service's sessions that are at work.
_BUSY = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relance_table' AND state <> 'idle'"
_AFTER = "SELECT body FROM log.event WHERE stream = $1 AND version > $2 ORDER BY version"
PUTS = frozenset({"ante_posted", "blind_posted", "bring_in_posted", "called", "bet_made", "raised"})


@dataclass(slots=True)
class Stake:
    """A player in a hand. Minor units: `stack` before it, `put` into the pot so far."""

    seat: int
    player: str
    stack: int
    put: int = 0


@dataclass(slots=True)
class CashOut:
    """A transfer from the table to a player."""

    transfer: str
    player: str
    amount: int
    settled: bool = False


@dataclass(slots=True)
class VoidedHand:
    """A hand that was voided: what each had put in, what went back, and the cash-outs of the same append."""

    table: str
    hand: int
    reason: events_pb2.VoidReason.ValueType
    stakes: dict[int, Stake]
    refunds: dict[int, events_pb2.Refund]
    left: dict[str, int] = field(default_factory=dict)
    cash_outs: dict[str, CashOut] = field(default_factory=dict)


class TableHands:
    """One table's hands, followed event by event."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.version = 0
        self.fence = 0
        self.ended = 0
        self.hand = 0
        self.stakes: dict[int, Stake] = {}
        self.players: set[str] = set()
        self.voided: list[VoidedHand] = []

    @property
    def pot(self) -> int:
        """Chips in the pot of the running hand, this round's bets included; 0: none, or no hand runs."""
        return sum(stake.put for stake in self.stakes.values())

    @property
    def open_cash_outs(self) -> bool:
        """Whether a cash-out of a voided hand waits for the wallet."""
        return any(not cash_out.settled for cash_out in self._cash_outs())

    def apply(self, event: events_pb2.TableEvent) -> None:
        """Follow one event. Raises ValueError where the log has a gap."""
        if event.version != self.version + 1:
            raise ValueError(f"table {self.table}: version {event.version} follows {self.version}")
        self.version = event.version
        kind = event.WhichOneof("payload")
        if kind in PUTS:
            put = getattr(event, kind)
            self.stakes[put.seat].put += put.amount
        elif kind == "uncalled_returned":
            self.stakes[event.uncalled_returned.seat].put -= event.uncalled_returned.amount
        elif kind == "hand_started":
            self.hand = event.hand
            self.stakes = {p.seat: Stake(p.seat, p.player, p.stack) for p in event.hand_started.players}
            self.players.update(p.player for p in event.hand_started.players)
        elif kind == "hand_ended":
            self.ended += 1
            self._hand_is_over()
        elif kind == "hand_voided":
            self._void(event)
        elif kind == "owner_started":
            self.fence = event.owner_started.fence
        elif kind == "player_left" and event.player_left.reason == events_pb2.LEAVE_REASON_CRASH and self.voided:
            self.voided[-1].left[event.player_left.player] = event.player_left.amount
        elif kind == "transfer_requested":
            self._transfer(event.transfer_requested)
        elif kind == "transfer_settled":
            self._settled(event.transfer_settled.transfer)

    def _hand_is_over(self) -> None:
        self.hand = 0
        self.stakes = {}

    def _void(self, event: events_pb2.TableEvent) -> None:
        refunds = {refund.seat: refund for refund in event.hand_voided.refunds}
        self.voided.append(VoidedHand(self.table, event.hand, event.hand_voided.reason, self.stakes, refunds))
        self._hand_is_over()

    def _transfer(self, asked: events_pb2.TransferRequested) -> None:
        if asked.purpose != events_pb2.TRANSFER_PURPOSE_CASH_OUT or not self.voided:
            return
        hand = self.voided[-1]
        if asked.player in hand.left and asked.player not in hand.cash_outs:
            hand.cash_outs[asked.player] = CashOut(asked.transfer, asked.player, asked.amount)

    def _settled(self, transfer: str) -> None:
        for cash_out in self._cash_outs():
            if cash_out.transfer == transfer:
                cash_out.settled = True

    def _cash_outs(self) -> Iterator[CashOut]:
        return (cash_out for hand in self.voided for cash_out in hand.cash_outs.values())


class Follower:
    """Follows the logs of tables through a table process, as an auditor."""

    def __init__(self, folder: DataFolder, address: str, tables: Sequence[str]) -> None:
        self._folder = folder
        self._channel = grpc.aio.insecure_channel(address)
        self._admin = table_pb2_grpc.TableAdminServiceStub(self._channel)
        self.tables = {name: TableHands(name) for name in tables}

    @property
    def ended(self) -> int:
        """Hands that ended."""
        return sum(table.ended for table in self.tables.values())

    async def follow(self) -> None:
        """Read what is new. Raises grpc.aio.AioRpcError while the table process is away."""
        token = self._folder.operator_token("drill", OPERATOR_ROLES, seconds=60)
        metadata = (("authorization", f"Bearer {token}"),)
        request = table_pb2.ListHeadsRequest(tables=list(self.tables))
        heads = await self._admin.ListHeads(request, metadata=metadata, timeout=READ_TIMEOUT)
        for head in heads.heads:
            table = self.tables[head.table]
            if head.version == table.version:
                continue
            read = table_pb2.ReadStreamRequest(table=head.table, after=table.version)
            async for answer in self._admin.ReadStream(read, metadata=metadata, timeout=READ_TIMEOUT):
                for event in answer.events:
                    table.apply(event)

    async def settle(self, database: asyncpg.Connection[asyncpg.Record]) -> None:
        """Read on to the very end while no table process runs: from the database, once nothing is on its way there.

        `database`: a connection that sees the sessions of others.
        """
        while True:
            read = await self._read(database)
            await asyncio.sleep(STILL_SECONDS)
            if not await database.fetchval(_BUSY) and not await self._read(database) and not read:
                return

    async def _read(self, database: asyncpg.Connection[asyncpg.Record]) -> int:
        """Read what the database has; how many events that were."""
        count = 0
        for name, table in self.tables.items():
            for row in await database.fetch(_AFTER, name.removeprefix("tables/"), table.version):
                table.apply(events_pb2.TableEvent.FromString(row["body"]))
                count += 1
        return count

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()
