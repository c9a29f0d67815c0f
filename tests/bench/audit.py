"""The audit of 1,000,000 events and 200,000 transfers against a server-side cursor over the same rows."""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import asyncpg
from tests.bench.ledger import ledger_database
from tests.ops.books import NamedRoom, order_of, rake_of

from relance.ops.audit import audit
from relance.poker import commands as cmd
from relance.poker.commands import TransferAnswered
from relance.wallet.ledger import Order

NAME = "audit"
WHAT = "seconds to audit 1,000,000 events and 200,000 transfers, to read the same rows through a cursor, times"
AT_MOST = True
TARGET = 3.0

TABLES, EVENTS, TRANSFERS = 200, 5_000, 1_000
PLAYERS = 6
PAGE = 5_000
FIRST = "bench-0000"

_EVENTS = "SELECT stream, version, type, body FROM log.event ORDER BY stream, version"
_TRANSFERS = "SELECT key, payer, payee, amount, currency, refusal FROM wallet.transfer ORDER BY id"


Event = tuple[int, int, str, int, bytes]
"""Version, hand, type, time and body."""


class Table(NamedRoom):
    """A table whose every transfer settles at once, and the orders that were."""

    def __init__(self) -> None:
        super().__init__(FIRST)
        self.orders: list[Order] = []

    def settle_all(self) -> None:
        """The wallet says yes to everything."""
        for transfer in list(self.table.transfers.values()):
            self.orders.append(order_of(self.table.id, transfer))
            self.do(TransferAnswered(transfer.id, True, ""))

    def top_up(self, seat: int) -> None:
        """A little more."""
        self.do(cmd.AddChips(f"p{seat}", 10))
        self.settle_all()


def played() -> Table:
    """A table with 5,000 events and 1,000 transfers: hands, their rake, and top-ups between them."""
    table, rnd = Table(), random.Random(1)
    for seat in range(1, PLAYERS + 1):
        table.do(cmd.TakeSeat(f"p{seat}", seat, 50_000))
    table.settle_all()
    while len(table.log) < EVENTS:
        before = table.table.rake_taken
        table.hand()
        taken = table.table.rake_taken - before
        if taken:
            table.orders.append(rake_of(FIRST, table.table.last_hand, taken))
        while len(table.orders) * EVENTS < len(table.log) * TRANSFERS:
            table.top_up(rnd.randint(1, PLAYERS))
    return table


@dataclass(slots=True)
class Accounts:
    """Accounts as they come to be: number, balance."""

    numbers: dict[str, int] = field(default_factory=dict)
    balances: list[int] = field(default_factory=list)

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.balances) + 1
            self.balances.append(0)
        return self.numbers[name]

    def move(self, order: Order) -> tuple[int, int]:
        payer, payee = self.number(order.payer), self.number(order.payee)
        self.balances[payer - 1] -= order.amount
        self.balances[payee - 1] += order.amount
        return payer, payee


def copies(table: Table) -> Iterator[tuple[str, list[Event], list[Order]]]:
    """The table two hundred times: names of one length, so that they change in the bytes themselves."""
    bodies: list[Event] = [
        (e.version, e.hand, e.WhichOneof("payload") or "", e.time_us, e.SerializeToString()) for e in table.log
    ]
    for number in range(TABLES):
        name = f"bench-{number:04}"
        old, new = FIRST.encode(), name.encode()
        events = [(version, hand, kind, at, body.replace(old, new)) for version, hand, kind, at, body in bodies]
        orders = [
            Order(
                each.key.replace(FIRST, name), each.payer.replace(FIRST, name), each.payee.replace(FIRST, name),
                each.amount, each.currency, each.purpose, each.actor,
            )
            for each in table.orders
        ]  # fmt: skip
        yield name, events, orders


async def fill(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Write everything by COPY."""
    accounts, table = Accounts(), played()
    transfers: list[tuple[object, ...]] = []
    spent = sum(order.amount for order in table.orders if order.payee == f"tables/{FIRST}") * TABLES
    for seat in range(1, PLAYERS + 1):
        order = Order(f"deposit/bench/{seat}", "world/eur", f"players/p{seat}/eur", spent, "eur", "DEPOSIT", "bench")
        transfers.append(_row(len(transfers) + 1, order, accounts.move(order)))
    append = uuid.uuid4()
    for name, events, orders in copies(table):
        rows = [(name, version, 1, append, hand, kind, at, body) for version, hand, kind, at, body in events]
        columns = ["stream", "version", "fence", "append_id", "hand", "type", "time_us", "body"]
        await connection.copy_records_to_table("event", schema_name="log", records=rows, columns=columns)
        for order in orders:
            transfers.append(_row(len(transfers) + 1, order, accounts.move(order)))
    heads = [(f"bench-{number:04}", len(table.log), 1, "bench", append) for number in range(TABLES)]
    await connection.copy_records_to_table(
        "stream", schema_name="log", records=heads, columns=["stream", "head", "fence", "writer", "claim"]
    )
    kinds = {"players": "player", "tables": "escrow", "house": "house", "world": "world"}
    named = [
        (number, name, kinds[name.split("/")[0]], "eur", accounts.balances[number - 1])
        for name, number in accounts.numbers.items()
    ]
    await connection.execute("ALTER TABLE wallet.account ALTER COLUMN id SET GENERATED BY DEFAULT")
    await connection.copy_records_to_table(
        "account", schema_name="wallet", records=named, columns=["id", "name", "kind", "currency", "balance"]
    )
    columns = ["id", "key", "hash", "payer", "payee", "amount", "currency", "purpose", "actor", "at",
               "payer_balance", "payee_balance"]  # fmt: skip
    await connection.copy_records_to_table("transfer", schema_name="wallet", records=transfers, columns=columns)
    await connection.execute("ANALYZE")


def _row(number: int, order: Order, sides: tuple[int, int]) -> tuple[object, ...]:
    content = "\n".join((order.payer, order.payee, str(order.amount), order.currency, order.purpose))
    digest = hashlib.sha256(content.encode()).digest()
    return (number, order.key, digest, *sides, order.amount, "eur", order.purpose, order.actor, number, 0, 0)


async def read(connection: asyncpg.Connection[asyncpg.Record]) -> tuple[float, int]:
    """Seconds to read all rows through cursors, and how many there are."""
    start, rows = time.perf_counter(), 0
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        for query in (_EVENTS, _TRANSFERS):
            cursor = await connection.cursor(query)
            while page := await cursor.fetch(PAGE):
                for _ in page:
                    rows += 1
    return time.perf_counter() - start, rows


async def measure() -> dict[str, float]:
    """ours, limit: seconds; the best of three, taken in turn."""
    async with ledger_database("relance.eventlog", "relance.wallet", "relance.rake") as place:
        connection = await asyncpg.connect(place.url)
        await fill(connection)
        transfers = await connection.fetchval("SELECT count(*) FROM wallet.transfer")
        figures = []
        for _ in range(3):
            limit, rows = await read(connection)
            start = time.perf_counter()
            report = await audit(place.url)
            figures.append((time.perf_counter() - start, limit))
            assert report.ok, report.findings[:3]
        await connection.close()
    ours, limit = (min(column) for column in zip(*figures, strict=True))
    return {
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "target": TARGET,
        "events": rows - transfers,
        "transfers": transfers,
    }
