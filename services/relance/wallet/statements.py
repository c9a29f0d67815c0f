"""Reading the ledger: balances, and an account's transfers with the balance after each."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from relance.runtime.database import Pool
from relance.wallet.ledger import Order

_BALANCE = "SELECT balance, currency FROM wallet.account WHERE name = $1"

# Newest first, from both sides of the account by their own index. An account's times never run backwards, so (at, id)
# is the order in which its balance moved.
_PAGE = """
WITH page AS (
    (SELECT * FROM wallet.transfer WHERE payer = $1 AND at >= $2 AND at < $3 AND (at, id) < ($4, $5)
     ORDER BY at DESC, id DESC LIMIT $6)
    UNION ALL
    (SELECT * FROM wallet.transfer WHERE payee = $1 AND at >= $2 AND at < $3 AND (at, id) < ($4, $5)
     ORDER BY at DESC, id DESC LIMIT $6)
    ORDER BY at DESC, id DESC LIMIT $6
)
SELECT page.*, payer.name AS payer_name, payee.name AS payee_name
FROM page JOIN wallet.account AS payer ON payer.id = page.payer JOIN wallet.account AS payee ON payee.id = page.payee
ORDER BY page.at DESC, page.id DESC
"""
_ACCOUNT = "SELECT id FROM wallet.account WHERE name = $1"

LAST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Line:
    """A transfer, or a recorded refusal, as one account saw it."""

    order: Order
    id: int
    at: int
    refusal: str
    balance_after: int


class Statements:
    """What may be read of the ledger."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def balance(self, account: str) -> tuple[int, str] | None:
        """Balance (minor units) and currency of an account; None: nothing has moved there yet."""
        row = await self._pool.fetchrow(_BALANCE, account)
        return None if row is None else (row["balance"], row["currency"])

    async def page(self, account: str, since: int, until: int, after: tuple[int, int], size: int) -> list[Line] | None:
        """At most `size` lines, newest first, at or after `since` and before `until`, that come after position
        (at, id); None: no such account.
        """
        found = await self._pool.fetchval(_ACCOUNT, account)
        if found is None:
            return None
        rows = await self._pool.fetch(_PAGE, found, since, until, *after, size)
        return [_line(row, account) for row in rows]


def _line(row: asyncpg.Record, account: str) -> Line:
    order = Order(
        row["key"], row["payer_name"], row["payee_name"], row["amount"], row["currency"], row["purpose"], row["actor"]
    )
    after = row["payer_balance"] if order.payer == account else row["payee_balance"]
    return Line(order, row["id"], row["at"], row["refusal"] or "", after)
