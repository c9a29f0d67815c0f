"""`relance replay`: a hand in the terminal, forward, back, to any step."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator

import click
from rich.text import Text

from relance.ops.drawing import draw
from relance.ops.messages import event_record, plain
from relance.ops.names import printable
from relance.ops.output import Out
from relance.ops.steps import HandSteps

KEYS = "→ n space: forward   ← p: back   Home g: first   End G: last   digits Enter: jump to a step   q: end"

_WHOLE = re.compile(r"\x1b(\[[0-9;]*[A-Za-z~]|O.|[^\[O])", re.DOTALL)
"""A key that sends an escape sequence: CSI, SS3, or escape and one character."""
_FORWARD = frozenset({"n", " ", "\x1b[C", "l", "\x1b[B"})
_BACK = frozenset({"p", "\x1b[D", "h", "\x7f", "\x1b[A"})
_FIRST = frozenset({"g", "\x1b[H", "\x1b[1~"})
_LAST = frozenset({"G", "\x1b[F", "\x1b[4~"})
_END = frozenset({"q", "\x03", "\x04", "\x1b"})


def show_steps(hand: HandSteps, out: Out) -> None:
    """Print every step."""
    if out.json:
        out.document(
            {
                "table": hand.table,
                "hand": hand.hand,
                "as": hand.who,
                "over": hand.over,
                "players": {seat.player: hand.names[seat.player] for seat in hand.steps[0].view.seats if seat.player},
                "steps": [
                    {"event": event_record(step.event), "said": step.said, "view": plain(step.view)}
                    for step in hand.steps
                ],
            }
        )
        return
    for number in range(len(hand.steps)):
        out.console.print(screen(hand, number))
        out.console.print()


def screen(hand: HandSteps, number: int) -> Text:
    """One step: where we are, what happened, the table."""
    step = hand.steps[number]
    place = f"{hand.table} hand {hand.hand} as {hand.names[hand.who]}, step {number + 1} of {len(hand.steps)}"
    return Text("\n").join([Text(printable(place), "dim"), Text(step.said, "bold yellow"), draw(step.view, hand.names)])


def browse(hand: HandSteps, out: Out) -> None:
    """Step through the hand by keys, on a terminal."""
    number, digits = 0, ""
    with _raw_keys():
        while True:
            out.console.clear()
            out.console.print(screen(hand, number))
            out.console.print()
            out.console.print(Text(KEYS + (f"   jump to {digits}" if digits else ""), "dim"))
            key = _key()
            if key in _END:
                return
            if key.isdigit():
                digits += key
            elif key in {"\r", "\n"} and digits:
                number, digits = min(max(int(digits), 1), len(hand.steps)) - 1, ""
            else:
                digits = ""
                number = moved(key, number, len(hand.steps))


def moved(key: str, number: int, count: int) -> int:
    """The step that a key leads to."""
    if key in _FORWARD:
        return min(number + 1, count - 1)
    if key in _BACK:
        return max(number - 1, 0)
    if key in _FIRST:
        return 0
    return count - 1 if key in _LAST else number


@contextlib.contextmanager
def _raw_keys() -> Iterator[None]:
    """Keys come one by one, unechoed; the terminal is as before afterwards."""
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to step in; give --steps to print every step")
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key() -> str:
    """The next key; those that send several characters as one, and no more than one of a key that is held down."""
    found = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
    while found.startswith("\x1b") and not _WHOLE.fullmatch(found) and select.select([sys.stdin], [], [], 0.02)[0]:
        found += os.read(sys.stdin.fileno(), 1).decode(errors="replace")
    return found
