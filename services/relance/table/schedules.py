"""The rake schedules in force, as the rake service has them: a table adopts a newer version at its next hand."""

from __future__ import annotations

import grpc
import structlog

from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.rake.v1 import rake_pb2, rake_pb2_grpc
from relance.poker import Table
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock

log = structlog.get_logger(__name__)

PERIOD_SECONDS = 30.0
DEADLINE_SECONDS = 3.0


class Schedules:
    """Newest version of each band that some table here is raked by. Without an answer, what is in force stays so."""

    def __init__(self, stub: rake_pb2_grpc.RakeServiceAsyncStub, token: ServiceToken, clock: Clock) -> None:
        self._stub = stub
        self._token = token
        self._clock = clock
        self._wanted: dict[tuple[str, str], rake_pb2.GetScheduleRequest] = {}
        self._newest: dict[tuple[str, str], RakeSchedule] = {}

    def newer(self, table: Table) -> RakeSchedule | None:
        """The schedule that a table's next hand should adopt; None: the one that it has."""
        rake, config = table.rake, table.config
        if rake is None or config is None or not rake.tiers:
            return None
        band = (rake.id, rake.band)
        if band not in self._wanted:
            self._wanted[band] = rake_pb2.GetScheduleRequest(
                house=config.house,
                game=config.game,
                limit=config.limit,
                low_limit=config.stakes.low_limit,
                currency=config.currency,
            )
        newest = self._newest.get(band)
        return newest if newest is not None and newest.version > rake.version else None

    async def run(self) -> None:
        """Ask from time to time, for ever."""
        while True:
            for band, request in list(self._wanted.items()):
                await self._ask(band, request)
            await self._clock.sleep(PERIOD_SECONDS)

    async def _ask(self, band: tuple[str, str], request: rake_pb2.GetScheduleRequest) -> None:
        try:
            found = await self._stub.GetSchedule(request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata())
        except grpc.aio.AioRpcError as error:
            log.info("rake service gave no schedule", band=band, code=error.code().name)
            return
        if (found.id, found.band) == band:
            self._newest[band] = found
