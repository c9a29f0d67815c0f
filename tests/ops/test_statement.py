"""Statements and balances as operators print them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import asyncpg
import pytest_asyncio
from click.testing import CliRunner
from tests.conftest import Migrated
from tests.wallet.conftest import buy_in, cash_out, deposit

from relance.cli.main import cli
from relance.ops.words import iso
from relance.wallet.ledger import Ledger


@pytest_asyncio.fixture
async def url(migrated: Migrated) -> AsyncIterator[str]:
    """A ledger in which ann has deposited, bought in, was refused, and cashed out."""
    made = await migrated("relance.eventlog", "relance.wallet")
    async with Ledger(lambda: asyncpg.connect(made)) as ledger:
        for order in (
            deposit("d1", "ann", 5000),
            buy_in("t1-2", "ann", "t1", 2000),
            buy_in("t1-3", "ann", "t1", 9000),
            deposit("d2", "bob", 77),
            cash_out("t1-9", "ann", "t1", 1500),
        ):
            await ledger.transfer(order)
    yield made


async def ran(url: str, *arguments: str) -> str:
    """What a command prints."""
    result = await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, "--database-url", url])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


async def test_a_statement_has_the_balance_after_each_line_and_pages(url: str) -> None:
    whole = json.loads(await ran(url, "wallet", "statement", "ann", "--json"))
    assert [(line["purpose"], line["change"], line["balance"], line["refusal"]) for line in whole["lines"]] == [
        ("DEPOSIT", 5000, 5000, ""),
        ("BUY_IN", -2000, 3000, ""),
        ("BUY_IN", 0, 3000, "NO_MONEY"),
        ("CASH_OUT", 1500, 4500, ""),
    ]
    newest = json.loads(await ran(url, "wallet", "statement", "players/ann", "--limit", "3", "--json"))
    assert (newest["lines"], newest["more"]) == (whole["lines"][1:], True)
    before = str(newest["lines"][0]["id"])
    older = json.loads(await ran(url, "wallet", "statement", "ann", "--before", before, "--json"))
    assert (older["lines"], older["more"]) == (whole["lines"][:1], False)


async def test_a_statement_for_people_and_as_csv(url: str) -> None:
    text = await ran(url, "wallet", "statement", "ann", "--limit", "2")
    assert "45.00 €" in text
    assert "NO_MONEY" in text
    assert "earlier ones: --before" in text
    lines = (await ran(url, "wallet", "statement", "ann", "--csv")).splitlines()
    assert lines[0] == "id,time_us,key,purpose,other,change,balance,refusal"
    assert lines[1].endswith(",d1,DEPOSIT,world/eur,5000,5000,")
    assert len(lines) == 5


async def test_the_balance_at_any_time(url: str) -> None:
    lines = json.loads(await ran(url, "wallet", "statement", "ann", "--json"))["lines"]
    first, refused = lines[0]["time_us"], lines[2]["time_us"]
    for held, at in ((0, first - 1), (5000, first), (3000, refused), (4500, lines[3]["time_us"])):
        said = json.loads(await ran(url, "wallet", "balance", "ann", "--at", iso(at), "--json"))
        assert (said["balance"], said["at_us"]) == (held, at)
    assert await ran(url, "wallet", "balance", "ann") == "players/ann/eur: 45.00 €\n"


async def test_who_has_no_account_is_said_so(url: str) -> None:
    arguments = ["wallet", "balance", "nobody", "--database-url", url]
    result = await asyncio.to_thread(CliRunner().invoke, cli, arguments)
    assert result.exit_code == 1
    assert "no account players/nobody/eur" in result.output
