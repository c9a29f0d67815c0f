"""Run benchmarks one after another, print a table, write JSON. Nothing here fails for being slow."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import uvloop
from rich.console import Console
from rich.table import Table

_SHOWN = ("ours", "limit", "ratio", "target")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One module of this folder."""

    name: str
    what: str
    at_most: bool
    measure: Callable[[], Awaitable[Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one benchmark. reached: whether the ratio is on the right side of the target."""

    name: str
    what: str
    ours: float
    limit: float
    ratio: float
    target: float
    at_most: bool
    reached: bool
    seconds: float
    more: dict[str, float]


def benchmarks() -> list[Benchmark]:
    """The benchmarks of this folder, by name."""
    found = []
    for module in iter_modules([str(Path(__file__).parent)]):
        loaded = import_module(f"tests.bench.{module.name}") if module.name != "__main__" else None
        if loaded is not None and hasattr(loaded, "NAME"):
            what = getattr(loaded, "WHAT", (loaded.__doc__ or "").partition("\n")[0])
            found.append(Benchmark(loaded.NAME, what, getattr(loaded, "AT_MOST", False), loaded.measure))
        for name, what, measure in getattr(loaded, "BENCHMARKS", ()):
            found.append(Benchmark(name, what, at_most=False, measure=measure))
    return sorted(found, key=lambda benchmark: benchmark.name)


def run(benchmark: Benchmark) -> Result:
    """Measure one benchmark in an event loop of its own."""
    gc.collect()
    start = time.monotonic()
    figures = dict(uvloop.run(_measure(benchmark)))  # the loop of the services
    ours, limit, ratio, target = (figures.pop(name) for name in _SHOWN)
    reached = ratio <= target if benchmark.at_most else ratio >= target
    seconds = time.monotonic() - start
    return Result(
        benchmark.name, benchmark.what, ours, limit, ratio, target, benchmark.at_most, reached, seconds, figures
    )


async def _measure(benchmark: Benchmark) -> Mapping[str, float]:
    return await benchmark.measure()


def table_of(results: list[Result]) -> Table:
    """The results for people."""
    table = Table(title="Relance benchmarks", title_justify="left")
    for column in ("what", "ours", "limit", "ratio", "target", "reached"):
        table.add_column(column, justify="left" if column == "what" else "right", vertical="top")
    for result in results:
        more = "\n".join(f"[dim]{name} {_figure(value)}[/dim]" for name, value in result.more.items())
        table.add_row(
            f"[bold]{result.name}[/bold]  {result.what}" + (f"\n{more}" if more else ""),
            _figure(result.ours),
            _figure(result.limit) if result.limit else "-",
            _figure(result.ratio),
            ("≤ " if result.at_most else "≥ ") + _figure(result.target),
            "[green]yes[/green]" if result.reached else "[red]no[/red]",
            end_section=True,
        )
    return table


def _figure(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def main() -> int:
    """Entry point. Exit code 0 whatever the figures; 1 when a benchmark broke."""
    known = {benchmark.name: benchmark for benchmark in benchmarks()}
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure the room against its limits.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(known)}; default: all")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where the figures go")
    options = parser.parse_args()
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    console, results, broken = Console(), [], []
    for name in options.names or known:
        console.print(f"{name} …", style="dim")
        try:
            results.append(run(known[name]))
        except Exception:  # noqa: BLE001 - one broken benchmark must not hide the figures of the others
            console.print_exception()
            broken.append(name)
    console.print(table_of(results))
    machine = {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "load": os.getloadavg()[0],
    }
    report = {"machine": machine, "results": [asdict(result) for result in results], "broken": broken}
    options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
