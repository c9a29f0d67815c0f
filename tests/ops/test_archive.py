"""Archives: closed tables leave the log only as what they were, and can be proven and replayed ever after."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from tests.conftest import Migrated
from tests.ops.logs import LoggedRoom, play_hands
from tests.poker import playing

from relance.api.common.v1 import game_pb2
from relance.eventlog import PostgresLog, StreamExists
from relance.ops.archive import ArchiveSource, Order, archive
from relance.ops.errors import NoAnswer
from relance.ops.output import Out
from relance.ops.source import PostgresSource, connected
from relance.ops.steps import steps_of
from relance.ops.verify import verify_stream
from relance.poker import commands as cmd

LATER = 2**60


def room(*, closed: bool) -> LoggedRoom:
    """A table that was played at."""
    made = LoggedRoom(playing.config(rules=game_pb2.TableRules(deck_commitments=True)))
    for seat in (1, 2, 3):
        made.sit(seat, 10_000)
    play_hands(made, 3, 1)
    if closed:
        made.do(cmd.CloseTable("ann", "the end"))
        made.settle()
    return made


async def write(log: PostgresLog, made: LoggedRoom) -> None:
    """Put a table into the log, append by append."""
    owned = await log.create("t", made.appends[0])
    head = owned.head
    for append in made.appends[1:]:
        head = await log.append("t", head, owned.fence, append)


def archives_in(folder: Path) -> list[str]:
    """Names of the files that hold streams."""
    return [file.name for file in folder.glob("*.gz")]


@dataclass
class Logged:
    """A database, read as an auditor and changed as an operator."""

    url: str
    source: PostgresSource
    operator: asyncpg.Connection[asyncpg.Record]


@pytest_asyncio.fixture
async def logged(migrated: Migrated) -> AsyncIterator[Logged]:
    """A log with nothing in it."""
    url = await migrated("relance.eventlog")
    async with connected(url) as reading, connected(url, write=True) as operator:
        await operator.execute("SET ROLE relance_operator")
        yield Logged(url, PostgresSource(reading), operator)


async def test_a_closed_table_is_archived_removed_and_replayed(logged: Logged, tmp_path: Path) -> None:
    made = room(closed=True)
    async with PostgresLog(logged.url, "test") as log:
        await write(log, made)
        assert await archive(logged.source, logged.operator, Order(tmp_path, LATER, remove=True), Out())
        assert await log.heads() == {"t": made.table.version}  # NATS has not got it all yet
        await log.marks.write({"t": made.table.version})
        assert await archive(logged.source, logged.operator, Order(tmp_path, LATER, remove=True), Out())
        assert await log.heads() == {}
        with pytest.raises(StreamExists):
            await log.create("t", made.appends[0])
    archived = ArchiveSource(tmp_path)
    [stream] = await archived.streams()
    assert stream.head == made.table.version
    result = await verify_stream(archived, "t", stream.head)
    assert result.finding is None
    assert result.hands >= 2
    hand = await steps_of(archived, None, "t", 2, "auditor")
    assert hand.steps[-1].event.HasField("hand_ended")


async def test_a_table_that_is_not_closed_stays(logged: Logged, tmp_path: Path) -> None:
    async with PostgresLog(logged.url, "test") as log:
        made = room(closed=False)
        await write(log, made)
    assert await archive(logged.source, logged.operator, Order(tmp_path, LATER, remove=True), Out())
    assert not archives_in(tmp_path)
    with pytest.raises(asyncpg.PostgresError, match="it is kept"):
        await logged.operator.execute("SELECT log.remove_archived('t', $1, log.digest('t'), '')", made.table.version)


async def test_a_stream_that_is_not_what_the_manifest_says_stays(logged: Logged, tmp_path: Path) -> None:
    made = room(closed=True)
    async with PostgresLog(logged.url, "test") as log:
        await write(log, made)
        assert await archive(logged.source, None, Order(tmp_path, LATER), Out())
        for head, digest in ((made.table.version - 1, "log.digest('t')"), (made.table.version, "sha256('')")):
            with pytest.raises(asyncpg.PostgresError, match="it is kept"):
                await logged.operator.execute(f"SELECT log.remove_archived('t', $1, {digest}, '')", head)
        assert await log.heads() == {"t": made.table.version}


async def test_nobody_removes_events_in_another_way(logged: Logged) -> None:
    async with PostgresLog(logged.url, "test") as log:
        await write(log, room(closed=True))
    owner = await asyncpg.connect(logged.url)
    for setting in ("", "t"):
        await owner.execute("SELECT set_config('relance.removing', $1, false)", setting)
        for table in ("event", "stream"):
            with pytest.raises(asyncpg.PostgresError, match="append-only"):
                await owner.execute(f"DELETE FROM log.{table} WHERE stream = 't'")
    await owner.close()
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await logged.operator.execute("DELETE FROM log.event")


async def test_a_file_that_was_changed_is_not_believed(logged: Logged, tmp_path: Path) -> None:
    async with PostgresLog(logged.url, "test") as log:
        await write(log, room(closed=True))
        await log.marks.write({"t": (await log.heads())["t"]})
    assert await archive(logged.source, None, Order(tmp_path, LATER), Out())
    file = tmp_path / "t.jsonl.gz"
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b'"hand":1', b'"hand":2')))
    with pytest.raises(NoAnswer, match="checksum"):
        await verify_stream(ArchiveSource(tmp_path), "t", 10)
    with pytest.raises(NoAnswer, match="checksum"):
        await archive(logged.source, logged.operator, Order(tmp_path, LATER, remove=True), Out())
