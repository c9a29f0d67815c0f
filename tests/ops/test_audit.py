"""The audit finds nothing in a busy room, and every way in which its data can be wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
import pytest_asyncio
from tests.conftest import Migrated
from tests.ops.books import NamedRoom, busy_room, play_live, rake_of

from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import PostgresLog
from relance.ops.audit import Report, audit
from relance.poker import commands as cmd
from relance.wallet.ledger import Ledger

COPY = (
    "INSERT INTO wallet.transfer SELECT nextval('wallet.transfer_id'), {key}, hash, payer, payee, amount, currency,"
    " purpose, actor, at, refusal, payer_balance, payee_balance FROM wallet.transfer"
)


class Books:
    """A busy room's database, an auditor's URL of it, and a superuser who may do what nobody may."""

    def __init__(self, url: str, owner: asyncpg.Connection[asyncpg.Record]) -> None:
        self.owner, self.owner_url = owner, url
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit(parts._replace(netloc=f"relance_audit:audit@{host}"))

    async def audit(self) -> Report:
        return await audit(self.url)

    async def corrupt(self, *statements: str) -> None:
        """Do it with every guard off."""
        for table in ("log.event", "log.stream", "wallet.transfer", "wallet.account"):
            await self.owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        await self.owner.execute("ALTER TABLE wallet.account DROP CONSTRAINT IF EXISTS balance_not_negative")
        for statement in statements:
            await self.owner.execute(statement)

    async def change(self, table: str, payload: str, change: Callable[[TableEvent], None]) -> TableEvent:
        """Change the first event of a kind; the event as it is then."""
        row = await self.owner.fetchrow(
            "SELECT version, body FROM log.event WHERE stream = $1 AND type = $2 ORDER BY version LIMIT 1",
            table,
            payload,
        )
        assert row is not None
        event = TableEvent.FromString(row["body"])
        change(event)
        await self.corrupt()
        await self.owner.execute(
            "UPDATE log.event SET body = $3 WHERE stream = $1 AND version = $2",
            table, row["version"], event.SerializeToString(),
        )  # fmt: skip
        return event


@pytest_asyncio.fixture
async def books(migrated: Migrated) -> AsyncIterator[Books]:
    """A busy room that nobody has tampered with."""
    database_url = await migrated("relance.eventlog", "relance.table", "relance.wallet", "relance.rake")
    owner = await asyncpg.connect(database_url)
    await owner.execute("ALTER ROLE relance_audit LOGIN PASSWORD 'audit'")
    async with (
        PostgresLog(database_url, "test") as log,
        Ledger(lambda: asyncpg.connect(database_url)) as ledger,
    ):
        await busy_room(log, ledger)
    yield Books(database_url, owner)
    await owner.close()


async def test_a_busy_room_in_order_passes_with_its_figures(books: Books) -> None:
    report = await books.audit()
    assert [str(finding) for finding in report.findings] == []
    figures = report.figures
    assert (figures.tables, figures.collected, figures.rake_open) == (3, 1, 70)
    assert (figures.settled, figures.refused, figures.in_flight) == (9, 1, 3)
    assert report.sums == {"eur": 0}
    assert report.summary.startswith("ok (3 tables, ")


async def found(books: Books, invariant: int, text: str, **where: object) -> None:
    """The audit has such a finding."""
    findings = (await books.audit()).findings
    matching = [f for f in findings if f.invariant == invariant and text in f.text]
    assert matching, [str(finding) for finding in findings]
    for name, value in where.items():
        assert value in {getattr(finding, name) for finding in matching}


async def test_a_changed_amount_of_a_transfer_is_found(books: Books) -> None:
    await books.corrupt("UPDATE wallet.transfer SET amount = amount + 1 WHERE key = 'calm-3'")
    await found(books, 4, "the wallet wrote 50001, the table asked for 50000", table="calm", transfer="calm-3")
    await found(books, 2, "its transfers sum to")
    await found(books, 2, "not what its hash says", transfer="calm-3")


async def test_a_changed_amount_of_an_event_is_found(books: Books) -> None:
    def more(event: TableEvent) -> None:
        event.transfer_settled.amount += 1

    await books.change("calm", "transfer_settled", more)
    await found(books, 1, "does not follow", table="calm")


async def test_a_changed_bet_is_found(books: Books) -> None:
    def more(event: TableEvent) -> None:
        event.raised.amount += 100

    await books.change("calm", "raised", more)
    await found(books, 1, "does not follow", table="calm", hand=1)


async def test_a_lost_transfer_is_found(books: Books) -> None:
    await books.corrupt("DELETE FROM wallet.transfer WHERE key = 'calm-3'")
    await found(books, 4, "the wallet has no such transfer", table="calm", transfer="calm-3")
    await found(books, 2, "account tables/calm holds")


async def test_a_lost_transfer_with_its_balances_put_right_is_found(books: Books) -> None:
    await books.corrupt(
        "UPDATE wallet.account SET balance = balance - 50000 WHERE name = 'tables/calm'",
        "UPDATE wallet.account SET balance = balance + 50000 WHERE name = 'players/p1/eur'",
        "DELETE FROM wallet.transfer WHERE key = 'calm-3'",
    )
    await found(books, 4, "the wallet has no such transfer", transfer="calm-3")
    await found(books, 3, "escrow holds", table="calm")


async def test_a_doubled_transfer_is_found(books: Books) -> None:
    await books.corrupt(
        COPY.format(key="key || '0'") + " WHERE key = 'calm-3'",
        "UPDATE wallet.account SET balance = balance + 50000 WHERE name = 'tables/calm'",
        "UPDATE wallet.account SET balance = balance - 50000 WHERE name = 'players/p1/eur'",
    )
    await found(books, 4, "the table never asked for it", table="calm", transfer="calm-30")
    await found(books, 3, "escrow holds", table="calm")


async def test_rake_taken_twice_is_found(books: Books) -> None:
    await books.corrupt(COPY.format(key="'rake/calm/9'") + " WHERE key = 'rake/calm/1'")
    await found(books, 4, "no hand of this table ended with that rake", transfer="rake/calm/9")


async def test_rake_of_another_amount_is_found(books: Books) -> None:
    await books.corrupt("UPDATE wallet.transfer SET amount = 29 WHERE key = 'rake/calm/1'")
    await found(books, 4, "the wallet wrote 29, the hand's rake is 30", table="calm", hand=1, transfer="rake/calm/1")


@pytest.mark.parametrize(
    "which", ["version = 5", "version = (SELECT max(version) FROM log.event WHERE stream = 'calm')"]
)
async def test_a_missing_event_is_found(books: Books, which: str) -> None:
    await books.corrupt(f"DELETE FROM log.event WHERE stream = 'calm' AND {which}")
    await found(books, 1, "the log" if "max" in which else "event 5 is missing", table="calm")


async def test_a_missing_log_is_found(books: Books) -> None:
    await books.corrupt("DELETE FROM log.event WHERE stream = 'calm'")
    await found(books, 1, "the log ends at version 0", table="calm")
    await books.corrupt("DELETE FROM log.stream WHERE stream = 'calm'")
    await found(books, 4, "there is no such table", table="calm", transfer="calm-3")
    await found(books, 3, "there is no such table", table="calm")


async def remove_archived(books: Books, *, collected: bool) -> None:
    """A table is played at, closed and removed from the log, whether its rake was collected or not."""
    done = NamedRoom("done")
    async with (
        PostgresLog(books.owner_url, "done") as log,
        Ledger(lambda: asyncpg.connect(books.owner_url)) as ledger,
    ):
        for seat in (1, 2, 3):
            done.do(cmd.TakeSeat(f"p{seat}", seat, 50_000))
        await done.settled(ledger)
        done.hand()
        if collected:
            await ledger.transfer(rake_of("done", 1, 30))
        done.do(cmd.CloseTable("ann", "the end"))
        await done.settled(ledger)
        await done.write(log)
    await books.owner.execute("SELECT log.remove_archived('done', $1, log.digest('done'), '')", done.table.version)


async def test_a_table_that_was_archived_and_removed_is_passed_over_and_told(books: Books) -> None:
    await remove_archived(books, collected=True)
    report = await books.audit()
    assert [str(finding) for finding in report.findings] == []
    assert (report.figures.tables, report.archived) == (3, 1)
    assert report.lines()[3].endswith("1 archived table passed over")
    assert json.loads(report.to_json())["archived"] == 1


async def test_money_left_behind_by_an_archived_table_is_found(books: Books) -> None:
    await remove_archived(books, collected=False)
    await found(books, 3, "escrow holds 30; the table was archived and removed", table="done")


async def test_a_negative_balance_is_found(books: Books) -> None:
    await books.corrupt(
        "UPDATE wallet.account SET balance = balance - 2000000 WHERE name = 'players/p7/eur'",
        "UPDATE wallet.account SET balance = balance + 2000000 WHERE name = 'players/p6/eur'",
    )
    await found(books, 2, "account players/p7/eur holds -1000000, less than nothing")


async def test_money_from_nowhere_is_found(books: Books) -> None:
    await books.corrupt("UPDATE wallet.account SET balance = balance + 5 WHERE name = 'players/p7/eur'")
    await found(books, 2, "the accounts of eur sum to 5, not to zero")


async def test_a_settlement_that_the_wallet_refused_is_found(books: Books) -> None:
    await books.corrupt("UPDATE wallet.transfer SET refusal = 'NO_MONEY' WHERE key = 'calm-3'")
    await found(books, 4, "the table knows that it was settled, the wallet refused it", transfer="calm-3")


async def test_a_refusal_that_the_wallet_made_good_is_found(books: Books) -> None:
    await books.corrupt("UPDATE wallet.transfer SET refusal = NULL WHERE refusal = 'NO_MONEY'")
    await found(books, 4, "the table knows that it was refused, the wallet moved the money", table="busy")


async def test_a_transfer_to_somebody_else_is_found(books: Books) -> None:
    await books.corrupt(
        "UPDATE wallet.transfer SET payer = (SELECT id FROM wallet.account WHERE name = 'players/p6/eur')"
        " WHERE key = 'calm-3'"
    )
    await found(books, 4, "the wallet wrote it from players/p6/eur", transfer="calm-3")


async def test_a_hand_whose_rake_was_stopped_is_found(books: Books) -> None:
    await books.owner.execute(
        "INSERT INTO rake.hand VALUES"
        " ('calm', 2, 1, 1, '', 'holdem', 5, '', 3, 600, 30, 25, 'too much', 'stopped', 0, 1)"
    )
    await found(books, 3, "its rake of 30 is not collected, the schedule gives 25", table="calm", hand=2)


async def test_the_report_is_lines_and_json(books: Books) -> None:
    good = await books.audit()
    assert [line[:5] for line in good.lines()] == ["1. ok", "2. ok", "3. ok", "4. ok"]
    await books.corrupt("UPDATE wallet.transfer SET amount = 29 WHERE key = 'rake/calm/1'")
    bad = await books.audit()
    assert bad.lines()[3].startswith("4. FAILED transfers: ")
    said = json.loads(bad.to_json())
    assert said["ok"] is False
    assert "rake/calm/1" in {finding["transfer"] for finding in said["findings"]}


async def test_a_room_that_plays_on_passes_at_every_moment(books: Books) -> None:
    audits: list[Report] = []

    async def keep_auditing() -> None:
        while True:
            audits.append(await books.audit())

    auditing = asyncio.create_task(keep_auditing())
    async with (
        PostgresLog(books.owner_url, "live") as log,
        Ledger(lambda: asyncpg.connect(books.owner_url)) as ledger,
    ):
        await play_live(log, ledger, "live", hands=40)
    auditing.cancel()
    last = await books.audit()
    assert audits
    assert [str(finding) for report in (*audits, last) for finding in report.findings] == []
    assert (last.figures.collected, last.figures.in_flight) == (41, 3)
