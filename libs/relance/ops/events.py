"""`relance events`: a table's log, event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.ops.errors import NoAnswer
from relance.ops.messages import event_record
from relance.ops.names import Names
from relance.ops.output import Out
from relance.ops.source import Connection, LogSource
from relance.ops.states import state_at
from relance.ops.viewer import Viewer, players_of
from relance.ops.words import Words, when

POLL = 0.5
"""Seconds between two looks at a log that is followed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events. `hand` 0: all; `first`, `last` 0: from the beginning, to the end; `types` empty: all."""

    table: str
    hand: int = 0
    first: int = 0
    last: int = 0
    types: frozenset[str] = frozenset()
    follow: bool = False


def check_types(types: tuple[str, ...]) -> frozenset[str]:
    """Types as the log calls them; HandStarted is hand_started too. Raises NoAnswer for an unknown one."""
    known = {field.name for field in TableEvent.DESCRIPTOR.oneofs_by_name["payload"].fields}
    found = set()
    for given in types:
        spelled = (
            "".join(f"_{char.lower()}" if char.isupper() else char for char in given).lstrip("_").replace("-", "_")
        )
        if spelled not in known:
            near = [name for name in sorted(known) if spelled.split("_")[0] in name] or sorted(known)
            raise NoAnswer(f"there is no event {given!r}; there are {', '.join(near)}")
        found.add(spelled)
    return frozenset(found)


async def wanted_events(source: LogSource, wanted: Wanted, who: str) -> AsyncIterator[TableEvent]:
    """The events wanted as the viewer may see them, in order; following never ends by itself.

    Raises NoAnswer for a table or hand that is not there.
    """
    head = (await source.streams([wanted.table]))[0].head
    after, upto = max(wanted.first - 1, 0), wanted.last or None
    if wanted.hand:
        bounds = await source.bounds(wanted.table, wanted.hand)
        if bounds is None:
            raise NoAnswer(f"table {wanted.table} has no hand {wanted.hand}")
        after, upto = max(after, bounds[0] - 1), min(upto or bounds[1], bounds[1])
    start = await _hand_start(source, wanted.table, after)
    while True:
        viewer = Viewer(who, running=await running_of(source, wanted.table, head))
        async for page in source.rows(wanted.table, start, upto):
            for row in page:
                event = viewer.see(TableEvent.FromString(row.body))
                if row.version > after and (not wanted.types or row.type in wanted.types):
                    yield event
                start = after = max(after, row.version)
        if not wanted.follow or (upto is not None and after >= upto):
            return
        start = await _hand_start(source, wanted.table, after)
        head = await _grown(source, wanted.table, after)


async def _grown(source: LogSource, table: str, after: int) -> int:
    """Wait until the log reaches beyond a version; its head."""
    while True:
        head = (await source.streams([table]))[0].head
        if head > after:
            return head
        await asyncio.sleep(POLL)


async def running_of(source: LogSource, table: str, head: int) -> int:
    """Number of the hand that runs at the table as of a version; 0: none."""
    running = 0
    kept = await source.snapshot(table, head)
    async for page in source.rows(table, kept.version if kept is not None else 0, head):
        for row in page:
            if row.type == "hand_started":
                running = row.hand
            elif row.type in {"hand_ended", "hand_voided"}:
                running = 0
    return running


async def _hand_start(source: LogSource, table: str, after: int) -> int:
    """Version before the hand in which the event after `after` stands: who plays it is said at its start."""
    async for page in source.rows(table, after, after + 1):
        hand = page[0].hand
        bounds = await source.bounds(table, hand) if hand else None
        if bounds is not None:
            return min(bounds[0] - 1, after)
    return after


async def _seated(source: LogSource, wanted: Wanted) -> dict[int, str]:
    """Who sits where before the first event that is wanted; nobody, where the log cannot be replayed up to there."""
    bounds = await source.bounds(wanted.table, wanted.hand) if wanted.hand else None
    before = max(bounds[0] if bounds is not None else 1, wanted.first) - 1
    if before < 1:
        return {}
    try:
        state = await state_at(source, wanted.table, before)
    except NoAnswer:
        return {}
    return {seat.number: seat.player for seat in state.seats.values()}


async def config_of(source: LogSource, table: str) -> game_pb2.TableConfig:
    """What a table was opened with. Raises NoAnswer where its first event is missing."""
    async for page in source.rows(table, 0, 1):
        return TableEvent.FromString(page[0].body).table_opened.config
    raise NoAnswer(f"table {table} has no first event")


async def show(
    source: LogSource, connection: Connection | None, wanted: Wanted, who: str, out: Out, *, as_table: bool
) -> int:
    """Print the events; how many there were."""
    await source.streams([wanted.table])
    names, count = Names(), 0
    words = Words(names, (await config_of(source, wanted.table)).currency)
    words.seats.update(await _seated(source, wanted))
    await names.look_up(connection, words.seats.values())
    rows: list[list[object]] = []
    async for event in wanted_events(source, wanted, who):
        count += 1
        if out.json:
            out.record(event_record(event))
            continue
        await names.look_up(connection, players_of([event]))
        said = words.say(event)
        if as_table and not wanted.follow:
            rows.append([event.version, event.hand or "", when(event.time_us), event.WhichOneof("payload"), said])
        else:
            out.line(f"{event.version:>6} {when(event.time_us)} {said}")
    if rows:
        out.table(["version>", "hand>", "time (UTC)", "type", "what"], rows)
    return count
