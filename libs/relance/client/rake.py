"""What hands cost (K1-K7): schedules and quotes for everybody, reports and collections for operators."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, Literal

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.api.rake.v1 import rake_pb2
from relance.client.connection import Connection, Method, Request, Response
from relance.client.credentials import Credentials
from relance.client.names import table_name

GroupName = Literal["day", "table", "house", "limit", "player"]
_GROUPS: Final = {
    "day": rake_pb2.REPORT_GROUP_DAY,
    "table": rake_pb2.REPORT_GROUP_TABLE,
    "house": rake_pb2.REPORT_GROUP_HOUSE,
    "limit": rake_pb2.REPORT_GROUP_LIMIT,
    "player": rake_pb2.REPORT_GROUP_PLAYER,
}


class Rake:
    """Rake. Amounts are minor units. Methods raise RelanceError."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def schedule(self, config: game_pb2.TableConfig) -> game_pb2.RakeSchedule:
        """The schedule that a table of this house, game, limit, low limit and currency has now (K7)."""
        request = rake_pb2.GetScheduleRequest(
            house=config.house,
            game=config.game,
            limit=config.limit,
            low_limit=config.stakes.low_limit,
            currency=config.currency,
        )
        return await self._call(lambda peer: peer.rake.GetSchedule, request)

    async def quote(self, schedule: game_pb2.RakeSchedule, pots: Sequence[int], players: int) -> rake_pb2.QuoteResponse:
        """The rake of a hand with these pots, from the main pot up, explained step by step (K2, K3)."""
        request = rake_pb2.QuoteRequest(schedule=schedule, pots=pots, players=players)
        return await self._call(lambda peer: peer.rake.Quote, request)

    async def put(self, schedule: game_pb2.RakeSchedule, *, request_id: str = "") -> game_pb2.RakeSchedule:
        """The next version of a band; tables adopt it at their next hand. Role floor. Raises SCHEDULE_VERSION."""
        request = rake_pb2.PutScheduleRequest(request_id=request_id or uuid.uuid4().hex, schedule=schedule)
        return await self._call(lambda peer: peer.rake.PutSchedule, request)

    async def report(
        self, group: GroupName = "table", *, since_us: int = 0, until_us: int = 0
    ) -> list[rake_pb2.ReportRow]:
        """Rake of hands that ended in a time, in microseconds since 1970 UTC (0: no limit). Roles auditor, cashier."""
        request = rake_pb2.ReportRequest(group=_GROUPS[group], since_us=since_us, until_us=until_us)
        return list((await self._call(lambda peer: peer.rake.Report, request)).rows)

    async def release(self, table: str | lobby_pb2.Table, hand: int, reason: str) -> int:
        """Collect after all what a mismatch or the wallet stopped; the rake collected. Role floor."""
        request = rake_pb2.ReleaseCollectionRequest(table=table_name(table), hand=hand, reason=reason)
        return (await self._call(lambda peer: peer.rake.ReleaseCollection, request)).rake

    async def _call(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.rake, method, request, self._credentials)
