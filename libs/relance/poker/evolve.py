"""`apply`: the only way that a table changes. Total and deterministic: no clock, no choice, no refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.evolve_hand import HAND_APPLIERS
from relance.poker.hand import ACTIVE, BET, NOBODY
from relance.poker.table import (
    PLAYERS_KEPT,
    REQUESTS_KEPT,
    Hold,
    Notice,
    Seat,
    Session,
    Table,
    Transfer,
    put_last,
)
from relance.poker.terms import terms_of

# Each applier takes its own payload message; the dispatch by name is what makes that type-safe.
Applier = Callable[[Table, Any, pb.TableEvent], None]


class UnknownEvent(Exception):
    """A newer version wrote this event; this one must give the table back."""


def apply(table: Table, event: pb.TableEvent) -> None:
    """Change the table by one event, which must be the next of its stream.

    Raises UnknownEvent for a payload that this version does not know; AssertionError when the log contradicts itself.
    """
    name = event.WhichOneof("payload")
    if name is None:
        raise UnknownEvent(f"{event.table}@{event.version} has no payload that this version knows")
    version = event.version
    assert version == table.version + 1, f"{table.id}: event {version} after {table.version}"
    table.version = version
    APPLIERS[name](table, getattr(event, name), event)
    if event.request_id:
        remember(table, event)


def remember(table: Table, event: pb.TableEvent) -> None:
    """Keep the request that caused the event, so that a repeat has the same answer."""
    player = event.request_player
    requests = dict(table.requests)
    known = dict(requests.pop(player, {}))
    known[event.request_id] = (event.request_hash, event.version)
    while len(known) > REQUESTS_KEPT:
        del known[next(iter(known))]
    requests[player] = known
    while len(requests) > PLAYERS_KEPT:
        del requests[next(iter(requests))]
    table.requests = requests


def _nothing(table: Table, payload: object, event: pb.TableEvent) -> None:
    """Events for people and auditors that change no state."""


def _table_opened(table: Table, opened: pb.TableOpened, event: pb.TableEvent) -> None:
    table.config = opened.config
    table.terms = terms_of(opened.config)
    table.rake = opened.rake


def _settings_changed(table: Table, changed: pb.SettingsChanged, event: pb.TableEvent) -> None:
    table.config = changed.config
    table.terms = terms_of(changed.config)
    if changed.HasField("rake"):
        table.rake = changed.rake


def _owner_started(table: Table, owner: pb.OwnerStarted, event: pb.TableEvent) -> None:
    table.fence, table.process, table.drained = owner.fence, owner.process, False


def _table_drained(table: Table, drained: pb.TableDrained, event: pb.TableEvent) -> None:
    table.drained = True


def _table_closed(table: Table, closed: pb.TableClosed, event: pb.TableEvent) -> None:
    table.closed = True


def _table_paused(table: Table, paused: pb.TablePaused, event: pb.TableEvent) -> None:
    table.paused = True


def _table_resumed(table: Table, resumed: pb.TableResumed, event: pb.TableEvent) -> None:
    table.paused = False


def _player_banned(table: Table, ban: pb.PlayerBanned, event: pb.TableEvent) -> None:
    table.bans[ban.player] = ban.until_us


def _seat_reserved(table: Table, reserved: pb.SeatReserved, event: pb.TableEvent) -> None:
    seat = Seat(reserved.seat, reserved.player, reserved=True)
    seat.wait = reserved.wait_for_big_blind
    seat.until = reserved.expire_time_us
    seat.auto_post = not reserved.ask_to_post
    if table.holds:
        _end_hold(table, seat.number)
    table.seats[seat.number] = seat
    table.seats = dict(sorted(table.seats.items()))


def _seat_released(table: Table, released: pb.SeatReleased, event: pb.TableEvent) -> None:
    seat = table.seats.pop(released.seat, None)
    if seat is None:
        _end_hold(table, released.seat)
    else:
        table.loose += seat.held


def _seat_held(table: Table, held: pb.SeatHeld, event: pb.TableEvent) -> None:
    table.holds = {**table.holds, held.seat: Hold(held.player, held.expire_time_us)}


def _end_hold(table: Table, number: int) -> None:
    table.holds = {seat: hold for seat, hold in table.holds.items() if seat != number}


def _player_sat(table: Table, sat: pb.PlayerSat, event: pb.TableEvent) -> None:
    seat = table.seats[sat.seat]
    seat.reserved = False
    seat.since, seat.until = event.time_us, 0
    seat.time_bank = table.terms.time_bank_ms if table.terms is not None else 0
    seat.held -= sat.stack
    seat.stack += sat.stack


def _chips_added(table: Table, added: pb.ChipsAdded, event: pb.TableEvent) -> None:
    seat = table.seats[added.seat]
    seat.held -= added.amount
    seat.stack += added.amount


def _player_sat_out(table: Table, out: pb.PlayerSatOut, event: pb.TableEvent) -> None:
    seat = table.seats[out.seat]
    seat.sitting_out, seat.away, seat.sit_out_next_big_blind = True, 0, False


def _player_sat_in(table: Table, sat_in: pb.PlayerSatIn, event: pb.TableEvent) -> None:
    seat = table.seats[sat_in.seat]
    seat.sitting_out, seat.away, seat.wait = False, 0, sat_in.wait_for_big_blind


def _leave_requested(table: Table, leave: pb.LeaveRequested, event: pb.TableEvent) -> None:
    table.seats[leave.seat].leaving = leave.reason
    hand = table.hand
    if leave.after_hand or hand is None or leave.seat not in hand.index:
        return
    # Who is gone is not asked again in this hand: the flow stands pat, refuses or mucks for them (S6).
    at = hand.index[leave.seat]
    hand.absent |= 1 << at
    hand.asks_to_muck &= ~(1 << at)
    if hand.asked == at and (hand.asks != BET or hand.status[at] != ACTIVE):
        hand.asked = NOBODY


def _player_left(table: Table, left: pb.PlayerLeft, event: pb.TableEvent) -> None:
    seat = table.seats.pop(left.seat)
    assert seat.stack + seat.held == left.amount, f"{table.id}: seat {left.seat} left with {left.amount}"
    table.loose += left.amount
    _end_session(table, seat, left, event)
    terms = table.terms
    if terms is None or not terms.rathole_us or not seat.played:
        return
    since = event.time_us - terms.rathole_us
    kept = {player: took for player, took in table.took_along.items() if took[0] > since and player != left.player}
    if left.amount:
        kept[left.player] = (event.time_us, left.amount)
    table.took_along = kept


def _end_session(table: Table, seat: Seat, left: pb.PlayerLeft, event: pb.TableEvent) -> None:
    """What the player finds on coming back: how it went, and after a crash why the seat is gone (C3)."""
    at, amount = event.time_us, left.amount
    sessions = dict(table.sessions)
    session = Session(left.seat, seat.since, at, seat.bought, amount, seat.hands, left.reason)
    put_last(sessions, left.player, session)
    table.sessions = sessions
    if left.reason == pb.LEAVE_REASON_CRASH:
        before = table.notices.get(left.player)
        same = before is not None and before.at == at
        void = before if before is not None and same else Notice(0, 0, pb.VOID_REASON_CRASH, at, 0)
        notices = dict(table.notices)
        put_last(notices, left.player, void._replace(taken=amount))
        table.notices = notices


def _leave_withdrawn(table: Table, stays: pb.LeaveWithdrawn, event: pb.TableEvent) -> None:
    table.seats[stays.seat].leaving = 0


def _notice_seen(table: Table, seen: pb.NoticeSeen, event: pb.TableEvent) -> None:
    table.notices = {player: notice for player, notice in table.notices.items() if player != seen.player}


def _player_muted(table: Table, mute: pb.PlayerMuted, event: pb.TableEvent) -> None:
    table.mutes = {**table.mutes, mute.player: mute.until_us}


def _player_unmuted(table: Table, unmute: pb.PlayerUnmuted, event: pb.TableEvent) -> None:
    table.mutes = {player: until for player, until in table.mutes.items() if player != unmute.player}


def _connection_lost(table: Table, lost: pb.ConnectionLost, event: pb.TableEvent) -> None:
    seat = table.seats[lost.seat]
    seat.connected, seat.lost_at = False, event.time_us


def _connection_restored(table: Table, restored: pb.ConnectionRestored, event: pb.TableEvent) -> None:
    table.seats[restored.seat].connected = True


def _preferences_changed(table: Table, wish: pb.SeatPreferencesChanged, event: pb.TableEvent) -> None:
    seat = table.seats[wish.seat]
    seat.auto_post, seat.auto_muck, seat.wait = wish.auto_post, wish.auto_muck, wish.wait_for_big_blind
    seat.sit_out_next_big_blind, seat.auto_top_up = wish.sit_out_next_big_blind, wish.auto_top_up


def _transfer_requested(table: Table, asked: pb.TransferRequested, event: pb.TableEvent) -> None:
    transfer = Transfer(asked.transfer, asked.seat, asked.player, asked.purpose, asked.amount)
    table.transfers[asked.transfer] = transfer
    if asked.purpose in INBOUND:
        table.seats[asked.seat].transfer = asked.transfer
    else:
        table.loose -= asked.amount
        table.cashed_out += asked.amount
        assert table.loose >= 0, f"{table.id}: {asked.transfer} pays out more than was given up"


def _transfer_settled(table: Table, settled: pb.TransferSettled, event: pb.TableEvent) -> None:
    table.transfers.pop(settled.transfer)
    if settled.purpose not in INBOUND:
        return
    table.bought_in += settled.amount
    seat = table.seats.get(settled.seat)
    if seat is not None and seat.transfer == settled.transfer:
        seat.transfer = ""
        seat.held += settled.amount
        seat.bought += settled.amount
    else:
        table.loose += settled.amount


def _transfer_refused(table: Table, refused: pb.TransferRefused, event: pb.TableEvent) -> None:
    transfer = table.transfers.pop(refused.transfer)
    if refused.purpose not in INBOUND:
        table.parked[transfer.id] = transfer
        return
    seat = table.seats.get(refused.seat)
    if seat is not None and seat.transfer == refused.transfer:
        seat.transfer = ""


INBOUND: Final = frozenset({pb.TRANSFER_PURPOSE_BUY_IN, pb.TRANSFER_PURPOSE_TOP_UP})
"""Purposes that bring chips to the table."""

APPLIERS: Final[dict[str, Applier]] = {
    "table_opened": _table_opened,
    "settings_changed": _settings_changed,
    "owner_started": _owner_started,
    "table_drained": _table_drained,
    "table_closed": _table_closed,
    "ruling_recorded": _nothing,
    "player_warned": _nothing,
    "player_banned": _player_banned,
    "player_muted": _player_muted,
    "player_unmuted": _player_unmuted,
    "table_paused": _table_paused,
    "table_resumed": _table_resumed,
    "seat_reserved": _seat_reserved,
    "seat_released": _seat_released,
    "seat_held": _seat_held,
    "notice_seen": _notice_seen,
    "player_sat": _player_sat,
    "chips_added": _chips_added,
    "player_sat_out": _player_sat_out,
    "player_sat_in": _player_sat_in,
    "leave_requested": _leave_requested,
    "leave_withdrawn": _leave_withdrawn,
    "player_left": _player_left,
    "connection_lost": _connection_lost,
    "connection_restored": _connection_restored,
    "seat_preferences_changed": _preferences_changed,
    "transfer_requested": _transfer_requested,
    "transfer_settled": _transfer_settled,
    "transfer_refused": _transfer_refused,
    **HAND_APPLIERS,
}
"""What each event does, by the name of its payload."""
