"""Seats that are held for a while: offers and reservations, and what time does to them (S6)."""

from __future__ import annotations

from relance.api.events.v1 import events_pb2 as pb
from relance.poker import commands as cmd
from relance.poker.draft import Context, Draft
from relance.poker.seating import check_admission, free_seat, leave
from relance.poker.table import Table


def hold_seat(table: Table, command: cmd.HoldSeat, context: Context) -> list[pb.TableEvent]:
    """Hold a free seat for a player; held again, it is held for longer, never for less.

    Raises Rejected PLAYER_BANNED, ALREADY_SEATED, SEAT_TAKEN when no seat is free.
    """
    check_admission(table, command.player, context.at)
    number = free_seat(table, command.player, 0, context.at)
    before = table.holds.get(number)
    until = max(command.until, before.until) if before and before.player == command.player else command.until
    draft = Draft(table, context)
    draft.emit("seat_held", seat=number, player=command.player, expire_time_us=until, held_by=command.by)
    return draft.decision()


def release_seat(table: Table, command: cmd.ReleaseSeat, context: Context) -> list[pb.TableEvent]:
    """Give up what is held for a player; nothing where nothing is."""
    number = table.held_for(command.player)
    if not number:
        return []
    draft = Draft(table, context)
    draft.emit("seat_released", seat=number, player=command.player, reason="EXPIRED")
    return draft.decision()


def expire_seats(table: Table, command: cmd.ExpireSeats, context: Context) -> list[pb.TableEvent]:
    """Free what was held or reserved for long enough, and the seats of players who were away for the grace (S6).

    A buy-in that settles after its reservation is over goes back to the player.
    """
    draft = Draft(table, context)
    for number, hold in table.holds.items():
        if hold.until <= context.at:
            draft.emit("seat_released", seat=number, player=hold.player, reason="EXPIRED")
    for number in list(table.seats):
        seat = draft.table.seats.get(number)
        ends = seat and seat_ends(draft.table, number)
        if seat is None or not ends or ends > context.at:
            continue
        if seat.reserved:
            draft.emit("seat_released", seat=number, player=seat.player, reason="EXPIRED")
        else:
            leave(draft, seat, pb.LEAVE_REASON_DISCONNECTED)
    return draft.decision()


def next_expiry(table: Table) -> int:
    """The next time at which seats expire, microseconds since 1970; 0: never."""
    ends = [hold.until for hold in table.holds.values()]
    ends += [end for number in table.seats if (end := seat_ends(table, number))]
    return min(ends, default=0)


def seat_ends(table: Table, number: int) -> int:
    """When the seat is given up unless its player does something; 0: never."""
    seat, terms = table.seats[number], table.terms
    if seat.reserved:
        return seat.until
    if terms is None or not terms.grace_us or seat.connected or seat.leaving:
        return 0
    return seat.lost_at + terms.grace_us
