"""From what a caller sends to a command of the rules: names, missing fields, unknown enums, the request's identity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Request
from relance.poker.commands import (
    Act,
    AddChips,
    CloseTable,
    Command,
    LeaveSeat,
    PauseTable,
    RecordRuling,
    ReportDealingFault,
    ResumeTable,
    SitIn,
    SitOut,
    TakeSeat,
    VoidHand,
)
from relance.runtime import validation

MAX_REASON = 500
MAX_RULING = 2_000
MAX_TURN = 2**53


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
    return TakeSeat(player, message.seat, message.buy_in, message.wait_for_big_blind)


def _add_chips(message: table_pb2.AddChipsRequest, player: str) -> Command:
    return AddChips(player, message.amount)


def _sit_out(_message: table_pb2.SitOutRequest, player: str) -> Command:
    return SitOut(player)


def _sit_in(message: table_pb2.SitInRequest, player: str) -> Command:
    return SitIn(player, message.wait_for_big_blind)


def _leave_seat(_message: table_pb2.LeaveSeatRequest, player: str) -> Command:
    return LeaveSeat(player)


def _close_table(message: table_pb2.CloseTableRequest, operator: str) -> Command:
    return CloseTable(operator, validation.text(message.reason, "reason", longest=MAX_REASON, required=False))


def _pause_table(message: table_pb2.PauseTableRequest, operator: str) -> Command:
    return PauseTable(operator, validation.text(message.reason, "reason", longest=MAX_REASON, required=False))


def _resume_table(_message: table_pb2.ResumeTableRequest, operator: str) -> Command:
    return ResumeTable(operator)


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
    return ReportDealingFault(message.fault, message.seat, operator)


# By the names that PlayRequest gives them; the operators' have no place in Play.
_READERS: Mapping[str, Callable[..., Command]] = {
    "act": _act,
    "take_seat": _take_seat,
    "add_chips": _add_chips,
    "sit_out": _sit_out,
    "sit_in": _sit_in,
    "leave_seat": _leave_seat,
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
)
OperatorMessage = (
    table_pb2.CloseTableRequest
    | table_pb2.PauseTableRequest
    | table_pb2.ResumeTableRequest
    | table_pb2.VoidHandRequest
    | table_pb2.RecordRulingRequest
    | table_pb2.ReportDealingFaultRequest
)


def read(kind: str, message: PlayerMessage | OperatorMessage, caller: str) -> tuple[Command, Request]:
    """The command in a message, asked for by a player or operator, and the request's identity.

    Clears the table's name in the message. Raises Refused FIELD_MISSING, FIELD_INVALID, FIELD_TOO_LONG.
    """
    message.ClearField("table")
    if isinstance(message, table_pb2.TakeSeatRequest):
        message.ClearField("invitation")  # renewed between two tries of one request
    request = identify(kind, message.request_id, message, caller)
    return _READERS[kind](message, caller), request
