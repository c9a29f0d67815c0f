"""The commands on a database, as an operator gives them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest_asyncio
from click.testing import CliRunner, Result
from tests.conftest import Migrated
from tests.ops.test_verify import eventful

from relance.api.events.v1.events_pb2 import TableEvent
from relance.cli.main import cli
from relance.eventlog import Follower, PostgresLog
from relance.ops.lag import lags
from relance.ops.output import Out
from relance.ops.rebuild import rebuild
from relance.ops.source import connected

SCHEMAS = ("relance.eventlog", "relance.wallet", "relance.lobby", "relance.rake")
NAME = "Zoë [the] 'Shark'"


@dataclass
class Place:
    """A room's database with one eventful table, by the URLs of its owner and of an auditor."""

    owner: str
    auditor: str

    async def run(self, *arguments: str) -> Result:
        """Give a command."""
        return await asyncio.to_thread(
            CliRunner().invoke, cli, [arguments[0], "--database-url", self.auditor, *arguments[1:]]
        )

    async def json(self, *arguments: str) -> object:
        """Give a command and read its answer."""
        result = await self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest_asyncio.fixture
async def place(migrated: Migrated) -> AsyncIterator[Place]:
    """One table on which everything happened."""
    url = await migrated(*SCHEMAS)
    owner = await asyncpg.connect(url)
    await owner.execute("ALTER ROLE relance_audit LOGIN PASSWORD 'audit'")
    await owner.execute(
        "INSERT INTO lobby.player (id, display_name, folded_name, password, request_id, created_at)"
        " VALUES ('p1', $1, $1, 'x', 'r', 1)",
        NAME,
    )
    await owner.close()
    room = eventful()
    async with PostgresLog(url, "test") as log:
        owned = await log.create("t", room.appends[0])
        head = owned.head
        for append in room.appends[1:]:
            head = await log.append("t", head, owned.fence, append)
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    yield Place(url, urlunsplit(parts._replace(netloc=f"relance_audit:audit@{host}")))


async def test_every_question_has_its_command(place: Place) -> None:
    tables = await place.json("tables")
    assert [(each["table"], each["status"]) for each in tables] == [("t", "closed")]  # type: ignore[attr-defined]
    verified = await place.json("verify", "--all")
    assert verified["ok"]  # type: ignore[index]
    refunds = await place.json("refunds")
    reasons = [each["reason"] for each in refunds]  # type: ignore[attr-defined]
    assert reasons == ["operator", "crash", "drain"]
    crash = refunds[1]  # type: ignore[index]
    assert crash["total"] == sum(each["amount"] for each in crash["back"]) > 0
    assert {each["state"] for each in crash["back"]} == {"settled"}
    assert all(each["transfer"] for each in crash["back"])
    history = await place.json("history", NAME)
    kinds = {each["kind"] for each in history["entries"]}  # type: ignore[index]
    assert history["player"] == "p1"  # type: ignore[index]
    assert {"hand", "void", "seat", "ruling", "ban"} <= kinds
    state = await place.json("state", "t", "--at", "100")
    assert state["version"] == 100  # type: ignore[index]
    steps = await place.json("replay", "t", "--hand", "1")
    assert steps["steps"][-1]["event"]["type"] == "hand_ended"  # type: ignore[index]
    lines = (await place.run("events", "t", "--hand", "1", "--json")).stdout.splitlines()
    assert [json.loads(line)["hand"] for line in lines] == [1] * len(lines)


async def test_names_stand_in_what_people_read_and_no_colour_without_a_terminal(place: Place) -> None:
    for line in ("events t --hand 1", "history p1", "refunds", "replay t --hand 1 --steps"):
        result = await place.run(*line.split())
        assert result.exit_code == 0, result.output
        assert NAME in result.stdout
        assert "\x1b" not in result.stdout


async def test_what_cannot_be_answered_is_one_line(place: Place) -> None:
    for line in ("events nix", "state t --at 99999", "history nobody", "replay t --hand 99 --steps"):
        result = await place.run(*line.split())
        assert result.exit_code == 1
        assert len(result.stderr.strip().splitlines()) == 1, result.stderr


async def test_a_finding_is_exit_code_1_and_the_exact_version(place: Place) -> None:
    owner = await asyncpg.connect(place.owner)
    row = await owner.fetchrow("SELECT version, body FROM log.event WHERE type = 'pot_awarded' LIMIT 1")
    assert row is not None
    event = TableEvent.FromString(row["body"])
    event.pot_awarded.shares[0].amount += 1
    await owner.execute("ALTER TABLE log.event DISABLE TRIGGER ALL")
    await owner.execute("UPDATE log.event SET body = $1 WHERE version = $2", event.SerializeToString(), row["version"])
    await owner.close()
    result = await place.run("verify", "t")
    assert result.exit_code == 1
    assert f"table t version {row['version']}" in result.stdout


async def test_an_alarm_goes_up_when_a_follower_is_behind(place: Place) -> None:
    async with connected(place.auditor) as connection:
        found = await lags(connection, most_events=10, most_seconds=1e9)
    assert {lag.follower: lag.alarm for lag in found} == {
        "publication": True,
        "lobby": True,
        "rake": True,
        "wallet": True,
    }
    assert (await place.run("lag", "--events", "1")).exit_code == 1
    quiet = await place.run("lag", "--events", "100000", "--seconds", "1e12")
    assert quiet.exit_code == 0, quiet.output


async def test_a_projection_is_built_again_while_its_follower_runs(place: Place) -> None:
    taken: list[int] = []
    once, head = asyncio.Event(), 0

    async def take(connection: object, events: Sequence[TableEvent]) -> None:
        taken.extend(event.version for event in events)
        if len(taken) >= head:
            once.set()

    async with asyncpg.create_pool(place.owner) as pool, PostgresLog(place.owner, "source") as log:
        head = (await log.heads())["t"]
        follower = Follower(pool, "lobby.followed", log, None, take, alarm=lambda *_: None, compare_every=0.1)
        following = asyncio.create_task(follower.run())
        await once.wait()
        async with connected(place.owner, write=True) as operator:
            await operator.execute("SET ROLE relance_operator")
            await rebuild(operator, ("lobby",), Out(as_json=True))
        following.cancel()
    assert taken == [*range(1, head + 1), *range(1, head + 1)]
