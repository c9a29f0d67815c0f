"""The client's own state of a table: a TableView moved on by events, so that it equals the server's at each version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2

View = table_pb2.TableView
_Applier = Callable[[View, Any, str], None]

_INBOUND = frozenset({events_pb2.TRANSFER_PURPOSE_BUY_IN, events_pb2.TRANSFER_PURPOSE_TOP_UP})
_APPLIERS: dict[str, _Applier] = {}

# Events by which a prompt is answered or void. A fold is one only from the seat that is asked.
_ANSWERS = frozenset(
    {
        "ante_posted", "blind_posted", "bring_in_posted", "checked", "called", "bet_made", "raised", "timed_out",
        "protection_used", "cards_discarded", "split_offered", "split_answered", "hand_shown", "hand_mucked",
        "round_ended", "hand_started", "hand_ended", "hand_voided", "dealing_fault_ruled", "table_closed",
    }
)  # fmt: skip


def apply(view: View, event: events_pb2.TableEvent, player: str) -> None:
    """Move a view on by the next event, as `player` may see it. A kind newer than this client only counts."""
    kind = event.WhichOneof("payload") or ""
    view.version = event.version
    if kind in _ANSWERS or (kind == "folded" and view.prompt.seat == event.folded.seat):
        view.ClearField("prompt")
    applier = _APPLIERS.get(kind)
    if applier is not None:
        if kind == "hand_started":
            view.hand = view.last_hand = event.hand
        applier(view, getattr(event, kind), player)


def _applies(kind: str) -> Callable[[_Applier], _Applier]:
    def register(applier: _Applier) -> _Applier:
        _APPLIERS[kind] = applier
        return applier

    return register


def _seat(view: View, number: int) -> table_pb2.SeatView:
    return view.seats[number - 1]


def _free(view: View, number: int) -> None:
    if view.your_seat == number:
        view.your_seat = 0
    seat = _seat(view, number)
    seat.Clear()
    seat.seat = number


def _put(view: View, event: Any, *, bet: bool = True) -> None:
    """Chips go from a stack into the hand."""
    seat = _seat(view, event.seat)
    seat.stack -= event.amount
    seat.contributed += event.amount
    view.pot += event.amount
    if bet:
        seat.bet += event.amount
    if event.all_in:
        seat.all_in = True


def _clear_hand(view: View) -> None:
    view.hand = 0
    view.round = 0
    view.pot = 0
    view.board = ""
    view.ClearField("pots")
    for seat in view.seats:
        for field in ("bet", "contributed", "in_hand", "folded", "all_in", "down_count", "down", "up"):
            seat.ClearField(field)


@_applies("table_opened")
def _(view: View, event: events_pb2.TableOpened, player: str) -> None:
    view.config.CopyFrom(event.config)
    del view.seats[:]
    view.seats.extend(table_pb2.SeatView(seat=number) for number in range(1, event.config.seats + 1))


@_applies("settings_changed")
def _(view: View, event: events_pb2.SettingsChanged, player: str) -> None:
    view.config.CopyFrom(event.config)


@_applies("table_closed")
def _(view: View, event: events_pb2.TableClosed, player: str) -> None:
    view.closed = True


@_applies("table_paused")
def _(view: View, event: events_pb2.TablePaused, player: str) -> None:
    view.paused = True


@_applies("table_resumed")
def _(view: View, event: events_pb2.TableResumed, player: str) -> None:
    view.paused = False


@_applies("seat_reserved")
def _(view: View, event: events_pb2.SeatReserved, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.player, seat.reserved, seat.connected = event.player, True, True
    seat.waiting_for_big_blind = event.wait_for_big_blind
    if event.player == player:
        view.your_seat = event.seat


@_applies("seat_released")
def _(view: View, event: events_pb2.SeatReleased, player: str) -> None:
    _free(view, event.seat)


@_applies("player_sat")
def _(view: View, event: events_pb2.PlayerSat, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.stack += event.stack
    seat.chips_held -= event.stack
    seat.player, seat.reserved = event.player, False
    if event.player == player:
        view.your_seat = event.seat


@_applies("chips_added")
def _(view: View, event: events_pb2.ChipsAdded, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.stack += event.amount
    seat.chips_held -= event.amount


@_applies("transfer_settled")
def _(view: View, event: events_pb2.TransferSettled, player: str) -> None:
    seat = _seat(view, event.seat)
    if event.purpose in _INBOUND and seat.player == event.player:
        seat.chips_held += event.amount


@_applies("player_sat_out")
def _(view: View, event: events_pb2.PlayerSatOut, player: str) -> None:
    _seat(view, event.seat).sitting_out = True


@_applies("player_sat_in")
def _(view: View, event: events_pb2.PlayerSatIn, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.sitting_out = False
    seat.waiting_for_big_blind = event.wait_for_big_blind


@_applies("player_left")
def _(view: View, event: events_pb2.PlayerLeft, player: str) -> None:
    _free(view, event.seat)


@_applies("connection_lost")
def _(view: View, event: events_pb2.ConnectionLost, player: str) -> None:
    _seat(view, event.seat).connected = False


@_applies("connection_restored")
def _(view: View, event: events_pb2.ConnectionRestored, player: str) -> None:
    _seat(view, event.seat).connected = True


@_applies("leave_requested")
def _(view: View, event: events_pb2.LeaveRequested, player: str) -> None:
    _seat(view, event.seat).leaving = True


@_applies("hand_started")
def _(view: View, event: events_pb2.HandStarted, player: str) -> None:
    view.button = event.button
    view.round = 1
    for dealt in event.players:
        seat = _seat(view, dealt.seat)
        seat.in_hand, seat.stack, seat.waiting_for_big_blind = True, dealt.stack, False


@_applies("ante_posted")
def _(view: View, event: events_pb2.AntePosted, player: str) -> None:
    _put(view, event, bet=False)


@_applies("blind_posted")
def _(view: View, event: events_pb2.BlindPosted, player: str) -> None:
    _put(view, event, bet=event.kind != events_pb2.BLIND_KIND_DEAD)


@_applies("bring_in_posted")
@_applies("called")
@_applies("bet_made")
@_applies("raised")
def _(view: View, event: Message, player: str) -> None:
    _put(view, event)


@_applies("cards_dealt")
def _(view: View, event: events_pb2.CardsDealt, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.down += event.down
    seat.up += event.up
    seat.down_count += event.down_count


@_applies("board_dealt")
def _(view: View, event: events_pb2.BoardDealt, player: str) -> None:
    view.board += event.cards


@_applies("folded")
def _(view: View, event: events_pb2.Folded, player: str) -> None:
    _seat(view, event.seat).folded = True


@_applies("protection_used")
def _(view: View, event: events_pb2.ProtectionUsed, player: str) -> None:
    _seat(view, event.seat).all_in = True


@_applies("cards_discarded")
def _(view: View, event: events_pb2.CardsDiscarded, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.down_count -= event.count
    gone = {event.cards[start : start + 2] for start in range(0, len(event.cards), 2)}
    seat.down = "".join(card for card in cards(seat.down) if card not in gone)


@_applies("cards_drawn")
def _(view: View, event: events_pb2.CardsDrawn, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.down += event.cards
    seat.down_count += event.count


@_applies("uncalled_returned")
def _(view: View, event: events_pb2.UncalledReturned, player: str) -> None:
    seat = _seat(view, event.seat)
    seat.stack += event.amount
    seat.contributed -= event.amount
    seat.bet = max(seat.bet - event.amount, 0)
    view.pot -= event.amount


@_applies("hand_shown")
def _(view: View, event: events_pb2.HandShown, player: str) -> None:
    seat = _seat(view, event.seat)
    up = set(cards(seat.up))
    seat.down = "".join(card for card in cards(event.cards) if card not in up)


@_applies("round_ended")
def _(view: View, event: events_pb2.RoundEnded, player: str) -> None:
    for seat in view.seats:
        seat.bet = 0
    view.round = event.round + 1


@_applies("pot_awarded")
def _(view: View, event: events_pb2.PotAwarded, player: str) -> None:
    for share in event.shares:
        _seat(view, share.seat).stack += share.amount
        view.pot -= share.amount


@_applies("rake_taken")
def _(view: View, event: events_pb2.RakeTaken, player: str) -> None:
    view.pot -= event.amount


@_applies("hand_ended")
def _(view: View, event: events_pb2.HandEnded, player: str) -> None:
    _clear_hand(view)
    for result in event.results:
        _seat(view, result.seat).stack = result.stack


@_applies("hand_voided")
def _(view: View, event: events_pb2.HandVoided, player: str) -> None:
    _clear_hand(view)
    for refund in event.refunds:
        _seat(view, refund.seat).stack = refund.stack


def cards(text: str) -> list[str]:
    """The cards of "AsKd": ["As", "Kd"]."""
    return [text[start : start + 2] for start in range(0, len(text), 2)]
