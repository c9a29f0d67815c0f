"""What the room answers when it does not do what it was asked: one exception, with a few subclasses worth catching."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from relance.api.table.v1 import table_pb2

DOMAIN = "relance"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class RelanceError(Exception):
    """A refusal of the room, or a call that had no answer.

    `reason` is the ErrorInfo reason without its prefix, for example "NO_MONEY" (see the enum
    relance.api.common.v1.Reason); `metadata` says what would be accepted; `code` is the gRPC status code.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
    ) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})
        self.code = code


class ActionRefused(RelanceError):
    """The room refused an action: it is no longer asked for, or is not a legal one. Nothing changed."""


class StaleAction(ActionRefused):
    """The action came too late: another is to act, the prompt is an earlier one, or the hand is over."""


class SignInRequired(RelanceError):
    """There is no valid token: sign in first, or again."""


class NoMoney(RelanceError):
    """There is not enough money on the account. Metadata: available."""


class Unavailable(RelanceError):
    """A server did not answer in the time that the caller allows; asking again later is safe."""


class OutcomeUnknown(Unavailable):
    """The connection went before the answer and did not come back in time: the command may have been done."""


class ResumeImpossible(RelanceError):
    """The stream cannot go on from the version last seen, or had a gap. Join the table anew for a fresh view."""


class SlowReader(RelanceError):
    """The events were not read as fast as they came and the buffer of this reader is full."""


_SUBCLASSES: dict[str, type[RelanceError]] = {
    "NOT_YOUR_TURN": StaleAction,
    "STALE_TURN": StaleAction,
    "NO_ACTIVE_HAND": StaleAction,
    "HAND_ALREADY_OVER": StaleAction,
    "ACTION_NOT_OFFERED": ActionRefused,
    "RAISE_NOT_ALLOWED": ActionRefused,
    "AMOUNT_OUT_OF_RANGE": ActionRefused,
    "INVALID_AMOUNT": ActionRefused,
    "INVALID_CARDS": ActionRefused,
    "TOKEN_MISSING": SignInRequired,
    "TOKEN_INVALID": SignInRequired,
    "TOKEN_EXPIRED": SignInRequired,
    "NO_MONEY": NoMoney,
    "RESUME_IMPOSSIBLE": ResumeImpossible,
    "TABLE_UNAVAILABLE": Unavailable,
    "UNAVAILABLE": Unavailable,
    "DEADLINE": OutcomeUnknown,
}

# Refusals that say "not now": the same request may be sent again. CANCELLED is what a server says that gave a call up;
# a caller who gives it up gets no answer.
RETRIABLE = frozenset({"TABLE_UNAVAILABLE", "MAILBOX_FULL", "UNAVAILABLE", "DEADLINE", "CANCELLED", "TABLE_MOVED"})


def error(reason: str, message: str, metadata: Mapping[str, str], code: grpc.StatusCode) -> RelanceError:
    """The exception of a reason."""
    return _SUBCLASSES.get(reason, RelanceError)(reason, message, metadata, code)


def from_refusal(refusal: table_pb2.Refusal) -> RelanceError:
    """The exception of a refusal inside a Play stream."""
    code = _CODES.get(refusal.code, grpc.StatusCode.UNKNOWN)
    return error(refusal.reason, refusal.message, refusal.metadata, code)


def from_rpc(failure: grpc.aio.AioRpcError) -> RelanceError:
    """The exception of a failed call: from its ErrorInfo, or from the bare gRPC code where a library answered."""
    info = _error_info(failure)
    message = failure.details() or ""
    if info is not None:
        return error(info.reason, message, info.metadata, failure.code())
    reason = {grpc.StatusCode.UNAVAILABLE: "UNAVAILABLE", grpc.StatusCode.DEADLINE_EXCEEDED: "DEADLINE"}
    return error(reason.get(failure.code(), failure.code().name), message, {}, failure.code())


def _error_info(failure: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo | None:
    for key, value in failure.trailing_metadata() or ():
        if key != "grpc-status-details-bin" or not isinstance(value, bytes):
            continue
        try:
            status = status_pb2.Status.FromString(value)
        except DecodeError:
            return None
        for detail in status.details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return info
    return None
