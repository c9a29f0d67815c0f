"""`decide`: what a command does to a table. Reads the state, never changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import bank, holding, management, play, seating
from relance.poker import commands as cmd
from relance.poker.draft import Context
from relance.poker.faults import report_fault
from relance.poker.rejected import Rejected
from relance.poker.starting import start_hand
from relance.poker.table import Table

# Each decider takes its own command; the dispatch by type is what makes that type-safe.
Decider = Callable[[Table, Any, Context], list[pb.TableEvent]]


def decide(table: Table, command: cmd.Command, context: Context) -> list[pb.TableEvent]:
    """The events that a command causes, whole and in order; [] when there is nothing to do.

    Raises Rejected; then, as ever, the table is unchanged. A drained table refuses everything until a new owner starts
    (TABLE_UNAVAILABLE), a closed one everything that needs it open (TABLE_CLOSED).
    """
    kind = type(command)
    if table.terms is None:
        if kind is not cmd.OpenTable:
            raise Rejected(reason_pb2.REASON_TABLE_NOT_FOUND, f"no table {table.id}", {"table": table.id})
    elif table.drained and kind is not cmd.TakeOver:
        raise Rejected(
            reason_pb2.REASON_TABLE_UNAVAILABLE, "the table is being handed over; ask again", {"table": table.id}
        )
    elif table.closed and kind not in _WHEN_CLOSED:
        raise Rejected(reason_pb2.REASON_TABLE_CLOSED, "the table is closed", {"table": table.id})
    return _DECIDERS[kind](table, command, context)


def _start_hand(table: Table, command: cmd.StartHand, context: Context) -> list[pb.TableEvent]:
    return start_hand(table, context)


_WHEN_CLOSED: Final = frozenset(
    {
        *(cmd.TakeOver, cmd.Drain, cmd.TransferAnswered, cmd.Act, cmd.ActLate, cmd.Timeout, cmd.LeaveSeat),
        *(cmd.ReleaseSeat, cmd.ExpireSeats, cmd.AckNotices, cmd.WarnPlayer, cmd.MutePlayer, cmd.UnmutePlayer),
        *(cmd.ConnectionLost, cmd.ConnectionRestored, cmd.VoidHand, cmd.RecordRuling, cmd.ReportDealingFault),
    }
)

_DECIDERS: Final[dict[type[Any], Decider]] = {
    cmd.OpenTable: management.open_table,
    cmd.TakeOver: management.take_over,
    cmd.Drain: management.drain,
    cmd.CloseTable: management.close_table,
    cmd.ChangeSettings: management.change_settings,
    cmd.PauseTable: management.pause_table,
    cmd.ResumeTable: management.resume_table,
    cmd.RecordRuling: management.record_ruling,
    cmd.WarnPlayer: management.warn_player,
    cmd.BanPlayer: management.ban_player,
    cmd.VoidHand: management.void,
    cmd.TakeSeat: seating.take_seat,
    cmd.AddChips: seating.add_chips,
    cmd.SitOut: seating.sit_out,
    cmd.SitIn: seating.sit_in,
    cmd.LeaveSeat: seating.leave_seat,
    cmd.HoldSeat: holding.hold_seat,
    cmd.ReleaseSeat: holding.release_seat,
    cmd.ExpireSeats: holding.expire_seats,
    cmd.AckNotices: seating.ack_notices,
    cmd.MutePlayer: management.mute_player,
    cmd.UnmutePlayer: management.unmute_player,
    cmd.SetPreferences: seating.set_preferences,
    cmd.TransferAnswered: seating.transfer_answered,
    cmd.ConnectionLost: seating.connection_lost,
    cmd.ConnectionRestored: seating.connection_restored,
    cmd.StartHand: _start_hand,
    cmd.Act: play.act,
    cmd.ActLate: bank.act_late,
    cmd.Timeout: play.time_out,
    cmd.ReportDealingFault: report_fault,
}
