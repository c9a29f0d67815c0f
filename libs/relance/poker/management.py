"""Opening, owning, draining, closing a table; what the management may do (C3, C4)."""

from __future__ import annotations

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import commands as cmd
from relance.poker.departures import between_hands, depart
from relance.poker.draft import Context, Draft
from relance.poker.rejected import Rejected
from relance.poker.seating import leave
from relance.poker.settle import void_hand
from relance.poker.table import Table
from relance.poker.terms import terms_of


def open_table(table: Table, command: cmd.OpenTable, context: Context) -> list[pb.TableEvent]:
    """The first event of a stream. Raises Rejected FIELD_INVALID, NOTHING_TO_CHANGE when it is open already."""
    if table.version:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "the table is open already", {})
    terms_of(command.config)
    draft = Draft(table, context)
    fields: dict[str, object] = {"config": command.config, "opened_by": command.opened_by}
    if command.rake is not None:
        fields["rake"] = command.rake
    draft.emit("table_opened", **fields)
    return draft.decision()


def take_over(table: Table, command: cmd.TakeOver, context: Context) -> list[pb.TableEvent]:
    """A new owner, in one append (C3): a running hand is void; after a crash everyone is paid out under `cash_out`."""
    draft = Draft(table, context)
    reason = pb.OWNER_REASON_HANDOVER if table.drained else command.reason
    draft.emit("owner_started", fence=command.fence, process=command.process, reason=reason)
    if table.hand is not None:
        void_hand(draft, pb.VOID_REASON_CRASH)
    terms = table.terms
    if reason == pb.OWNER_REASON_CRASH and terms is not None and not terms.keep_seats:
        for seat in list(draft.table.seats.values()):
            if seat.reserved:
                draft.emit("seat_released", seat=seat.number, player=seat.player, reason="CANCELLED")
            else:
                depart(draft, seat, pb.LEAVE_REASON_CRASH)
    elif table.hand is not None:
        between_hands(draft)
    return draft.decision()


def drain(table: Table, command: cmd.Drain, context: Context) -> list[pb.TableEvent]:
    """Give the table up. Without `void` a running hand is let end: then nothing is decided here."""
    if table.hand is not None and not command.void:
        return []
    draft = Draft(table, context)
    if table.hand is not None:
        void_hand(draft, pb.VOID_REASON_DRAIN)
        between_hands(draft)
    if not draft.table.drained:
        draft.emit("table_drained")
    return draft.decision()


def close_table(table: Table, command: cmd.CloseTable, context: Context) -> list[pb.TableEvent]:
    """No more hands. Everyone is cashed out now, or with the end of the running hand."""
    draft = Draft(table, context)
    draft.emit("table_closed", operator=command.operator, reason=command.reason)
    if table.hand is None:
        for seat in list(draft.table.seats.values()):
            if not seat.reserved:
                depart(draft, seat, pb.LEAVE_REASON_TABLE_CLOSED)
    for number, hold in table.holds.items():
        draft.emit("seat_released", seat=number, player=hold.player, reason="CLOSED")
    return draft.decision()


def change_settings(table: Table, command: cmd.ChangeSettings, context: Context) -> list[pb.TableEvent]:
    """Another configuration from the next hand on: a running hand has its own terms.

    Raises Rejected FIELD_INVALID; NOTHING_TO_CHANGE for another rake in a hand, which began with the one before.
    """
    if table.hand is not None and command.rake is not None:
        raise Rejected(
            reason_pb2.REASON_NOTHING_TO_CHANGE,
            "the rake changes between two hands: pause the table, then ask again",
            {},
        )
    terms_of(command.config)
    highest = max(table.seats, default=0)
    if highest > command.config.seats:
        raise Rejected(
            reason_pb2.REASON_FIELD_INVALID,
            f"seat {highest} is held",
            {"field": "seats", "allowed": f"{highest} or more"},
        )
    draft = Draft(table, context)
    fields: dict[str, object] = {"config": command.config, "operator": command.operator, "reason": command.reason}
    if command.rake is not None:
        fields["rake"] = command.rake
    draft.emit("settings_changed", **fields)
    return draft.decision()


def pause_table(table: Table, command: cmd.PauseTable, context: Context) -> list[pb.TableEvent]:
    """No new hands. Raises Rejected NOTHING_TO_CHANGE."""
    if table.paused:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "the table is paused already", {})
    draft = Draft(table, context)
    draft.emit("table_paused", operator=command.operator, reason=command.reason)
    return draft.decision()


def resume_table(table: Table, command: cmd.ResumeTable, context: Context) -> list[pb.TableEvent]:
    """Hands may start again. Raises Rejected NOTHING_TO_CHANGE."""
    if not table.paused:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "the table is not paused", {})
    draft = Draft(table, context)
    draft.emit("table_resumed", operator=command.operator)
    return draft.decision()


def record_ruling(table: Table, command: cmd.RecordRuling, context: Context) -> list[pb.TableEvent]:
    """C4. Raises Rejected HAND_NOT_FOUND."""
    if not 0 <= command.hand <= table.last_hand:
        raise Rejected(
            reason_pb2.REASON_HAND_NOT_FOUND,
            f"there is no hand {command.hand}; the last is {table.last_hand}",
            {"hand": str(command.hand), "last": str(table.last_hand)},
        )
    draft = Draft(table, context)
    draft.emit("ruling_recorded", operator=command.operator, about_hand=command.hand, text=command.text)
    return draft.decision()


def warn_player(table: Table, command: cmd.WarnPlayer, context: Context) -> list[pb.TableEvent]:
    """A warning, on record (C2, C4)."""
    draft = Draft(table, context)
    draft.emit("player_warned", player=command.player, operator=command.operator, reason=command.reason)
    return draft.decision()


def ban_player(table: Table, command: cmd.BanPlayer, context: Context) -> list[pb.TableEvent]:
    """A ban; a seated player leaves as if they had asked to."""
    draft = Draft(table, context)
    draft.emit(
        "player_banned",
        player=command.player,
        operator=command.operator,
        reason=command.reason,
        until_us=command.until,
    )
    seat = draft.table.seat_of(command.player)
    if seat is not None and not seat.leaving:
        leave(draft, seat, pb.LEAVE_REASON_BANNED)
    return draft.decision()


def mute_player(table: Table, command: cmd.MutePlayer, context: Context) -> list[pb.TableEvent]:
    """No voice in the chat for a while, or for good."""
    draft = Draft(table, context)
    draft.emit(
        "player_muted",
        player=command.player,
        operator=command.operator,
        reason=command.reason,
        until_us=command.until,
    )
    return draft.decision()


def unmute_player(table: Table, command: cmd.UnmutePlayer, context: Context) -> list[pb.TableEvent]:
    """The voice back. Raises Rejected NOTHING_TO_CHANGE."""
    if command.player not in table.mutes:
        raise Rejected(reason_pb2.REASON_NOTHING_TO_CHANGE, "the player is not muted", {})
    draft = Draft(table, context)
    draft.emit("player_unmuted", player=command.player, operator=command.operator)
    return draft.decision()


def void(table: Table, command: cmd.VoidHand, context: Context) -> list[pb.TableEvent]:
    """C4: void the running hand; seats are kept. Raises Rejected HAND_ALREADY_OVER, NO_ACTIVE_HAND."""
    hand = table.hand
    if 0 < command.hand <= table.last_over:
        raise Rejected(reason_pb2.REASON_HAND_ALREADY_OVER, f"hand {command.hand} is over", {"hand": str(command.hand)})
    if hand is None or hand.number != command.hand:
        raise Rejected(reason_pb2.REASON_NO_ACTIVE_HAND, f"hand {command.hand} is not running", {})
    draft = Draft(table, context)
    void_hand(draft, pb.VOID_REASON_OPERATOR, command.operator, command.note)
    between_hands(draft)
    return draft.decision()
