"""What a room on several machines needs: its secrets, database roles that may log in, its first tables."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from relance.room.credentials import Servers, logins, make
from relance.room.demo import demo_tables, open_at
from relance.room.services import let_log_in
from relance.transport import Tls, TlsError


@click.command("secrets")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--database-url", default="postgresql://relance@relance-postgres:5432/relance", show_default=True,
    help="PostgreSQL, by the URL of the owner; without a password one is made.",
)  # fmt: skip
@click.option("--nats-url", default="nats://relance-nats:4222", show_default=True, help="NATS, without a login.")
@click.option("--retire", multiple=True, metavar="KID", help="Take a key out of the ring; may be given repeatedly.")
def secrets(folder: Path, database_url: str, nats_url: str, retire: tuple[str, ...]) -> None:
    """Make the keys, passwords and URLs of a room on several machines: one folder a Secret, one file a key.

    What is there stays. A key is rotated by removing its .pem and running this again; its old id is believed until it
    is retired.
    """
    for name in make(folder, Servers(database_url, nats_url), retire):
        click.echo(name)


@click.command("logins")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--migrate-url", envvar="RELANCE_MIGRATE_URL", show_envvar=True, required=True, help="URL of the owner.")
def logins_command(folder: Path, migrate_url: str) -> None:
    """Let database roles log in: FOLDER has a file a role, named like it, with its password. After the migrations."""
    passwords = logins(folder)
    asyncio.run(let_log_in(migrate_url, passwords))
    click.echo(f"may log in: {', '.join(sorted(passwords))}")


@click.command("open")
@click.argument("address", metavar="HOST:PORT")
@click.option("--house", help="The tables of this house; else one of every house and of every game.")
@click.option("--token", envvar="RELANCE_TOKEN", show_envvar=True, required=True, help="A token of the floor's.")
def open_command(address: str, house: str | None, token: str) -> None:
    """Open tables at a room's table service. Run again, it opens nothing twice.

    TLS by RELANCE_TLS_CA, RELANCE_TLS_CERT, RELANCE_TLS_KEY, RELANCE_TLS_SERVER_NAME.
    """
    try:
        tls = Tls.from_environment()
    except TlsError as error:
        raise click.UsageError(str(error)) from error
    for name in asyncio.run(open_at(address, token, demo_tables(house), tls)):
        click.echo(name)


DEPLOYING = (secrets, logins_command, open_command)
