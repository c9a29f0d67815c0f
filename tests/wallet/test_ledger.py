"""The ledger on a real database: one answer a key, no overdraft, no deadlock, nothing changed afterwards."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import asyncpg
import pytest

from relance.room.embedded import Postgres
from relance.wallet.ledger import Answer, Ledger, LedgerFull, Order

from .conftest import Connect, buy_in, cash_out, deposit

MOST = 10**15


async def balances(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    """Every account's balance, by name."""
    return {row["name"]: row["balance"] for row in await connection.fetch("SELECT name, balance FROM wallet.account")}


async def check_books(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Each currency sums to zero, and each balance is the sum of its transfers and that of its last transfer."""
    assert await connection.fetch("SELECT FROM wallet.account GROUP BY currency HAVING sum(balance) <> 0") == []
    wrong = await connection.fetch("""
        WITH move AS (
            SELECT payer AS account, -amount AS change, id, payer_balance AS after
            FROM wallet.transfer WHERE refusal IS NULL
            UNION ALL
            SELECT payee, amount, id, payee_balance FROM wallet.transfer WHERE refusal IS NULL
        ), running AS (
            SELECT account, id, after, sum(change) OVER (PARTITION BY account ORDER BY id) AS should FROM move
        )
        SELECT * FROM running WHERE after <> should
        UNION ALL
        SELECT a.id, 0, a.balance, coalesce(sum(m.change), 0) FROM wallet.account a LEFT JOIN move m ON m.account = a.id
        GROUP BY a.id, a.balance HAVING a.balance <> coalesce(sum(m.change), 0)""")
    assert wrong == []


async def test_a_transfer_moves_money_between_accounts_made_at_zero(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    first = await ledger.transfer(deposit("d1", "ann", 5000))
    second = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    assert (first.settled, first.payer_balance, first.payee_balance) == (True, -5000, 5000)
    assert (second.settled, second.payer_balance, second.payee_balance) == (True, 3000, 2000)
    assert second.id > first.id
    assert second.at >= first.at
    assert await balances(owner) == {"world/eur": -5000, "players/ann/eur": 3000, "tables/t1": 2000}


async def test_the_same_key_and_content_has_the_same_answer_for_ever(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    first = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    await ledger.transfer(buy_in("t1-8", "ann", "t1", 3000))
    again = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    assert first.fresh
    assert not again.fresh
    assert (again.id, again.at, again.settled, again.payer_balance) == (first.id, first.at, True, 3000)
    assert (await balances(owner))["players/ann/eur"] == 0


async def test_a_refusal_for_want_of_money_is_recorded_and_final(ledger: Ledger) -> None:
    refused = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    await ledger.transfer(deposit("d1", "ann", 5000))
    again = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    assert (refused.refusal, refused.settled, refused.recorded) == ("NO_MONEY", False, True)
    assert (again.refusal, again.settled, again.recorded, again.id) == ("NO_MONEY", False, True, refused.id)
    assert (await ledger.transfer(buy_in("t1-9", "ann", "t1", 2000))).settled


@pytest.mark.parametrize(
    "other",
    [
        buy_in("t1-7", "ann", "t1", 2001),
        buy_in("t1-7", "bob", "t1", 2000),
        buy_in("t1-7", "ann", "t2", 2000),
        cash_out("t1-7", "ann", "t1", 2000),
        Order("t1-7", "players/ann/eur", "tables/t1", 2000, "eur", "TOP_UP", "table"),
    ],
)
async def test_other_content_under_a_known_key_is_refused_and_not_recorded(ledger: Ledger, other: Order) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    first = await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))
    reused = await ledger.transfer(other)
    assert (reused.refusal, reused.settled, reused.recorded, reused.id) == ("KEY_REUSED", False, False, 0)
    assert (await ledger.transfer(buy_in("t1-7", "ann", "t1", 2000))).id == first.id


async def test_one_key_twice_in_a_batch_moves_once(ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]) -> None:
    answers = await ledger.transfer_many(
        [deposit("d1", "ann", 5000), deposit("d1", "ann", 5000), deposit("d1", "ann", 4000), deposit("d2", "ann", 1)]
    )
    assert [(a.refusal, a.settled, a.fresh) for a in answers] == [
        ("", True, True), ("", True, False), ("KEY_REUSED", False, False), ("", True, True),
    ]  # fmt: skip
    assert answers[0].id == answers[1].id
    assert (await balances(owner))["players/ann/eur"] == 5001


async def test_a_batch_is_made_in_its_order_each_by_itself(ledger: Ledger) -> None:
    answers = await ledger.transfer_many(
        [
            buy_in("t1-1", "ann", "t1", 100),
            deposit("d1", "ann", 100),
            buy_in("t1-2", "ann", "t1", 100),
            buy_in("t1-3", "ann", "t1", 1),
            cash_out("t1-4", "ann", "t1", 60),
        ]
    )
    assert [a.refusal for a in answers] == ["NO_MONEY", "", "", "NO_MONEY", ""]
    assert answers[4].payee_balance == 60
    assert [a.id for a in answers] == sorted(a.id for a in answers)


async def test_escrow_holds_one_currency(ledger: Ledger) -> None:
    await ledger.transfer_many([deposit("d1", "ann", 500), deposit("d2", "ann", 500, "credit")])
    assert (await ledger.transfer(buy_in("t1-1", "ann", "t1", 100))).settled
    mixed = await ledger.transfer(buy_in("t1-2", "ann", "t1", 100, "credit"))
    assert (mixed.refusal, mixed.recorded) == ("CURRENCY_MISMATCH", True)


async def test_V1_credits_and_euros_never_meet(ledger: Ledger) -> None:
    await ledger.transfer_many([deposit("d1", "ann", 500), deposit("d2", "ann", 500, "credit")])
    mixed = Order("x-1", "players/ann/credit", "players/ann/eur", 100, "eur", "EXCHANGE", "table")
    assert (await ledger.transfer(mixed)).refusal == "CURRENCY_MISMATCH"


ACCOUNTS = {
    "eur": ("players/ann/eur", "players/bob/eur", "tables/euros", "house/eur", "world/eur"),
    "credit": ("players/ann/credit", "players/bob/credit", "tables/credits", "issuance/credit"),
}


async def test_V1_no_account_for_credits_pays_into_one_for_money_or_the_other_way_round(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    await ledger.transfer_many(
        [deposit("d1", "ann", 500), deposit("d2", "ann", 500, "credit"), buy_in("b1", "ann", "euros", 100),
         buy_in("b2", "ann", "credits", 100, "credit")]
    )  # fmt: skip
    before = await balances(owner)
    crossed = [pair for here, there in (("eur", "credit"), ("credit", "eur")) for pair in
               ((payer, payee) for payer in ACCOUNTS[here] for payee in ACCOUNTS[there])]  # fmt: skip
    orders = [
        Order(f"x-{number}-{currency}", payer, payee, 10, currency, "EXCHANGE", "table")
        for number, (payer, payee) in enumerate(crossed)
        for currency in ("eur", "credit")
    ]
    answers = await ledger.transfer_many(orders)
    assert {answer.refusal for answer in answers} == {"CURRENCY_MISMATCH"}
    after = await balances(owner)
    assert {name: held for name, held in after.items() if held} == before


async def test_balances_stop_at_ten_to_the_fifteen(ledger: Ledger) -> None:
    assert (await ledger.transfer(deposit("d1", "ann", MOST))).payee_balance == MOST
    full = await ledger.transfer(deposit("d2", "ann", 1))
    assert (full.refusal, full.recorded) == ("BALANCE_TOO_LARGE", True)
    assert (await ledger.transfer(deposit("d3", "bob", MOST))).payer_balance == -2 * MOST


@pytest.mark.parametrize(
    "malformed",
    [
        deposit("d9", "ann", 0),
        deposit("d9", "ann", -5),
        deposit("d9", "ann", MOST + 1),
        deposit("", "ann", 5),
        deposit("k" * 201, "ann", 5),
        deposit("d9", "Ann!", 5),
        Order("d9", "players/ann/eur", "players/ann/eur", 5, "eur", "SELF", "operator"),
        Order("d9", "world/eur", "nowhere", 5, "eur", "DEPOSIT", "operator"),
        Order("d9", "world/eur", "players/ann/eur", 5, "usd", "DEPOSIT", "operator"),
    ],
)
async def test_a_malformed_order_fails_alone(ledger: Ledger, malformed: Order) -> None:
    results = await asyncio.gather(
        *[ledger.transfer(deposit(f"d{i}", f"p{i}", 10)) for i in range(5)],
        ledger.transfer(malformed),
        *[ledger.transfer(deposit(f"e{i}", f"p{i}", 10)) for i in range(5)],
        return_exceptions=True,
    )
    assert isinstance(results[5], asyncpg.PostgresError)
    assert sum(isinstance(r, Answer) and r.settled for r in results) == 10


async def test_a_thousand_concurrent_transfers_between_the_same_accounts_do_not_deadlock_or_overdraw(
    as_wallet: Connect, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    players = [f"p{i}" for i in range(4)]
    rng = random.Random(4)
    orders: list[Order] = []
    for number in range(1000):
        make = rng.choice((buy_in, cash_out))
        orders.append(make(f"t-{number}", rng.choice(players), rng.choice("ab"), rng.randint(1, 400)))
    async with Ledger(as_wallet) as a, Ledger(as_wallet) as b, Ledger(as_wallet) as c, Ledger(as_wallet) as d:
        await a.transfer_many([deposit(f"d-{p}", p, 1000) for p in players])
        writers = (a, b, c, d)
        # Every order goes to two writers at once: each key has one answer.
        twice = await asyncio.gather(
            *[writers[i % 4].transfer(order) for i, order in enumerate(orders)],
            *[writers[(i + 1) % 4].transfer(order) for i, order in enumerate(orders)],
        )
    first, second = twice[:1000], twice[1000:]
    assert [(a.id, a.refusal) for a in first] == [(a.id, a.refusal) for a in second]
    assert Counter(a.fresh for a in twice) == {True: 1000, False: 1000}
    assert {a.refusal for a in first} == {"", "NO_MONEY"}
    assert min(balance for name, balance in (await balances(owner)).items() if not name.startswith("world")) >= 0
    await check_books(owner)


async def test_one_key_at_once_for_different_accounts_has_one_answer(as_wallet: Connect) -> None:
    async with Ledger(as_wallet) as a, Ledger(as_wallet) as b:
        for number in range(30):
            answers = await asyncio.gather(
                a.transfer_many([deposit(f"k{number}", "ann", 5), deposit(f"m{number}", "ann", 5)]),
                b.transfer_many([deposit(f"m{number}", "bob", 5, "credit"), deposit(f"k{number}", "bob", 5, "credit")]),
            )
            assert sorted(x.refusal for part in answers for x in part) == ["", "", "KEY_REUSED", "KEY_REUSED"]


async def test_callers_that_go_away_do_not_disturb_a_batch(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    await ledger.transfer(deposit("first", "ann", 1))
    tasks = [asyncio.create_task(ledger.transfer(deposit(f"d{i}", "ann", 1))) for i in range(100)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(r, Answer) for r in results) == 50
    await check_books(owner)


async def test_orders_beyond_the_bound_are_turned_away(as_wallet: Connect) -> None:
    async with Ledger(as_wallet, max_waiting=10) as ledger:
        waiting = [asyncio.create_task(ledger.transfer(deposit(f"d{i}", "ann", 1))) for i in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(LedgerFull, match="at most 10"):
            await ledger.transfer(deposit("d10", "ann", 1))
        await asyncio.gather(*waiting)


async def test_an_answer_lost_after_the_commit_is_asked_again_by_key(
    wallet_url: str, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    lost: list[str] = []

    class Forgetful(asyncpg.Connection):
        """Commits its first batch and loses the answer."""

        async def fetch(self, query: str, *args: object, **options: Any) -> Any:
            rows = await super().fetch(query, *args, **options)
            if not lost:
                lost.append(query)
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return rows

    async def connect() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(wallet_url, connection_class=Forgetful)

    async with Ledger(connect) as ledger:
        answer = await ledger.transfer(deposit("d1", "ann", 5))
    assert len(lost) == 1
    assert (answer.settled, answer.fresh) == (True, False)
    assert (await balances(owner))["players/ann/eur"] == 5


async def test_every_backend_killed_again_and_again_loses_and_doubles_nothing(
    as_wallet: Connect, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    async with Ledger(as_wallet) as ledger:
        asked = [asyncio.create_task(ledger.transfer(deposit(f"d{i}", f"p{i % 7}", 1))) for i in range(3000)]
        kills = 0
        for batch in range(1, 8):
            await asked[batch * 256]
            kills += await owner.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        answers = await asyncio.gather(*asked)
    assert kills > 0
    assert all(answer.settled for answer in answers)
    assert (await balances(owner))["world/eur"] == -3000
    assert await owner.fetchval("SELECT count(*) FROM wallet.transfer") == 3000
    await check_books(owner)


async def test_the_database_shot_under_load_comes_back_with_everything_answered(
    as_wallet: Connect, wallet_url: str, postgres: Postgres
) -> None:
    async with Ledger(as_wallet) as ledger:
        await ledger.transfer(deposit("first", "ann", 1))
        asked = [asyncio.create_task(ledger.transfer(deposit(f"d{i}", "ann", 1))) for i in range(2000)]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        postgres.stop(fast=False)
        postgres.start()  # on this thread: a server started by another one ends with it
        answers = await asyncio.gather(*asked)
    assert all(answer.settled for answer in answers)
    connection = await asyncpg.connect(wallet_url)
    assert (await balances(connection))["players/ann/eur"] == 2001
    await check_books(connection)
    await connection.close()
