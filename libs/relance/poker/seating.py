"""Seats: buying in, topping up, sitting out and in, leaving; the wallet's answers (B1, S4-S9)."""

from __future__ import annotations

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import commands as cmd
from relance.poker.betting import check_amount
from relance.poker.departures import depart, request_transfer
from relance.poker.draft import Context, Draft
from relance.poker.evolve import INBOUND
from relance.poker.flow import run
from relance.poker.hand import ACTIVE, SHOWDOWN
from relance.poker.play import fold_leaver
from relance.poker.rejected import Rejected
from relance.poker.table import Seat, Table, Transfer


def take_seat(table: Table, command: cmd.TakeSeat, context: Context) -> list[pb.TableEvent]:
    """Reserve a seat and ask for the buy-in. A seat that is held for the player is theirs, at a private table too.

    Raises Rejected: PLAYER_BANNED, ALREADY_SEATED, NOT_INVITED, SEAT_OUT_OF_RANGE, SEAT_TAKEN, INVALID_AMOUNT,
    BUY_IN_OUT_OF_RANGE, BUY_IN_BELOW_PREVIOUS_STACK.
    """
    config = _config(table)
    check_admission(table, command.player, context.at)
    kept = table.held_for(command.player)
    if not (kept or command.invited) and config.private:
        raise Rejected(reason_pb2.REASON_NOT_INVITED, "the table is private and you are not invited", {})
    number = free_seat(table, command.player, command.seat, context.at)
    amount = _buy_in(table, command, context)
    draft = Draft(table, context)
    if kept and kept != number:
        draft.emit("seat_released", seat=kept, player=command.player, reason="CANCELLED")
    terms = table.terms
    assert terms is not None
    draft.emit(
        "seat_reserved",
        seat=number,
        player=command.player,
        amount=amount,
        wait_for_big_blind=command.wait_for_big_blind,
        expire_time_us=context.at + terms.reservation_us if terms.reservation_us else 0,
        ask_to_post=command.ask_to_post,
    )
    request_transfer(draft, number, command.player, pb.TRANSFER_PURPOSE_BUY_IN, amount)
    return draft.decision()


def check_admission(table: Table, player: str, at: int) -> None:
    """Raises Rejected PLAYER_BANNED, ALREADY_SEATED (S9)."""
    until = table.bans.get(player)
    if until is not None and (until == 0 or until > at):
        raise Rejected(reason_pb2.REASON_PLAYER_BANNED, "you are banned from this table", {"until": str(until)})
    seat = table.seat_of(player)
    if seat is not None:
        raise Rejected(
            reason_pb2.REASON_ALREADY_SEATED, f"you have seat {seat.number} here", {"seat": str(seat.number)}
        )


def free_seat(table: Table, player: str, wanted: int, at: int) -> int:
    """A seat that the player may take at a time: the wanted one, or (0) the one held for them, or the first free one.

    Raises Rejected SEAT_OUT_OF_RANGE, SEAT_TAKEN.
    """
    seats = _config(table).seats
    others = {number for number, hold in table.holds.items() if hold.player != player and hold.until > at}
    free = [number for number in range(1, seats + 1) if number not in table.seats and number not in others]
    metadata = {"seat": str(wanted), "free": ", ".join(map(str, free))}
    if not wanted and free:
        return table.held_for(player) or free[0]
    if not 0 <= wanted <= seats:
        raise Rejected(
            reason_pb2.REASON_SEAT_OUT_OF_RANGE,
            f"there is no seat {wanted}; seats are 1 to {seats}",
            {"min": "1", "max": str(seats)},
        )
    if wanted not in free:
        raise Rejected(reason_pb2.REASON_SEAT_TAKEN, f"seat {wanted or 'any'} is taken", metadata)
    return wanted


def _buy_in(table: Table, command: cmd.TakeSeat, context: Context) -> int:
    """B1, S7, S8."""
    config = _config(table)
    amount = check_amount(command.amount)
    least, most = config.min_buy_in, config.max_buy_in
    took = table.took_along.get(command.player)
    terms = table.terms
    assert terms is not None
    if took is not None and terms.rathole_us and took[0] > context.at - terms.rathole_us:
        if took[1] > least and amount < took[1]:
            raise Rejected(
                reason_pb2.REASON_BUY_IN_BELOW_PREVIOUS_STACK,
                f"you left with {took[1]} a short while ago and bring at least that",
                {"min": str(took[1])},
            )
        most = max(most, took[1]) if most else 0
    if amount < least or (most and amount > most):
        raise Rejected(
            reason_pb2.REASON_BUY_IN_OUT_OF_RANGE,
            f"a buy-in of {amount}; {least} to {most or 'the whole balance'} would be accepted",
            {"min": str(least), "max": str(most)},
        )
    return amount


def add_chips(table: Table, command: cmd.AddChips, context: Context) -> list[pb.TableEvent]:
    """Ask for a top-up. Raises Rejected NOT_SEATED, TRANSFER_PENDING, INVALID_AMOUNT, BUY_IN_OUT_OF_RANGE."""
    seat = seated(table, command.player)
    amount = check_amount(command.amount)
    if seat.transfer:
        raise Rejected(
            reason_pb2.REASON_TRANSFER_PENDING, "a transfer for this seat is under way", {"transfer": seat.transfer}
        )
    if seat.leaving:
        raise Rejected(reason_pb2.REASON_NOT_SEATED, "you are leaving the table", {})
    most = _config(table).max_buy_in
    room = most - max(seat.stack, table.stack(seat.number)) - seat.held
    if most and amount > room:
        raise Rejected(
            reason_pb2.REASON_BUY_IN_OUT_OF_RANGE,
            f"up to {max(room, 0)} more chips would be accepted",
            {"min": "1", "max": str(max(room, 0))},
        )
    draft = Draft(table, context)
    request_transfer(draft, seat.number, seat.player, pb.TRANSFER_PURPOSE_TOP_UP, amount)
    return draft.decision()


def sit_out(table: Table, command: cmd.SitOut, context: Context) -> list[pb.TableEvent]:
    """Sit out from the next hand on, or at the next big blind (S6). Raises Rejected NOT_SEATED, NOTHING_TO_CHANGE."""
    seat = seated(table, command.player)
    if seat.sitting_out or (command.at_next_big_blind and seat.sit_out_next_big_blind):
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "you are sitting out already", {})
    draft = Draft(table, context)
    if command.at_next_big_blind:
        draft.emit(
            "seat_preferences_changed",
            seat=seat.number,
            player=seat.player,
            auto_post=seat.auto_post,
            auto_muck=seat.auto_muck,
            wait_for_big_blind=seat.wait,
            sit_out_next_big_blind=True,
            auto_top_up=seat.auto_top_up,
        )
        return draft.decision()
    draft.emit("player_sat_out", seat=seat.number, player=seat.player, reason=pb.SIT_OUT_REASON_REQUESTED)
    return draft.decision()


def sit_in(table: Table, command: cmd.SitIn, context: Context) -> list[pb.TableEvent]:
    """Sit in again (S5); who has asked to leave after the hand stays. Raises Rejected NOT_SEATED, NOTHING_TO_CHANGE."""
    seat = seated(table, command.player)
    stays, wait = _may_stay(table, seat), command.wait_for_big_blind
    sits_in = seat.sitting_out or seat.wait != wait
    if not (stays or sits_in):
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "you are sitting in already", {})
    draft = Draft(table, context)
    if stays:
        draft.emit("leave_withdrawn", seat=seat.number, player=seat.player)
    if sits_in:
        draft.emit("player_sat_in", seat=seat.number, player=seat.player, wait_for_big_blind=wait)
    return draft.decision()


def leave_seat(table: Table, command: cmd.LeaveSeat, context: Context) -> list[pb.TableEvent]:
    """Leave (S6): at once between hands; in a hand the cards are folded at once, the seat is free with the hand's end.

    With `after_hand` the hand is played to its end; who asked for that may still go at once. Raises Rejected
    NOT_SEATED, NOTHING_TO_CHANGE.
    """
    seat = table.seat_of(command.player)
    if seat is None:
        raise Rejected(reason_pb2.REASON_NOT_SEATED, "you have no seat at this table", {})
    if seat.leaving and (command.after_hand or not _plays(table, seat)):
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "you are leaving already", {})
    draft = Draft(table, context)
    if command.after_hand and table.hand is not None and not seat.reserved:
        why = command.reason
        draft.emit("leave_requested", seat=seat.number, player=seat.player, reason=why, after_hand=True)
    else:
        leave(draft, seat, command.reason)
    return draft.decision()


def _may_stay(table: Table, seat: Seat) -> bool:
    """Whether a player who asked to leave can take that back: nobody sent them away, and they gave no hand up (S6)."""
    hand = table.hand
    gave_up = hand is not None and seat.number in hand.index and not _plays(table, seat)
    return seat.leaving == pb.LEAVE_REASON_REQUESTED and not gave_up


def _plays(table: Table, seat: Seat) -> bool:
    """Whether the player is still asked in the running hand."""
    hand = table.hand
    at = hand.index.get(seat.number) if hand is not None else None
    return hand is not None and at is not None and not hand.absent >> at & 1


def leave(draft: Draft, seat: Seat, reason: pb.LeaveReason.ValueType) -> None:
    """What a player's leaving means now."""
    hand = draft.table.hand
    if seat.reserved:
        draft.emit("seat_released", seat=seat.number, player=seat.player, reason="CANCELLED")
        return
    if hand is None:
        depart(draft, seat, reason)
        return
    draft.emit("leave_requested", seat=seat.number, player=seat.player, reason=reason)
    at = hand.index.get(seat.number)
    if at is None:
        return
    if hand.status[at] == ACTIVE and hand.phase != SHOWDOWN:
        lost = reason == pb.LEAVE_REASON_DISCONNECTED
        fold_leaver(draft, at, pb.FOLD_REASON_DISCONNECTED if lost else pb.FOLD_REASON_LEFT)
    else:
        run(draft)


def set_preferences(table: Table, command: cmd.SetPreferences, context: Context) -> list[pb.TableEvent]:
    """How the seat plays by itself. Raises Rejected NOT_SEATED, INVALID_AMOUNT."""
    seat = seated(table, command.player)
    draft = Draft(table, context)
    draft.emit(
        "seat_preferences_changed",
        seat=seat.number,
        player=seat.player,
        auto_post=command.auto_post,
        auto_muck=command.auto_muck,
        wait_for_big_blind=command.wait_for_big_blind,
        sit_out_next_big_blind=command.sit_out_next_big_blind,
        auto_top_up=check_amount(command.auto_top_up) if command.auto_top_up else 0,
    )
    return draft.decision()


def ack_notices(table: Table, command: cmd.AckNotices, context: Context) -> list[pb.TableEvent]:
    """The notice was seen; nothing where there is none."""
    if command.player not in table.notices:
        return []
    draft = Draft(table, context)
    draft.emit("notice_seen", player=command.player)
    return draft.decision()


def connection_lost(table: Table, command: cmd.ConnectionLost, context: Context) -> list[pb.TableEvent]:
    """The player's stream is gone; nothing when that is known or the player has no seat."""
    seat = table.seat_of(command.player)
    if seat is None or not seat.connected:
        return []
    draft = Draft(table, context)
    draft.emit("connection_lost", seat=seat.number, player=seat.player)
    return draft.decision()


def connection_restored(table: Table, command: cmd.ConnectionRestored, context: Context) -> list[pb.TableEvent]:
    """The player's stream is back; nothing when that is known or the player has no seat."""
    seat = table.seat_of(command.player)
    if seat is None or seat.connected:
        return []
    draft = Draft(table, context)
    draft.emit("connection_restored", seat=seat.number, player=seat.player)
    return draft.decision()


def transfer_answered(table: Table, command: cmd.TransferAnswered, context: Context) -> list[pb.TableEvent]:
    """The wallet's answer to a transfer; nothing when it was known before."""
    transfer = table.transfers.get(command.transfer)
    if transfer is None:
        return []
    draft = Draft(table, context)
    fields: dict[str, object] = {
        "transfer": transfer.id,
        "seat": transfer.seat,
        "player": transfer.player,
        "purpose": transfer.purpose,
        "amount": transfer.amount,
    }
    seat = table.seats.get(transfer.seat)
    theirs = seat if seat is not None and seat.transfer == transfer.id else None
    if command.settled:
        draft.emit("transfer_settled", **fields)
        _settled(draft, transfer, theirs)
    else:
        draft.emit("transfer_refused", **fields, reason=command.refusal)
        if theirs is not None and transfer.purpose == pb.TRANSFER_PURPOSE_BUY_IN:
            draft.emit("seat_released", seat=theirs.number, player=theirs.player, reason="REFUSED")
    return draft.decision()


def _settled(draft: Draft, transfer: Transfer, theirs: Seat | None) -> None:
    """Chips to the seat that asked for them, or back to the player when the seat is gone or the table closed."""
    if transfer.purpose not in INBOUND:
        return
    if theirs is None:
        request_transfer(draft, transfer.seat, transfer.player, pb.TRANSFER_PURPOSE_RETURN, transfer.amount)
    elif transfer.purpose == pb.TRANSFER_PURPOSE_BUY_IN:
        if draft.table.closed:
            draft.emit("seat_released", seat=theirs.number, player=theirs.player, reason="CLOSED")
            request_transfer(draft, transfer.seat, transfer.player, pb.TRANSFER_PURPOSE_RETURN, transfer.amount)
        else:
            draft.emit("player_sat", seat=theirs.number, player=theirs.player, stack=transfer.amount)


def seated(table: Table, player: str) -> Seat:
    """The player's seat. Raises Rejected NOT_SEATED, also while the buy-in has not settled."""
    seat = table.seat_of(player)
    if seat is None or seat.reserved:
        raise Rejected(reason_pb2.REASON_NOT_SEATED, "you have no seat at this table", {})
    return seat


def _config(table: Table) -> game_pb2.TableConfig:
    config = table.config
    assert config is not None
    return config
