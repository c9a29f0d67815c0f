"""Waiting lists: places, and seats that are offered for a while, wherever one is in the client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import waiting_pb2
from relance.client import RelanceError
from relance.play.catalogue import title
from relance.play.dialogs import AnswerDialog
from relance.play.glyphs import LIMITS, Glyphs, figure, game_title, unit
from relance.play.refusals import line

if TYPE_CHECKING:
    from relance.play.app import PlayApp

OPEN, ACCEPTED = waiting_pb2.OFFER_STATE_OPEN, waiting_pb2.OFFER_STATE_ACCEPTED
_OVER = {
    waiting_pb2.OFFER_STATE_EXPIRED: "The time for the seat that was offered is up; it went to the next.",
    waiting_pb2.OFFER_STATE_WITHDRAWN: "The seat that was offered is gone: the table took it back.",
}


class Offered:
    """The seat that is offered now. Seconds run by this machine's monotonic clock."""

    def __init__(self) -> None:
        self.offer: waiting_pb2.Offer | None = None
        self.where = ""
        self._ends = 0.0

    def see(self, offer: waiting_pb2.Offer, now: float) -> str:
        """Take note of an offer that is new or changed; what there is to say of it."""
        if offer.state in {OPEN, ACCEPTED}:
            self.offer, self._ends = offer, now + offer.remaining_ms / 1000
        elif self.offer is not None and self.offer.name == offer.name:
            self.offer = None
        return _OVER.get(offer.state, "")

    def seconds(self, now: float) -> int:
        """Whole seconds left."""
        return max(round(self._ends - now), 0)

    def text(self, now: float) -> str:
        """The line that offers it; empty: nothing is offered."""
        if self.offer is None or self._ends + 1 < now:
            return ""
        seconds = self.seconds(now)
        if self.offer.state == OPEN:
            return f"{seconds} s  A seat at {self.where} is yours: ^y take it  ^n leave it"
        return f"{seconds} s  Your seat at {self.where} is held: ^y buy in  ^n give it up"


class Places:
    """What the player waits for, and the seats that come of it: one for the whole client."""

    def __init__(self, app: PlayApp) -> None:
        self._app = app
        self.offered = Offered()
        self.waits: list[waiting_pb2.Wait] = []
        self.titles: dict[str, str] = {}

    async def follow(self) -> None:
        """Offers as they come, for ever; the lobby says itself when it is away."""
        while True:
            try:
                await self.refresh()
                async for offer in self._app.room.waitlist.watch():
                    await self._name(offer.table)
                    said = self.offered.see(offer, time.monotonic())
                    self.offered.where = self.titles.get(offer.table, "a table")
                    if said:
                        self._app.say(said)
                    elif offer.state == OPEN:
                        self._app.bell()
                    self._app.show_call()
                    await self.refresh()
            except RelanceError:
                await self._app.pause(5.0)

    async def refresh(self) -> None:
        """Ask for the places. Raises RelanceError."""
        self.waits = await self._app.room.waitlist.waits()
        for wait in self.waits:
            if wait.table:
                await self._name(wait.table)

    async def take(self) -> None:
        """Accept the offer, and go to the table to buy in."""
        offer = self.offered.offer
        if offer is None:
            return
        try:
            if offer.state == OPEN:
                offer = await self._app.room.waitlist.accept(offer)
                self.offered.see(offer, time.monotonic())
        except RelanceError as refusal:
            self._app.say(line(refusal, 0, self._app.glyphs))
            return
        self._app.show_call()
        self._app.sit_at(offer.table)

    async def leave(self) -> None:
        """Refuse the offer, or give up the seat that was accepted."""
        offer = self.offered.offer
        if offer is None:
            return
        try:
            if offer.state == OPEN:
                await self._app.room.waitlist.decline(offer)
            else:
                await self._app.room.waitlist.leave(offer.wait)
            self.offered.offer = None
            self._app.say("The seat goes to the next.")
            await self.refresh()
        except RelanceError as refusal:
            self._app.say(line(refusal, 0, self._app.glyphs))
        self._app.show_call()

    async def ask(self, table: str, config: game_pb2.TableConfig) -> str:
        """Ask what to wait for, and wait; what came of it, in a line. Raises RelanceError with the room's refusal."""
        glyphs, waitlist = self._app.glyphs, self._app.room.waitlist
        answers = [("w", "a seat at this table"), ("a", f"a seat at any table like it: {kind_text(config, glyphs)}")]
        if config.private:
            del answers[1]
        if self.waits:
            answers.append(("g", f"give up waiting ({places_text(self.waits, self.titles, glyphs)})"))
        answer = await self._app.push_screen_wait(AnswerDialog("Wait for:", answers))
        if answer == "g":
            for wait in self.waits:
                await waitlist.leave(wait)
            self.waits = []
            return "You wait for nothing any more."
        if not answer:
            return ""
        wait = await (waitlist.join(table) if answer == "w" else waitlist.join_any(config))
        await self.refresh()
        return f"You are {ordinal(wait.position)} in line; a seat is offered wherever you are in the client."

    async def _name(self, table: str) -> None:
        if table in self.titles:
            return
        try:
            self.titles[table] = title((await self._app.room.listed(table)).config, self._app.glyphs)
        except RelanceError:
            return


def places_text(waits: Sequence[waiting_pb2.Wait], titles: dict[str, str], glyphs: Glyphs) -> str:
    """The places in a line: "2nd at Blue room, 1st for any Hold'em no limit 0.50 €"."""
    parts = []
    for wait in waits:
        if wait.table:
            parts.append(f"{ordinal(wait.position)} at {titles.get(wait.table, 'a table')}")
        else:
            kind = wait.kind
            words = f"{game_title(kind.game)} {LIMITS.get(kind.limit, '')} {figure(kind.low_limit, kind.currency)}"
            parts.append(f"{ordinal(wait.position)} for any {words} {unit(kind.currency, glyphs)}")
    return ", ".join(parts)


def kind_text(config: game_pb2.TableConfig, glyphs: Glyphs) -> str:
    """What tables like this one have in common."""
    low = figure(config.stakes.low_limit, config.currency)
    turbo = " turbo" if config.turbo else ""
    return f"{game_title(config.game)} {LIMITS.get(config.limit, '')} {low} {unit(config.currency, glyphs)}{turbo}"


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th."""
    last = "th" if place % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{last}"
