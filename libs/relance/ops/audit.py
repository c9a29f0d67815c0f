"""The audit: the four invariants of the money, proved on a live room without stopping it.

Log and wallet are in one database, so one snapshot shows both as they were at a single moment: a consistent cut. Three
connections share it, each in a REPEATABLE READ READ ONLY transaction: one for the log, two for the wallet. Whatever was
on its way at that moment is accounted for, because each step is durable before the next one begins: the table's request
stands in the log before the wallet is asked, the wallet's row before the table writes that it is settled, the end of a
hand before its rake moves. The audit only reads and waits for nobody.

1. per table and version: stacks + pot + top-ups held + rake taken + cashed out = bought in;
2. per currency: all accounts sum to zero, no account of the room is below zero, each balance is the sum of its
   transfers, and each transfer is what its hash says;
3. per table: escrow = chips at the table + bought in but not known there + cashed out but not moved + rake not yet
   collected, and no hand's rake is stuck there because it was wrong or refused;
4. key by key: each transfer of an escrow has its event with the same amount and parties, and the answers agree.

A table that was archived and removed from the log has wallet rows alone. Its events are in the archive, which was
proven before the removal; here its escrow must be empty.

Events and wallet rows are read table by table through a cursor: memory holds one table at a time, and the
names of the accounts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

import asyncpg
import click

from relance.ops.books import Books, Figures, Finding, Written, of_archived, without_log
from relance.ops.chips import STEPS
from relance.ops.errors import NoAnswer
from relance.ops.source import known
from relance.ops.words import counted

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

PAGE = 5_000

# What moves no chips is counted, not read.
_EVENTS = """
SELECT stream, version, type, CASE WHEN type = ANY ($1::text[]) THEN body END AS body
FROM log.event ORDER BY stream, version
"""
_HEADS = "SELECT stream, head FROM log.stream"
_ARCHIVED = "SELECT stream FROM log.archived"
_ESCROWS = "SELECT substr(name, 8) AS name, id, balance FROM wallet.account WHERE kind = 'escrow'"
_NAMES = "SELECT id, name FROM wallet.account"
_WRITTEN = """
SELECT key, payer, payee, amount, currency, coalesce(refusal, '') FROM wallet.transfer WHERE payer = $1
UNION ALL
SELECT key, payer, payee, amount, currency, coalesce(refusal, '') FROM wallet.transfer WHERE payee = $1
"""
_SUMS = "SELECT currency, count(*) AS accounts, sum(balance)::bigint AS total FROM wallet.account GROUP BY 1 ORDER BY 1"
_NEGATIVE = """
SELECT name, balance FROM wallet.account WHERE kind NOT IN ('world', 'issuance') AND balance < 0 ORDER BY name
"""
_BALANCES = """
SELECT name, balance, coalesce(moved, 0)::bigint AS moved FROM wallet.account LEFT JOIN (
    SELECT account, sum(amount) AS moved FROM (
        SELECT payee AS account, amount FROM wallet.transfer WHERE refusal IS NULL
        UNION ALL SELECT payer, -amount FROM wallet.transfer WHERE refusal IS NULL
    ) AS side GROUP BY account
) AS sums ON sums.account = account.id
WHERE balance <> coalesce(moved, 0) ORDER BY name
"""
_CHANGED = """
SELECT t.key FROM wallet.transfer AS t
JOIN wallet.account AS payer ON payer.id = t.payer JOIN wallet.account AS payee ON payee.id = t.payee
WHERE t.hash <> sha256(convert_to(payer.name || E'\\n' || payee.name || E'\\n' || t.amount || E'\\n' || t.currency
    || E'\\n' || t.purpose, 'UTF8')) ORDER BY t.id
"""

_RAKE = """
SELECT table_id, hand, rake, expected, mismatch, refusal FROM rake.hand WHERE state IN ('stopped', 'refused')
ORDER BY table_id, hand
"""


@dataclass(slots=True)
class Report:
    """What an audit looked at and found."""

    findings: list[Finding] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    accounts: int = 0
    archived: int = 0
    """Tables that were passed over: they were archived and removed from the log."""
    sums: dict[str, int] = field(default_factory=dict)
    """Sum of all balances by currency, minor units."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def summary(self) -> str:
        """One line."""
        seen = ", ".join(
            (
                counted(self.figures.tables, "table"),
                counted(self.figures.events, "event"),
                counted(self.accounts, "account"),
            )
        )
        verdict = "ok" if self.ok else counted(len(self.findings), "finding")
        return f"{verdict} ({seen}, {self.seconds:.1f} s)"

    def lines(self) -> list[str]:
        """One line per invariant with its figures."""
        figures = self.figures
        tables = counted(figures.tables, "table")
        sums = ", ".join(f"{currency} {total}" for currency, total in self.sums.items())
        texts = (
            f"chips: {tables}, {counted(figures.events, 'version')}, {figures.chips} on the tables",
            f"sums: {counted(self.accounts, 'account')}; {sums or 'no money'}",
            f"escrow: {tables}, {figures.rake_open} rake not collected",
            f"transfers: {figures.settled} settled, {figures.refused} refused, {figures.in_flight} on their way, "
            f"rake of {counted(figures.collected, 'hand')} collected"
            + (f"; {counted(self.archived, 'archived table')} passed over" if self.archived else ""),
        )
        return [f"{number}. {'FAILED' if self._count(number) else 'ok'} {text}" for number, text in enumerate(texts, 1)]

    def to_json(self) -> str:
        """All of it."""
        return json.dumps(
            {
                "ok": self.ok,
                "seconds": round(self.seconds, 3),
                "invariants": {number: self._count(number) for number in range(1, 5)},
                "accounts": self.accounts,
                "archived": self.archived,
                "sums": self.sums,
                "figures": asdict(self.figures),
                "findings": [asdict(finding) for finding in self.findings],
            },
            indent=2,
        )

    def _count(self, invariant: int) -> int:
        return sum(1 for finding in self.findings if finding.invariant == invariant)


async def audit(url: str) -> Report:
    """Check the four invariants in the database at `url`, with any role that may read log and wallet (relance_audit).

    Raises asyncpg.PostgresError or OSError when the database does not answer or lacks the schemas, NoAnswer where the
    URL is none.
    """
    started = time.monotonic()
    report = Report()
    async with _reader(url) as log:
        snapshot = await log.fetchval("SELECT pg_export_snapshot()")
        async with _reader(url, snapshot) as wallet, _reader(url, snapshot) as sums:
            checking = asyncio.create_task(_wallet(sums, report))
            try:
                await _tables(log, wallet, report)
                await _rake(wallet, report)
            finally:
                await asyncio.gather(checking, return_exceptions=True)
            await checking
    report.findings.sort(key=lambda finding: finding.invariant)
    report.seconds = time.monotonic() - started
    return report


@asynccontextmanager
async def _reader(url: str, snapshot: str = "") -> AsyncIterator[Connection]:
    """A connection in a transaction that reads as of one moment: now, or that of an exported snapshot."""
    connection: Connection = await asyncpg.connect(known(url), timeout=10)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if snapshot:
                # The name is the server's own, letters, digits and dashes: this statement takes no parameter.
                await connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            await connection.execute("SET LOCAL jit = off")
            yield connection
    finally:
        await connection.close()


async def _wallet(connection: Connection, report: Report) -> None:
    """Invariant 2."""
    find = report.findings.append
    for row in await connection.fetch(_SUMS):
        report.accounts += row["accounts"]
        report.sums[row["currency"]] = row["total"]
        if row["total"]:
            find(Finding(2, f"the accounts of {row['currency']} sum to {row['total']}, not to zero"))
    for row in await connection.fetch(_NEGATIVE):
        find(Finding(2, f"account {row['name']} holds {row['balance']}, less than nothing"))
    for row in await connection.fetch(_BALANCES):
        find(Finding(2, f"account {row['name']} holds {row['balance']}, its transfers sum to {row['moved']}"))
    for row in await connection.fetch(_CHANGED):
        find(Finding(2, "it is not what its hash says: it was changed after it was written", transfer=row["key"]))


async def _tables(log: Connection, wallet: Connection, report: Report) -> None:
    """Invariants 1, 3 and 4."""
    heads: dict[str, int] = {row["stream"]: row["head"] for row in await wallet.fetch(_HEADS)}
    names: dict[int, str] = {row["id"]: row["name"] for row in await wallet.fetch(_NAMES)}
    escrows = {row["name"]: (row["id"], row["balance"]) for row in await wallet.fetch(_ESCROWS)}

    async def books_of(name: str) -> Books:
        account, balance = escrows.pop(name, (0, 0))
        return Books(name, await _written(wallet, account, names), balance)

    def close(books: Books) -> None:
        report.findings += books.close(heads.pop(books.name, 0))
        report.figures.add(books.figures)

    books: Books | None = None
    async for rows in _pages(log):
        for stream, version, kind, body in rows:
            if books is None or books.name != stream:
                if books is not None:
                    close(books)
                books = await books_of(stream)
            books.take(version, kind, body)
    if books is not None:
        close(books)
    for name in sorted(heads):
        close(await books_of(name))
    archived: set[str] = {row["stream"] for row in await wallet.fetch(_ARCHIVED)}
    report.archived = len(archived)
    for name, (account, balance) in sorted(escrows.items()):
        if name in archived:
            report.findings += of_archived(name, balance)
            continue
        report.findings += without_log(name, await _written(wallet, account, names), balance)


async def _pages(connection: Connection) -> AsyncIterator[list[asyncpg.Record]]:
    """All events, by table and version. The server prepares a page while the one before is worked on."""
    cursor = await connection.cursor(_EVENTS, list(STEPS))
    coming = asyncio.create_task(cursor.fetch(PAGE))
    try:
        while rows := await coming:
            coming = asyncio.create_task(cursor.fetch(PAGE))
            await asyncio.sleep(0)  # the request goes out; and inside a running room the others have their turn
            yield rows
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def _rake(connection: Connection, report: Report) -> None:
    """Hands whose rake stays in escrow until people have looked, by the rake service's own rows where there are any."""
    if await connection.fetchval("SELECT to_regclass('rake.hand')") is None:
        return
    for row in await connection.fetch(_RAKE):
        if row["mismatch"]:
            text = (
                f"its rake of {row['rake']} is not collected, the schedule gives {row['expected']}: {row['mismatch']}"
            )
        else:
            text = f"its rake of {row['rake']} is not collected, the wallet refused it: {row['refusal']}"
        report.findings.append(Finding(3, text, row["table_id"], row["hand"]))


async def _written(connection: Connection, account: int, names: Mapping[int, str]) -> dict[str, Written]:
    rows = await connection.fetch(_WRITTEN, account) if account else []
    return {
        key: Written(names[payer], names[payee], amount, currency, refusal)
        for key, payer, payee, amount, currency, refusal in rows
    }


def run_audit(url: str, *, as_json: bool = False) -> int:
    """Audit and print; the exit code: 0, or 1 on a finding. Raises NoAnswer."""
    try:
        report = asyncio.run(audit(url))
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise NoAnswer(f"the database does not answer: {error or type(error).__name__}") from error
    if as_json:
        click.echo(report.to_json())
    else:
        for line in (*report.lines(), *map(str, report.findings), f"audit: {report.summary}"):
            click.echo(line)
    return 0 if report.ok else 1
