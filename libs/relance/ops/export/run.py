"""`relance export`: tables to files, one a table. What was interrupted goes on where it stopped.

Beside the files lies `export.json`: how far each has come. A file is first cut to that length, so a line that was
half written is written again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from relance.ops.errors import NoAnswer
from relance.ops.export import ohh, phh, pokerstars
from relance.ops.export.record import HandRecord, records
from relance.ops.messages import event_record
from relance.ops.output import Out, Progress
from relance.ops.source import Connection, LogSource
from relance.ops.words import counted

SAVE_EVERY = 200
"""Hands after which the place is remembered."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: ending of its files, what one hand is, what stands before each."""

    ending: str
    write: Callable[[HandRecord], str]
    before: Callable[[int], str] = lambda number: "\n" if number > 1 else ""


def jsonl(hand: HandRecord) -> str:
    """A hand as one line: what it was, and its events."""
    record = {
        "table": hand.table,
        "hand": hand.number,
        "as": hand.who,
        "time_us": hand.time_us,
        "players": {each.player: hand.names[each.player] for each in hand.players},
        "events": [event_record(event) for event in hand.events],
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


FORMATS: Final[dict[str, Format]] = {
    "phh": Format("phhs", phh.write, lambda number: f"{'' if number == 1 else chr(10)}[{number}]\n"),
    "ohh": Format("ohh", ohh.write),
    "pokerstars": Format("txt", pokerstars.write),
    "jsonl": Format("jsonl", jsonl, lambda number: ""),
}


@dataclass(slots=True)
class Place:
    """How far a table's file has come: last hand looked at, hands written, length in bytes."""

    hand: int = 0
    written: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """What to export. `since`, `until`: microseconds, of the hands' beginnings; 0 = open."""

    format: str
    out: Path
    who: str
    since: int = 0
    until: int = 0


@dataclass(slots=True)
class Places:
    """The places of all tables, in the folder that is exported to."""

    file: Path
    order: list[str]
    tables: dict[str, Place] = field(default_factory=dict)

    @staticmethod
    def read(order: Order) -> Places:
        """Where to go on. Raises NoAnswer for a folder in which another export lies."""
        told = [order.format, order.who, str(order.since), str(order.until)]
        places = Places(order.out / "export.json", told)
        if places.file.exists():
            kept = json.loads(places.file.read_text())
            if kept["order"] != told:
                raise NoAnswer(
                    f"{order.out} holds another export ({' '.join(kept['order'][:2])}); choose another --out"
                )
            places.tables = {table: Place(**place) for table, place in kept["tables"].items()}
        return places

    def save(self) -> None:
        """Remember the places; the file is replaced whole."""
        tables = {table: {"hand": p.hand, "written": p.written, "size": p.size} for table, p in self.tables.items()}
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"order": self.order, "tables": tables}))
        part.replace(self.file)


async def export(
    source: LogSource, connection: Connection | None, names: Sequence[str], order: Order, out: Out
) -> None:
    """Export tables (all, where none is named). Raises NoAnswer."""
    streams = await source.streams(names)
    try:
        order.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoAnswer(f"{order.out} cannot be made: {error.strerror}") from error
    places = Places.read(order)
    progress = Progress("exporting hands", sum(stream.head for stream in streams))
    begun, before = time.monotonic(), sum(place.written for place in places.tables.values())
    files: dict[str, int] = {}
    try:
        for stream in streams:
            place = places.tables.setdefault(stream.stream, Place())
            files[stream.stream] = await _table(source, connection, stream.stream, stream.head, order, places, progress)
            places.save()
            if not place.written:
                _file(order, stream.stream).unlink(missing_ok=True)
    finally:
        progress.close()
    written = sum(place.written for place in places.tables.values())
    if out.json:
        out.document(
            {
                "format": order.format, "as": order.who, "hands": written, "new": written - before,
                "files": [str(_file(order, table)) for table, place in places.tables.items() if place.written],
            }
        )  # fmt: skip
        return
    for table, place in places.tables.items():
        if place.written:
            out.line(f"{_file(order, table)}: {counted(place.written, 'hand')}")
    seconds = time.monotonic() - begun
    out.line(f"export: {counted(written, 'hand')}, {written - before} of them new, as {order.who} ({seconds:.1f} s)")


def _file(order: Order, table: str) -> Path:
    return order.out / f"{table}.{FORMATS[order.format].ending}"


async def _table(
    source: LogSource, connection: Connection | None, table: str, head: int, order: Order, places: Places,
    progress: Progress,
) -> int:  # fmt: skip
    """Write what is missing of one table's file; how many hands it has then."""
    form, place = FORMATS[order.format], places.tables[table]
    with _file(order, table).open("ab") as file:
        file.truncate(place.size)
        async for hand in records(source, connection, table, order.who, after=place.hand, head=head):
            place.hand = hand.number
            progress.advance(len(hand.events))
            if hand.time_us < order.since or (order.until and hand.time_us >= order.until):
                continue
            place.written += 1
            place.size += file.write((form.before(place.written) + form.write(hand)).encode())
            if place.written % SAVE_EVERY == 0:
                file.flush()
                places.save()
    return place.written
