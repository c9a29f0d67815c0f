"""The client's own state of a table: a TableView moved on by events, so that it equals the server's at each version."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.client.applying import APPLIERS
from relance.client.live_state import LiveState

# Events by which a prompt is answered or void. A fold is one only from the seat that is asked.
_ANSWERS = frozenset(
    {
        "ante_posted", "blind_posted", "bring_in_posted", "checked", "called", "bet_made", "raised", "timed_out",
        "protection_used", "cards_discarded", "split_offered", "split_answered", "hand_shown", "hand_mucked",
        "round_ended", "hand_started", "hand_ended", "hand_voided", "dealing_fault_ruled",
    }
)  # fmt: skip
# Events after which the pots of finished rounds are others.
_POT_EVENTS = frozenset({"ante_posted", "blind_posted", "folded", "round_ended", "uncalled_returned", "pot_awarded"})


class LiveView(LiveState):
    """A view that follows a table: replaced by the server's now and then, moved on by events in between."""

    __slots__ = ()

    def replace(self, view: table_pb2.TableView) -> None:
        """Begin anew from a view of the server."""
        self.shown.CopyFrom(view)
        self.bank = view.config.timers.time_bank_ms
        self.button = view.button
        self.street, self.received = view.round, 0
        self.wait = {seat.seat for seat in view.seats if seat.waiting_for_big_blind}
        self.entry = set(self.wait)

    def apply(self, event: events_pb2.TableEvent) -> None:
        """Move on by the next event. A kind newer than this client only counts."""
        kind = event.WhichOneof("payload") or ""
        shown = self.shown
        shown.version = event.version
        if kind in _ANSWERS or (kind == "folded" and shown.prompt.seat == event.folded.seat):
            shown.ClearField("prompt")
        applier = APPLIERS.get(kind)
        if applier is None:
            return
        if kind == "hand_started":
            shown.hand = shown.last_hand = event.hand
        applier(self, getattr(event, kind))
        if kind in _POT_EVENTS:
            self._show_pots()

    def _show_pots(self) -> None:
        """Pots of finished rounds by the live stakes of the players still in (B10)."""
        shown = self.shown
        del shown.pots[:]
        dealt = [seat for seat in shown.seats if seat.in_hand]
        if shown.pot <= sum(seat.bet for seat in dealt):
            return
        dead = sum(self.dead.values())
        put = {seat.seat: seat.contributed - seat.bet - self.dead.get(seat.seat, 0) for seat in dealt}
        live = [seat.seat for seat in self._clockwise(dealt) if not seat.folded]
        levels = sorted({put[number] for number in live})
        below = 0
        pots: list[table_pb2.PotView] = []
        for level in levels:
            last = level == levels[-1]
            amount = sum((chips if last else min(chips, level)) - below for chips in put.values() if chips > below)
            amount += dead if below == 0 and not pots else 0
            if amount:
                claims = [number for number in live if put[number] >= level]
                pots.append(table_pb2.PotView(amount=amount, eligible=claims))
            below = level
        shown.pots.extend(pots)

    def _clockwise(self, seats: list[table_pb2.SeatView]) -> list[table_pb2.SeatView]:
        """Seats from the left of the button on."""
        return sorted(seats, key=lambda seat: (seat.seat <= self.shown.button, seat.seat))
