"""The client's own state of a table: a TableView moved on by events, so that it equals the server's at each version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2

_Applier = Callable[["LiveView", Any], None]

_INBOUND = frozenset({events_pb2.TRANSFER_PURPOSE_BUY_IN, events_pb2.TRANSFER_PURPOSE_TOP_UP})
_APPLIERS: dict[str, _Applier] = {}

# Events by which a prompt is answered or void. A fold is one only from the seat that is asked.
_ANSWERS = frozenset(
    {
        "ante_posted", "blind_posted", "bring_in_posted", "checked", "called", "bet_made", "raised", "timed_out",
        "protection_used", "cards_discarded", "split_offered", "split_answered", "hand_shown", "hand_mucked",
        "round_ended", "hand_started", "hand_ended", "hand_voided", "dealing_fault_ruled",
    }
)  # fmt: skip
_BANK_HANDS: Final = 20
"""Paid hands that fill an empty time bank."""
_HAND_FIELDS: Final = ("bet", "contributed", "in_hand", "folded", "all_in", "down_count", "down", "up")
# Events after which the pots of finished rounds are others.
_POT_EVENTS = frozenset({"ante_posted", "blind_posted", "folded", "round_ended", "uncalled_returned", "pot_awarded"})


class LiveView:
    """A TableView (`shown`) as `player` may see it, and the little that events need beside it.

    What was before the view was taken is not known here: entry posts owed and dead posts of a hand joined in its
    middle. They matter for `waiting_for_big_blind` and for how `pots` are split until the next hand, for nothing else.
    """

    __slots__ = (
        "_bank",
        "_button",
        "_dead",
        "_entry",
        "_missed",
        "_missing",
        "_received",
        "_street",
        "_transfers",
        "_wait",
        "player",
        "shown",
    )

    def __init__(self, player: str) -> None:
        self.player = player
        self.shown = table_pb2.TableView()
        self._bank = 0
        self._button = 0
        self._dead: dict[int, int] = {}
        self._entry: set[int] = set()
        self._missed: set[int] = set()
        self._missing: set[int] = set()
        self._wait: set[int] = set()
        self._street = 0
        self._received = 0
        self._transfers: dict[str, int] = {}

    def replace(self, view: table_pb2.TableView) -> None:
        """Begin anew from a view of the server."""
        self.shown.CopyFrom(view)
        self._bank = view.config.timers.time_bank_ms
        self._button = view.button
        self._street, self._received = view.round, 0
        self._wait = {seat.seat for seat in view.seats if seat.waiting_for_big_blind}
        self._entry = set(self._wait)

    def apply(self, event: events_pb2.TableEvent) -> None:
        """Move on by the next event. A kind newer than this client only counts."""
        kind = event.WhichOneof("payload") or ""
        shown = self.shown
        shown.version = event.version
        if kind in _ANSWERS or (kind == "folded" and shown.prompt.seat == event.folded.seat):
            shown.ClearField("prompt")
        applier = _APPLIERS.get(kind)
        if applier is None:
            return
        if kind == "hand_started":
            shown.hand = shown.last_hand = event.hand
        applier(self, getattr(event, kind))
        if kind in _POT_EVENTS:
            self._show_pots()

    def seat(self, number: int) -> table_pb2.SeatView:
        """A seat by its number."""
        return self.shown.seats[number - 1]

    def _free(self, number: int) -> None:
        if self.shown.your_seat == number:
            self.shown.your_seat = 0
        seat = self.seat(number)
        seat.Clear()
        seat.seat = number
        for seats in (self._entry, self._missed, self._missing, self._wait):
            seats.discard(number)
        self._transfers = {transfer: at if at != number else 0 for transfer, at in self._transfers.items()}

    def _put(self, event: Any, *, bet: bool = True) -> None:
        """Chips go from a stack into the hand."""
        seat = self.seat(event.seat)
        seat.stack -= event.amount
        seat.contributed += event.amount
        self.shown.pot += event.amount
        if bet:
            seat.bet += event.amount
        if not seat.stack:
            seat.all_in = True

    def _clear_hand(self) -> None:
        shown = self.shown
        for field in ("hand", "round", "pot", "board", "pots"):
            shown.ClearField(field)
        for seat in shown.seats:
            for name in _HAND_FIELDS:
                seat.ClearField(name)
        self._dead = {}

    def _wishes(self, number: int, wait: bool) -> None:
        """A seat wants to wait for the big blind, or does not; it shows where a post is owed (S4, S5)."""
        (self._wait.add if wait else self._wait.discard)(number)
        self.seat(number).waiting_for_big_blind = wait and (number in self._entry or number in self._missed)

    def _street_dealt(self) -> None:
        """A street's cards are out: its round begins, unless nobody is left to bet (B16)."""
        self._street += 1
        self._received = 0
        dealt = [seat for seat in self.shown.seats if seat.in_hand and not seat.folded]
        if sum(not seat.all_in for seat in dealt) > 1 or any(seat.bet for seat in self.shown.seats):
            self.shown.round = self._street

    def _show_pots(self) -> None:
        """Pots of finished rounds by the live stakes of the players still in (B10)."""
        shown = self.shown
        del shown.pots[:]
        dealt = [seat for seat in shown.seats if seat.in_hand]
        if shown.pot <= sum(seat.bet for seat in dealt):
            return
        dead = sum(self._dead.values())
        put = {seat.seat: seat.contributed - seat.bet - self._dead.get(seat.seat, 0) for seat in dealt}
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


def _applies(kind: str) -> Callable[[_Applier], _Applier]:
    def register(applier: _Applier) -> _Applier:
        _APPLIERS[kind] = applier
        return applier

    return register


@_applies("table_opened")
def _(live: LiveView, event: events_pb2.TableOpened) -> None:
    live.shown.config.CopyFrom(event.config)
    del live.shown.seats[:]
    live.shown.seats.extend(table_pb2.SeatView(seat=number) for number in range(1, event.config.seats + 1))


@_applies("settings_changed")
def _(live: LiveView, event: events_pb2.SettingsChanged) -> None:
    live.shown.config.CopyFrom(event.config)


@_applies("table_closed")
def _(live: LiveView, event: events_pb2.TableClosed) -> None:
    live.shown.closed = True


@_applies("table_paused")
def _(live: LiveView, event: events_pb2.TablePaused) -> None:
    live.shown.paused = True


@_applies("table_resumed")
def _(live: LiveView, event: events_pb2.TableResumed) -> None:
    live.shown.paused = False


@_applies("seat_held")
def _(live: LiveView, event: events_pb2.SeatHeld) -> None:
    seat = live.seat(event.seat)
    seat.player, seat.reserved = event.player, True


@_applies("seat_reserved")
def _(live: LiveView, event: events_pb2.SeatReserved) -> None:
    seat = live.seat(event.seat)
    seat.player, seat.reserved, seat.connected = event.player, True, True
    live._entry.add(event.seat)
    live._wishes(event.seat, event.wait_for_big_blind)
    if event.player == live.player:
        live.shown.your_seat = event.seat


@_applies("seat_held")
def _(live: LiveView, event: events_pb2.SeatHeld) -> None:
    seat = live.seat(event.seat)
    seat.player, seat.reserved = event.player, True


@_applies("time_bank_used")
def _(live: LiveView, event: events_pb2.TimeBankUsed) -> None:
    live.seat(event.seat).time_bank_ms = event.left_ms


@_applies("timed_out")
def _(live: LiveView, event: events_pb2.TimedOut) -> None:
    live.seat(event.seat).time_bank_ms -= event.time_bank_used_ms


@_applies("seat_released")
def _(live: LiveView, event: events_pb2.SeatReleased) -> None:
    live._free(event.seat)


@_applies("player_sat")
def _(live: LiveView, event: events_pb2.PlayerSat) -> None:
    seat = live.seat(event.seat)
    seat.stack += event.stack
    seat.chips_held -= event.stack
    seat.player, seat.reserved = event.player, False
    seat.time_bank_ms = live.shown.config.timers.time_bank_ms
    if event.player == live.player:
        live.shown.your_seat = event.seat


@_applies("chips_added")
def _(live: LiveView, event: events_pb2.ChipsAdded) -> None:
    seat = live.seat(event.seat)
    seat.stack += event.amount
    seat.chips_held -= event.amount


@_applies("transfer_requested")
def _(live: LiveView, event: events_pb2.TransferRequested) -> None:
    if event.purpose in _INBOUND:
        live._transfers[event.transfer] = event.seat


@_applies("transfer_refused")
def _(live: LiveView, event: events_pb2.TransferRefused) -> None:
    live._transfers.pop(event.transfer, None)


@_applies("transfer_settled")
def _(live: LiveView, event: events_pb2.TransferSettled) -> None:
    if event.purpose in _INBOUND:
        known = event.seat if live.seat(event.seat).player == event.player else 0
        number = live._transfers.pop(event.transfer, known)
        if number:
            live.seat(number).chips_held += event.amount


@_applies("player_sat_out")
def _(live: LiveView, event: events_pb2.PlayerSatOut) -> None:
    live.seat(event.seat).sitting_out = True


@_applies("player_sat_in")
def _(live: LiveView, event: events_pb2.PlayerSatIn) -> None:
    live.seat(event.seat).sitting_out = False
    live._wishes(event.seat, event.wait_for_big_blind)


@_applies("seat_preferences_changed")
def _(live: LiveView, event: events_pb2.SeatPreferencesChanged) -> None:
    live._wishes(event.seat, event.wait_for_big_blind)


@_applies("player_left")
def _(live: LiveView, event: events_pb2.PlayerLeft) -> None:
    live._free(event.seat)


@_applies("connection_lost")
def _(live: LiveView, event: events_pb2.ConnectionLost) -> None:
    live.seat(event.seat).connected = False


@_applies("connection_restored")
def _(live: LiveView, event: events_pb2.ConnectionRestored) -> None:
    live.seat(event.seat).connected = True


@_applies("leave_requested")
def _(live: LiveView, event: events_pb2.LeaveRequested) -> None:
    live.seat(event.seat).leaving = True


@_applies("hand_started")
def _(live: LiveView, event: events_pb2.HandStarted) -> None:
    live._button, live.shown.button = live.shown.button, event.button
    live._street = live._received = 0
    live._missing = set()
    live._bank = live.shown.config.timers.time_bank_ms
    for dealt in event.players:
        seat = live.seat(dealt.seat)
        seat.in_hand, seat.stack = True, dealt.stack


@_applies("ante_posted")
def _(live: LiveView, event: events_pb2.AntePosted) -> None:
    live._put(event, bet=False)


@_applies("blind_posted")
def _(live: LiveView, event: events_pb2.BlindPosted) -> None:
    dead = event.kind == events_pb2.BLIND_KIND_DEAD
    live._put(event, bet=not dead)
    if dead:
        live._dead[event.seat] = live._dead.get(event.seat, 0) + event.amount


@_applies("blind_missed")
def _(live: LiveView, event: events_pb2.BlindMissed) -> None:
    if event.big:
        live._missing.add(event.seat)


@_applies("bring_in_posted")
@_applies("called")
@_applies("bet_made")
@_applies("raised")
def _(live: LiveView, event: Message) -> None:
    live._put(event)


@_applies("cards_dealt")
def _(live: LiveView, event: events_pb2.CardsDealt) -> None:
    seat = live.seat(event.seat)
    seat.down += event.down
    seat.up += event.up
    seat.down_count += event.down_count
    live._received += 1
    if live._received == sum(seat.in_hand and not seat.folded for seat in live.shown.seats):
        live._street_dealt()


@_applies("board_dealt")
def _(live: LiveView, event: events_pb2.BoardDealt) -> None:
    live.shown.board += event.cards
    live._street_dealt()


@_applies("folded")
def _(live: LiveView, event: events_pb2.Folded) -> None:
    seat = live.seat(event.seat)
    seat.folded, seat.all_in = True, False


@_applies("protection_used")
def _(live: LiveView, event: events_pb2.ProtectionUsed) -> None:
    live.seat(event.seat).all_in = True


@_applies("cards_discarded")
def _(live: LiveView, event: events_pb2.CardsDiscarded) -> None:
    seat = live.seat(event.seat)
    seat.down_count -= event.count
    gone = {event.cards[start : start + 2] for start in range(0, len(event.cards), 2)}
    seat.down = "".join(card for card in cards(seat.down) if card not in gone)


@_applies("cards_drawn")
def _(live: LiveView, event: events_pb2.CardsDrawn) -> None:
    seat = live.seat(event.seat)
    seat.down += event.cards
    seat.down_count += event.count


@_applies("uncalled_returned")
def _(live: LiveView, event: events_pb2.UncalledReturned) -> None:
    seat = live.seat(event.seat)
    if seat.stack == 0:
        seat.all_in = False
    seat.stack += event.amount
    seat.contributed -= event.amount
    seat.bet = max(seat.bet - event.amount, 0)
    live.shown.pot -= event.amount


@_applies("hand_shown")
def _(live: LiveView, event: events_pb2.HandShown) -> None:
    seat = live.seat(event.seat)
    up = set(cards(seat.up))
    seat.down = "".join(card for card in cards(event.cards) if card not in up)


@_applies("round_ended")
def _(live: LiveView, event: events_pb2.RoundEnded) -> None:
    for seat in live.shown.seats:
        seat.bet = 0


@_applies("pot_awarded")
def _(live: LiveView, event: events_pb2.PotAwarded) -> None:
    for share in event.shares:
        live.seat(share.seat).stack += share.amount
        live.shown.pot -= share.amount


@_applies("rake_taken")
def _(live: LiveView, event: events_pb2.RakeTaken) -> None:
    live.shown.pot -= event.amount


@_applies("hand_ended")
def _(live: LiveView, event: events_pb2.HandEnded) -> None:
    live._clear_hand()
    full = live._bank
    for result in event.results:
        seat = live.seat(result.seat)
        seat.stack = result.stack
        seat.time_bank_ms = max(seat.time_bank_ms, min(full, seat.time_bank_ms + full // _BANK_HANDS))
        live._entry.discard(result.seat)
        live._missed.discard(result.seat)
        live._wishes(result.seat, False)
    live._missed |= live._missing
    for number in live._missing:
        live._wishes(number, number in live._wait)


@_applies("hand_voided")
def _(live: LiveView, event: events_pb2.HandVoided) -> None:
    live._clear_hand()
    live.shown.button = live._button
    for refund in event.refunds:
        live.seat(refund.seat).stack = refund.stack


def cards(text: str) -> list[str]:
    """The cards of "AsKd": ["As", "Kd"]."""
    return [text[start : start + 2] for start in range(0, len(text), 2)]
