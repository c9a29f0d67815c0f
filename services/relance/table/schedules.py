"""The rake schedules in force, as the rake service has them: a table adopts a newer version at its next hand."""

from __future__ import annotations

import asyncio

import grpc
import structlog

from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.rake.v1 import rake_pb2, rake_pb2_grpc
from relance.poker import Table
from relance.poker.rake import no_rake
from relance.runtime import logging
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import Clock

log = structlog.get_logger(__name__)

PERIOD_SECONDS = 5.0
UNRAKED = no_rake().id
DEADLINE_SECONDS = 3.0


class Schedules:
    """Newest version of each band that some table here is raked by. Without an answer, what is in force stays so."""

    def __init__(self, stub: rake_pb2_grpc.RakeServiceAsyncStub, token: ServiceToken, clock: Clock) -> None:
        self._stub = stub
        self._token = token
        self._clock = clock
        self._wanted: dict[tuple[str, str], rake_pb2.GetScheduleRequest] = {}
        self._newest: dict[tuple[str, str], RakeSchedule] = {}
        self._fresh = asyncio.Event()

    def newer(self, table: Table) -> RakeSchedule | None:
        """The schedule that a table's next hand should adopt; None: the one that it has."""
        rake, config = table.rake, table.config
        if rake is None or config is None or rake.id == UNRAKED:
            return None  # a band without tiers may get some again; a table that was never raked has no band
        band = (rake.id, rake.band)
        if band not in self._wanted:
            self._fresh.set()
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
        """Ask from time to time, and at once for a band that was not wanted before, for ever."""
        while True:
            self._fresh.clear()
            with logging.request():
                for band, request in list(self._wanted.items()):
                    await self._ask(band, request)
            waits = [
                asyncio.ensure_future(self._clock.sleep(PERIOD_SECONDS)),
                asyncio.ensure_future(self._fresh.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    async def _ask(self, band: tuple[str, str], request: rake_pb2.GetScheduleRequest) -> None:
        try:
            found = await self._stub.GetSchedule(request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata())
        except grpc.aio.AioRpcError as error:
            log.info("rake service gave no schedule", band=band, code=error.code().name)
            return
        if (found.id, found.band) == band:
            self._newest[band] = found
