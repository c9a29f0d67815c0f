"""python -m relance.table serve | migrate"""

from __future__ import annotations

import asyncio

from relance.runtime import metrics
from relance.runtime.service import command_line
from relance.table.process import running
from relance.table.settings import TableSettings


async def serve(settings: TableSettings, stop: asyncio.Event) -> None:
    """Serve until told to stop, then give every table up in order."""
    with metrics.exposed(settings.metrics):
        async with running(settings) as process:
            await process.wait(stop)
            await process.drain(settings.drain_timeout)


main = command_line("table", TableSettings, serve, packages=("relance.eventlog", "relance.table"))

if __name__ == "__main__":
    main()
