"""`relance play`: where the lobby is and who plays; the rest is relance.play."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from relance.client import RelanceError, Tls
from relance.room.folder import DataFolder
from relance.room.processes import RoomError


@click.command("play")
@click.option(
    "--lobby",
    metavar="HOST:PORT",
    help="Lobby of a room elsewhere (TLS: RELANCE_TLS_CA …); else that on --data.",
)
@click.option("--name", default="", help="Player's name.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("data"), show_default=True,
    envvar="RELANCE_DATA", help="Data folder of a room on this machine.",
)  # fmt: skip
@click.option("--light/--dark", default=None, help="Colours of the screen; else as the terminal says.")
@click.option("--letters", is_flag=True, help="Suits and frames in plain ASCII; else where the terminal needs it.")
def play(lobby: str | None, name: str, data: Path, light: bool | None, letters: bool) -> None:
    """Play at a room's tables in this terminal. The password is asked for, or taken from RELANCE_PASSWORD."""
    # Only this command needs what draws screens.
    from relance.play import PlayOptions, glyphs_for, light_background
    from relance.play import play as run

    address = lobby or DataFolder(data).addresses()["lobby"]
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise RoomError("relance play needs a terminal")
    options = PlayOptions(
        lobby=address,
        tls=Tls.from_environment() if lobby else None,
        name=name,
        password=os.environ.pop("RELANCE_PASSWORD", ""),
        light=light_background(os.environ) if light is None else light,
        glyphs=glyphs_for(sys.stdout.encoding, ascii_only=letters),
    )
    try:
        asyncio.run(run(options))
    except RelanceError as refusal:
        raise RoomError(f"no lobby answers at {address}: {refusal.message or refusal.reason}") from refusal
