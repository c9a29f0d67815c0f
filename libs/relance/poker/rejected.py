"""How the rules say no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from relance.api.common.v1 import reason_pb2

if TYPE_CHECKING:
    from relance.api.common.v1.reason_pb2 import Reason


class Rejected(Exception):
    """A command or a request that the rules refuse; nothing has changed.

    reason: one of the catalogue; its comment in reason.proto names the metadata.
    message: what was refused, why, and what would be accepted.
    metadata: the figures of the message for programs, as text.
    """

    def __init__(self, reason: Reason.ValueType, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})

    @property
    def name(self) -> str:
        """The reason as google.rpc.ErrorInfo carries it: without its prefix."""
        return reason_pb2.Reason.Name(self.reason).removeprefix("REASON_")

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"
