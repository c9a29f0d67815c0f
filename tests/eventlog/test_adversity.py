"""The log on PostgreSQL when everything goes wrong that can."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import TypeVar

import asyncpg
import pytest
import pytest_asyncio

from relance.eventlog import Fenced, Ownership, PostgresLog, StreamExists, Unavailable, UnsafeDatabase
from relance.room.embedded import Postgres

from .conftest import Events, migrated
from .proxy import Proxy

T = TypeVar("T")


async def until(question: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the answer is yes."""
    while not await question():  # noqa: ASYNC110 - what is waited for lies in another process
        await asyncio.sleep(0.005)


@pytest_asyncio.fixture
async def log(log_url: str) -> AsyncIterator[PostgresLog]:
    async with PostgresLog(log_url, "ada", readers=2) as log:
        yield log


@pytest_asyncio.fixture
async def admin(database_url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A superuser's connection to the log's database."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def no_gap(admin: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    """Heads by stream, once it is certain that every stream has exactly the events up to its head."""
    rows = await admin.fetch(
        "SELECT s.stream, s.head, count(e.version) AS n, min(e.version) AS low, max(e.version) AS high"
        " FROM log.stream s LEFT JOIN log.event e USING (stream) GROUP BY 1, 2"
    )
    assert [row["stream"] for row in rows if not (row["head"] == row["n"] == row["high"] and row["low"] == 1)] == []
    return {row["stream"]: row["head"] for row in rows}


async def play(log: PostgresLog, stream: str, events: Events, upto: int) -> int:
    """Append two events at a time until `upto`; the head that was acknowledged last."""
    head = (await log.create(stream, events(stream, 0))).head
    while head < upto:
        head = await log.append(stream, head, 1, events(stream, head, 2))
    return head


async def test_64_streams_at_once_leave_no_gap(
    log: PostgresLog, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    streams = [f"t-{i}" for i in range(64)]
    heads = await asyncio.gather(*(play(log, stream, events, 41) for stream in streams))
    assert await no_gap(admin) == dict(zip(streams, heads, strict=True))


async def test_two_processes_over_the_same_streams_leave_no_gap_and_no_half_append(
    log: PostgresLog, log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    streams = [f"t-{i}" for i in range(16)]
    for stream in streams:
        await log.create(stream, events(stream, 0))

    async def contend(rival: PostgresLog, stream: str) -> None:
        """Append three at a time to whatever head there is: a stale owner that keeps trying."""
        for _ in range(15):
            head = (await rival.heads([stream]))[stream]
            with contextlib.suppress(Fenced):
                await rival.append(stream, head, 1, events(stream, head, 3, rival.writer))

    async with PostgresLog(log_url, "bob", readers=4) as bob:
        await asyncio.gather(*(contend(rival, stream) for stream in streams for rival in (log, bob)))
    await no_gap(admin)
    torn = await admin.fetch("SELECT append_id FROM log.event WHERE version > 1 GROUP BY 1 HAVING count(*) <> 3")
    assert torn == []


async def test_take_overs_under_load_give_the_exact_head_and_shut_the_old_owner_out(
    log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    streams = [f"t-{i}" for i in range(8)]
    acknowledged: list[tuple[str, int, int]] = []
    refusals: list[str] = []

    async def owns(log: PostgresLog, stream: str) -> None:
        """Take over and append three at a time until fenced, a few times: only the fence may stop an owner."""
        for _ in range(6):
            try:
                owner = await log.take_over(stream, (await log.streams([stream]))[0].fence)
                head = owner.head
                for _ in range(8):
                    head = await log.append(stream, head, owner.fence, events(stream, head, 3, log.writer))
                    acknowledged.append((stream, head, owner.fence))
            except Fenced as error:
                refusals.append(str(error))

    async with AsyncExitStack() as stack:
        logs = [await stack.enter_async_context(PostgresLog(log_url, f"p{i}", readers=3)) for i in range(3)]
        for stream in streams:
            await logs[0].create(stream, events(stream, 0))
        await asyncio.gather(*(owns(log, stream) for stream in streams for log in logs))
    assert [refusal for refusal in refusals if "the head is" in refusal] == []
    await no_gap(admin)
    written = await admin.fetch(
        "SELECT stream, max(version) AS head, max(fence) AS fence, count(*) AS n FROM log.event WHERE version > 1"
        " GROUP BY stream, append_id ORDER BY 1, 2"
    )
    assert {row["n"] for row in written} == {3}
    assert [(row["stream"], row["head"], row["fence"]) for row in written] == sorted(acknowledged)
    for earlier, later in pairwise(written):
        assert earlier["stream"] != later["stream"] or earlier["fence"] <= later["fence"]


async def test_a_locked_stream_delays_only_itself(
    log: PostgresLog, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    for stream in ("t-1", "t-2"):
        await log.create(stream, events(stream, 0))
    transaction = admin.transaction()
    await transaction.start()
    await admin.execute("UPDATE log.stream SET fence = fence + 1 WHERE stream = 't-1'")
    stuck = log.append("t-1", 1, 1, events("t-1", 1))
    for head in range(1, 30):
        await log.append("t-2", head, 1, events("t-2", head))
    assert not stuck.done()
    await transaction.rollback()
    assert await stuck == 2


async def test_a_take_over_in_flight_fences_the_append_that_waited_for_it(
    log: PostgresLog, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    await log.create("t-1", events("t-1", 0))
    transaction = admin.transaction()
    await transaction.start()
    await admin.execute("UPDATE log.stream SET fence = fence + 1 WHERE stream = 't-1'")
    stuck = log.append("t-1", 1, 1, events("t-1", 1))
    await log.heads()
    await transaction.commit()
    with pytest.raises(Fenced, match="the fence is 2, not 1"):
        await stuck
    assert await no_gap(admin) == {"t-1": 1}


async def test_a_take_over_waits_for_an_append_in_flight_and_gives_the_exact_head(
    log: PostgresLog, database_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    await log.create("t-1", events("t-1", 0))
    owner = await asyncpg.connect(database_url)
    transaction = owner.transaction()
    await transaction.start()
    await owner.execute("UPDATE log.stream SET head = 3 WHERE stream = 't-1' AND head = 1 AND fence = 1")
    await owner.execute(
        "INSERT INTO log.event SELECT stream, v, fence, append_id, hand, type, time_us, body"
        " FROM log.event, generate_series(2, 3) v WHERE stream = 't-1' AND version = 1"
    )
    taking = asyncio.create_task(log.take_over("t-1", 1))

    async def waits_for_the_row() -> bool:
        return bool(await admin.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

    await until(waits_for_the_row)
    await transaction.commit()
    await owner.close()
    assert await taking == Ownership(fence=2, head=3)
    assert await no_gap(admin) == {"t-1": 3}


async def test_a_commit_whose_answer_is_lost_is_written_once(
    log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada") as log:
        await log.create("t-1", events("t-1", 0))
        for head in range(1, 9, 2):
            proxy.answered.clear()
            proxy.swallow = True
            append = log.append("t-1", head, 1, events("t-1", head, 2))
            await proxy.answered.wait()
            proxy.cut()
            proxy.swallow = False
            assert await append == head + 2
        assert await no_gap(admin) == {"t-1": 9}
        assert await log.read("t-1") == events("t-1", 0, 9)


async def test_an_append_cut_off_on_its_way_is_written_once(
    log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada") as log:
        await log.create("t-1", events("t-1", 0))
        proxy.hold.clear()
        proxy.asked.clear()
        append = log.append("t-1", 1, 1, events("t-1", 1, 2))
        await proxy.asked.wait()
        proxy.cut()
        proxy.hold.set()
        assert await append == 3
        assert await no_gap(admin) == {"t-1": 3}


async def test_of_many_tries_in_flight_at_once_one_is_written(
    log_url: str, database_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada") as log:
        await log.create("t-1", events("t-1", 0))
        blocker = await asyncpg.connect(database_url)
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("LOCK TABLE log.event IN SHARE MODE")
        append = log.append("t-1", 1, 1, events("t-1", 1, 2))
        for tries in (1, 2, 3):

            async def blocked(tries: int = tries) -> bool:
                waiting = await admin.fetchval(
                    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'log.event'::regclass"
                )
                return bool(waiting == tries)

            await until(blocked)
            proxy.cut()
        await transaction.rollback()
        await blocker.close()
        assert await append == 3
        assert await log.append("t-1", 3, 1, events("t-1", 3)) == 4
        assert await no_gap(admin) == {"t-1": 4}


async def test_an_append_without_an_answer_is_sent_again_after_the_timeout(
    log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada", timeout=0.5) as log:
        await log.create("t-1", events("t-1", 0))
        proxy.swallow = True
        append = log.append("t-1", 1, 1, events("t-1", 1))
        await proxy.answered.wait()

        async def lost() -> bool:
            return not log.connected

        await until(lost)
        proxy.swallow = False
        assert await append == 2
        assert await no_gap(admin) == {"t-1": 2}


async def test_a_lost_answer_after_which_another_took_over_is_told_apart(log_url: str, events: Events) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada") as ada, PostgresLog(log_url, "bob") as bob:
        for stream in ("t-1", "t-2"):
            await ada.create(stream, events(stream, 0))
        proxy.swallow = True
        written = ada.append("t-1", 1, 1, events("t-1", 1))
        await proxy.answered.wait()
        assert await bob.take_over("t-1", 1) == Ownership(fence=2, head=2)
        assert await bob.take_over("t-2", 1) == Ownership(fence=2, head=1)
        fenced = ada.append("t-2", 1, 1, events("t-2", 1))
        await bob.append("t-2", 1, 2, events("t-2", 1, text="bob"))
        proxy.cut()
        proxy.swallow = False
        assert await written == 2
        with pytest.raises(Fenced):
            await fenced


@pytest.mark.parametrize("what", ["create", "take_over"])
async def test_a_change_of_owner_whose_answer_is_lost_is_recognised(log_url: str, events: Events, what: str) -> None:
    async with Proxy(log_url) as proxy, PostgresLog(proxy.url, "ada", readers=1) as ada:
        await ada.create("t-1", events("t-1", 0))
        proxy.answered.clear()
        asked: asyncio.Task[Ownership]
        if what == "create":
            await ada.create("t-0", events("t-0", 0))  # the statements are prepared: the next answer is the last
            proxy.swallow = True
            asked = asyncio.create_task(ada.create("t-2", events("t-2", 0, 2)))
        else:
            await ada.take_over("t-1", 1)
            proxy.swallow = True
            asked = asyncio.create_task(ada.take_over("t-1", 2))
        await proxy.answered.wait()
        proxy.cut()
        proxy.swallow = False
        assert await asked == (Ownership(1, 2) if what == "create" else Ownership(3, 1))
        with pytest.raises(StreamExists if what == "create" else Fenced):
            await (ada.create("t-2", events("t-2", 0, 2)) if what == "create" else ada.take_over("t-1", 2))


async def test_terminated_backends_under_load_lose_and_double_nothing(
    log: PostgresLog, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    streams = [f"t-{i}" for i in range(32)]
    load = asyncio.gather(*(play(log, stream, events, 41) for stream in streams))
    kills, seen = 0, 0

    async def goes_on() -> bool:
        return load.done() or bool(seen < await admin.fetchval("SELECT coalesce(sum(head), 0) FROM log.stream"))

    while not load.done():
        await until(goes_on)
        seen = await admin.fetchval("SELECT coalesce(sum(head), 0) FROM log.stream")
        kills += await admin.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'relance-log'"
            " AND datname = current_database()"
        )
    assert kills > 0
    assert await no_gap(admin) == dict(zip(streams, await load, strict=True))


async def test_a_server_that_stops_dead_under_load_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, events: Events
) -> None:
    folder = tmp_path_factory.mktemp("kill")
    server = Postgres(folder / "postgres")
    await asyncio.to_thread(server.start)
    seen: list[bool] = []
    try:
        url = await migrated(server.url)
        streams = [f"t-{i}" for i in range(16)]
        async with PostgresLog(url, "ada") as log:
            log.on_connection(seen.append)
            load = asyncio.gather(*(play(log, stream, events, 181) for stream in streams))
            for _ in range(2):

                async def under_way() -> bool:
                    with contextlib.suppress(Unavailable):
                        return sum((await log.heads()).values()) > 100
                    return False

                await until(under_way)
                await asyncio.to_thread(server.stop, fast=False)
                with pytest.raises(Unavailable):
                    await log.heads()
                await asyncio.to_thread(server.start)
                await log.wait_connected()
            heads = await load
        admin = await asyncpg.connect(server.url)
        assert await no_gap(admin) == dict(zip(streams, heads, strict=True))
        await admin.close()
        assert seen == [False, True, False, True]
    finally:
        await asyncio.to_thread(server.stop, fast=False)


REWRITES = [
    "UPDATE log.event SET hand = 1",
    "DELETE FROM log.event",
    "TRUNCATE log.event",
    "DELETE FROM log.stream",
    "TRUNCATE log.stream",
    "UPDATE log.stream SET head = head - 1",
    "UPDATE log.stream SET fence = 0",
]


@pytest.mark.parametrize("statement", REWRITES)
async def test_nobody_changes_the_past(
    log: PostgresLog, log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events, statement: str
) -> None:
    await log.create("t-1", events("t-1", 0, 2))
    service = await asyncpg.connect(log_url)
    for connection in (admin, service):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    await admin.execute("SET session_replication_role = replica")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await admin.execute(statement)
    await service.close()
    assert await log.read("t-1") == events("t-1", 0, 2)


async def test_the_services_role_owns_nothing(admin: asyncpg.Connection[asyncpg.Record], log: PostgresLog) -> None:
    owned = await admin.fetchval("SELECT count(*) FROM pg_class WHERE relowner = 'relance_table'::regrole")
    assert owned == 0


async def test_an_auditor_reads_the_log_and_writes_nothing(
    log: PostgresLog, log_url: str, admin: asyncpg.Connection[asyncpg.Record], events: Events
) -> None:
    await log.create("t-1", events("t-1", 0, 2))
    await admin.execute("DROP ROLE IF EXISTS auditor_test")
    await admin.execute("CREATE ROLE auditor_test LOGIN PASSWORD 'secret' IN ROLE relance_audit")
    place = log_url.rpartition("@")[2]
    async with PostgresLog(f"postgresql://auditor_test:secret@{place}", "auditor") as audit:
        assert await audit.read("t-1") == events("t-1", 0, 2)
        for write in (
            lambda: audit.append("t-1", 2, 1, events("t-1", 2)),
            lambda: audit.create("t-2", events("t-2", 0)),
            lambda: audit.take_over("t-1", 1),
            audit.snapshots.delete_all,
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await write()
    assert await log.append("t-1", 2, 1, events("t-1", 2)) == 3


@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync", "full_page_writes"])
async def test_a_database_that_may_lose_commits_is_refused(
    log_url: str, admin: asyncpg.Connection[asyncpg.Record], setting: str
) -> None:
    if setting == "synchronous_commit":
        await admin.execute(f'ALTER DATABASE "{log_url.rsplit("/", 1)[1]}" SET synchronous_commit = off')
        with pytest.raises(UnsafeDatabase, match=setting):
            await PostgresLog(log_url, "ada").__aenter__()
        return

    async def is_now(value: str) -> bool:
        return bool(await admin.fetchval("SELECT current_setting($1) = $2", setting, value))

    await admin.execute(f"ALTER SYSTEM SET {setting} = off")
    await admin.execute("SELECT pg_reload_conf()")
    try:
        await until(lambda: is_now("off"))
        with pytest.raises(UnsafeDatabase, match=setting):
            await PostgresLog(log_url, "ada").__aenter__()
    finally:
        await admin.execute(f"ALTER SYSTEM RESET {setting}")
        await admin.execute("SELECT pg_reload_conf()")
        await until(lambda: is_now("on"))


async def test_a_database_without_the_log_or_without_a_server_is_refused(database_url: str) -> None:
    with pytest.raises(UnsafeDatabase, match="migrate"):
        await PostgresLog(database_url, "ada").__aenter__()
    with pytest.raises(Unavailable):
        await PostgresLog("postgresql://nobody:x@127.0.0.1:1/none", "ada").__aenter__()


async def test_a_refused_event_harms_only_its_own_append(log: PostgresLog, events: Events) -> None:
    for stream in ("t-1", "t-2"):
        await log.create(stream, events(stream, 0))
    bad = events("t-1", 1)
    answers = await asyncio.gather(
        log.append("t-1", 1, 2**63, bad), log.append("t-2", 1, 1, events("t-2", 1)), return_exceptions=True
    )
    assert isinstance(answers[0], asyncpg.DataError)
    assert answers[1] == 2
    assert await log.append("t-1", 1, 1, bad) == 2
