"""Tables as a view shows them, for tests of what is drawn."""

from __future__ import annotations

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.play.drawing import Scene, Seconds
from relance.play.glyphs import SYMBOLS, Glyphs
from relance.play.recap import Recap


def config(seats: int = 6) -> game_pb2.TableConfig:
    """A no-limit table 0.50/1.00."""
    return game_pb2.TableConfig(
        house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, seats=seats, currency=game_pb2.CURRENCY_EUR,
        stakes=game_pb2.Stakes(blinds=[50, 100], low_limit=100), min_buy_in=2_000, max_buy_in=10_000,
        display_name="Blue room",
    )  # fmt: skip


def playing(seats: int = 6, mine: int = 1, *, cards: int = 2, own: str = "AsKd") -> pb.TableView:
    """A hand in its middle: every seat is taken by p1, p2 …, everybody has cards, the viewer those in `own`."""
    view = pb.TableView(name="tables/t1", version=9, config=config(seats), hand=7, last_hand=7, button=1, round=1)
    for number in range(1, seats + 1):
        view.seats.add(seat=number, player=f"p{number}", stack=10_000 + number, connected=True, in_hand=True)
        view.seats[-1].down_count = cards
    if mine:
        view.your_seat = mine
        view.seats[mine - 1].down = own
    return view


def asked(view: pb.TableView, seat: int, *actions: pb.ActionKind.ValueType, **more: object) -> pb.TableView:
    """The view with a prompt."""
    view.prompt.CopyFrom(
        pb.Prompt(turn=view.version, seat=seat, kind=pb.PROMPT_KIND_BET, actions=actions, hand=view.hand, **more)  # type: ignore[arg-type]
    )
    return view


def scene(
    view: pb.TableView,
    *,
    recap: Recap | None = None,
    seconds: Seconds | None = None,
    glyphs: Glyphs = SYMBOLS,
) -> Scene:
    """The view with names: "Player 1" …"""
    names = {seat.player: f"Player {seat.seat}" for seat in view.seats}
    return Scene(view, names, recap or Recap(), seconds, glyphs)
