"""What operators' commands print: for people with colours on a terminal only, for programs as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relance.ops.names import printable

Json: TypeAlias = "dict[str, Json] | list[Json] | Sequence[Json] | str | int | float | bool | None"

WIDE = 1_000
"""Columns where there is no terminal: nothing is cut."""


class Out:
    """Where a command's answer goes. `json`: as JSON, one document or one line each."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.json = as_json
        self.console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)

    def line(self, text: str, style: str = "") -> None:
        """One line for people."""
        self.console.print(Text(printable(text), style), soft_wrap=True)

    def document(self, value: Any) -> None:
        """One JSON document."""
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))

    def record(self, value: Any) -> None:
        """One line of JSON."""
        click.echo(json.dumps(value, ensure_ascii=False))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows under headings; columns whose heading ends in `>` are aligned to the right."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in columns:
            table.add_column(heading.rstrip(">"), justify="right" if heading.endswith(">") else "left", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(printable(str(cell))) for cell in row))
        self.console.print(table)


class Progress:
    """How far a long work is, on stderr: a bar on a terminal, nothing elsewhere."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, max(total, 1), 0
        self._shown = sys.stderr.isatty()
        self._next, self._begun = 0.0, time.monotonic()

    def advance(self, by: int = 1) -> None:
        """So much more is done."""
        self._done += by
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + 0.1
            part = min(self._done / self._total, 1.0)
            bar = "█" * int(part * 30)
            rate = self._done / max(now - self._begun, 0.001)
            click.echo(f"\r{self._what} {bar:<30} {part:4.0%} {rate:,.0f}/s ", nl=False, err=True)

    def close(self) -> None:
        """Clear the bar."""
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True)
