"""What durable events mean outside the table: to the wallet, the metrics, the log, the players of a void hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import structlog

from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.poker import Table, Transfer
from relance.table import notices
from relance.table.audience import Audience
from relance.table.host import Host

log = structlog.get_logger(__name__)

Effect = Callable[[Host, Table, Audience | None, TableEvent], None]


def follow(host: Host, table: Table, audience: Audience | None, events: Sequence[TableEvent]) -> bool:
    """Do what the events of an append ask for; the table has them applied already. Whether seats may expire sooner."""
    sooner = False
    for event in events:
        kind = event.WhichOneof("payload") or ""
        effect = _EFFECTS.get(kind)
        if effect is not None:
            effect(host, table, audience, event)
        sooner = sooner or kind in _TIMED
    return sooner


_TIMED = frozenset({"owner_started", "seat_reserved", "seat_held", "connection_lost", "settings_changed"})


def _ask_wallet(host: Host, table: Table, asked: Iterable[Transfer]) -> None:
    if table.config is not None:
        host.transfers.ask(table.id, table.config.currency, asked)


def _owner_started(host: Host, table: Table, audience: Audience | None, event: TableEvent) -> None:
    """What the owner before asked for and got no answer to is asked for again."""
    _ask_wallet(host, table, table.transfers.values())


def _transfer_requested(host: Host, table: Table, audience: Audience | None, event: TableEvent) -> None:
    asked = table.transfers.get(event.transfer_requested.transfer)
    if asked is not None:
        _ask_wallet(host, table, [asked])


def _hand_ended(host: Host, table: Table, audience: Audience | None, event: TableEvent) -> None:
    host.metrics.paid.inc()


def _hand_voided(host: Host, table: Table, audience: Audience | None, event: TableEvent) -> None:
    host.metrics.voided.inc()
    void = event.hand_voided
    log.info("hand voided", table=table.id, hand=event.hand, why=events_pb2.VoidReason.Name(void.reason))
    if audience is not None:
        for refund in void.refunds:
            audience.tell(refund.player, notices.refund(event.hand, refund.amount, void.reason, event.time_us))


# By the name of the payload.
_EFFECTS: dict[str, Effect] = {
    "owner_started": _owner_started,
    "transfer_requested": _transfer_requested,
    "hand_ended": _hand_ended,
    "hand_voided": _hand_voided,
}
