"""What the lobby does unasked: it follows the tables' events, and forgets what nobody needs any more."""

from __future__ import annotations

import structlog
from nats.aio.client import Client

from relance.eventlog import Follower
from relance.lobby import projection
from relance.lobby.offers import Offers
from relance.lobby.tables import TableProcesses
from relance.lobby.throttle import Throttle
from relance.runtime import database, metrics
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.nats import following

log = structlog.get_logger(__name__)

_CLEAN_SECONDS = 300.0


async def confirm(pool: Pool) -> None:
    """Wait for the database and return once it has shown that it is the lobby's.

    Raises what asyncpg says of a wrong password, a missing role, database or schema: waiting would not mend them.
    """
    await database.wait(pool)
    await projection.confirm(pool)


async def follow(pool: Pool, tables: TableProcesses, client: Client) -> None:
    """Keep the catalogue up to date, for ever. A table whose events cannot be taken in is left as it was."""

    def alarm(table: str, error: Exception) -> None:
        log.error("table cannot be followed", table=table, error=repr(error))

    follower = Follower(
        pool,
        "lobby.followed",
        tables,
        client,
        projection.apply,
        alarm=alarm,
        types=projection.TYPES,
        workers=2,
        around=following,
    )
    metrics.watch_follower(follower)
    await follower.run()


async def keep_clean(pool: Pool, throttle: Throttle, offers: Offers, clock: Clock) -> None:
    """Forget old statistics, tries and offers, for ever."""
    while True:
        await clock.sleep(_CLEAN_SECONDS)
        try:
            await throttle.clean()
            await offers.clean()
            await projection.clean(pool, clock.now_us())
        except database.OUTAGE as error:
            log.info("not cleaned", error=type(error).__name__)
