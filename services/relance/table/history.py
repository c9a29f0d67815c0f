"""A player's own hands and sessions at a table, as the player may see them."""

from __future__ import annotations

from collections.abc import Sequence

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.eventlog import EventLog
from relance.poker import Table

_CHUNK = 500
_MOST = 5_000
"""Events that one page may read."""


async def own_hands(
    log: EventLog, table: str, player: str, before: int, count: int
) -> tuple[list[table_pb2.HandSummary], int]:
    """Up to `count` hands that the player was dealt into and that began before a version, newest first; and the version
    before which the next page looks (0: there is no more). Raises Unavailable.
    """
    found: list[table_pb2.HandSummary] = []
    later: list[TableEvent] = []  # events read, of hands whose beginning was not
    at = before - 1
    read = 0
    while at > 0 and read < _MOST:
        start = max(0, at - _CHUNK)
        chunk = await log.read(table, start, at - start)
        read += len(chunk)
        events = [*chunk, *later]
        for place in range(len(chunk) - 1, -1, -1):
            if events[place].WhichOneof("payload") != "hand_started":
                continue
            hand = events[place].hand
            of_hand = [event for event in events[place:] if event.hand == hand]
            events = events[:place]
            before = of_hand[0].version
            summary = _summary(of_hand, player)
            if summary is not None:
                found.append(summary)
                if len(found) == count:
                    return found, before if before > 1 else 0
        later = [event for event in events if event.hand]
        if not later:
            before = start + 1
        at = start
    return found, before if at > 0 else 0


def _summary(events: Sequence[TableEvent], player: str) -> table_pb2.HandSummary | None:
    """A hand for a player; None: not dealt in."""
    first = events[0]
    seat = next((each.seat for each in first.hand_started.players if each.player == player), 0)
    if not seat:
        return None
    hand = table_pb2.HandSummary(hand=first.hand, start_time_us=first.time_us, seat=seat)
    down: list[str] = []
    up: list[str] = []
    for event in events:
        payload = getattr(event, event.WhichOneof("payload") or "")
        match event.WhichOneof("payload"):
            case "cards_dealt" if payload.seat == seat:
                down += _cards(payload.down)
                up += _cards(payload.up)
            case "cards_discarded" if payload.seat == seat:
                gone = set(_cards(payload.cards))
                down = [card for card in down if card not in gone]
            case "cards_drawn" if payload.seat == seat:
                down += _cards(payload.cards)
            case "board_dealt":
                hand.board += payload.cards
            case "hand_ended":
                result = next(each for each in payload.results if each.seat == seat)
                hand.end_time_us, hand.pot, hand.rake = event.time_us, payload.pot, payload.rake
                hand.net, hand.contributed = result.net, result.contributed
            case "hand_voided":
                hand.end_time_us, hand.void = event.time_us, True
    hand.cards = "".join([*down, *up])
    return hand


def _cards(text: str) -> list[str]:
    return [text[place : place + 2] for place in range(0, len(text), 2)]


def session_of(table: Table, player: str) -> table_pb2.Session | None:
    """The player's sitting at the table, the running one or else the last; None: there is none."""
    name = f"tables/{table.id}"
    seat = table.seat_of(player)
    if seat is not None and not seat.reserved:
        chips = seat.stack + seat.held
        return table_pb2.Session(
            table=name,
            seat=seat.number,
            start_time_us=seat.since,
            bought_in=seat.bought,
            cashed_out=chips,
            net=chips - seat.bought,
            hands=seat.hands,
        )
    last = table.sessions.get(player)
    if last is None:
        return None
    return table_pb2.Session(
        table=name,
        seat=last.seat,
        start_time_us=last.since,
        end_time_us=last.until,
        bought_in=last.bought_in,
        cashed_out=last.cashed_out,
        net=last.cashed_out - last.bought_in,
        hands=last.hands,
        leave_reason=last.reason,  # type: ignore[arg-type]
    )
