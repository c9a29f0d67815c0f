"""A hand to be written: its events as the viewer may see them, and who played it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.names import Names
from relance.ops.source import Connection, LogSource
from relance.ops.viewer import Viewer

_OVER = frozenset({"hand_ended", "hand_voided"})


@dataclass(slots=True)
class HandRecord:
    """A hand that is over. Everything in it may be written for `who`. Amounts are minor units."""

    table: str
    number: int
    who: str
    config: game_pb2.TableConfig
    names: Names
    events: list[pb.TableEvent]
    told: list[tuple[str, Any]] = field(init=False)
    """The events' types and payloads."""
    players: list[pb.HandPlayer] = field(init=False)
    """By position: from the left of the button, clockwise; the button is last."""
    position: dict[int, int] = field(init=False)
    """Position of each seat."""

    def __post_init__(self) -> None:
        self.told = [(kind, getattr(event, kind)) for event in self.events if (kind := event.WhichOneof("payload"))]
        button = self.started.button
        self.players = sorted(self.started.players, key=lambda each: (each.seat <= button, each.seat))
        self.position = {each.seat: at for at, each in enumerate(self.players)}

    @property
    def started(self) -> pb.HandStarted:
        """Its first event."""
        return self.events[0].hand_started

    @property
    def time_us(self) -> int:
        """When it began."""
        return self.events[0].time_us

    @property
    def ended(self) -> pb.HandEnded | None:
        """How it was paid; None: it was voided."""
        last = self.events[-1]
        return last.hand_ended if last.HasField("hand_ended") else None

    @property
    def voided(self) -> pb.HandVoided | None:
        """Why it is void; None: it was paid."""
        last = self.events[-1]
        return last.hand_voided if last.HasField("hand_voided") else None

    @property
    def stacks_after(self) -> list[int]:
        """Stacks after the hand, by position."""
        ended, voided = self.ended, self.voided
        after = {each.seat: each.stack for each in (ended.results if ended is not None else ())}
        after |= {each.seat: each.stack for each in (voided.refunds if voided is not None else ())}
        return [after[each.seat] for each in self.players]

    def name(self, seat: int) -> str:
        """Name of the player of a seat."""
        return self.names[self.players[self.position[seat]].player]


async def records(
    source: LogSource, connection: Connection | None, table: str, who: str, *, after: int = 0, head: int | None = None
) -> AsyncIterator[HandRecord]:
    """The hands of a table that are over, after hand `after`, in order."""
    config = game_pb2.TableConfig()
    viewer, names = Viewer(who), Names()
    events: list[pb.TableEvent] = []
    start = await _start(source, table, after)
    if start:
        async for earlier in _configs(source, table, start):
            config = earlier
    async for page in source.rows(table, start, head):
        for row in page:
            if row.type == "table_opened":
                config = pb.TableEvent.FromString(row.body).table_opened.config
            elif row.type == "settings_changed":
                config = pb.TableEvent.FromString(row.body).settings_changed.config
            elif row.type == "hand_started":
                events = []
            if not row.hand:
                continue
            events.append(pb.TableEvent.FromString(row.body))
            if row.type in _OVER:
                await names.look_up(connection, [each.player for each in events[0].hand_started.players])
                yield HandRecord(table, row.hand, who, config, names, [viewer.see(event) for event in events])
                events = []


async def _start(source: LogSource, table: str, after: int) -> int:
    """Version of the last event of a hand."""
    bounds = await source.bounds(table, after) if after else None
    return bounds[1] if bounds is not None else 0


async def _configs(source: LogSource, table: str, upto: int) -> AsyncIterator[game_pb2.TableConfig]:
    async for page in source.rows(table, 0, upto):
        for row in page:
            if row.type == "table_opened":
                yield pb.TableEvent.FromString(row.body).table_opened.config
            elif row.type == "settings_changed":
                yield pb.TableEvent.FromString(row.body).settings_changed.config
