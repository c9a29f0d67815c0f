"""Notices of the room: what became of a player's chips, in a line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.text import Text

from relance.api.table.v1 import table_pb2 as pb
from relance.play.glyphs import Glyphs, clean, fit, money

#: Kinds that stay until the player has seen them; others are news of the moment.
LASTING: Final = frozenset({"REFUND", "CASHED_OUT"})
_WHY: Final = {
    "CRASH": "server crash",
    "DRAIN": "server shut down",
    "OPERATOR": "by the floor",
    "MISDEAL": "misdeal",
    "NOT_ENOUGH_PLAYERS": "too few posted",
}


def notices_text(notices: Iterable[pb.Notice], currency: int, glyphs: Glyphs) -> str:
    """Hand, reason and amounts of those that last, each once, the newest last; empty: there are none."""
    lasting = {(notice.hand, notice.kind, notice.time_us): notice for notice in notices if notice.kind in LASTING}
    hands: dict[tuple[int, int], list[pb.Notice]] = {}
    for notice in lasting.values():
        hands.setdefault((notice.hand, notice.time_us), []).append(notice)
    return "; ".join(_told(told, currency, glyphs) for told in hands.values())


def _told(notices: list[pb.Notice], currency: int, glyphs: Glyphs) -> str:
    why = _WHY.get(notices[0].reason, notices[0].reason.lower())
    hand = next((notice.hand for notice in notices if notice.kind == "REFUND"), 0)
    parts = []
    for notice in notices:
        amount = money(notice.amount, currency, glyphs)
        where = "back" if notice.kind == "REFUND" else "to your account"
        parts.append(f"{amount} {where}")
    begin = f"Hand {hand} void ({why})" if hand else f"Seat lost ({why})"
    return f"{begin}: {', '.join(parts)}"


def notice_bar(text: str, width: int, glyphs: Glyphs) -> Text:
    """A line of a screen with what was said, and the key for having seen it."""
    seen = "  k: seen "
    said = fit(Text(f" {text}"), width - len(seen), ellipsis=glyphs.ellipsis)
    return Text.assemble(said, seen, style="bold reverse")


def news_text(notice: pb.Notice) -> str:
    """A notice of the moment, as the room words it."""
    return clean(notice.text)
