"""The process in which a room's bots play: `python -m relance.room.play`. They share nothing with the supervisor."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import uvloop

from relance.room.bots import Blotter, BotFleet
from relance.runtime import logging

BLOTTER = "misbehaviour.json"
"""What misbehaving bots leave in the data folder: see `Blotter`."""
WRITE_SECONDS = 0.5
# Words of `--pace`: the pace of each bot in turn.
PACES: dict[str, tuple[str, ...]] = {
    "mixed": ("human", "fast"),
    "human": ("human",),
    "fast": ("fast",),
    "instant": ("instant",),
}


@dataclass(frozen=True, slots=True)
class BotPlan:
    """How many bots play, how fast, with which seed, and whether they misbehave."""

    count: int
    pace: str = "mixed"
    seed: int = 1
    misbehave: bool = False


def play_command(plan: BotPlan, lobby: str, folder: Path) -> list[str]:
    """The command line of the bots; their accounts are kept in `folder`."""
    return [
        sys.executable, "-m", "relance.room.play", "--lobby", lobby, "--folder", str(folder),
        "--count", str(plan.count), "--pace", plan.pace, "--seed", str(plan.seed),
        *(["--misbehave"] if plan.misbehave else []),
    ]  # fmt: skip


@click.command()
@click.option("--lobby", required=True, help="Address of the lobby, host:port.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Where the accounts are kept.")
@click.option("--count", type=int, required=True)
@click.option("--pace", type=click.Choice(list(PACES)), default="mixed")
@click.option("--seed", type=int, default=1)
@click.option("--misbehave", is_flag=True)
def main(lobby: str, folder: Path, count: int, pace: str, seed: int, misbehave: bool) -> None:
    """Let bots play until SIGTERM."""
    logging.configure(style="json", level="info")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_play(lobby, folder, BotPlan(count, pace, seed, misbehave)))


async def _play(lobby: str, folder: Path, plan: BotPlan) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    blotter = Blotter() if plan.misbehave else None
    fleet = BotFleet(lobby, plan.count, folder=folder, pace=PACES[plan.pace], seed=plan.seed, blotter=blotter)
    await fleet.start()
    try:
        while not stop.is_set():
            if blotter is not None:
                blotter.write(folder / BLOTTER)
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITE_SECONDS):
                    await stop.wait()
    finally:
        await fleet.stop()


if __name__ == "__main__":
    main()
