"""Rake schedules (K4-K7): the houses' own as the first versions, and what operators put after them."""

from __future__ import annotations

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.common.v1.game_pb2 import RakeSchedule
from relance.api.rake.v1 import rake_pb2
from relance.poker.houses import HOUSES, load
from relance.poker.rake import check_tiers, schedule_for
from relance.runtime import validation
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused

_NEWEST = "SELECT body FROM rake.schedule WHERE id = $1 AND band = $2 ORDER BY version DESC LIMIT 1"
_VERSION = "SELECT body FROM rake.schedule WHERE id = $1 AND band = $2 AND version = $3"
_INSERT = """
INSERT INTO rake.schedule (id, band, version, body, put_by, put_at, request_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT DO NOTHING RETURNING version
"""
_ASKED = "SELECT body FROM rake.schedule WHERE put_by = $1 AND request_id = $2"


class Schedules:
    """The houses' schedules: versions put into the database, before them the houses' own."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool, self._clock = pool, clock

    async def get(self, request: rake_pb2.GetScheduleRequest) -> RakeSchedule:
        """The newest version of the band that stakes fall into (K7). Raises Refused or Rejected SCHEDULE_NOT_FOUND."""
        if request.house not in HOUSES:
            raise _unknown(request.house)
        validation.enum(request.limit, game_pb2.Limit, "limit")
        validation.enum(request.currency, game_pb2.Currency, "currency")
        own = schedule_for(load(request.house), request.limit, request.low_limit, request.currency)
        return await self._newest(own)

    async def put(self, schedule: RakeSchedule, operator: str, request_id: str) -> RakeSchedule:
        """A new version of a band, exactly one above the newest; asked again it answers the same.

        Raises Refused SCHEDULE_NOT_FOUND, SCHEDULE_VERSION (metadata expected), REQUEST_ID_REUSED, or Rejected
        FIELD_INVALID for tiers that make no schedule. A percentage is a setting of each table (K6), not of a house.
        """
        check_tiers(schedule.tiers)
        body = schedule.SerializeToString(deterministic=True)
        while True:
            asked = await self._pool.fetchval(_ASKED, operator, request_id)
            if asked is not None:
                if asked != body:
                    raise Refused(
                        reason_pb2.REASON_REQUEST_ID_REUSED,
                        f"request {request_id} put another schedule",
                        request_id=request_id,
                    )
                return schedule
            expected = (await self._newest(_own(schedule))).version + 1
            if schedule.version != expected:
                raise Refused(
                    reason_pb2.REASON_SCHEDULE_VERSION,
                    f"{schedule.id}/{schedule.band}: version {schedule.version} is not the next one, {expected}.",
                    expected=expected,
                )
            put = await self._pool.fetchval(
                _INSERT, schedule.id, schedule.band, expected, body, operator, self._clock.now_us(), request_id
            )
            if put is not None:
                return schedule

    async def fault(self, schedule: RakeSchedule) -> str:
        """How a schedule that a table has in force differs from what was published under its name; empty: it does not.

        A percentage is a setting of the table (K6): only that it is not above the house's most is checked.
        """
        if not schedule.tiers:
            return ""
        name = f"schedule {schedule.id}/{schedule.band}@{schedule.version}"
        percentage = load(schedule.id).rake.percentage if schedule.id in HOUSES else None
        if percentage is not None:
            taken = max(tier.basis_points for tier in schedule.tiers)
            return "" if taken <= percentage.most else f"{name} takes {taken} basis points, at most {percentage.most}"
        try:
            published = _own(schedule)
        except Refused:
            return f"{name} is no house's"
        if published.version != schedule.version:
            body = await self._pool.fetchval(_VERSION, schedule.id, schedule.band, schedule.version)
            if body is None:
                return f"{name} was never published"
            published = RakeSchedule.FromString(body)
        return "" if published == schedule else f"{name} is not what was published under that name"

    async def _newest(self, own: RakeSchedule) -> RakeSchedule:
        """The newest version of a band whose first one is `own`."""
        body = await self._pool.fetchval(_NEWEST, own.id, own.band)
        put = own if body is None else RakeSchedule.FromString(body)
        return put if put.version > own.version else own


def _own(schedule: RakeSchedule) -> RakeSchedule:
    """The house's own version of a band. Raises Refused SCHEDULE_NOT_FOUND."""
    if schedule.id in HOUSES:
        rake = load(schedule.id).rake
        if rake.percentage is not None:
            raise Refused(
                reason_pb2.REASON_SCHEDULE_NOT_FOUND,
                f"{schedule.id} takes a percentage, which is a setting of each table: see ChangeSettings.",
                schedule=schedule.id,
            )
        for band in rake.bands:
            if band.id == schedule.band:
                return RakeSchedule(id=schedule.id, version=rake.version, band=band.id, tiers=band.tiers)
    raise _unknown(f"{schedule.id}/{schedule.band}")


def _unknown(name: str) -> Refused:
    return Refused(
        reason_pb2.REASON_SCHEDULE_NOT_FOUND,
        f"There is no rake schedule {name}; houses are {', '.join(HOUSES)}.",
        schedule=name,
    )
