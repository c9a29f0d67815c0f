"""A table as one viewer may see it."""

from __future__ import annotations

from relance.api.table.v1 import table_pb2
from relance.poker.cards import render
from relance.poker.hand import ALL_IN, FOLDED, FROZEN, Hand
from relance.poker.pots import pots_of
from relance.poker.prompts import prompt
from relance.poker.table import Seat, Table


def view(table: Table, player: str | None = None, *, all_cards: bool = False) -> table_pb2.TableView:
    """The table for a player (own cards included), for anyone (None), or with all cards (operators, hand over only)."""
    hand = table.hand
    config = table.config
    seat = table.seat_of(player) if player else None
    shown = table_pb2.TableView(
        name=f"tables/{table.id}",
        version=table.version,
        last_hand=table.last_hand,
        button=hand.button if hand is not None else table.button,
        closed=table.closed,
        paused=table.paused,
        your_seat=seat.number if seat is not None else 0,
    )
    if config is not None:
        shown.config.CopyFrom(config)
        for number in range(1, config.seats + 1):
            shown.seats.append(_seat_view(table, number, player, all_cards))
    if hand is not None:
        _show_hand(shown, hand)
        asked = prompt(table)
        if asked is not None:
            shown.prompt.CopyFrom(asked.to_proto())
    return shown


def _show_hand(shown: table_pb2.TableView, hand: Hand) -> None:
    shown.hand = hand.number
    shown.board = render(hand.board)
    shown.pot = hand.pot
    shown.round = hand.round
    if hand.pot > sum(hand.bet):
        for pot in pots_of(_before_round(hand)):
            shown.pots.add(amount=pot.amount, eligible=[hand.seats[at] for at in pot.eligible])


def _before_round(hand: Hand) -> Hand:
    """The hand without the bets of the running round."""
    gathered = hand.copy()
    gathered.put = [put - bet for put, bet in zip(hand.put, hand.bet, strict=True)]
    return gathered


def _seat_view(table: Table, number: int, player: str | None, all_cards: bool) -> table_pb2.SeatView:
    seat = table.seats.get(number)
    if seat is None:
        hold = table.holds.get(number)
        return table_pb2.SeatView(seat=number, player=hold.player if hold else "", reserved=hold is not None)
    shown = table_pb2.SeatView(
        seat=number,
        player=seat.player,
        stack=table.stack(number),
        sitting_out=seat.sitting_out,
        connected=seat.connected,
        reserved=seat.reserved,
        chips_held=seat.held,
        leaving=bool(seat.leaving),
        waiting_for_big_blind=seat.wait and (seat.entry or seat.missed_big),
        time_bank_ms=seat.time_bank,
    )
    if table.hand is not None and number in table.hand.index:
        _cards(shown, table.hand, seat, all_cards or seat.player == player)
    return shown


def _cards(shown: table_pb2.SeatView, hand: Hand, seat: Seat, own: bool) -> None:
    at = hand.index[seat.number]
    status = hand.status[at]
    shown.in_hand = True
    shown.bet = hand.bet[at]
    shown.contributed = hand.put[at] + hand.dead[at]
    shown.folded = status == FOLDED
    shown.all_in = status in {ALL_IN, FROZEN}
    shown.up = render(hand.up[at])
    shown.down_count = len(hand.down[at])
    if own or hand.shown >> at & 1:
        shown.down = render(hand.down[at])
