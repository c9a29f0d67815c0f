"""A crowd at once: sign in, sit, leave. Nobody's money is lost, and nobody is left without an answer.

RELANCE_CROWD=1000 pytest tests/table/test_crowd.py -n 0 -s
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest_asyncio
from argon2 import PasswordHasher
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Keys, Room, bearer, beside

from relance.api.table.v1 import table_pb2
from relance.client import Channels, RelanceError, connect
from relance.client import Room as Way
from relance.lobby.serve import started as lobby_started
from relance.lobby.settings import LobbySettings
from relance.ops.audit import audit
from relance.room.embedded import Nats
from relance.room.ports import free_port
from relance.runtime.clock import SystemClock
from relance.table.process import Process
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

CROWD = int(os.environ.get("RELANCE_CROWD", "200"))
SEATS = 10
TABLES = max(2, CROWD * 6 // 10 // SEATS)
"""Seats for six of ten."""
FUNDS, BUY_IN = 10_000, 4_000
PATIENCE = 120.0
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""What is tried is the crowd, not the machine."""


class Hall:
    """Two table processes, a lobby and a wallet on one database."""

    def __init__(self, room: Room, lobby: str, processes: list[Process]) -> None:
        self.room, self.lobby, self.processes = room, lobby, processes
        self.channels = Channels()
        self.tables: list[str] = []
        self.answers: Counter[str] = Counter()
        self.answered = asyncio.Event()

    async def open(self) -> None:
        """The tables. They are paused: whoever sits plays no hand, and has to have exactly what they came with."""
        floor = bearer(self.room.keys.operator("floor"))
        for number in range(TABLES):
            process = self.processes[number % len(self.processes)]
            table = await self.room.open(process, request_id=f"t{number}", seats=SEATS)
            pause = table_pb2.PauseTableRequest(table=f"tables/{table}", request_id="p")
            await self.room.admin(process).PauseTable(pause, metadata=floor)
            self.tables.append(f"tables/{table}")

    def way(self) -> Way:
        """A client of its own, on connections that all share: a crowd behind one address."""
        return connect(self.lobby, channels=self.channels, timeout=PATIENCE, patience=PATIENCE)

    async def guest(self, number: int) -> str:
        """An account with money; its player."""
        player = await self.way().register(f"Guest {number}", f"password {number}")
        await self.room.deposit(player, FUNDS)
        return player

    async def visit(self, number: int) -> None:
        """Sign in, sit down wherever a seat is free in three tries, and leave when everybody had an answer."""
        way = self.way()
        await way.sign_in(f"Guest {number}", f"password {number}")
        for attempt in range(3):
            async with way.play(self.tables[(number + attempt * 7) % TABLES]) as seat:
                try:
                    await seat.sit(BUY_IN)
                except RelanceError as refusal:
                    self.answers[refusal.reason] += 1
                    continue
                self._done("seated")
                await self.answered.wait()
                assert await seat.leave(settled=True) == BUY_IN
                self.answers["left"] += 1
                return
        self._done("found no seat")

    def _done(self, how: str) -> None:
        self.answers[how] += 1
        if self.answers["seated"] + self.answers["found no seat"] == CROWD:
            self.answered.set()


@pytest_asyncio.fixture
async def hall(migrated: Migrated, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Hall]:
    """A hall with nobody in it."""
    url = SecretStr(await migrated("relance.eventlog", "relance.table", "relance.wallet", "relance.lobby"))
    nats, keys = SecretStr(nats_server.url), Keys(tmp_path)
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    async with AsyncExitStack() as stack:
        money = WalletSettings(database_url=url, nats_url=nats, keyring=keys.ring, signing_key=keys.service_key)
        wallet = await beside(stack, started(money))
        room = Room(stack, keys, url.get_secret_value(), nats_server.url, wallet)
        settings = LobbySettings(
            database_url=url, nats_url=nats, keyring=keys.ring, signing_key=keys.service_key,
            player_signing_key=keys.lobby_key, table_addresses=tuple(addresses), wallet_address=wallet,
        )  # fmt: skip
        lobby = await beside(stack, lobby_started(settings, SystemClock(), hasher=CHEAP))
        processes = [await room.start(lease=30, lobby=lobby, listen=address) for address in addresses]
        hall = Hall(room, lobby, processes)
        stack.push_async_callback(hall.channels.close)
        yield hall


async def test_a_crowd_that_signs_in_sits_and_leaves_at_once_loses_nothing(hall: Hall) -> None:
    await hall.open()
    players = await asyncio.gather(*(hall.guest(number) for number in range(CROWD)))
    began = time.monotonic()
    await asyncio.gather(*(hall.visit(number) for number in range(CROWD)))
    took = time.monotonic() - began
    answers = hall.answers
    assert answers["seated"] == answers["left"] == TABLES * SEATS
    assert answers["found no seat"] == CROWD - TABLES * SEATS
    assert answers["SEAT_TAKEN"] >= 3 * answers["found no seat"]
    assert set(answers) == {"seated", "left", "found no seat", "SEAT_TAKEN"}
    states = [actor.table for process in hall.processes for actor in process.tables.actors.values()]
    assert len(states) == TABLES
    assert not any(state.seats or state.transfers or state.holds for state in states)
    owner = await asyncpg.connect(hall.room.database)
    rows = await owner.fetch("SELECT name, balance FROM wallet.account WHERE name ~ '^(players|tables)/'")
    await owner.close()
    balances: dict[str, int] = {row["name"]: row["balance"] for row in rows}
    assert {name: cents for name, cents in balances.items() if name.startswith("tables/") and cents} == {}
    assert {f"players/{player}/eur": FUNDS for player in players} == {
        name: cents for name, cents in balances.items() if name.startswith("players/")
    }
    report = await audit(hall.room.database)
    assert report.ok, report.findings
    print(f"{CROWD} players, {TABLES * SEATS} seats: {dict(answers)} in {took:.1f} s")  # noqa: T201 - shown with -s
