"""The `relance` command: each subcommand parses its options here and does its work elsewhere.

Whatever goes wrong is one line on stderr and an exit code: 1 for what somebody can act on, 2 for wrong options,
70 for a mistake of ours (its trace goes to a file; `--debug` shows it).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import asyncpg
import click
from asyncpg.exceptions import ClientConfigurationError
from rich.console import Console

from relance.cli.cluster import cluster
from relance.cli.deploying import DEPLOYING
from relance.cli.houses import describe
from relance.cli.money import MONEY
from relance.cli.operate import COMMANDS
from relance.cli.play import play
from relance.cli.rebalance import rebalance_command
from relance.ops.audit import run_audit
from relance.ops.output import Out
from relance.room.chaos import ChaosOptions
from relance.room.chaos import chaos as run_chaos
from relance.room.drill import KILLS, DrillOptions
from relance.room.drill import drill as run_drill
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.room.panel import display
from relance.room.play import PACES, BotPlan
from relance.room.processes import RoomError
from relance.room.room import DRAIN_SECONDS, RoomOptions
from relance.room.services import DATABASE, audit_url
from relance.room.up import UpOptions
from relance.room.up import up as run_up
from relance.transport import TlsError, tracing

OURS = 70

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("data"), show_default=True,
    envvar="RELANCE_DATA", help="Data folder of the room.",
)  # fmt: skip
database_option = click.option(
    "--database-url", envvar="RELANCE_DATABASE_URL", show_envvar=True,
    help="An existing PostgreSQL, by the URL of an owner that may create roles; else an embedded one.",
)  # fmt: skip
nats_option = click.option(
    "--nats-url",
    envvar="RELANCE_NATS_URL",
    show_envvar=True,
    help="An existing NATS with JetStream; else an embedded one.",
)


class _Commands(click.Group):
    """A group that says of each command what it is for, on as many lines as that takes."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(limit=200)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("relance"), message="relance %(version)s")
@click.option("--debug", is_flag=True, help="Show the trace of an unexpected mistake.")
def cli(debug: bool) -> None:
    """Relance: the backend of an online poker room, on one machine."""


@cli.command()
@data_option
@click.option("--port", type=click.IntRange(1024, 65500), help="First of ten ports in a row; else free ones.")
@click.option("--bots", type=click.IntRange(0, 500), default=36, show_default=True, help="Bots that play.")
@click.option("--house", help="Open the tables of this house only (see: relance houses).")
@click.option(
    "--pace", type=click.Choice(list(PACES)), default="mixed", show_default=True, help="How fast the bots play."
)
@click.option(
    "--misbehave", is_flag=True, help="Tables with short clocks, and bots that do what players should not do."
)
@click.option("--seconds", type=click.FloatRange(min=0), help="Then drain, audit and exit by what the audit says.")
@click.option(
    "--drain", type=click.FloatRange(min=0, max=3600), default=DRAIN_SECONDS, show_default=True,
    help="Seconds that hands have to end when the room stops.",
)  # fmt: skip
@database_option
@nats_option
def up(
    data: Path,
    port: int | None,
    bots: int,
    house: str | None,
    pace: str,
    misbehave: bool,
    seconds: float | None,
    drain: float,
    database_url: str | None,
    nats_url: str | None,
) -> None:
    """Start a room and run it until Ctrl-C or SIGTERM."""
    room = RoomOptions(data, port, database_url, nats_url, drain)
    shown = display(_console())
    try:
        ok = asyncio.run(run_up(UpOptions(room, BotPlan(bots, pace, misbehave=misbehave), house, seconds), shown))
    finally:
        shown.close()
    sys.exit(0 if ok else 1)


@cli.command()
@click.option("--kill", type=click.Choice(KILLS), default="table", show_default=True, help="What is killed.")
@click.option("--times", type=click.IntRange(1, 100), default=1, show_default=True, help="How often.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the bots' play.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Data folder; else a temporary one.")
@click.option("--bots", type=click.IntRange(8, 200), default=24, show_default=True)
@click.option(
    "--hands", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Hands to play at least."
)
def drill(kill: str, times: int, seed: int, data: Path | None, bots: int, hands: int) -> None:
    """Kill a room's processes in the middle of hands, and account for every cent."""
    options = DrillOptions(kill=kill, times=times, seed=seed, data=data, bots=bots, hands=hands)
    sys.exit(0 if asyncio.run(run_drill(options, _console())) else 1)


@cli.command()
@click.option("--minutes", type=click.FloatRange(0.1, 600), default=3, show_default=True, help="How long it goes on.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of what is chosen.")
@click.option("--bots", type=click.IntRange(8, 200), default=24, show_default=True)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Data folder; else a temporary one.")
def chaos(minutes: float, seed: int, bots: int, data: Path | None) -> None:
    """Kill or stop random processes of a playing room at random moments, and account for every cent."""
    options = ChaosOptions(minutes=minutes, seed=seed, bots=bots, data=data)
    sys.exit(0 if asyncio.run(run_chaos(options, _console())) else 1)


@cli.command()
@data_option
@click.option(
    "--role", "roles", type=click.Choice(OPERATOR_ROLES), multiple=True, required=True, help="May be given repeatedly."
)
@click.option("--name", required=True, help="Who the operator is; goes into the log.")
@click.option(
    "--hours", type=click.FloatRange(min=0.01, max=24), default=1, show_default=True, help="How long it holds."
)
def token(data: Path, roles: Sequence[str], name: str, hours: float) -> None:
    """Print a token for an operator of the room on this data folder."""
    click.echo(DataFolder(data).operator_token(name, tuple(roles), int(hours * 3600)))


@cli.command()
@data_option
@click.option(
    "--database-url", "--url", "url", envvar=["RELANCE_AUDIT_URL", "RELANCE_DATABASE_URL"], show_envvar=True,
    help="Database of a room elsewhere, as relance_audit.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
def audit(data: Path, url: str | None, as_json: bool) -> None:
    """Check that every chip and cent of the running room is accounted for; exit 1 and say what is not."""
    folder = DataFolder(data)
    sys.exit(run_audit(url or audit_url(folder, folder.addresses()[DATABASE]), as_json=as_json))


@cli.command()
@click.argument("house", required=False)
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
def houses(house: str | None, as_json: bool) -> None:
    """List the houses; with the name of one, its games, choices, rake and tables."""
    describe(Out(as_json=as_json), house)


for operating in (*COMMANDS, *MONEY, *DEPLOYING, rebalance_command, cluster, play):
    cli.add_command(operating)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with tracing.traced("relance"):
            cli.main(arguments, prog_name="relance", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_:
        click.echo(help_.format_message())
        sys.exit(2)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.Abort:
        _fail("stopped", 130)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except (RoomError, TlsError, OSError, asyncpg.PostgresError, ClientConfigurationError) as error:
        _fail(str(error), 1)
    except Exception:  # the boundary of the process
        if "--debug" in arguments:
            raise
        with tempfile.NamedTemporaryFile("w", prefix="relance-", suffix=".log", delete=False) as file:
            file.write(traceback.format_exc())
        _fail(f"this is a mistake of ours: {_last_line()}; the trace is in {file.name} (or: relance --debug …)", OURS)


def _console() -> Console:
    """Colours on a terminal only; elsewhere tables may be wide."""
    wide = None if sys.stdout.isatty() else 160
    return Console(highlight=False, soft_wrap=True, width=wide)


def _last_line() -> str:
    return traceback.format_exc(limit=0).strip().splitlines()[-1]


def _fail(sentence: str, code: int) -> None:
    click.echo(f"relance: {' '.join(sentence.split())}", err=True)
    sys.exit(code)
