"""Refusals: why a request was not done, as one exception here and one google.rpc.Status on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import grpc
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc import StatusCode

from relance.api.common.v1 import reason_pb2
from relance.api.common.v1.reason_pb2 import Reason

DOMAIN = "relance"
DETAILS_KEY = "grpc-status-details-bin"

_PREFIX = "REASON_"

# By gRPC code; the comments of reason.proto say the same (tests/runtime/test_errors.py).
_BY_CODE: dict[StatusCode, str] = {
    StatusCode.INVALID_ARGUMENT: """
        SEAT_OUT_OF_RANGE BUY_IN_OUT_OF_RANGE AMOUNT_OUT_OF_RANGE INVALID_AMOUNT INVALID_CARDS FIELD_MISSING
        FIELD_INVALID FIELD_TOO_LONG INVALID_NAME INVALID_PAGE_TOKEN INVALID_FILTER NOT_SPREAD
        CURRENCY_MISMATCH
    """,
    StatusCode.NOT_FOUND: """
        TABLE_NOT_FOUND HAND_NOT_FOUND ACCOUNT_NOT_FOUND SCHEDULE_NOT_FOUND PLAYER_NOT_FOUND WAIT_NOT_FOUND
        TEMPLATE_NOT_FOUND PROCESS_NOT_FOUND
    """,
    StatusCode.ALREADY_EXISTS: "REQUEST_ID_REUSED NAME_TAKEN KEY_REUSED TEMPLATE_EXISTS",
    StatusCode.FAILED_PRECONDITION: """
        TABLE_CLOSED TABLE_MOVED TABLE_QUARANTINED TABLE_PAUSED NOT_SEATED SEAT_TAKEN ALREADY_SEATED
        BUY_IN_BELOW_PREVIOUS_STACK NO_MONEY CASH_OUT_PENDING TRANSFER_PENDING NOTHING_TO_CHANGE NOT_YOUR_TURN
        STALE_TURN ACTION_NOT_OFFERED RAISE_NOT_ALLOWED NO_ACTIVE_HAND HAND_ALREADY_OVER SELF_EXCLUDED
        DEPOSIT_LIMIT REFILL_NOT_DUE BALANCE_TOO_LARGE SCHEDULE_VERSION OFFER_OVER LIMIT_REACHED
        MAINTENANCE
    """,
    StatusCode.ABORTED: "RESUME_IMPOSSIBLE",
    StatusCode.PERMISSION_DENIED: """
        PLAYER_BANNED NOT_INVITED ROLE_REQUIRED NOT_YOURS TRANSFER_NOT_ALLOWED FAUCET_OFF TABLE_PASSWORD_WRONG
        MUTED
    """,
    StatusCode.UNAUTHENTICATED: "TOKEN_MISSING TOKEN_INVALID TOKEN_EXPIRED SIGN_IN_REFUSED",
    StatusCode.RESOURCE_EXHAUSTED: "MAILBOX_FULL SLOW_WATCHER TOO_MANY_REQUESTS",
    StatusCode.UNAVAILABLE: "TABLE_UNAVAILABLE UNAVAILABLE",
    StatusCode.DEADLINE_EXCEEDED: "DEADLINE",
    StatusCode.INTERNAL: "INTERNAL",
}

CODES: dict[int, StatusCode] = {
    Reason.Value(_PREFIX + name): code for code, names in _BY_CODE.items() for name in names.split()
}
"""gRPC code of each reason."""


@runtime_checkable
class Refusal(Protocol):
    """What a refusal looks like, whoever raises it: the rules have their own exception of this shape."""

    @property
    def reason(self) -> int:
        """A value of Reason."""

    @property
    def message(self) -> str:
        """A sentence: what was refused, why, and what would be accepted."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """The figures of that sentence, by the names in reason.proto."""


class Refused(Exception):
    """A request was refused and changed nothing."""

    def __init__(self, reason: Reason.ValueType, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata: dict[str, str] = {key: str(value) for key, value in metadata.items()}

    def __str__(self) -> str:
        return f"{reason_name(self.reason)}: {self.message}"


def reason_name(reason: int) -> str:
    """The name on the wire, without the enum's prefix."""
    return Reason.Name(reason).removeprefix(_PREFIX)  # type: ignore[arg-type]


def code_of(reason: int) -> StatusCode:
    """The gRPC code of a reason; UNKNOWN for one that is newer than this program."""
    return CODES.get(reason, StatusCode.UNKNOWN)


def code_number(reason: int) -> int:
    """The same as a number, as it stands in google.rpc.Status and in messages of Play."""
    number: int = code_of(reason).value[0]
    return number


def to_status(refusal: Refusal) -> status_pb2.Status:
    """The refusal as google.rpc.Status with one ErrorInfo."""
    status = status_pb2.Status(code=code_number(refusal.reason), message=refusal.message)
    info = error_details_pb2.ErrorInfo(
        reason=reason_name(refusal.reason), domain=DOMAIN, metadata=dict(refusal.metadata)
    )
    status.details.add().Pack(info)
    return status


def from_status(status: status_pb2.Status) -> Refused | None:
    """The refusal in a Status; None where it has no ErrorInfo of ours."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
            reason = Reason.DESCRIPTOR.values_by_name.get(_PREFIX + info.reason)
            known = reason_pb2.REASON_UNSPECIFIED if reason is None else reason.number
            refused = Refused(Reason.ValueType(known), status.message)
            refused.metadata = dict(info.metadata)
            return refused
    return None


def from_call(error: grpc.aio.AioRpcError) -> Refused | None:
    """The refusal in a failed call; None where the server sent none (a connection that broke, say)."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return from_status(status_pb2.Status.FromString(value))
    return None
