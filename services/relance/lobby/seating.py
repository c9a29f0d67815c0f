"""Offering free seats to those who wait: any replica, one step at a time, each step a row that another can take up.

match -> the table holds a seat -> the offer is open -> accepted -> the player sits down
                                                     -> declined or expired -> the seat is given back
"""

from __future__ import annotations

import asyncio

import structlog

from relance.api.common.v1 import reason_pb2
from relance.lobby.commands import TableCommands
from relance.lobby.offers import ACCEPTED, ASKED, OPEN, Offer, Offers, over
from relance.runtime import database, logging
from relance.runtime.clock import Clock
from relance.runtime.errors import Refused, reason_name

log = structlog.get_logger(__name__)

_GRACE_SECONDS = 5.0
"""How much longer the table holds a seat than the player is told."""
_NEVER = frozenset(
    {reason_pb2.REASON_PLAYER_BANNED, reason_pb2.REASON_ALREADY_SEATED, reason_pb2.REASON_NOT_INVITED}
)  # what will not be otherwise tomorrow


class Seating:
    """Makes offers, and ends those that nobody answers."""

    def __init__(
        self, offers: Offers, commands: TableCommands, clock: Clock, *,
        tick_seconds: float, offer_seconds: float, buy_in_seconds: float,
    ) -> None:  # fmt: skip
        self._offers, self._commands, self._clock = offers, commands, clock
        self._tick, self._offer_seconds, self._buy_in_seconds = tick_seconds, offer_seconds, buy_in_seconds

    async def run(self) -> None:
        """Work, for ever."""
        while True:
            await self._clock.sleep(self._tick)
            try:
                with logging.request():
                    await self.work()
            except database.OUTAGE as error:
                log.info("no offers made", error=type(error).__name__)

    async def work(self) -> None:
        """Do what is to be done now."""
        due = await self._offers.claim()
        new = await self._offers.match()
        await asyncio.gather(*map(self._next, [*due, *new]))

    async def accept(self, player: str, offer_id: str) -> Offer:
        """A player takes an offer: first the table holds the seat for longer, then it is theirs to sit down at.

        Raises Refused OFFER_OVER, UNAVAILABLE (ask again).
        """
        offer = await self._offers.find(player, offer_id)
        if offer.state == OPEN:
            if offer.expires_at <= self._clock.now_us():
                raise over(offer)
            hold = self._buy_in_seconds + _GRACE_SECONDS
            seat = await self._commands.hold(offer.table, f"offer-{offer.id}-take", player, hold)
        else:
            seat = offer.seat
        return await self._offers.accept(player, offer, seat, self._buy_in_seconds)

    async def decline(self, player: str, offer_id: str) -> Offer:
        """A player refuses an offer. Raises Refused OFFER_OVER."""
        return await self._offers.decline(player, await self._offers.find(player, offer_id))

    async def _next(self, offer: Offer) -> None:
        if offer.state == ASKED:
            await self._ask(offer)
            return
        if offer.state in {OPEN, ACCEPTED} and not await self._offers.expire(offer):
            return
        await self._give_back(offer)

    async def _ask(self, offer: Offer) -> None:
        try:
            seat = await self._commands.hold(
                offer.table, f"offer-{offer.id}", offer.player, self._offer_seconds + _GRACE_SECONDS
            )
        except Refused as refused:
            away = refused.reason == reason_pb2.REASON_UNAVAILABLE
            log.info("no seat to offer", table=offer.table, reason=reason_name(refused.reason))
            await self._offers.in_vain(offer, drop_wait=refused.reason in _NEVER, release=away)
            return
        if await self._offers.given(offer, seat, self._offer_seconds):
            log.info("seat offered", table=offer.table, seat=seat, player=offer.player)

    async def _give_back(self, offer: Offer) -> None:
        try:
            await self._commands.release(offer.table, f"offer-{offer.id}-back", offer.player)
        except Refused as refused:
            if refused.reason == reason_pb2.REASON_UNAVAILABLE:
                return  # another look after the lease
            log.info("seat not given back", table=offer.table, reason=reason_name(refused.reason))
        await self._offers.done(offer)
