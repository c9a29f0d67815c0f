"""A table drawn in lines of text, as one viewer may see it."""

from __future__ import annotations

from rich.text import Text

from relance.api.table.v1 import table_pb2
from relance.ops.names import Names, printable
from relance.ops.words import amount, cards

_RED = "hd"


def draw(view: table_pb2.TableView, names: Names) -> Text:
    """The table: a head line, one line a seat that is held, the board and the pots."""
    currency = view.config.currency
    lines = [Text(_head(view), "bold")]
    asked = view.prompt.seat if view.HasField("prompt") else 0
    for seat in view.seats:
        if seat.player:
            lines.append(_seat(view, seat, names, asked))
    if view.hand:
        lines.append(Text.assemble("  board  ", _cards(view.board) if view.board else Text("none", "dim")))
        pots = " + ".join(amount(pot.amount, currency) for pot in view.pots)
        lines.append(Text(f"  pot    {amount(view.pot, currency)}{f' ({pots} and bets)' if pots else ''}"))
    return Text("\n").join(lines)


def _head(view: table_pb2.TableView) -> str:
    state = "closed" if view.closed else "paused" if view.paused else ""
    hand = f"hand {view.hand}, round {view.round}" if view.hand else f"between hands, {view.last_hand} played"
    said = f"{view.name.removeprefix('tables/')} version {view.version}: {hand}{', ' + state if state else ''}"
    return printable(said)


def _seat(view: table_pb2.TableView, seat: table_pb2.SeatView, names: Names, asked: int) -> Text:
    currency = view.config.currency
    mark = "▶" if seat.seat == asked else " "
    button = "D" if seat.seat == view.button else " "
    line = Text(f"{mark} {seat.seat:>2}{button} {_padded(printable(names[seat.player]), 20)} ")
    line.append(f"{amount(seat.stack, currency):>12}")
    if seat.in_hand:
        hidden = seat.down_count - len(seat.down) // 2
        line.append("  ")
        line.append_text(_cards(seat.down))
        line.append(" ".join(["", *["??"] * hidden]) if seat.down and hidden else " ".join(["??"] * hidden))
        if seat.up:
            line.append(" | ")
            line.append_text(_cards(seat.up))
        if seat.bet:
            line.append(f"  bets {amount(seat.bet, currency)}", "cyan")
    said = [
        word
        for word, holds in (
            ("folded", seat.folded),
            ("all-in", seat.all_in),
            ("reserved", seat.reserved),
            ("sits out", seat.sitting_out),
            ("disconnected", not seat.connected),
            ("leaving", seat.leaving),
            ("waits for the big blind", seat.waiting_for_big_blind),
        )
        if holds
    ]
    if seat.chips_held:
        said.append(f"{amount(seat.chips_held, currency)} join at the next hand")
    if said:
        line.append(f"  {', '.join(said)}", "dim")
    if seat.folded:
        line.stylize("dim")
    return line


def _cards(text: str) -> Text:
    shown = Text()
    for number, card in enumerate(cards(text).split()):
        if number:
            shown.append(" ")
        shown.append(card, "bold red" if card[1] in _RED else "bold")
    return shown


def _padded(text: str, width: int) -> str:
    short = text if len(text) <= width else text[: width - 1] + "…"
    return short.ljust(width)
