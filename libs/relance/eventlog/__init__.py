"""The event log of the room: append, read, heads, take over, follow, snapshots.

PostgresLog is the log; MemoryLog keeps the same contract in memory for simulations; EventLog is the port of both.
"""

from __future__ import annotations

from relance.eventlog.errors import Fenced, LogError, StreamExists, Unavailable, UnsafeDatabase
from relance.eventlog.follow import Follower, Source
from relance.eventlog.memory import MemoryLog, MemoryStore
from relance.eventlog.ownership import Heartbeat, Observer, Takeable
from relance.eventlog.port import Appended, EventLog, Load, Ownership, ProcessInfo, Snapshot, StreamInfo
from relance.eventlog.postgres import PostgresLog
from relance.eventlog.publish import Publisher

__all__ = [
    "Appended",
    "EventLog",
    "Fenced",
    "Follower",
    "Heartbeat",
    "Load",
    "LogError",
    "MemoryLog",
    "MemoryStore",
    "Observer",
    "Ownership",
    "PostgresLog",
    "ProcessInfo",
    "Publisher",
    "Snapshot",
    "Source",
    "StreamExists",
    "StreamInfo",
    "Takeable",
    "Unavailable",
    "UnsafeDatabase",
]
