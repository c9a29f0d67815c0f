"""What the log refuses."""

from __future__ import annotations


class LogError(Exception):
    """Base of what the log raises on purpose."""


class Fenced(LogError):
    """Another owner has the stream, or the caller's idea of its head is wrong: stop writing to it at once."""

    def __init__(self, stream: str, why: str) -> None:
        super().__init__(f"{stream} is not this owner's to write: {why}")
        self.stream = stream


class StreamExists(LogError):
    """The stream has events already, or had them before it was archived; `create` makes new ones only."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} exists already; append to it as its owner")
        self.stream = stream


class Unavailable(LogError):
    """The database cannot be reached now; the same call may succeed later."""


class UnsafeDatabase(LogError):
    """The server is set up to lose acknowledged commits, or lacks the log's tables."""
