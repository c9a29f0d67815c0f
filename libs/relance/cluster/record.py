"""What the log says of the room's hands and of who runs which table, read past every pod."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeAlias

import asyncpg

from relance.api.events.v1 import events_pb2
from relance.room.hands import TableHands, VoidedHand

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Hand = tuple[str, int]
"""A table and the number of one of its hands."""

AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
STILL_SECONDS = 0.05
STILL_LIMIT = 20.0

_STREAMS = """
SELECT s.stream, s.head, s.fence, s.writer, coalesce(p.address, '') AS address
FROM log.stream s LEFT JOIN log.process p ON p.id = s.writer ORDER BY s.stream
"""
_BEATS = "SELECT id, address, beat FROM log.process"
_AFTER = "SELECT body FROM log.event WHERE stream = $1 AND version > $2 ORDER BY version"
_BUSY = "SELECT count(*) FROM pg_stat_activity WHERE host(client_addr) = $1 AND state = 'active'"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who runs a table: its process, '' where it was given up; the address of that; the fence."""

    process: str
    address: str
    fence: int


class Record:
    """Follows the log of all tables through the database at `url`, as its owner."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self.tables: dict[str, TableHands] = {}
        self.owners: dict[str, Owner] = {}
        self.beats: dict[tuple[str, str], int] = {}
        """The last beat of each table process by the address of its pod and its id."""
        self.ended = 0

    @property
    def voided(self) -> list[VoidedHand]:
        """All hands that were voided so far."""
        return [hand for table in self.tables.values() for hand in table.voided]

    async def follow(self) -> int:
        """Read what is new; how many events that was. Raises what AWAY names, ValueError where the log has a gap."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(self._url, timeout=10)
        count = 0
        beats = await self._connection.fetch(_BEATS)
        self.beats = {(row["address"].rpartition(":")[0], row["id"]): row["beat"] for row in beats}
        for row in await self._connection.fetch(_STREAMS):
            stream = row["stream"]
            self.owners[stream] = Owner(row["writer"], row["address"], row["fence"])
            table = self.tables.setdefault(stream, TableHands(stream))
            if row["head"] > table.version:
                ended = table.ended
                for event in await self._connection.fetch(_AFTER, stream, table.version):
                    table.apply(events_pb2.TableEvent.FromString(event["body"]))
                    count += 1
                self.ended += table.ended - ended
        return count

    async def still(self, address: str) -> set[Hand]:
        """The hands that run at the tables of the pod at an address, which writes no more (it stands still, or is cut
        off): read once nothing of it is on its way in the database. Raises TimeoutError.
        """
        async with asyncio.timeout(STILL_LIMIT):
            while True:
                await self.follow()
                before = self._heads(address)
                await asyncio.sleep(STILL_SECONDS)
                assert self._connection is not None
                busy = await self._connection.fetchval(_BUSY, address)
                await self.follow()
                if not busy and self._heads(address) == before:
                    return {(name, self.tables[name].hand) for name in before if self.tables[name].hand}

    def run_by(self, address: str) -> list[str]:
        """The tables that the pod at an address runs."""
        return [stream for stream, owner in self.owners.items() if owner.address.rpartition(":")[0] == address]

    def running(self, address: str) -> int:
        """How many of its tables have a hand with chips in the pot."""
        return sum(self.tables[name].pot > 0 for name in self.run_by(address))

    def unowned(self, addresses: set[str]) -> list[str]:
        """The tables that none of the pods at these addresses runs."""
        return [name for name, owner in self.owners.items() if owner.address.rpartition(":")[0] not in addresses]

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.terminate()

    def _heads(self, address: str) -> dict[str, int]:
        return {name: self.tables[name].version for name in self.run_by(address)}


def not_refunded(hand: VoidedHand) -> list[str]:
    """Where a voided hand did not give back what was put in; a sentence for each seat."""
    faults = []
    for stake in hand.stakes.values():
        refund = hand.refunds.get(stake.seat, events_pb2.Refund(amount=0, stack=stake.stack))
        if refund.amount != stake.put or refund.stack != stake.stack:
            faults.append(
                f"table {hand.table}, hand {hand.hand}, seat {stake.seat}: {stake.put} put in and {refund.amount} "
                f"refunded, a stack of {stake.stack} before and {refund.stack} after"
            )
    return faults
