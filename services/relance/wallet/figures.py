"""What the wallet counts, for Prometheus: kinds of accounts and transfers, never anybody's own."""

from __future__ import annotations

import structlog
from prometheus_client import Counter, Gauge

from relance.runtime import database
from relance.runtime.clock import Clock
from relance.runtime.database import Pool

log = structlog.get_logger(__name__)

SETTLED = Counter("relance_wallet_settled", "Transfers that moved money.", ["purpose"])
BALANCE = Gauge("relance_wallet_balance", "Minor units on all accounts of a kind.", ["kind", "currency"])

PERIOD_SECONDS = 30.0

_SUMS = "SELECT kind, currency, sum(balance)::bigint AS total FROM wallet.account GROUP BY kind, currency"


async def add_up(pool: Pool) -> None:
    """Sum the balances of each kind of account as of now."""
    for row in await pool.fetch(_SUMS):
        BALANCE.labels(row["kind"], row["currency"]).set(row["total"])


async def keep_summing(pool: Pool, clock: Clock) -> None:
    """The same every so often, for ever."""
    while True:
        try:
            await add_up(pool)
        except database.OUTAGE as error:
            log.debug("balances not summed", error=type(error).__name__)
        await clock.sleep(PERIOD_SECONDS)
