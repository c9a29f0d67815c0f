"""The process as the actors of its tables see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, Protocol

from relance.api.common.v1 import reason_pb2
from relance.api.common.v1.game_pb2 import Currency, RakeSchedule
from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import EventLog
from relance.poker import Table, Transfer
from relance.poker.deck import CardSource
from relance.runtime import logging
from relance.runtime.clock import Clock
from relance.runtime.errors import Refused
from relance.table.metrics import TableMetrics
from relance.table.protections import Protections
from relance.table.timers import Timers

if TYPE_CHECKING:
    from relance.table.actor import Actor

P = ParamSpec("P")


class Publishing(Protocol):
    """Where durable events go beside the watchers (relance.eventlog.publish)."""

    def adopt_at(self, stream: str, head: int, mark: int) -> None:
        """Begin with a stream at its head, of which everything up to the mark was published."""

    def finish(self, stream: str) -> None:
        """Stop with a stream that is over, once all of it is published."""

    def drop(self, stream: str) -> None:
        """Stop with a stream, at once."""

    def publish(self, stream: str, events: Sequence[TableEvent], body: bytes | None = None) -> None:
        """The events of one append, and the public TableUpdate that holds them."""


class Asking(Protocol):
    """Who asks the wallet (relance.table.transfers)."""

    def ask(self, table: str, currency: Currency.ValueType, asked: Iterable[Transfer]) -> None:
        """Ask for these until the answer is definite."""

    def cash_out(self, account: str) -> str:
        """Id of a transfer that is on its way to a player's account; empty: there is none."""

    def forget(self, table: str) -> None:
        """The table is another process's now."""


@dataclass(slots=True)
class Host:
    """What an actor needs of its process. Everything that is not a function of a table's state comes through here."""

    process: str
    """Id of this run of the process, as the log's writer."""
    log: EventLog
    clock: Clock
    timers: Timers
    metrics: TableMetrics
    publisher: Publishing
    transfers: Asking
    protections: Protections
    deck: Callable[[Table], CardSource]
    """A fresh deck for the table's next hand."""
    rake: Callable[[Table], RakeSchedule | None]
    """The schedule that the next hand should adopt; None: the one in force."""
    left: Callable[[Actor], None] = field(init=False)
    """The actor runs its table no more."""
    snapshot: Callable[[Table], None] = field(init=False)
    """Keep the state, between hands."""
    draining: bool = field(default=False)
    _context: Context = field(default_factory=copy_context)

    def alone(self, work: Callable[P, None], *arguments: P.args, **named: P.kwargs) -> None:
        """Do what nobody asked for: not as a part of whichever request came last, but as one of its own."""

        def inside() -> None:
            with logging.request():
                work(*arguments, **named)

        self._context.copy().run(inside)

    def unavailable(self, table: str) -> Refused:
        """The refusal of a table that cannot act now."""
        return Refused(
            reason_pb2.REASON_TABLE_UNAVAILABLE, "The table cannot act now; locate it and ask again.", table=table
        )


def closed(table: str) -> Refused:
    """The refusal of a table that is closed for good."""
    return Refused(reason_pb2.REASON_TABLE_CLOSED, f"Table {table} is closed.", table=f"tables/{table}")
