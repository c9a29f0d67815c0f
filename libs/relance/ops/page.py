"""`relance replay --html`: a hand as one page that plays itself: no server, no network, nothing beside it."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from relance.api.table.v1 import table_pb2
from relance.ops.errors import NoAnswer
from relance.ops.names import Names
from relance.ops.steps import HandSteps
from relance.ops.words import amount, when


def page(hand: HandSteps) -> str:
    """The page. What it says comes from the steps alone: nothing that the viewer could not see is in it."""
    template = files("relance.ops").joinpath("page.html").read_text(encoding="utf-8")
    title = f"{hand.table}, hand {hand.hand}"
    first = hand.steps[0]
    value = {
        "title": title,
        "about": f"as {hand.names[hand.who]} saw it, {when(first.event.time_us)} UTC",
        "steps": [
            {"version": step.event.version, "said": step.said, **_shown(step.view, hand.names)} for step in hand.steps
        ],
    }
    # Inside a script element nothing may look like its end, whatever a name holds.
    data = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return template.replace("@TITLE@", html.escape(title)).replace("@HAND@", data)


def write_page(hand: HandSteps, file: Path) -> None:
    """Write the page to a file. Raises NoAnswer where that cannot be written."""
    try:
        file.write_text(page(hand), encoding="utf-8")
    except OSError as error:
        raise NoAnswer(f"{file} cannot be written: {error.strerror}") from error


def _shown(view: table_pb2.TableView, names: Names) -> dict[str, Any]:
    currency = view.config.currency
    asked = view.prompt.seat if view.HasField("prompt") else 0
    return {
        "seats": [_seat(view, seat, names, asked) for seat in view.seats if seat.player],
        "board": _cards(view.board),
        "pot": f"pot {amount(view.pot, currency)}",
        "pots": " + ".join(amount(pot.amount, currency) for pot in view.pots) if len(view.pots) > 1 else "",
    }


def _seat(view: table_pb2.TableView, seat: table_pb2.SeatView, names: Names, asked: int) -> dict[str, Any]:
    currency = view.config.currency
    hidden = ["??"] * (seat.down_count - len(seat.down) // 2) if seat.in_hand else []
    words = (
        ("all-in", seat.all_in),
        ("folded", seat.folded),
        ("sits out", seat.sitting_out),
        ("away", not seat.connected),
    )
    return {
        "seat": seat.seat,
        "name": names[seat.player],
        "stack": amount(seat.stack, currency),
        "bet": amount(seat.bet, currency) if seat.bet else "",
        "cards": [*_cards(seat.down), *hidden, *_cards(seat.up)],
        "dealer": seat.seat == view.button,
        "asked": seat.seat == asked,
        "folded": seat.folded,
        "note": ", ".join(word for word, holds in words if holds),
    }


def _cards(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(0, len(text), 2)]
