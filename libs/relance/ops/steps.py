"""A hand step by step: after each event the table as the viewer saw it, and the event in words."""

from __future__ import annotations

from dataclasses import dataclass

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.ops.errors import NoAnswer
from relance.ops.events import running_of
from relance.ops.names import Names
from relance.ops.source import Connection, LogSource
from relance.ops.states import state_at
from relance.ops.viewer import Viewer, players_of
from relance.ops.words import Words
from relance.poker import apply


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a hand. `event` and `view` as the viewer may see them."""

    event: TableEvent
    said: str
    view: table_pb2.TableView


@dataclass(frozen=True, slots=True)
class HandSteps:
    """A hand from its start to its end, or as far as it has come."""

    table: str
    hand: int
    who: str
    steps: list[Step]
    names: Names
    over: bool


async def steps_of(source: LogSource, connection: Connection | None, table: str, hand: int, who: str) -> HandSteps:
    """A hand as a viewer saw it. Raises NoAnswer for a table or hand that is not there."""
    head = (await source.streams([table]))[0].head
    bounds = await source.bounds(table, hand)
    if bounds is None:
        state = await state_at(source, table)
        raise NoAnswer(f"table {table} has no hand {hand}; its hands are 1 to {state.last_hand}")
    running = await running_of(source, table, head)
    state = await state_at(source, table, bounds[0] - 1)
    viewer = Viewer(who, running=running)
    names = Names()
    currency = state.config.currency if state.config is not None else 0
    raw = [
        TableEvent.FromString(row.body) async for page in source.rows(table, bounds[0] - 1, bounds[1]) for row in page
    ]
    await names.look_up(connection, players_of(raw) | {seat.player for seat in state.seats.values()})
    words = Words(names, currency, {seat.number: seat.player for seat in state.seats.values()})
    steps: list[Step] = []
    shown = table_pb2.TableView()
    for event in raw:
        seen = viewer.see(event)
        apply(state, event)
        # When the hand is over its cards stay on the table until the next.
        shown = viewer.look(state) if state.hand is not None else _settled(shown, viewer.look(state))
        steps.append(Step(seen, words.say(seen), shown))
    return HandSteps(table, hand, who, steps, names, running != hand)


def _settled(before: table_pb2.TableView, after: table_pb2.TableView) -> table_pb2.TableView:
    """The table after a hand, with the cards that lay there when it ended."""
    view = table_pb2.TableView()
    view.CopyFrom(after)
    view.hand, view.board, view.round = before.hand or before.last_hand, before.board, before.round
    lay = {seat.seat: seat for seat in before.seats}
    for seat in view.seats:
        was = lay.get(seat.seat)
        if was is not None and was.in_hand and was.player == seat.player:
            seat.in_hand, seat.folded = True, was.folded
            seat.down, seat.up, seat.down_count = was.down, was.up, was.down_count
    return view
