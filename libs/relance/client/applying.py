"""What each kind of event changes in a client's view: one short function a kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.client.live_state import LiveState

Applier: TypeAlias = Callable[[LiveState, Any], None]

#: By the kind of the event. Kinds that change nothing that is shown are not there.
APPLIERS: Final[dict[str, Applier]] = {}

_INBOUND: Final = frozenset({events_pb2.TRANSFER_PURPOSE_BUY_IN, events_pb2.TRANSFER_PURPOSE_TOP_UP})
_BANK_HANDS: Final = 20
"""Paid hands that fill an empty time bank."""


def cards(text: str) -> list[str]:
    """The cards of "AsKd": ["As", "Kd"]."""
    return [text[start : start + 2] for start in range(0, len(text), 2)]


def _applies(kind: str) -> Callable[[Applier], Applier]:
    def register(applier: Applier) -> Applier:
        APPLIERS[kind] = applier
        return applier

    return register


@_applies("table_opened")
def _(live: LiveState, event: events_pb2.TableOpened) -> None:
    live.shown.config.CopyFrom(event.config)
    del live.shown.seats[:]
    live.shown.seats.extend(table_pb2.SeatView(seat=number) for number in range(1, event.config.seats + 1))


@_applies("settings_changed")
def _(live: LiveState, event: events_pb2.SettingsChanged) -> None:
    live.shown.config.CopyFrom(event.config)


@_applies("table_closed")
def _(live: LiveState, event: events_pb2.TableClosed) -> None:
    live.shown.closed = True


@_applies("table_paused")
def _(live: LiveState, event: events_pb2.TablePaused) -> None:
    live.shown.paused = True


@_applies("table_resumed")
def _(live: LiveState, event: events_pb2.TableResumed) -> None:
    live.shown.paused = False


@_applies("seat_reserved")
def _(live: LiveState, event: events_pb2.SeatReserved) -> None:
    seat = live.seat(event.seat)
    seat.player, seat.reserved, seat.connected = event.player, True, True
    live.entry.add(event.seat)
    live.wishes(event.seat, event.wait_for_big_blind)
    if event.player == live.player:
        live.shown.your_seat = event.seat


@_applies("seat_held")
def _(live: LiveState, event: events_pb2.SeatHeld) -> None:
    seat = live.seat(event.seat)
    seat.player, seat.reserved = event.player, True


@_applies("time_bank_used")
def _(live: LiveState, event: events_pb2.TimeBankUsed) -> None:
    live.seat(event.seat).time_bank_ms = event.left_ms


@_applies("timed_out")
def _(live: LiveState, event: events_pb2.TimedOut) -> None:
    live.seat(event.seat).time_bank_ms -= event.time_bank_used_ms


@_applies("seat_released")
def _(live: LiveState, event: events_pb2.SeatReleased) -> None:
    live.free(event.seat)


@_applies("player_sat")
def _(live: LiveState, event: events_pb2.PlayerSat) -> None:
    seat = live.seat(event.seat)
    seat.stack += event.stack
    seat.chips_held -= event.stack
    seat.player, seat.reserved = event.player, False
    seat.time_bank_ms = live.shown.config.timers.time_bank_ms
    if event.player == live.player:
        live.shown.your_seat = event.seat


@_applies("chips_added")
def _(live: LiveState, event: events_pb2.ChipsAdded) -> None:
    seat = live.seat(event.seat)
    seat.stack += event.amount
    seat.chips_held -= event.amount


@_applies("transfer_requested")
def _(live: LiveState, event: events_pb2.TransferRequested) -> None:
    if event.purpose in _INBOUND:
        live.transfers[event.transfer] = event.seat


@_applies("transfer_refused")
def _(live: LiveState, event: events_pb2.TransferRefused) -> None:
    live.transfers.pop(event.transfer, None)


@_applies("transfer_settled")
def _(live: LiveState, event: events_pb2.TransferSettled) -> None:
    if event.purpose in _INBOUND:
        known = event.seat if live.seat(event.seat).player == event.player else 0
        number = live.transfers.pop(event.transfer, known)
        if number:
            live.seat(number).chips_held += event.amount


@_applies("player_sat_out")
def _(live: LiveState, event: events_pb2.PlayerSatOut) -> None:
    live.seat(event.seat).sitting_out = True


@_applies("player_sat_in")
def _(live: LiveState, event: events_pb2.PlayerSatIn) -> None:
    live.seat(event.seat).sitting_out = False
    live.wishes(event.seat, event.wait_for_big_blind)


@_applies("seat_preferences_changed")
def _(live: LiveState, event: events_pb2.SeatPreferencesChanged) -> None:
    live.wishes(event.seat, event.wait_for_big_blind)


@_applies("player_left")
def _(live: LiveState, event: events_pb2.PlayerLeft) -> None:
    live.free(event.seat)


@_applies("connection_lost")
def _(live: LiveState, event: events_pb2.ConnectionLost) -> None:
    live.seat(event.seat).connected = False


@_applies("connection_restored")
def _(live: LiveState, event: events_pb2.ConnectionRestored) -> None:
    live.seat(event.seat).connected = True


@_applies("leave_requested")
def _(live: LiveState, event: events_pb2.LeaveRequested) -> None:
    live.seat(event.seat).leaving = True


@_applies("leave_withdrawn")
def _(live: LiveState, event: events_pb2.LeaveWithdrawn) -> None:
    live.seat(event.seat).leaving = False


@_applies("hand_started")
def _(live: LiveState, event: events_pb2.HandStarted) -> None:
    live.button, live.shown.button = live.shown.button, event.button
    live.street = live.received = 0
    live.missing = set()
    live.bank = live.shown.config.timers.time_bank_ms
    for dealt in event.players:
        seat = live.seat(dealt.seat)
        seat.in_hand, seat.stack = True, dealt.stack


@_applies("ante_posted")
def _(live: LiveState, event: events_pb2.AntePosted) -> None:
    live.put(event, bet=False)


@_applies("blind_posted")
def _(live: LiveState, event: events_pb2.BlindPosted) -> None:
    dead = event.kind == events_pb2.BLIND_KIND_DEAD
    live.put(event, bet=not dead)
    if dead:
        live.dead[event.seat] = live.dead.get(event.seat, 0) + event.amount


@_applies("blind_missed")
def _(live: LiveState, event: events_pb2.BlindMissed) -> None:
    if event.big:
        live.missing.add(event.seat)


@_applies("bring_in_posted")
@_applies("called")
@_applies("bet_made")
@_applies("raised")
def _(live: LiveState, event: Message) -> None:
    live.put(event)


@_applies("cards_dealt")
def _(live: LiveState, event: events_pb2.CardsDealt) -> None:
    seat = live.seat(event.seat)
    seat.down += event.down
    seat.up += event.up
    seat.down_count += event.down_count
    live.received += 1
    if live.received == sum(seat.in_hand and not seat.folded for seat in live.shown.seats):
        live.street_dealt()


@_applies("board_dealt")
def _(live: LiveState, event: events_pb2.BoardDealt) -> None:
    live.shown.board += event.cards
    live.street_dealt()


@_applies("folded")
def _(live: LiveState, event: events_pb2.Folded) -> None:
    seat = live.seat(event.seat)
    seat.folded, seat.all_in = True, False


@_applies("protection_used")
def _(live: LiveState, event: events_pb2.ProtectionUsed) -> None:
    live.seat(event.seat).all_in = True


@_applies("cards_discarded")
def _(live: LiveState, event: events_pb2.CardsDiscarded) -> None:
    seat = live.seat(event.seat)
    seat.down_count -= event.count
    gone = {event.cards[start : start + 2] for start in range(0, len(event.cards), 2)}
    seat.down = "".join(card for card in cards(seat.down) if card not in gone)


@_applies("cards_drawn")
def _(live: LiveState, event: events_pb2.CardsDrawn) -> None:
    seat = live.seat(event.seat)
    seat.down += event.cards
    seat.down_count += event.count


@_applies("uncalled_returned")
def _(live: LiveState, event: events_pb2.UncalledReturned) -> None:
    seat = live.seat(event.seat)
    if seat.stack == 0:
        seat.all_in = False
    seat.stack += event.amount
    seat.contributed -= event.amount
    seat.bet = max(seat.bet - event.amount, 0)
    live.shown.pot -= event.amount


@_applies("hand_shown")
def _(live: LiveState, event: events_pb2.HandShown) -> None:
    seat = live.seat(event.seat)
    up = set(cards(seat.up))
    seat.down = "".join(card for card in cards(event.cards) if card not in up)


@_applies("round_ended")
def _(live: LiveState, event: events_pb2.RoundEnded) -> None:
    for seat in live.shown.seats:
        seat.bet = 0


@_applies("pot_awarded")
def _(live: LiveState, event: events_pb2.PotAwarded) -> None:
    for share in event.shares:
        live.seat(share.seat).stack += share.amount
        live.shown.pot -= share.amount


@_applies("rake_taken")
def _(live: LiveState, event: events_pb2.RakeTaken) -> None:
    live.shown.pot -= event.amount


@_applies("hand_ended")
def _(live: LiveState, event: events_pb2.HandEnded) -> None:
    live.clear_hand()
    full = live.bank
    for result in event.results:
        seat = live.seat(result.seat)
        seat.stack = result.stack
        seat.time_bank_ms = max(seat.time_bank_ms, min(full, seat.time_bank_ms + full // _BANK_HANDS))
        live.entry.discard(result.seat)
        live.missed.discard(result.seat)
        live.wishes(result.seat, False)
    live.missed |= live.missing
    for number in live.missing:
        live.wishes(number, number in live.wait)


@_applies("hand_voided")
def _(live: LiveState, event: events_pb2.HandVoided) -> None:
    live.clear_hand()
    live.shown.button = live.button
    for refund in event.refunds:
        live.seat(refund.seat).stack = refund.stack
