"""The process around a service: command line, event loop, signals, an end in bounded time.

    main = command_line("wallet", WalletSettings, serve, packages=("relance.wallet",))

`serve(settings, stop)` sets up, serves, waits for `stop`, drains and returns. Exit codes: 0 ended in order, 1 a fault
or an end that took too long, 2 settings, key files, address or database that do not do.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg
import click
import structlog
import uvloop

from relance.runtime import logging, migrations
from relance.runtime.auth import KeyRingError
from relance.runtime.database import UnfitDatabase
from relance.runtime.server import ListenError
from relance.runtime.settings import MigrateSettings, ServiceSettings, SettingsError, load
from relance.transport import TlsError, tracing

log = structlog.get_logger(__name__)

S = TypeVar("S", bound=ServiceSettings)

UNUSABLE = 2

_UNUSABLE = (
    KeyRingError,
    ListenError,
    TlsError,
    UnfitDatabase,
    migrations.MigrationError,
    # The server lacks the role, the database or the schema: somebody has to migrate, or to mend the settings.
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedTableError,
)

_LAST_SECONDS = 5.0  # what a process may take beyond its drain


def command_line(
    name: str, settings: type[S], serve: Callable[[S, asyncio.Event], Awaitable[None]], *, packages: Sequence[str]
) -> click.Group:
    """The command of a service: `serve` and `migrate` (of `packages`, in order)."""

    @click.group(
        name=f"relance-{name}", help=f"The {name} service of a Relance room. Settings are variables RELANCE_…."
    )
    def group() -> None: ...

    @group.command("serve", help="Serve until SIGTERM or SIGINT, then drain.")
    def serve_command() -> None:
        loaded = _load(settings)
        logging.configure(style=loaded.log_format, level=loaded.log_level)
        structlog.contextvars.bind_contextvars(service=name, instance=loaded.instance)
        _warn(loaded)
        with tracing.traced(f"relance-{name}"):
            code = run(lambda stop: serve(loaded, stop), drain_timeout=loaded.drain_timeout)
        sys.exit(code)

    @group.command("migrate", help="Bring the schema to this version; RELANCE_MIGRATE_URL is an owner's URL.")
    def migrate_command() -> None:
        loaded = _load(MigrateSettings)
        logging.configure(style=loaded.log_format, level=loaded.log_level)
        _warn(loaded)
        sys.exit(run(lambda stop: _migrate(loaded.migrate_url.get_secret_value(), packages), drain_timeout=5))

    return group


def run(main: Callable[[asyncio.Event], Awaitable[None]], *, drain_timeout: float) -> int:
    """Run `main` on uvloop and return the exit code.

    SIGTERM and SIGINT set the event that `main` gets; from then on it has `drain_timeout` and five seconds before it
    is cancelled. A second signal cancels it at once.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_stopped(main, drain_timeout))


async def _until_stopped(main: Callable[[asyncio.Event], Awaitable[None]], drain_timeout: float) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = loop.create_task(_awaited(main(stop)))

    def on_signal(number: int) -> None:
        log.info("signal", signal=signal.Signals(number).name)
        if stop.is_set():
            task.cancel()
            return
        stop.set()
        loop.call_later(drain_timeout + _LAST_SECONDS, too_long)

    def too_long() -> None:
        if not task.done():
            log.error("the drain took too long", seconds=drain_timeout + _LAST_SECONDS)
            task.cancel()
            # Whatever swallows the cancellation, or blocks the loop's own end, does not hold the process up.
            loop.call_later(_LAST_SECONDS, os._exit, 1)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    try:
        await task
    except asyncio.CancelledError:
        log.error("stopped before the drain was over")
        return 1
    except Exception as error:  # the boundary of the process
        cause = _cause(error)
        if isinstance(cause, _UNUSABLE):
            log.error("cannot serve", text=str(cause), error=type(cause).__name__)
            return UNUSABLE
        log.error("fault", exc_info=error)
        return 1
    log.info("ended")
    return 0


def _cause(error: BaseException) -> BaseException:
    """What is inside groups of one: a task's error, raised by its group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _migrate(url: str, packages: Sequence[str]) -> None:
    for package in packages:
        await migrations.migrate(url, package)


def _warn(settings: ServiceSettings | MigrateSettings) -> None:
    for line in settings.in_the_open():
        log.warning(
            "PLAINTEXT OVER A NETWORK, as RELANCE_PLAINTEXT=allow says: everybody on the way may read", what=line
        )


def _load(kind: type[Any]) -> Any:
    try:
        return load(kind)
    except SettingsError as error:
        click.echo(f"relance: {error}", err=True)
        sys.exit(UNUSABLE)
