"""`relance archive`: whole streams of closed tables in compressed files, which can be verified and replayed for ever.

A folder holds one file a table, `{table}.jsonl.gz` (a line of JSON an event, as the log's row has it), and
`manifest.json`: of each file its length and SHA-256, and of the stream its head and the digest that the database
computes over the same events. A stream is removed from the database only by a function that is given that entry and
finds the stream to be just this.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

import asyncpg

from relance.eventlog import Snapshot, StreamInfo
from relance.ops.errors import NoAnswer
from relance.ops.lag import positions
from relance.ops.output import Out, Progress
from relance.ops.source import Connection, LogSource, PostgresSource, Row, named
from relance.ops.states import state_at
from relance.ops.verify import verify_stream
from relance.ops.words import counted

PAGE = 4_000
MANIFEST = "manifest.json"

_CLOSED = """
SELECT stream, max(time_us) AS last FROM log.event
WHERE stream IN (SELECT stream FROM log.event WHERE type = 'table_closed') GROUP BY stream HAVING max(time_us) < $1
ORDER BY stream
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stream in an archive. `digest` as log.digest computes it, `sha256` of the file; hexadecimal."""

    stream: str
    head: int
    fence: int
    last_us: int
    digest: str
    file: str
    bytes: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """The manifest of a folder."""

    folder: Path
    streams: dict[str, Entry] = field(default_factory=dict)

    @staticmethod
    def read(folder: Path, *, new: bool = False) -> Manifest:
        """The manifest of an archive. Raises NoAnswer where there is none (unless `new`) or it cannot be read."""
        file = folder / MANIFEST
        if new and not file.exists():
            return Manifest(folder)
        try:
            kept = json.loads(file.read_text())
            return Manifest(folder, {name: Entry(**entry) for name, entry in kept["streams"].items()})
        except OSError as error:
            raise NoAnswer(f"{folder} is no archive: {file} cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError) as error:
            raise NoAnswer(f"{file} is no manifest of this version: {error}") from error

    def save(self) -> None:
        """Write the manifest; it is replaced whole."""
        part = self.folder / (MANIFEST + ".part")
        part.write_text(json.dumps({"format": 1, "streams": {n: asdict(e) for n, e in self.streams.items()}}, indent=1))
        part.replace(self.folder / MANIFEST)


class ArchiveSource:
    """A LogSource over an archive. A file is held against its checksum before anything of it is believed."""

    connection: Connection | None = None

    def __init__(self, folder: Path) -> None:
        self._manifest = Manifest.read(folder)
        self._proven: set[str] = set()

    async def streams(self, names: Sequence[str] = ()) -> list[StreamInfo]:
        """See LogSource."""
        entries = self._manifest.streams.values()
        return named([StreamInfo(entry.stream, entry.head, entry.fence, "", "") for entry in entries], names)

    async def rows(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[Row]]:
        """See LogSource."""
        page: list[Row] = []
        for row in self._read(stream):
            if row.version > after and (upto is None or row.version <= upto):
                page.append(row)
            if len(page) == PAGE:
                yield page
                page = []
        if page:
            yield page

    async def bounds(self, stream: str, hand: int) -> tuple[int, int] | None:
        """See LogSource."""
        versions = [row.version for row in self._read(stream) if row.hand == hand]
        return (versions[0], versions[-1]) if hand > 0 and versions else None

    async def snapshot(self, stream: str, at: int | None = None) -> Snapshot | None:
        """See LogSource: an archive holds events alone."""
        return None

    def _read(self, stream: str) -> Iterator[Row]:
        entry = self._manifest.streams.get(stream)
        if entry is None:
            raise NoAnswer(f"the archive has no table {stream!r}")
        file = self._manifest.folder / entry.file
        if stream not in self._proven:
            prove(file, entry)
            self._proven.add(stream)
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                kept = json.loads(line)
                yield Row(**{**kept, "body": base64.b64decode(kept["body"])})


def prove(file: Path, entry: Entry) -> None:
    """Hold a file against its manifest. Raises NoAnswer."""
    try:
        found = sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise NoAnswer(f"{file} cannot be read: {error.strerror}") from error
    if found != entry.sha256:
        raise NoAnswer(f"{file} is not what the manifest says: its checksum is {found[:16]}…, not {entry.sha256[:16]}…")


class Digest:
    """The digest of a stream, row by row, as the database computes it (log.digest)."""

    def __init__(self) -> None:
        self._sum = sha256()

    def add(self, row: Row) -> None:
        """The next row."""
        columns = (row.version, row.fence, row.append_id, row.hand, row.type, row.time_us)
        self._sum.update(sha256("|".join(map(str, columns)).encode() + row.body).digest())

    def hex(self) -> str:
        """Of all rows so far."""
        return self._sum.hexdigest()


@dataclass(frozen=True, slots=True)
class Order:
    """What to archive: tables without an event since `before` (microseconds), closed and with nothing left to do."""

    out: Path
    before: int
    remove: bool = False


async def archive(source: PostgresSource, operator: Connection | None, order: Order, out: Out) -> bool:
    """Archive, verify what was written, and with an operator's connection remove it from the log. Raises NoAnswer.

    What lies in the archive already is not written again: an archive that was interrupted goes on. False: a stream was
    not archived because verifying it found something.
    """
    order.out.mkdir(parents=True, exist_ok=True)
    manifest = Manifest.read(order.out, new=True)
    streams = {stream.stream: stream for stream in await source.streams()}
    wanted = [(row["stream"], row["last"]) for row in await source.connection.fetch(_CLOSED, order.before)]
    progress = Progress("archiving", sum(streams[name].head for name, _ in wanted))
    lines: list[dict[str, object]] = []
    ok = True
    try:
        for name, last in wanted:
            head = streams[name].head
            line: dict[str, object] = {"table": name, "events": head, "state": "archived", "why": ""}
            lines.append(line)
            if name not in manifest.streams:
                why = await _unfinished(source, name, head)
                if why:
                    line["state"], line["why"] = "kept", why
                    ok = ok and not why.startswith("version")
                    continue
                manifest.streams[name] = await _write(source, name, last, order.out)
                manifest.save()
            progress.advance(head)
            if order.remove:
                assert operator is not None
                line["why"] = await _needed(source.connection, name, head)
                if line["why"]:
                    continue
                line["state"] = await _remove(operator, ArchiveSource(order.out), manifest.streams[name])
    finally:
        progress.close()
    if out.json:
        out.document(lines)
    else:
        for line in lines:
            why = f": {line['why']}" if line["why"] else ""
            out.line(f"{line['table']}: {line['state']}, {line['events']} events{why}")
        size = sum(entry.bytes for entry in manifest.streams.values())
        out.line(f"archive: {counted(len(manifest.streams), 'table')} in {order.out}, {size:,} bytes")
    return ok


async def _unfinished(source: LogSource, name: str, head: int) -> str:
    """Why a table cannot be archived; empty: it can."""
    table = await state_at(source, name, head)
    if not table.finished:
        return "it is closed, but seats or transfers are still open"
    verified = await verify_stream(source, name, head)
    return f"version {verified.finding.version}: {verified.finding.text}" if verified.finding is not None else ""


async def _needed(connection: Connection, name: str, head: int) -> str:
    """Who still needs a stream in the log: a follower that has not read it whole, money in its escrow."""
    followed = await positions(connection)
    behind = [follower for follower in followed.known if followed.lag(follower, name, head)]
    if behind:
        return f"not removed: {' and '.join(behind)} have not read it whole"
    try:
        held = await connection.fetchval("SELECT balance FROM wallet.account WHERE name = $1", f"tables/{name}")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InsufficientPrivilegeError):
        return ""
    return f"not removed: its escrow holds {held}" if held else ""


async def _write(source: LogSource, name: str, last: int, folder: Path) -> Entry:
    """Write one file, whole or not at all."""
    file = folder / f"{name}.jsonl.gz"
    part = file.with_suffix(".part")
    digest, head, fence = Digest(), 0, 0
    with part.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
        async for page in source.rows(name):
            for row in page:
                digest.add(row)
                head, fence = row.version, row.fence
                line = {**row._asdict(), "body": base64.b64encode(row.body).decode()}
                packed.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    part.replace(file)
    content = file.read_bytes()
    return Entry(name, head, fence, last, digest.hex(), file.name, len(content), sha256(content).hexdigest())


async def _remove(operator: Connection, written: ArchiveSource, entry: Entry) -> str:
    """Read the archive back, verify it, and have the database remove the stream. Raises NoAnswer."""
    digest = Digest()
    async for page in written.rows(entry.stream):
        for row in page:
            digest.add(row)
    verified = await verify_stream(written, entry.stream, entry.head)
    if verified.finding is not None or digest.hex() != entry.digest:
        raise NoAnswer(
            f"the archive of {entry.stream} cannot be believed: {verified.finding or 'its digest is another'}"
        )
    told = json.dumps(asdict(entry), sort_keys=True)
    try:
        await operator.execute(
            "SELECT log.remove_archived($1, $2, $3, $4)", entry.stream, entry.head, bytes.fromhex(entry.digest), told
        )
    except asyncpg.PostgresError as error:
        raise NoAnswer(f"{entry.stream} is kept: {error}") from error
    return "archived and removed"
