"""The whole room as processes: it starts, plays, survives kills, drains, comes back the same, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from tests.system.conftest import UP, RunningRoom, processes_of, wait_for

from relance.client import connect
from relance.room.bots.accounts import Accounts
from relance.room.embedded import Nats
from relance.room.figures import Figures, Observer
from relance.room.folder import DataFolder
from relance.room.services import SERVICES

FAST = ("--bots", "16", "--pace", "instant", "--house", "riviera", "--drain", "2")
QUIET = ("--bots", "0", "--house", "riviera", "--drain", "1")
Start = Callable[..., RunningRoom]


def look(room: RunningRoom) -> Figures:
    """What an operator sees."""

    async def once() -> Figures:
        observer = Observer(room.folder, {service: room.address(service) for service in SERVICES})
        try:
            return await observer.look()
        finally:
            await observer.close()

    return asyncio.run(once())


def wealth(room: RunningRoom) -> dict[str, int]:
    """Each bot's money on the account, by player id."""

    async def ask() -> dict[str, int]:
        found: dict[str, int] = {}
        for account in Accounts(room.folder.path / "bots.json").accounts:
            async with connect(room.address("lobby")) as visitor:
                player = await visitor.sign_in(account.name, account.password)
                found[player] = await visitor.balance("eur")
        return found

    return asyncio.run(ask())


def audited(room: RunningRoom) -> None:
    """The audit of a room that plays finds nothing."""
    audit = subprocess.run(
        [sys.executable, "-m", "relance.cli", "audit", "--data", str(room.folder.path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert "audit: ok" in audit.stdout


def test_up_for_some_seconds_plays_drains_audits_and_leaves_nothing(start: Start) -> None:
    """The club's house: closed poker with antes, exchanges and stripped decks, for credits, no euro anywhere."""
    room = start("--bots", "12", "--pace", "instant", "--house", "club", "--drain", "2", "--seconds", "6").wait_ready()
    wait_for(lambda: look(room).hands >= 1, 20, room)
    assert room.process.wait(90) == 0, room.said()
    said = room.said()
    assert re.search(r"lobby: grpc 127\.0\.0\.1:\d+", said)
    assert "relance token --role floor" in said
    assert re.search(r"audit: .*ok", said)
    assert "\x1b" not in said  # no colours in a file
    assert processes_of(room.folder.path) == []


def test_it_comes_back_with_the_same_players_balances_and_tables(start: Start) -> None:
    room = start(*FAST).wait_ready()
    wait_for(lambda: look(room).hands >= 5, 60, room)
    assert room.stop(signal.SIGINT) == 0, room.said()
    room = start(*QUIET).wait_ready()
    before, money = look(room), wealth(room)
    assert before.hands >= 5
    assert room.stop() == 0
    room = start(*QUIET).wait_ready()
    after = look(room)
    assert wealth(room) == money
    assert {table.name for table in after.tables} == {table.name for table in before.tables}
    assert after.escrow == before.escrow
    assert room.stop() == 0


def test_processes_that_are_killed_are_started_again_and_no_money_is_lost(start: Start) -> None:
    room = start(*FAST).wait_ready()
    for names in (("table",), ("wallet", "rake", "lobby", "nats", "bots"), ("postgres",)):
        played = hands_played(room)
        wait_for(lambda played=played: hands_played(room) > played + 2, 60, room)  # type: ignore[misc]
        for name in names:
            pid = room.pid(name)
            psutil.Process(pid).kill()
            wait_for(lambda name=name, pid=pid: room.pid(name) != pid, 30, room)  # type: ignore[misc]
    assert hands_played(room)
    audited(room)
    assert room.stop() == 0, room.said()
    assert processes_of(room.folder.path) == []


def hands_played(room: RunningRoom) -> int:
    """Hands begun so far, as soon as all services answer."""
    seen: list[int] = []

    def looked() -> bool:
        seen.append(look(room).hands)
        return True

    wait_for(looked, 60, room)
    return seen[0]


def test_a_supervisor_that_is_killed_leaves_nothing_and_can_be_started_again(start: Start) -> None:
    room = start(*FAST).wait_ready()
    room.stop(signal.SIGKILL)
    wait_for(lambda: processes_of(room.folder.path) == [], 20)
    room = start(*FAST, "--seconds", "1")
    assert room.process.wait(90) == 0, room.said()


def test_a_second_up_on_the_same_data_says_that_one_is_running(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    second = subprocess.run([*UP, "--data", str(tmp_path)], capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert second.stderr.startswith(f"relance: a room is already running on {tmp_path} (process {os.getpid()})")
    assert second.stderr.count("\n") == 1
    folder.release()


def test_it_runs_on_servers_that_are_there_already(start: Start, database_url: str, nats_server: Nats) -> None:
    """With bots that misbehave, about whom there is nothing to say but what the room refused them."""
    servers = ("--database-url", database_url, "--nats-url", nats_server.url)
    room = start(*FAST, *servers, "--misbehave").wait_ready()
    assert not room.folder.postgres.exists()
    assert not room.folder.nats.exists()
    played = hands_played(room)
    wait_for(lambda: hands_played(room) > played, 60, room)
    audited(room)
    assert room.stop() == 0, room.said()
    assert re.search(r"misbehaviour: [1-9]\d* times, [1-9]\d* refusals, ok", room.said())
