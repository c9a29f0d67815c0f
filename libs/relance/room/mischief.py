"""`relance up --misbehave`, seen from the room: what the bots found, tables that stand still, errors in the logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import grpc

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.room.bots import MISBEHAVIOURS, Blotter
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.room.play import BLOTTER

STILL_SECONDS = 15.0
"""Beyond the longest time that the table may rightly take, on a machine that is busy, too."""
HURRIED = game_pb2.Timers(
    decision_ms=3_000, draw_ms=4_000, time_bank_ms=2_000, between_hands_ms=500, reservation_ms=5_000, answer_ms=3_000
)
"""Clocks short enough to run out often within a minute."""
ABSENT_HANDS = "8"
_SERVERS = frozenset({"postgres", "nats"})
_LOUD = frozenset({"error", "critical"})


def hurried(requests: Sequence[table_pb2.OpenTableRequest]) -> list[table_pb2.OpenTableRequest]:
    """The same tables with short clocks, where who stays away loses the seat soon."""
    made = []
    for request in requests:
        quick = table_pb2.OpenTableRequest()
        quick.CopyFrom(request)
        quick.request_id = request.request_id.replace("demo", "hurried", 1)
        quick.timers.CopyFrom(HURRIED)
        quick.choices["away_hands"] = ABSENT_HANDS
        made.append(quick)
    return made


class Mischief:
    """Looks for what should not be; `say` hears of it at once. `findings`: all of it."""

    def __init__(self, folder: DataFolder, table_address: str, say: Callable[[str], None]) -> None:
        self.findings: list[str] = []
        self._folder, self._say, self._address = folder, say, table_address
        self._file = folder.path / BLOTTER
        self._file.unlink(missing_ok=True)
        self._read_up_to = {file: file.stat().st_size for file in _logs(folder)}
        self._blotter = Blotter()
        self._moved: dict[str, tuple[int, float]] = {}
        self._accused: set[str] = set()

    async def look(self, tables: Sequence[lobby_pb2.Table]) -> None:
        """What the bots found since the last look, and tables that have stood still for too long."""
        heard, self._blotter = len(self._blotter.findings), Blotter.read(self._file)
        for finding in self._blotter.findings[heard:]:
            self._find(finding)
        now = time.monotonic()
        for table in tables:
            version, since = self._moved.get(table.name, (-1, now))
            if version != table.version:
                self._moved[table.name] = (table.version, now)
            elif now - since > longest(table.config.timers) and table.name not in self._accused:
                await self._stands_still(table, now - since)

    def report(self) -> list[str]:
        """What was done and answered up to the last look, and what is wrong, in the logs too; the verdict last."""
        blotter = self._blotter
        for name, line in self._errors():
            self._find(f"the log of {name}: {line}")
        refusals = sum(sum(reasons.values()) for reasons in blotter.refusals.values())
        verdict = f"{len(self.findings)} FINDINGS" if self.findings else "ok"
        return [
            *(f"misbehaviour: {line}" for line in blotter.lines([habit.name for habit in MISBEHAVIOURS])),
            *(f"misbehaviour: FINDING: {finding}" for finding in self.findings),
            f"misbehaviour: {sum(blotter.tries.values())} times, {refusals} refusals, {verdict}",
        ]

    async def _stands_still(self, table: lobby_pb2.Table, seconds: float) -> None:
        """A finding where a hand runs, or could."""
        token = self._folder.operator_token("room", OPERATOR_ROLES, seconds=60)
        async with grpc.aio.insecure_channel(self._address) as channel:
            view = await table_pb2_grpc.TableServiceStub(channel).GetTable(
                table_pb2.GetTableRequest(table=table.name),
                metadata=(("authorization", f"Bearer {token}"),),
                timeout=5,
            )
        if view.version == table.version and (view.hand or could_play(view)):
            self._accused.add(table.name)
            self._find(f"{table.name} stands still at version {view.version} for {seconds:.0f} s")

    def _find(self, what: str) -> None:
        self.findings.append(what)
        self._say(f"FINDING: {what}")

    def _errors(self) -> Iterator[tuple[str, str]]:
        """Names of processes, and lines of their logs that say that something broke."""
        for file in _logs(self._folder):
            size = file.stat().st_size
            with file.open("rb") as log:
                log.seek(min(self._read_up_to.get(file, 0), size))
                for line in log:
                    if is_loud(line.decode(errors="replace")):
                        yield file.stem, line.decode(errors="replace").strip()[:300]


def longest(timers: game_pb2.Timers) -> float:
    """Seconds that a table may rightly take over one step."""
    answer = max(timers.decision_ms + timers.time_bank_ms, timers.draw_ms, timers.answer_ms, timers.between_hands_ms)
    return answer / 1e3 + STILL_SECONDS


def could_play(view: table_pb2.TableView) -> bool:
    """Whether two players wait to be dealt in."""
    if view.paused or view.closed:
        return False
    ready = [
        seat
        for seat in view.seats
        if seat.player and not (seat.reserved or seat.sitting_out or seat.leaving) and seat.stack + seat.chips_held > 0
    ]
    return len(ready) >= 2


def is_loud(line: str) -> bool:
    """Whether a line of a log tells of a fault."""
    if line.startswith("Traceback "):
        return True
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and entry.get("level") in _LOUD


def _logs(folder: DataFolder) -> list[Path]:
    return [file for file in sorted(folder.logs.glob("*.log")) if file.stem not in _SERVERS]
