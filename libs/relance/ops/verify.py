"""Proving a log: every event follows from what was before it, by the rules, and the cards are those promised.

A table is decided a second time. The events of each append are read back into the command that must have led to them
(`deciding`), the rules are asked what that command does at the table as it then was, with the cards that the log tells
(`logged_cards`), and their answer must be the events of the log, byte for byte. So turns, bounds, pots, rake, the order
of showing and every figure in them are proven; what came from outside is taken as it stands: times, requests, the
shuffle, the wallet's answers, who was connected.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from relance.api.events.v1 import events_pb2 as pb
from relance.ops.deciding import commands_of, context_of
from relance.ops.logged_cards import DeckFault, LoggedCards
from relance.ops.messages import event_record
from relance.ops.output import Out, Progress
from relance.ops.source import LogSource, Row
from relance.ops.words import counted
from relance.poker import Context, Rejected, Table, apply, decide, initial
from relance.poker import commands as cmd
from relance.poker.snapshot import UnknownSnapshot, dump, load

_OVER = frozenset({"hand_ended", "hand_voided"})


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong in a table's log, and the exact version."""

    table: str
    version: int
    hand: int
    text: str

    def __str__(self) -> str:
        hand = f" (hand {self.hand})" if self.hand else ""
        return f"table {self.table} version {self.version}{hand}: {self.text}"


class Wrong(Exception):
    """Ends the verification of a table at a version."""

    def __init__(self, version: int, text: str) -> None:
        super().__init__(text)
        self.version, self.text = version, text


@dataclass(slots=True)
class Verified:
    """How far a table was verified, and what that took. `finding` ends it."""

    table: str
    version: int = 0
    events: int = 0
    decisions: int = 0
    hands: int = 0
    voided: int = 0
    cards: int = 0
    """Cards proven against the commitments."""
    rake: int = 0
    finding: Finding | None = None


@dataclass(slots=True)
class Verifier:
    """Verifies one table, page by page. `table` is the state after the last whole append that was right."""

    table: Table
    result: Verified
    _waiting: list[list[pb.TableEvent]] = field(default_factory=list)
    """Appends of a hand that is not over yet in what was read: its later cards tell of earlier ones."""
    _bodies: list[list[bytes]] = field(default_factory=list)
    _append: str = ""
    _version: int = 0
    _fence: int = 0
    _hand: int = 0

    @staticmethod
    def of(table: Table) -> Verifier:
        """A verifier that goes on after a state that was verified before."""
        return Verifier(table, Verified(table.id, table.version), _version=table.version)

    def take(self, rows: Sequence[Row]) -> None:
        """The next rows. Stops at the first finding, which `result` then holds."""
        if self.result.finding is not None:
            return
        try:
            for row in rows:
                self._row(row)
        except Wrong as wrong:
            self._find(wrong)

    def close(self, head: int) -> Verified:
        """All rows were taken; `head` is where the stream's own row says that the log ends."""
        try:
            if self.result.finding is None:
                self._flush()
                if self.table.version != head:
                    raise Wrong(head, f"the log ends at version {self.table.version}, its head is {head}")
        except Wrong as wrong:
            self._find(wrong)
        self.result.version = self.table.version
        return self.result

    def _find(self, wrong: Wrong) -> None:
        hand = self.table.hand.number if self.table.hand is not None else 0
        self.result.finding = Finding(self.table.id, wrong.version, hand, wrong.text)

    def _row(self, row: Row) -> None:
        """Read one row; at the end of a hand, or outside hands at the end of an append, decide what waits."""
        if row.version != self._version + 1:
            raise Wrong(self._version + 1, f"the event is missing; the next one is {row.version}")
        self._version = row.version
        event = self._read(row)
        if row.append_id != self._append:
            if self._waiting and not self._hand:
                self._flush()
            self._append = row.append_id
            self._waiting.append([])
            self._bodies.append([])
        self._waiting[-1].append(event)
        self._bodies[-1].append(row.body)
        if row.type == "hand_started":
            self._hand = row.hand
        elif row.type in _OVER:
            self._hand = 0

    def _read(self, row: Row) -> pb.TableEvent:
        if row.fence < self._fence:
            raise Wrong(row.version, f"fence {row.fence} after fence {self._fence}: a stale owner wrote it")
        self._fence = row.fence
        try:
            event = pb.TableEvent.FromString(row.body)
        except DecodeError as error:
            raise Wrong(row.version, "its bytes are no event") from error
        columns = (row.version, row.hand, row.type, row.time_us)
        inside = (event.version, event.hand, event.WhichOneof("payload") or "", event.time_us)
        if columns != inside or event.table != self.table.id:
            raise Wrong(row.version, f"the row says {columns}, the event {inside} of table {event.table!r}")
        return event

    def _flush(self) -> None:
        appends, bodies = self._waiting, self._bodies
        self._waiting, self._bodies = [], []
        try:
            cards = LoggedCards.of(event for append in appends for event in append)
        except DeckFault as fault:
            raise Wrong(fault.version, fault.args[0]) from fault
        except ValueError as error:
            raise Wrong(appends[0][0].version, f"its cards cannot be read: {error}") from error
        self.result.cards += cards.proven
        for append, raw in zip(appends, bodies, strict=True):
            self._check(append, raw, cards)

    def _check(self, append: Sequence[pb.TableEvent], bodies: Sequence[bytes], cards: LoggedCards) -> None:
        """One append: one decision, or several one after another."""
        done = 0
        while done < len(append):
            done += self._decide(append[done:], bodies[done:], cards)

    def _decide(self, events: Sequence[pb.TableEvent], bodies: Sequence[bytes], cards: LoggedCards) -> int:
        """Decide the command that `events` begin with; how many of them it explains."""
        table, first = self.table, events[0]
        kind = first.WhichOneof("payload") or ""
        candidates = commands_of(table, events)
        if not candidates:
            raise Wrong(first.version, f"no command begins with {kind}")
        context = context_of(events, cards)
        reason: Wrong | None = None
        for command in candidates:
            try:
                count = self._same(command, context, events, bodies)
            except Wrong as wrong:
                reason = reason or wrong
                continue
            self._apply(events[:count])
            self.result.decisions += 1
            return count
        assert reason is not None
        raise reason

    def _same(
        self, command: cmd.Command, context: Context, events: Sequence[pb.TableEvent], bodies: Sequence[bytes]
    ) -> int:
        first = events[0]
        name = type(command).__name__
        try:
            decided = decide(self.table, command, context)
        except Rejected as rejected:
            raise Wrong(first.version, f"the rules refuse it ({name}): {rejected}") from rejected
        except DeckFault as fault:
            raise Wrong(fault.version or first.version, fault.args[0]) from fault
        except Exception as error:
            text = f"the rules cannot decide it ({name}): {error or type(error).__name__}"
            raise Wrong(first.version, text) from error
        if not decided:
            raise Wrong(first.version, f"the rules decide nothing on {name}")
        for number, event in enumerate(decided):
            if number >= len(events):
                kind = event.WhichOneof("payload")
                raise Wrong(events[-1].version, f"the append ends here; by the rules {kind} follows in it")
            if event.SerializeToString() != bodies[number]:
                raise Wrong(events[number].version, _difference(event, events[number]))
        return len(decided)

    def _apply(self, events: Sequence[pb.TableEvent]) -> None:
        result = self.result
        for event in events:
            try:
                apply(self.table, event)
                self.table.conservation()
            except Exception as error:
                raise Wrong(event.version, f"it cannot be applied: {error or type(error).__name__}") from error
            result.events += 1
            if event.HasField("hand_ended"):
                result.hands += 1
                result.rake += event.hand_ended.rake
            elif event.HasField("hand_voided"):
                result.voided += 1


def _difference(decided: pb.TableEvent, logged: pb.TableEvent) -> str:
    """Where two events differ, in a sentence."""
    ours, theirs = event_record(decided), event_record(logged)
    if ours["type"] != theirs["type"]:
        return f"the log has {theirs['type']}, by the rules it is {ours['type']}"
    inside = {**ours.pop("data"), **ours}, {**theirs.pop("data"), **theirs}
    for name in sorted(inside[0].keys() | inside[1].keys()):
        right, found = inside[0].get(name), inside[1].get(name)
        if right != found:
            return f"{theirs['type']}.{name} is {found!r} in the log, by the rules {right!r}"
    return f"{theirs['type']} has fields that this version does not know"


@dataclass(slots=True)
class Kept:
    """What a verification that was interrupted had done: the state of each table after it, in a file."""

    path: Path | None = None
    tables: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: Path | None) -> Kept:
        """What the file holds; nothing, where there is none."""
        if path is None or not path.exists():
            return Kept(path)
        return Kept(path, json.loads(path.read_text())["tables"])

    def state(self, stream: str) -> Table:
        """Where to go on."""
        if stream in self.tables:
            try:
                return load(base64.b64decode(self.tables[stream]))
            except UnknownSnapshot:
                return initial(stream)
        return initial(stream)

    def save(self, table: Table) -> None:
        """Remember a table between hands; the file is replaced whole."""
        if self.path is None or table.hand is not None or table.config is None:
            return
        self.tables[table.id] = base64.b64encode(dump(table)).decode()
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"tables": self.tables}))
        part.replace(self.path)


async def verify_stream(
    source: LogSource, stream: str, head: int, kept: Kept | None = None, advance: Callable[[int], None] | None = None
) -> Verified:
    """Verify one table up to `head`, going on after what `kept` says was verified before."""
    table = kept.state(stream) if kept is not None else initial(stream)
    verifier = Verifier.of(table)
    if advance is not None:
        advance(table.version)
    async for page in source.rows(stream, table.version, head):
        verifier.take(page)
        if advance is not None:
            advance(len(page))
        if verifier.result.finding is not None:
            break
        await asyncio.sleep(0)
    if kept is not None and verifier.result.finding is None:
        kept.save(verifier.table)  # before a hand that runs, which waits for its end to be decided
    result = verifier.close(head)
    if kept is not None and result.finding is None:
        kept.save(verifier.table)
    return result


async def verify(source: LogSource, names: Sequence[str], kept_in: Path | None, out: Out) -> bool:
    """Verify tables (all, where none is named) and print what was found; whether nothing was. Raises NoAnswer."""
    streams = await source.streams(names)
    kept = Kept.read(kept_in)
    progress = Progress("verifying", sum(stream.head for stream in streams))
    results: list[Verified] = []
    begun = time.monotonic()
    try:
        for stream in streams:
            results.append(await verify_stream(source, stream.stream, stream.head, kept, progress.advance))
    finally:
        progress.close()
    findings = [result.finding for result in results if result.finding is not None]
    if out.json:
        out.document({"ok": not findings, "tables": [asdict(result) for result in results]})
        return not findings
    for result in results:
        hands = f"{counted(result.hands, 'hand')}, {result.voided} void"
        decided, proven = counted(result.decisions, "decision"), counted(result.cards, "card")
        verdict = "ok" if result.finding is None else "FINDING"
        read = f"{counted(result.events, 'event')} to version {result.version}"
        out.line(f"{result.table}: {verdict}, {read}, {hands}, {decided}, {proven} proven, {result.rake} rake")
    for finding in findings:
        out.line(str(finding), "bold red")
    events = sum(result.events for result in results)
    seconds = time.monotonic() - begun
    said = "ok" if not findings else counted(len(findings), "finding")
    out.line(f"verify: {said} ({counted(len(results), 'table')}, {counted(events, 'event')}, {seconds:.1f} s)")
    return not findings
