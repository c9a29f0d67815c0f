"""Operators' commands: where the room is, what is asked, and who answers it (relance.ops)."""

from __future__ import annotations

import asyncio
import datetime
import re
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from relance.ops import events as events_
from relance.ops import history as history_
from relance.ops import lag as lag_
from relance.ops import refunds as refunds_
from relance.ops import replay as replay_
from relance.ops import state as state_
from relance.ops import tables as tables_
from relance.ops import verify as verify_
from relance.ops.archive import ArchiveSource
from relance.ops.archive import Order as ArchiveOrder
from relance.ops.archive import archive as archive_tables
from relance.ops.checking import check_files
from relance.ops.errors import NoAnswer
from relance.ops.export.run import FORMATS, Order
from relance.ops.export.run import export as export_hands
from relance.ops.names import player_id
from relance.ops.output import Out
from relance.ops.page import write_page
from relance.ops.rebuild import PROJECTIONS
from relance.ops.rebuild import rebuild as rebuild_projections
from relance.ops.source import LogSource, PostgresSource, connected
from relance.ops.steps import steps_of
from relance.ops.viewer import AUDITOR, PUBLIC
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.room.services import DATABASE, audit_url, operator_url
from relance.transport import Tls

Command = TypeVar("Command", bound=Callable[..., Any])
TOKEN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Place:
    """Where a room is: its data folder, or the URL of its database for a role that may read (relance_audit)."""

    data: Path
    database_url: str | None
    token_given: str | None
    operator_given: str | None = None

    def url(self) -> str:
        """The database, to read. Raises RoomError where no room runs on the folder."""
        if self.database_url:
            return self.database_url
        folder = DataFolder(self.data)
        return audit_url(folder, folder.addresses()[DATABASE])

    def operator_url(self) -> str:
        """The database for the role relance_operator: what changes something. Raises NoAnswer, RoomError."""
        if self.operator_given:
            return self.operator_given
        if self.database_url:
            raise NoAnswer("this needs the role relance_operator: give --operator-url")
        folder = DataFolder(self.data)
        return operator_url(folder, folder.addresses()[DATABASE])

    def tls(self) -> Tls | None:
        """How processes elsewhere are reached; those of a data folder are on this machine. Raises TlsError."""
        return Tls.from_environment() if self.database_url else None

    def token(self) -> str:
        """A token of an operator; empty where there is none to have."""
        if self.token_given or self.database_url:
            return self.token_given or ""
        return DataFolder(self.data).operator_token("relance", OPERATOR_ROLES, TOKEN_SECONDS)


def room_options(command: Command) -> Command:
    """The options that every command has: where the room is, and --json."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="For programs."),
        click.option("--token", envvar="RELANCE_TOKEN", show_envvar=True, help="An operator's token."),
        click.option(
            "--database-url", envvar="RELANCE_DATABASE_URL", show_envvar=True,
            help="Database of a room elsewhere, as relance_audit.",
        ),
        click.option(
            "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("data"), show_default=True,
            envvar="RELANCE_DATA", help="Data folder of the room.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


as_option = click.option(
    "--as", "who", default=AUDITOR, show_default=True, help="Through whose eyes: public, auditor, or a player."
)


class Moment(click.ParamType[int]):
    """A time: ISO 8601 (UTC where it has no zone), or how long ago: 90s, 15m, 2h, 7d. Microseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        if isinstance(value, int):
            return value
        ago = re.fullmatch(r"(\d+)([smhd])", value)
        if ago is not None:
            seconds = int(ago[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[ago[2]]
            return int((time.time() - seconds) * 1_000_000)
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; 2026-01-31T18:00 or 2h would be accepted", param, ctx)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() * 1_000_000)


archive_option = click.option(
    "--archive", "archive", type=click.Path(path_type=Path, file_okay=False), help="Read an archive, not a room."
)
operator_option = click.option(
    "--operator-url", envvar="RELANCE_OPERATOR_URL", show_envvar=True,
    help="Database of a room elsewhere, as relance_operator.",
)  # fmt: skip


def read(work: Callable[[LogSource], Coroutine[Any, Any, bool | None]], archive: Path | None, **place: Any) -> None:
    """Do the work on a log, be it a room's or an archive."""
    if archive is None:
        run(work=lambda source, _: work(source), **place)
    elif asyncio.run(work(ArchiveSource(archive))) is False:
        sys.exit(1)


def run(
    data: Path,
    database_url: str | None,
    token: str | None,
    work: Callable[[PostgresSource, Place], Coroutine[Any, Any, bool | None]],
    operator_url: str | None = None,
) -> None:
    """Do the work on a connection that only reads; exit 1 where it answers False."""
    place = Place(data, database_url, token, operator_url)

    async def connect() -> bool:
        async with connected(place.url()) as connection:
            return await work(PostgresSource(connection), place) is not False

    try:
        ok = asyncio.run(connect())
    except BrokenPipeError:
        sys.stderr.close()  # whoever read has seen enough
        ok = True
    if not ok:
        sys.exit(1)


async def viewer_id(source: LogSource, who: str) -> str:
    """The viewer: public, auditor, or the id of a player given by id or name."""
    return who if who in {PUBLIC, AUDITOR} else await player_id(source.connection, who)


@click.command("tables")
@click.argument("names", nargs=-1, metavar="[TABLE]…")
@room_options
def tables(names: tuple[str, ...], as_json: bool, **place: Any) -> None:
    """What runs where: owner, fence, version, lag of every follower, and tables that were stopped, with why."""

    async def work(source: PostgresSource, at: Place) -> None:
        tables_.show(await tables_.table_lines(source, names, at.token(), at.tls()), Out(as_json=as_json))

    run(work=work, **place)


@click.command("events")
@click.argument("table")
@click.option("--hand", type=click.IntRange(1), help="Of this hand.")
@click.option("--from", "first", type=click.IntRange(1), help="From this version on.")
@click.option("--to", "last", type=click.IntRange(1), help="Up to this version.")
@click.option("--type", "types", multiple=True, help="Of this type; may be given repeatedly.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("--table", "as_table", is_flag=True, help="In columns.")
@as_option
@archive_option
@room_options
def events(
    table: str,
    hand: int | None,
    first: int | None,
    last: int | None,
    types: tuple[str, ...],
    follow: bool,
    as_table: bool,
    who: str,
    as_json: bool,
    **place: Any,
) -> None:
    """A table's log, event by event; with --json one line of JSON each."""

    async def work(source: LogSource) -> None:
        kinds = events_.check_types(types)
        wanted = events_.Wanted(table, hand or 0, first or 0, last or 0, kinds, follow)
        out = Out(as_json=as_json)
        viewer = await viewer_id(source, who)
        await events_.show(source, source.connection, wanted, viewer, out, as_table=as_table)

    read(work, **place)


@click.command("replay")
@click.argument("table")
@click.option("--hand", type=click.IntRange(1), required=True, help="Number of the hand.")
@click.option("--steps", is_flag=True, help="Print every step instead of stepping by keys.")
@click.option(
    "--html", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page that plays the hand."
)
@as_option
@archive_option
@room_options
def replay(table: str, hand: int, steps: bool, file: Path | None, who: str, as_json: bool, **place: Any) -> None:
    """A hand step by step as somebody saw it: forward, back, jump."""

    async def work(source: LogSource) -> None:
        seen = await steps_of(source, source.connection, table, hand, await viewer_id(source, who))
        out = Out(as_json=as_json)
        if file is not None:
            write_page(seen, file)
        elif steps or as_json:
            replay_.show_steps(seen, out)
        else:
            replay_.browse(seen, out)

    read(work, **place)


@click.command("state")
@click.argument("table")
@click.option("--at", type=click.IntRange(0), help="Version; else the last.")
@click.option("--diff", type=(click.IntRange(0), click.IntRange(0)), metavar="V1 V2", help="What changed in between.")
@as_option
@archive_option
@room_options
def state(table: str, at: int | None, diff: tuple[int, int] | None, who: str, as_json: bool, **place: Any) -> None:
    """A table as it was at any version."""

    async def work(source: LogSource) -> None:
        viewer, out = await viewer_id(source, who), Out(as_json=as_json)
        if diff is not None:
            await state_.show_changes(source, table, *diff, viewer, out)
        else:
            await state_.show_state(source, source.connection, table, at, viewer, out)

    read(work, **place)


@click.command("verify")
@click.argument("names", nargs=-1, metavar="[TABLE]…")
@click.option("--all", "everything", is_flag=True, help="Every table.")
@click.option(
    "--kept", type=click.Path(path_type=Path, dir_okay=False),
    help="Remember in this file what is verified, and go on from there the next time.",
)  # fmt: skip
@archive_option
@room_options
def verify(names: tuple[str, ...], everything: bool, kept: Path | None, as_json: bool, **place: Any) -> None:
    """Prove a table's log, event by event: exit 1 and the exact version on a finding."""
    if bool(names) == everything:
        raise click.UsageError("name tables, or give --all")

    async def work(source: LogSource) -> bool:
        return await verify_.verify(source, names, kept, Out(as_json=as_json))

    read(work, **place)


@click.command("refunds")
@click.argument("names", nargs=-1, metavar="[TABLE]…")
@click.option("--since", type=Moment(), default=0, help="From then on.")
@room_options
def refunds(names: tuple[str, ...], since: int, as_json: bool, **place: Any) -> None:
    """Every voided hand: why, who got what, by which transfer, settled or waiting."""

    async def work(source: PostgresSource, _: Place) -> None:
        await source.streams(names)
        refunds_.show(await refunds_.voided_hands(source, names, since), Out(as_json=as_json))

    run(work=work, **place)


@click.command("history")
@click.argument("player")
@click.option("--since", type=Moment(), default=0, help="From then on.")
@room_options
def history(player: str, since: int, as_json: bool, **place: Any) -> None:
    """A player's hands, results, rulings, protections. PLAYER is an id or a name."""

    async def work(source: PostgresSource, _: Place) -> None:
        history_.show(await history_.history(source, player, since), Out(as_json=as_json))

    run(work=work, **place)


@click.command("lag")
@click.option("--events", "most", type=click.IntRange(0), default=10_000, show_default=True, help="Alarm above this.")
@click.option("--seconds", type=click.FloatRange(0), default=90, show_default=True, help="Alarm above this.")
@room_options
def lag(most: int, seconds: float, as_json: bool, **place: Any) -> None:
    """How far everybody who follows the log has come; exit 1 past a threshold."""

    async def work(source: PostgresSource, _: Place) -> bool:
        found = await lag_.lags(source.connection, most_events=most, most_seconds=seconds)
        return lag_.show(found, Out(as_json=as_json))

    run(work=work, **place)


@click.command("export")
@click.argument("names", nargs=-1, metavar="[TABLE]…")
@click.option("--all", "everything", is_flag=True, help="Every table.")
@click.option("--format", "form", type=click.Choice(list(FORMATS)), required=True)
@click.option("--out", "folder", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder.")
@click.option("--since", type=Moment(), default=0, help="Hands that began then or later.")
@click.option("--until", type=Moment(), default=0, help="Hands that began before.")
@as_option
@archive_option
@room_options
def export(
    names: tuple[str, ...],
    everything: bool,
    form: str,
    folder: Path,
    since: int,
    until: int,
    who: str,
    as_json: bool,
    **place: Any,
) -> None:
    """Hands that are over to files, one a table; run again, it goes on where it stopped."""
    if bool(names) == everything:
        raise click.UsageError("name tables, or give --all")

    async def work(source: LogSource) -> None:
        order = Order(form, folder, await viewer_id(source, who), since, until)
        await export_hands(source, source.connection, names, order, Out(as_json=as_json))

    read(work, **place)


@click.command("check-hands")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE…")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def check_hands(files: tuple[Path, ...], as_json: bool) -> None:
    """Hands from elsewhere (PHH) played again by our rules; exit 1 where final stacks or pots differ."""
    if not check_files(files, Out(as_json=as_json)):
        sys.exit(1)


@click.command("rebuild")
@click.argument("projection", type=click.Choice([*PROJECTIONS, "all"]))
@operator_option
@room_options
def rebuild(projection: str, as_json: bool, **place: Any) -> None:
    """Throw a projection away and have its service build it from the log again, live."""

    async def work(_: PostgresSource, at: Place) -> None:
        names = PROJECTIONS if projection == "all" else (projection,)
        async with connected(at.operator_url(), write=True) as connection:
            await rebuild_projections(connection, names, Out(as_json=as_json))

    run(work=work, **place)


@click.command("archive")
@click.option("--before", type=Moment(), required=True, help="Closed tables without an event since then.")
@click.option("--out", "folder", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder.")
@click.option("--remove", is_flag=True, help="Remove what is archived and verified from the log.")
@operator_option
@room_options
def archive(before: int, folder: Path, remove: bool, as_json: bool, **place: Any) -> None:
    """Closed tables to compressed files with a manifest; they stay verifiable and replayable (--archive)."""

    async def work(source: PostgresSource, at: Place) -> bool:
        order, out = ArchiveOrder(folder, before, remove), Out(as_json=as_json)
        if not remove:
            return await archive_tables(source, None, order, out)
        async with connected(at.operator_url(), write=True) as operator:
            return await archive_tables(source, operator, order, out)

    run(work=work, **place)


COMMANDS = (
    *(tables, events, replay, state, verify, refunds, history, lag),
    *(export, check_hands, rebuild, archive),
)
