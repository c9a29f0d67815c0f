"""From what a caller sends to a command of the rules: names, missing fields, unknown enums, the request's identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Request
from relance.poker.commands import (
    AckNotices,
    Act,
    AddChips,
    BanPlayer,
    CloseTable,
    Command,
    HoldSeat,
    LeaveSeat,
    MutePlayer,
    PauseTable,
    RecordRuling,
    ReleaseSeat,
    ReportDealingFault,
    ResumeTable,
    SetPreferences,
    SitIn,
    SitOut,
    TakeSeat,
    UnmutePlayer,
    VoidHand,
    WarnPlayer,
)
from relance.runtime import validation

MAX_REASON = 500
MAX_RULING = 2_000
MAX_TURN = 2**53
MAX_HOLD_MS = 24 * 3600 * 1000
MAX_BAN_MS = 100 * 366 * 24 * 3600 * 1000


def identify(kind: str, request_id: str, message: Message, player: str) -> Request:
    """Identity of a request: the same id with other content is refused. `message` must not name the table.

    Raises Refused FIELD_MISSING, FIELD_INVALID, FIELD_TOO_LONG.
    """
    validation.request_id(request_id)
    digest = hashlib.blake2b(message.SerializeToString(deterministic=True), digest_size=16, key=kind.encode())
    return Request(id=request_id, hash=digest.digest(), player=player)


def _act(message: table_pb2.ActRequest, player: str) -> Command:
    validation.present(message, "action")
    action = message.action
    validation.enum(action.kind, table_pb2.ActionKind, "action.kind")
    validation.whole(action.turn, "action.turn", least=0, most=MAX_TURN)
    return Act(player, action.turn, action.kind, action.amount, action.cards)


def _take_seat(message: table_pb2.TakeSeatRequest, player: str) -> Command:
    wait, ask = message.wait_for_big_blind, message.ask_to_post
    return TakeSeat(player, message.seat, message.buy_in, wait, invited=False, ask_to_post=ask)


def _add_chips(message: table_pb2.AddChipsRequest, player: str) -> Command:
    return AddChips(player, message.amount)


def _sit_out(message: table_pb2.SitOutRequest, player: str) -> Command:
    return SitOut(player, message.at_next_big_blind)


def _sit_in(message: table_pb2.SitInRequest, player: str) -> Command:
    return SitIn(player, message.wait_for_big_blind)


def _leave_seat(message: table_pb2.LeaveSeatRequest, player: str) -> Command:
    return LeaveSeat(player, after_hand=message.after_hand)


def _set_preferences(message: table_pb2.SetSeatPreferencesRequest, player: str) -> Command:
    validation.present(message, "preferences")
    wish = message.preferences
    return SetPreferences(
        player,
        auto_post=wish.auto_post,
        auto_muck=wish.auto_muck,
        wait_for_big_blind=wish.wait_for_big_blind,
        sit_out_next_big_blind=wish.sit_out_next_big_blind,
        auto_top_up=validation.amount(wish.auto_top_up, "preferences.auto_top_up", least=0),
    )


def _ack_notices(_message: table_pb2.AckNoticesRequest, player: str) -> Command:
    return AckNotices(player)


def _close_table(message: table_pb2.CloseTableRequest, operator: str) -> Command:
    return CloseTable(operator, validation.text(message.reason, "reason", longest=MAX_REASON, required=False))


def _pause_table(message: table_pb2.PauseTableRequest, operator: str) -> Command:
    return PauseTable(operator, validation.text(message.reason, "reason", longest=MAX_REASON, required=False))


def _resume_table(_message: table_pb2.ResumeTableRequest, operator: str) -> Command:
    return ResumeTable(operator)


def _release_seat(message: table_pb2.ReleaseSeatRequest, _service: str) -> Command:
    return ReleaseSeat(validation.player_id(message.player))


def _warn_player(message: table_pb2.WarnPlayerRequest, operator: str) -> Command:
    reason = validation.text(message.reason, "reason", longest=MAX_REASON)
    return WarnPlayer(validation.player_id(message.player), operator, reason)


def hold_seat(message: table_pb2.HoldSeatRequest, service: str, now_us: int) -> HoldSeat:
    """The command in a message."""
    duration = validation.whole(message.duration_ms, "duration_ms", least=1, most=MAX_HOLD_MS)
    return HoldSeat(validation.player_id(message.player), now_us + duration * 1000, service)


def ban_player(message: table_pb2.BanPlayerRequest, operator: str, now_us: int) -> BanPlayer:
    """The command in a message."""
    reason = validation.text(message.reason, "reason", longest=MAX_REASON)
    return BanPlayer(validation.player_id(message.player), operator, reason, _until(message.duration_ms, now_us))


def mute_player(message: table_pb2.MutePlayerRequest, operator: str, now_us: int) -> MutePlayer | UnmutePlayer:
    """The command in a message."""
    player = validation.player_id(message.player)
    reason = validation.text(message.reason, "reason", longest=MAX_REASON, required=not message.lift)
    if message.lift:
        return UnmutePlayer(player, operator)
    return MutePlayer(player, operator, reason, _until(message.duration_ms, now_us))


def _until(duration_ms: int, now_us: int) -> int:
    """The end of a time that begins now; 0: for good."""
    validation.whole(duration_ms, "duration_ms", least=0, most=MAX_BAN_MS)
    return now_us + duration_ms * 1000 if duration_ms else 0


def _void_hand(message: table_pb2.VoidHandRequest, operator: str) -> Command:
    if message.hand == 0:
        raise validation.missing("hand")
    validation.whole(message.hand, "hand", least=1, most=MAX_TURN)
    return VoidHand(operator, validation.text(message.reason, "reason", longest=MAX_REASON), message.hand)


def _record_ruling(message: table_pb2.RecordRulingRequest, operator: str) -> Command:
    hand = validation.whole(message.hand, "hand", least=0, most=MAX_TURN)
    return RecordRuling(operator, hand, validation.text(message.text, "text", longest=MAX_RULING))


def _report_fault(message: table_pb2.ReportDealingFaultRequest, operator: str) -> Command:
    validation.enum(message.fault, events_pb2.DealingFault, "fault")
    return ReportDealingFault(message.fault, message.seat, operator, message.keep)


# By the names that PlayRequest gives them; the operators' have no place in Play.
_READERS: Mapping[str, Callable[..., Command]] = {
    "act": _act,
    "take_seat": _take_seat,
    "add_chips": _add_chips,
    "sit_out": _sit_out,
    "sit_in": _sit_in,
    "leave_seat": _leave_seat,
    "set_seat_preferences": _set_preferences,
    "ack_notices": _ack_notices,
    "release_seat": _release_seat,
    "warn_player": _warn_player,
    "close_table": _close_table,
    "pause_table": _pause_table,
    "resume_table": _resume_table,
    "void_hand": _void_hand,
    "record_ruling": _record_ruling,
    "report_dealing_fault": _report_fault,
}

PlayerMessage = (
    table_pb2.ActRequest
    | table_pb2.TakeSeatRequest
    | table_pb2.AddChipsRequest
    | table_pb2.SitOutRequest
    | table_pb2.SitInRequest
    | table_pb2.LeaveSeatRequest
    | table_pb2.SetSeatPreferencesRequest
    | table_pb2.AckNoticesRequest
)
OperatorMessage = (
    table_pb2.CloseTableRequest
    | table_pb2.PauseTableRequest
    | table_pb2.ResumeTableRequest
    | table_pb2.ReleaseSeatRequest
    | table_pb2.WarnPlayerRequest
    | table_pb2.VoidHandRequest
    | table_pb2.RecordRulingRequest
    | table_pb2.ReportDealingFaultRequest
)


def read(kind: str, message: PlayerMessage | OperatorMessage, caller: str) -> tuple[Command, Request]:
    """The command in a message, asked for by a player or operator, and the request's identity.

    A TakeSeat is as if not invited. Clears the table's name in the message. Raises Refused FIELD_MISSING,
    FIELD_INVALID, FIELD_TOO_LONG.
    """
    message.ClearField("table")
    if isinstance(message, table_pb2.TakeSeatRequest):
        message.ClearField("invitation")  # renewed between two tries of one request
    request = identify(kind, message.request_id, message, caller)
    return _READERS[kind](message, caller), request
