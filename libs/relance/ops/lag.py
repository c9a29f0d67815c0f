"""`relance lag`: how far everybody who follows the log has come, against the log itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from relance.ops.output import Out
from relance.ops.source import Connection
from relance.ops.words import counted

FOLLOWERS: Final[dict[str, str]] = {
    "publication": "SELECT stream, version FROM log.mark",
    "lobby": "SELECT stream, version FROM lobby.followed",
    "rake": "SELECT stream, version FROM rake.followed",
    "wallet": """
        SELECT stream, CASE WHEN f.currency = 'eur' THEN s.head ELSE f.version END AS version
        FROM wallet.followed f JOIN log.stream s USING (stream)
    """,
}
"""Who follows the log, and where their position stands. Publication is what NATS has acknowledged: a lower bound. The
wallet follows tables of credits; of the others nothing but what they play for."""

_HEADS = "SELECT stream, head FROM log.stream ORDER BY stream"
_OLDEST = "SELECT min(time_us) FROM log.event WHERE stream = $1 AND version = $2"


@dataclass(frozen=True, slots=True)
class Positions:
    """Follower -> stream -> version; `known`: followers whose positions are in this database."""

    known: Mapping[str, Mapping[str, int]]

    def lag(self, follower: str, stream: str, head: int) -> int:
        """Events that a follower has not taken in."""
        return max(head - self.known[follower].get(stream, 0), 0)


@dataclass(slots=True)
class Lag:
    """One follower. `seconds`: since the oldest event that it lacks was decided; `behind`: events by table."""

    follower: str
    events: int = 0
    seconds: float = 0.0
    behind: dict[str, int] = field(default_factory=dict)
    alarm: bool = False


async def positions(connection: Connection) -> Positions:
    """Where every follower is. One whose table is not there, or not for us to see, is left out."""
    known: dict[str, dict[str, int]] = {}
    for name, query in FOLLOWERS.items():
        try:
            known[name] = {row["stream"]: row["version"] for row in await connection.fetch(query)}
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InsufficientPrivilegeError):
            continue
    return Positions(known)


async def lags(connection: Connection, *, most_events: int, most_seconds: float) -> list[Lag]:
    """Every follower against the heads. Heads are read first: what comes after them is nobody's lag."""
    heads = {row["stream"]: row["head"] for row in await connection.fetch(_HEADS)}
    followed = await positions(connection)
    found: list[Lag] = []
    now = time.time()
    for name in followed.known:
        lag = Lag(name)
        for stream, head in heads.items():
            missing = followed.lag(name, stream, head)
            if missing:
                lag.behind[stream] = missing
                lag.events += missing
                oldest = await connection.fetchval(_OLDEST, stream, head - missing + 1)
                if oldest is not None:
                    lag.seconds = max(lag.seconds, now - oldest / 1e6)
        lag.alarm = lag.events > most_events or lag.seconds > most_seconds
        found.append(lag)
    return found


def show(found: list[Lag], out: Out) -> bool:
    """Print the lags; whether no alarm is up."""
    if out.json:
        out.document(
            [
                {"follower": lag.follower, "events": lag.events, "seconds": round(lag.seconds, 3), "behind": lag.behind,
                 "alarm": lag.alarm}
                for lag in found
            ]
        )  # fmt: skip
    else:
        rows = [
            [lag.follower, lag.events, f"{lag.seconds:.1f}", len(lag.behind), "ALARM" if lag.alarm else "ok"]
            for lag in found
        ]
        out.table(["follower", "events behind>", "seconds>", "tables>", "state"], rows)
        for lag in found:
            if lag.alarm:
                most = max(lag.behind, key=lambda stream: lag.behind[stream], default="")
                events = counted(lag.events, "event")
                out.line(f"{lag.follower} is {events} behind, most at {most}: {lag.behind.get(most, 0)}", "red")
    return not any(lag.alarm for lag in found)
