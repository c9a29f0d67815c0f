"""Rake moves to the house once for every hand, whatever is down, repeated or asked twice at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import asyncpg
import grpc
import nats
import pytest

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.eventlog.publish import SUBJECT, TYPES, VERSION
from relance.rake.collect import Collector
from relance.rake.schedules import Schedules
from relance.room.embedded import Nats
from relance.runtime import database
from relance.runtime.auth import ServiceToken
from relance.runtime.clock import SystemClock

from .conftest import Rooms, raked_table, until

Owner: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


async def states(owner: Owner) -> dict[str, int]:
    """Hands by state."""
    rows = await owner.fetch("SELECT state, count(*) AS hands FROM rake.hand GROUP BY state")
    return {row["state"]: row["hands"] for row in rows}


async def house(owner: Owner) -> int:
    """What is on the house's account."""
    return int(await owner.fetchval("SELECT coalesce(sum(balance), 0) FROM wallet.account WHERE name = 'house/eur'"))


async def collected(owner: Owner, hands: int) -> None:
    """Wait until that many hands are collected."""

    async def found() -> bool:
        return (await states(owner)).get("collected", 0) == hands

    await until(found)


async def test_every_hand_is_collected_once(rooms: Rooms, owner: Owner) -> None:
    wallet = await rooms.start_wallet()
    for name, hands in (("a", 7), ("b", 4)):
        rooms.tables.logs[name] = raked_table(name, hands).log
        await rooms.fund(wallet, name, 150_000)
    await rooms.start_rake()
    await collected(owner, 11)
    assert await house(owner) == 11 * 30
    keys = await owner.fetch("SELECT key FROM wallet.transfer WHERE purpose = 'RAKE' ORDER BY key")
    assert [row["key"] for row in keys] == sorted(
        f"rake/{t}/{h}" for t, n in (("a", 7), ("b", 4)) for h in range(1, n + 1)
    )


async def test_a_wallet_that_is_away_is_asked_until_it_answers(rooms: Rooms, owner: Owner) -> None:
    rooms.tables.logs["a"] = raked_table("a", 3).log
    await rooms.start_rake()

    async def asked() -> bool:
        return bool(await owner.fetchval("SELECT count(*) = 3 FROM rake.hand WHERE state = 'open' AND attempts > 0"))

    await until(asked)
    await rooms.fund(await rooms.start_wallet(), "a", 150_000)
    await collected(owner, 3)
    assert await house(owner) == 90


async def test_several_rake_services_and_repeated_messages_collect_once(
    rooms: Rooms, owner: Owner, nats_server: Nats
) -> None:
    wallet = await rooms.start_wallet()
    log = raked_table("a", 12).log
    rooms.tables.logs["a"] = log[:60]
    await rooms.fund(wallet, "a", 150_000)
    for _ in range(3):
        await rooms.start_rake()
    messenger = await nats.connect(nats_server.url)
    for head in range(61, len(log) + 1, 7):
        rooms.tables.logs["a"] = log[:head]
        for version in (head, head, head - 20, head):  # doubled and out of order
            headers = {VERSION: str(version), TYPES: "hand_ended"}
            await messenger.publish(SUBJECT + "a", b"", headers=headers)
        await messenger.flush()
        await asyncio.sleep(0)
    rooms.tables.logs["a"] = log
    await messenger.publish(SUBJECT + "a", b"", headers={VERSION: str(len(log)), TYPES: "hand_ended"})
    await collected(owner, 12)
    assert await house(owner) == 12 * 30
    assert await owner.fetchval("SELECT version FROM rake.followed WHERE stream = 'a'") == len(log)
    await messenger.close()


async def test_a_mismatch_stops_the_collection_of_that_hand_alone(rooms: Rooms, owner: Owner) -> None:
    wallet = await rooms.start_wallet()
    log = raked_table("a", 3).log
    second = next(e for e in log if e.hand == 2 and e.WhichOneof("payload") == "hand_ended")
    second.hand_ended.rake = 31
    rooms.tables.logs["a"] = log
    await rooms.fund(wallet, "a", 150_000)
    await rooms.start_rake()
    await collected(owner, 2)
    row = await owner.fetchrow("SELECT state, mismatch, rake, expected FROM rake.hand WHERE hand = 2")
    assert row is not None
    assert (row["state"], row["rake"], row["expected"]) == ("stopped", 31, 30)
    assert "31" in row["mismatch"]
    assert await house(owner) == 60


async def test_K7_a_schedule_that_was_never_published_stops_the_collection(rooms: Rooms, owner: Owner) -> None:
    wallet = await rooms.start_wallet()
    for name in ("a", "b", "c"):
        rooms.tables.logs[name] = raked_table(name, 1).log
        await rooms.fund(wallet, name, 150_000)
    # Each table keeps to the schedule in its own log; it is the schedule that nobody put there.
    rooms.tables.logs["b"][0].table_opened.rake.tiers[1].cap += 1
    rooms.tables.logs["c"][0].table_opened.rake.version = 2
    for event in rooms.tables.logs["c"]:
        if event.HasField("hand_started"):
            event.hand_started.rake_schedule = "boulevard/no_limit@2"
        elif event.HasField("hand_ended"):
            event.hand_ended.rake_schedule = "boulevard/no_limit@2"
    await rooms.start_rake()

    async def all_seen() -> bool:
        return await states(owner) == {"collected": 1, "stopped": 2}

    await until(all_seen)
    said = {row["table_id"]: row["mismatch"] for row in await owner.fetch("SELECT table_id, mismatch FROM rake.hand")}
    assert "is not what was published" in said["b"]
    assert "was never published" in said["c"]


async def test_a_refusal_of_the_wallet_is_kept_as_one(rooms: Rooms, owner: Owner) -> None:
    await rooms.start_wallet()  # with nothing in escrow
    rooms.tables.logs["a"] = raked_table("a", 1).log
    await rooms.start_rake()

    async def refused() -> bool:
        return await states(owner) == {"refused": 1}

    await until(refused)
    assert await owner.fetchval("SELECT refusal FROM rake.hand") == "NO_MONEY"


class Dies(Exception):
    """The process ends here."""


class Deadly:
    """A wallet whose caller dies before it asks, or when the answer comes: the money has moved, no row knows."""

    def __init__(self, real: wallet_pb2_grpc.LedgerServiceAsyncStub, *, asks: bool) -> None:
        self._real, self._asks = real, asks

    async def BatchTransfer(
        self, request: wallet_pb2.BatchTransferRequest, *, timeout: float, metadata: Sequence[tuple[str, str]]
    ) -> wallet_pb2.BatchTransferResponse:
        if self._asks:
            await self._real.BatchTransfer(request, timeout=timeout, metadata=tuple(metadata))
        raise Dies


@pytest.mark.parametrize("asks", [False, True])
async def test_a_rake_process_that_dies_at_any_step_collects_once(rooms: Rooms, owner: Owner, asks: bool) -> None:
    wallet = await rooms.start_wallet()
    log = raked_table("a", 5).log
    await rooms.fund(wallet, "a", 150_000)
    url = rooms.settings("relance_rake")["database_url"].get_secret_value()
    token = ServiceToken(rooms.signer, "rake")
    async with database.pool(url, name="test") as pool, grpc.aio.insecure_channel(rooms.wallet_address) as channel:
        real = wallet_pb2_grpc.LedgerServiceStub(channel)
        schedules = Schedules(pool, SystemClock())
        deadly = Deadly(real, asks=asks)
        dying = Collector(pool, deadly, token, SystemClock(), schedules)  # type: ignore[arg-type]
        with pytest.raises(Dies):  # after its effect and before the commit of the position: nothing was taken in
            await _dies_after_taking_in(dying, pool, log)
        assert await states(owner) == {}
        async with pool.acquire() as connection, connection.transaction():
            await dying.take_in(connection, log)
        with pytest.raises(Dies):
            await dying.settle()
        assert await states(owner) == {"open": 5}
        assert await house(owner) == (150 if asks else 0)
        assert await Collector(pool, real, token, SystemClock(), schedules).settle() == 5
    assert await states(owner) == {"collected": 5}
    assert await house(owner) == 150


async def _dies_after_taking_in(collector: Collector, pool: database.Pool, log: Sequence[TableEvent]) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await collector.take_in(connection, log)
        raise Dies
