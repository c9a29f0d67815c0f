"""The rake service's methods."""

from __future__ import annotations

from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.rake.v1 import rake_pb2, rake_pb2_grpc
from relance.poker.rake import MOST_PLAYERS, check_tiers, quote, rake_for
from relance.rake.collect import Collector
from relance.rake.report import report
from relance.rake.schedules import Schedules
from relance.runtime import validation
from relance.runtime.auth import AUDITOR, CASHIER, FLOOR, Context, identity, require
from relance.runtime.database import Pool

_MOST_POTS = 10
_LONGEST_REASON = 500


class RakeService(rake_pb2_grpc.RakeServiceServicer):
    """Schedules, quotes and reports."""

    def __init__(self, pool: Pool, schedules: Schedules, collector: Collector) -> None:
        self._pool, self._schedules, self._collector = pool, schedules, collector

    async def GetSchedule(self, request: rake_pb2.GetScheduleRequest, context: Context) -> RakeSchedule:
        """The schedule that a table of these stakes has now."""
        identity(context)
        return await self._schedules.get(request)

    async def PutSchedule(self, request: rake_pb2.PutScheduleRequest, context: Context) -> RakeSchedule:
        """A new version of a band; tables adopt it at their next hand."""
        caller = require(context, FLOOR)
        request_id = validation.request_id(request.request_id)
        validation.present(request, "schedule")
        return await self._schedules.put(request.schedule, caller.subject, request_id)

    async def Quote(self, request: rake_pb2.QuoteRequest, context: Context) -> rake_pb2.QuoteResponse:
        """A figure, and how it comes about (K2, K3)."""
        identity(context)
        validation.present(request, "schedule")
        check_tiers(request.schedule.tiers)
        validation.whole(request.players, "players", least=2, most=MOST_PLAYERS)
        validation.whole(len(request.pots), "pots", least=1, most=_MOST_POTS)
        for pot in request.pots:
            validation.amount(pot, "pots", least=0)
        rake, by_pot = rake_for(request.schedule, request.pots, request.players)
        return rake_pb2.QuoteResponse(
            rake=rake, by_pot=by_pot, steps=quote(request.schedule, request.pots, request.players)
        )

    async def Report(self, request: rake_pb2.ReportRequest, context: Context) -> rake_pb2.ReportResponse:
        """What was raked and collected."""
        require(context, AUDITOR, CASHIER)
        return await report(self._pool, request)

    async def ReleaseCollection(
        self, request: rake_pb2.ReleaseCollectionRequest, context: Context
    ) -> rake_pb2.ReleaseCollectionResponse:
        """Let a collection go on that waits for people."""
        caller = require(context, FLOOR)
        table = validation.table_id(request.table)
        reason = validation.text(request.reason, "reason", longest=_LONGEST_REASON)
        rake = await self._collector.release(table, request.hand, caller.subject, reason)
        return rake_pb2.ReleaseCollectionResponse(rake=rake)
