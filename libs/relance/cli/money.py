"""Operators' commands about money: accounts and rake."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from relance.cli.operate import Moment, Place, room_options, run
from relance.ops import rakes as rakes_
from relance.ops import statement as statement_
from relance.ops.output import Out
from relance.ops.source import PostgresSource
from relance.room.folder import DataFolder
from relance.transport import Tls

currency_option = click.option(
    "--currency", type=click.Choice(["eur", "credit"]), default="eur", show_default=True, help="Of which account."
)
csv_option = click.option("--csv", "as_csv", is_flag=True, help="As CSV, amounts in minor units.")


@click.group()
def wallet() -> None:
    """Players' accounts: statements and balances."""


@wallet.command("statement")
@click.argument("player")
@currency_option
@click.option("--since", type=Moment(), default=0, help="At or after this time.")
@click.option("--until", type=Moment(), default=0, help="Before this time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The newest so many.")
@click.option("--before", type=click.IntRange(1), default=None, help="Before this id: the page before.")
@csv_option
@room_options
def statement(
    player: str, currency: str, since: int, until: int, limit: int, before: int | None, as_csv: bool, as_json: bool,
    **place: Any,
) -> None:  # fmt: skip
    """Every transfer of a player with the balance after it. PLAYER is an id or a name."""

    async def work(source: PostgresSource, _: Place) -> None:
        wanted = statement_.Range(since, until, before or 0, limit)
        found = await statement_.statement(source.connection, player, currency, wanted)
        if as_csv:
            _write(statement_.csv_rows(found))
        else:
            statement_.show_statement(found, Out(as_json=as_json))

    run(work=work, **place)


@wallet.command("balance")
@click.argument("player")
@currency_option
@click.option("--at", type=Moment(), default=0, help="As it was at this time.")
@room_options
def balance(player: str, currency: str, at: int, as_json: bool, **place: Any) -> None:
    """What a player has on the account, now or at any time. PLAYER is an id or a name."""

    async def work(source: PostgresSource, _: Place) -> None:
        account, held = await statement_.balance(source.connection, player, currency, at)
        statement_.show_balance(account, held, currency, at, Out(as_json=as_json))

    run(work=work, **place)


@click.group()
def rake() -> None:
    """Rake: reports."""


@rake.command("report")
@click.option(
    "--by", "group", type=click.Choice(list(rakes_.GROUPS)), default="table", show_default=True, help="Grouped by this."
)
@click.option("--since", type=Moment(), default=0, help="Hands that ended at or after this time.")
@click.option("--until", type=Moment(), default=0, help="Hands that ended before this time.")
@click.option(
    "--address",
    help="The rake service of a room elsewhere, host:port; needs --token. TLS: RELANCE_TLS_CA …",
)
@csv_option
@room_options
def report(
    group: str, since: int, until: int, address: str | None, as_csv: bool, as_json: bool, data: Path,
    database_url: str | None, token: str | None,
) -> None:  # fmt: skip
    """What was raked and what of it is on the house's account. By player: each one's share, for rakeback."""
    where = address or DataFolder(data).addresses()["rake"]
    given = Place(data, None if address is None else database_url, token).token()
    tls = None if address is None else Tls.from_environment()
    rows = asyncio.run(rakes_.report(where, given, group, since, until, tls))
    if as_csv:
        _write(rakes_.csv_rows(rows))
    else:
        rakes_.show(rows, group, Out(as_json=as_json))


def _write(rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    click.echo(text.getvalue(), nl=False)


MONEY = (wallet, rake)
