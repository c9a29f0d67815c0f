"""WatchOffers: offers to those for whom they are, whichever replica made them."""

from __future__ import annotations

from collections import defaultdict

import structlog

from relance.api.lobby.v1 import waiting_pb2
from relance.lobby.offers import Offer, Offers
from relance.lobby.watching import Watcher
from relance.runtime import database
from relance.runtime.clock import Clock

log = structlog.get_logger(__name__)

OfferWatcher = Watcher[waiting_pb2.WatchOffersResponse]


class OfferBoard:
    """The watchers of this process. One query a tick for all of them, none while nobody watches."""

    def __init__(self, offers: Offers, clock: Clock, tick_seconds: float) -> None:
        self._offers, self._clock, self._tick = offers, clock, tick_seconds
        self._players: dict[OfferWatcher, str] = {}
        self._shown: dict[OfferWatcher, dict[str, Offer]] = {}

    async def enter(self, watcher: OfferWatcher, player: str) -> None:
        """Show the offers that are not over, then what changes."""
        self._players[watcher], self._shown[watcher] = player, {}
        self._show(watcher, await self._offers.live([player]))

    def leave(self, watcher: OfferWatcher) -> None:
        """Show no more."""
        self._players.pop(watcher, None)
        self._shown.pop(watcher, None)

    async def run(self) -> None:
        """Tell of changes, for ever."""
        while True:
            await self._clock.sleep(self._tick)
            if not self._players:
                continue
            try:
                await self._look()
            except database.OUTAGE as error:
                log.info("offers not looked at", error=type(error).__name__)

    async def _look(self) -> None:
        shown = sorted({offer for offers in self._shown.values() for offer in offers})
        found: defaultdict[str, list[Offer]] = defaultdict(list)
        for offer in await self._offers.live(sorted(set(self._players.values())), shown):
            found[offer.player].append(offer)
        for watcher, player in list(self._players.items()):
            self._show(watcher, found[player])

    def _show(self, watcher: OfferWatcher, found: list[Offer]) -> None:
        shown = self._shown.get(watcher)
        if shown is None:
            return
        for offer in found:
            known = shown.get(offer.id)
            if known == offer or (known is None and not offer.live):
                continue
            watcher.push(waiting_pb2.WatchOffersResponse(offer=offer.proto(self._clock.now_us())))
            if offer.live:
                shown[offer.id] = offer
            else:
                del shown[offer.id]
