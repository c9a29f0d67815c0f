"""What players won and lost at credit tables, followed from the tables' events (V3).

A player's chips are in no ledger: stacks change with every hand while escrow does not. But buy-ins, top-ups, cash-outs
and their being on the way cancel out, so all that a player has, account and tables together, is what came to them from
outside plus the net results of their hands. The chips in a running hand's pot are its players' until the hand ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import Source
from relance.runtime.database import Connection

POSITIONS = "wallet.followed"
TYPES = ("hand_ended",)

_CURRENCY = "SELECT currency FROM wallet.followed WHERE stream = $1"
_OPENED = "UPDATE wallet.followed SET currency = $2 WHERE stream = $1"
_ADD = """
INSERT INTO wallet.winnings (player, credit) VALUES ($1, $2)
ON CONFLICT (player) DO UPDATE SET credit = wallet.winnings.credit + excluded.credit
"""


class Winnings:
    """Takes in credit tables' hands, and is the source that a follower reads them from.

    Tables that play for money are of no interest: once known as such they are not read any further.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._others: set[str] = set()

    async def heads(self) -> Mapping[str, int]:
        """Version of the last event of each table that may be of interest. Raises Unavailable."""
        heads = await self._source.heads()
        return {table: head for table, head in heads.items() if table not in self._others}

    async def read(self, stream: str, after: int, limit: int) -> Sequence[TableEvent]:
        """At most `limit` events of a table after version `after`. Raises Unavailable."""
        return [] if stream in self._others else await self._source.read(stream, after, limit)

    async def take_in(self, connection: Connection, events: Sequence[TableEvent]) -> None:
        """The effect of a table's next events, in the transaction of `connection` that moves the position past them."""
        table = events[0].table
        currency = await connection.fetchval(_CURRENCY, table)
        won: dict[str, int] = {}
        for event in events:
            if event.HasField("table_opened"):
                currency = "credit" if event.table_opened.config.currency == game_pb2.CURRENCY_CREDIT else "eur"
                await connection.execute(_OPENED, table, currency)
            elif currency == "credit" and event.HasField("hand_ended"):
                for result in event.hand_ended.results:
                    won[result.player] = won.get(result.player, 0) + result.net
        if currency != "credit":
            self._others.add(table)
        # In one order everywhere: two tables with the same players never wait for each other in a circle.
        await connection.executemany(_ADD, sorted((player, net) for player, net in won.items() if net))
