"""Transfers a second over 1,000 accounts through the wallet's calls, bare single-row commits on the same server."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import grpc
from tests.bench.ledger import ACCOUNTS, Place, fund, ledger_database

from relance.api.common.v1.game_pb2 import CURRENCY_EUR
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.client.credentials import bearer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAME = "transfers"
WHAT = "transfers/s by 64 unary calls at once over 1,000 accounts, bare single-row commits/s of one connection, times"
TARGET = 0.6
BATCH_TARGET = 2.0

CALLERS, BATCH_CALLERS, BATCH = 64, 4, 64
ROUND_SECONDS, ROUNDS = 3.0, 3

Work = Callable[[int, int], Awaitable[int]]


def order(worker: int, number: int, place: int) -> wallet_pb2.TransferOrder:
    """A buy-in of another player at another table each time."""
    one = (worker * 7919 + number * 64 + place) % ACCOUNTS
    return wallet_pb2.TransferOrder(
        key=f"t{worker}-{number * 256 + place}", to=f"tables/t{one % 97}", amount=1 + place % 7,
        currency=CURRENCY_EUR, purpose="BUY_IN", **{"from": f"players/p{one}/eur"},
    )  # fmt: skip


@asynccontextmanager
async def wallet(place: Place) -> AsyncIterator[str]:
    """A wallet as a process of its own; its address."""
    address = place.folder / "address"
    env = {
        "RELANCE_DATABASE_URL": place.url,
        "RELANCE_NATS_URL": "nats://127.0.0.1:1",
        "RELANCE_KEYRING": str(place.folder / "keys.json"),
        "RELANCE_SIGNING_KEY": str(place.folder / "key.pem"),
        "RELANCE_ADDRESS_FILE": str(address),
        "RELANCE_LOG_LEVEL": "error",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "relance.wallet", "serve", env=env)
    try:
        yield await _written(address)
    finally:
        process.terminate()
        await process.wait()


async def _written(path: Path) -> str:
    async with asyncio.timeout(30):
        while not path.exists() or not path.read_text():  # noqa: ASYNC110, ASYNC240 - another process writes it
            await asyncio.sleep(0.02)
    return path.read_text().strip()  # noqa: ASYNC240 - a line


async def rate(callers: int, work: Work, numbers: list[int]) -> float:
    """What `callers` at once get done a second. `numbers`: of each caller's next call."""
    until = time.perf_counter() + ROUND_SECONDS

    async def call(caller: int) -> int:
        done = 0
        while time.perf_counter() < until:
            done += await work(caller, numbers[caller])
            numbers[caller] += 1
        return done

    start = time.perf_counter()
    done = sum(await asyncio.gather(*(call(caller) for caller in range(callers))))
    return done / (time.perf_counter() - start)


async def measure() -> dict[str, float]:
    """ours, limit: transfers and commits a second; the best of three rounds taken in turn."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(ledger_database("relance.wallet"))
        await fund(place.url)
        address = await stack.enter_async_context(wallet(place))
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(address))
        ledger = wallet_pb2_grpc.LedgerServiceStub(channel)
        token, _ = place.signer.sign("services/table", ("service",), seconds=3600, service="table")
        metadata = bearer(token)
        pool = await stack.enter_async_context(asyncpg.create_pool(place.url, min_size=1, max_size=1))
        await pool.execute("CREATE TABLE public.bare (id bigint PRIMARY KEY, player integer, amount bigint)")
        insert = "INSERT INTO public.bare VALUES ($1, $2, $3)"

        async def unary(caller: int, number: int) -> int:
            orders = [order(caller, number, 0)]
            request = wallet_pb2.BatchTransferRequest(orders=orders)
            answer = await ledger.BatchTransfer(request, metadata=metadata)
            assert answer.answers[0].settled, answer
            return 1

        async def batch(caller: int, number: int) -> int:
            orders = [order(1000 + caller, number, place) for place in range(BATCH)]
            answer = await ledger.BatchTransfer(wallet_pb2.BatchTransferRequest(orders=orders), metadata=metadata)
            assert all(each.settled for each in answer.answers), answer
            return BATCH

        async def bare(caller: int, number: int) -> int:
            await pool.execute(insert, number, number % ACCOUNTS, 5)
            return 1

        single, many, commits = [0] * CALLERS, [0] * BATCH_CALLERS, [0]
        figures = []
        for _ in range(ROUNDS):
            figures.append(
                (
                    await rate(1, bare, commits),
                    await rate(CALLERS, unary, single),
                    await rate(BATCH_CALLERS, batch, many),
                )
            )
    limit, ours, batched = (max(column) for column in zip(*figures, strict=True))
    return {
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "target": TARGET,
        "in batches of 64, transfers/s": batched,
        "in batches of 64, times bare commits": batched / limit,
        "target of that": BATCH_TARGET,
    }
