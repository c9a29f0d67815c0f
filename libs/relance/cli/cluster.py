"""`relance cluster`: what it is told; it runs where what tests need is installed (kubectl, YAML)."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from relance.room.play import PACES
from relance.room.processes import RoomError

SCENARIOS = ("rolling", "kill", "freeze", "partition", "scale", "nats", "database")
DEV = Path("deploy/k8s/overlays/dev")


@click.command("cluster")
@click.option(
    "--overlay", type=click.Path(path_type=Path, file_okay=False), default=DEV, show_default=True,
    help="What kubectl kustomize renders.",
)  # fmt: skip
@click.option("--pods", type=click.IntRange(2, 12), default=3, show_default=True, help="Table pods.")
@click.option("--bots", type=click.IntRange(8, 500), default=60, show_default=True, help="Bots that play.")
@click.option(
    "--scenario", "scenarios", type=click.Choice(SCENARIOS), multiple=True, help="These alone; may be repeated."
)
@click.option("--pace", type=click.Choice(list(PACES)), default="fast", show_default=True, help="How fast bots play.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the bots' play.")
@click.option("--keep", is_flag=True, help="Leave data and logs behind, whatever happens.")
def cluster(overlay: Path, pods: int, bots: int, scenarios: tuple[str, ...], pace: str, seed: int, keep: bool) -> None:
    """Run the rendered Kubernetes manifests as local processes, do things to pods, account for every hand."""
    try:
        from relance.cluster.run import ClusterOptions
        from relance.cluster.run import cluster as run_cluster
    except ModuleNotFoundError as error:
        raise RoomError(f"relance cluster needs {error.name}, which `make setup` installs") from error
    options = ClusterOptions(
        overlay=overlay, pods=pods, bots=bots, seed=seed, pace=pace, scenarios=scenarios, keep=keep
    )  # fmt: skip
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
    sys.exit(0 if run_cluster(options, console) else 1)
