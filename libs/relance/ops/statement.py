"""`relance wallet`: a player's account as the ledger has it, line by line, or what was on it at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from relance.ops.errors import NoAnswer
from relance.ops.names import player_id
from relance.ops.output import Out
from relance.ops.source import Connection
from relance.ops.words import amount, when

_ACCOUNT = "SELECT id, balance FROM wallet.account WHERE name = $1"
# An account's times never run backwards, so (at, id) is the order in which its balance moved.
_LINES = """
SELECT t.id, t.at, t.key, t.purpose, payer.name AS payer, payee.name AS payee, t.amount,
    coalesce(t.refusal, '') AS refusal, CASE WHEN t.payer = $1 THEN payer_balance ELSE payee_balance END AS balance
FROM (
    (SELECT * FROM wallet.transfer WHERE payer = $1 AND at >= $2 AND at < $3 AND id < $4
     ORDER BY at DESC, id DESC LIMIT $5)
    UNION ALL
    (SELECT * FROM wallet.transfer WHERE payee = $1 AND at >= $2 AND at < $3 AND id < $4
     ORDER BY at DESC, id DESC LIMIT $5)
) AS t
JOIN wallet.account AS payer ON payer.id = t.payer JOIN wallet.account AS payee ON payee.id = t.payee
ORDER BY t.at DESC, t.id DESC LIMIT $5
"""
_LAST = 2**63 - 1
_CURRENCIES = {"eur": 1, "credit": 2}


@dataclass(frozen=True, slots=True)
class Line:
    """A transfer as the account saw it, or a recorded refusal. `change` and `balance` in minor units."""

    id: int
    time_us: int
    key: str
    purpose: str
    other: str
    change: int
    balance: int
    refusal: str


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines of an account, oldest first. `more`: there are earlier ones, before the id of the first."""

    account: str
    currency: str
    lines: Sequence[Line]
    more: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Which lines: at or after and before a time (microseconds since 1970 UTC, 0: no limit), before an id, how many."""

    since: int = 0
    until: int = 0
    before: int = 0
    limit: int = 50


async def statement(connection: Connection, player: str, currency: str, wanted: Range) -> Statement:
    """The newest lines in a range of the account of a player, given by id or name. Raises NoAnswer."""
    name, account, _ = await _account(connection, player, currency)
    rows = await connection.fetch(
        _LINES, account, wanted.since, wanted.until or _LAST, wanted.before or _LAST, wanted.limit + 1
    )
    lines = []
    for row in rows[: wanted.limit][::-1]:
        paid = row["payer"] == name
        moved = 0 if row["refusal"] else -row["amount"] if paid else row["amount"]
        other = row["payee"] if paid else row["payer"]
        lines.append(
            Line(row["id"], row["at"], row["key"], row["purpose"], other, moved, row["balance"], row["refusal"])
        )
    return Statement(name, currency, lines, len(rows) > wanted.limit)


async def balance(connection: Connection, player: str, currency: str, at: int = 0) -> tuple[str, int]:
    """Account and balance, minor units: now, or as it was at a time (transfers of that moment included)."""
    name, account, now = await _account(connection, player, currency)
    if not at:
        return name, now
    rows = await connection.fetch(_LINES, account, 0, at + 1, _LAST, 1)
    return name, rows[0]["balance"] if rows else 0


async def _account(connection: Connection, player: str, currency: str) -> tuple[str, int, int]:
    name = f"players/{await player_id(connection, player)}/{currency}"
    row = await connection.fetchrow(_ACCOUNT, name)
    if row is None:
        raise NoAnswer(f"there is no account {name}: no money of this player has ever moved in {currency}")
    return name, row["id"], row["balance"]


COLUMNS = ("time", "id", "purpose", "with", "amount>", "balance>", "refused", "key")


def show_statement(found: Statement, out: Out) -> None:
    """Print it, with the balance after each line."""
    if out.json:
        out.document({**asdict(found), "lines": [asdict(line) for line in found.lines]})
        return
    currency = _CURRENCIES[found.currency]
    out.line(found.account, "bold")
    rows = [
        (
            when(line.time_us), line.id, line.purpose, line.other, amount(line.change, currency),
            amount(line.balance, currency), line.refusal, line.key,
        )
        for line in found.lines
    ]  # fmt: skip
    out.table(COLUMNS, rows)
    if found.more:
        out.line(f"earlier ones: --before {found.lines[0].id}")


def csv_rows(found: Statement) -> list[tuple[object, ...]]:
    """The statement as rows of a CSV file, amounts in minor units."""
    heading = ("id", "time_us", "key", "purpose", "other", "change", "balance", "refusal")
    return [heading, *((each.id, each.time_us, each.key, each.purpose, each.other, each.change, each.balance,
                        each.refusal) for each in found.lines)]  # fmt: skip


def show_balance(account: str, held: int, currency: str, at: int, out: Out) -> None:
    """Print a balance."""
    if out.json:
        out.document({"account": account, "currency": currency, "balance": held, "at_us": at})
        return
    then = f" at {when(at)}" if at else ""
    out.line(f"{account}{then}: {amount(held, _CURRENCIES[currency])}")
