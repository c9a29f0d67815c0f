"""`relance refunds`: every hand that was voided: why, who got what, by which transfer, and whether it has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import asyncpg

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.events import config_of
from relance.ops.names import Names
from relance.ops.output import Out
from relance.ops.source import Connection, PostgresSource
from relance.ops.words import amount, counted, iso, when, word

STACK, WAITING, MOVED, SETTLED, REFUSED = "on the stack", "waiting", "moved", "settled", "refused"

_VOIDED = """
SELECT stream, version, append_id, body FROM log.event
WHERE type = 'hand_voided' AND time_us >= $1 AND ($2::text[] = '{}' OR stream = ANY($2))
ORDER BY time_us, stream, version
"""
_APPEND = "SELECT body FROM log.event WHERE stream = $1 AND version > $2 AND append_id = $3 ORDER BY version"
_ANSWERS = """
SELECT version, body FROM log.event
WHERE stream = $1 AND version > $2 AND type IN ('transfer_settled', 'transfer_refused') ORDER BY version
"""
_WRITTEN = "SELECT key, coalesce(refusal, '') AS refusal FROM wallet.transfer WHERE key = ANY($1::text[])"


@dataclass(slots=True)
class Back:
    """What went back to one player. Minor units. `amount`: from the pot; `paid_out`: their stack, by `transfer`.

    `state`: on the stack (seats were kept), waiting for the wallet, moved (the table has not heard yet), settled,
    refused (`why`).
    """

    seat: int
    player: str
    name: str
    amount: int
    stack: int
    paid_out: int = 0
    transfer: str = ""
    state: str = STACK
    settled_version: int = 0
    why: str = ""


@dataclass(slots=True)
class Voided:
    """A hand that was voided. `version`: of the event that says so."""

    table: str
    hand: int
    version: int
    time_us: int
    currency: int
    reason: str
    operator: str
    note: str
    back: list[Back] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Chips that went back from the pot."""
        return sum(each.amount for each in self.back)


async def voided_hands(source: PostgresSource, tables: Sequence[str] = (), since_us: int = 0) -> list[Voided]:
    """Voided hands, oldest first."""
    connection = source.connection
    found: list[Voided] = []
    names = Names()
    currencies: dict[str, int] = {}
    for stream, version, append_id, body in await connection.fetch(_VOIDED, since_us, list(tables)):
        event = pb.TableEvent.FromString(body)
        if stream not in currencies:
            currencies[stream] = (await config_of(source, stream)).currency
        void = event.hand_voided
        await names.look_up(connection, [refund.player for refund in void.refunds])
        hand = Voided(
            stream, event.hand, version, event.time_us, currencies[stream], word(void.reason, pb.VoidReason),
            void.operator, void.note,
            [Back(each.seat, each.player, names[each.player], each.amount, each.stack) for each in void.refunds],
        )  # fmt: skip
        rest = await connection.fetch(_APPEND, stream, version, append_id)
        _paid_out(hand, [pb.TableEvent.FromString(row["body"]) for row in rest])
        await _answered(connection, hand)
        found.append(hand)
    return found


def _paid_out(hand: Voided, rest: Sequence[pb.TableEvent]) -> None:
    """The cash-outs of the same append (C3)."""
    by_seat = {each.seat: each for each in hand.back}
    for event in rest:
        asked = event.transfer_requested
        each = by_seat.get(asked.seat) if event.HasField("transfer_requested") else None
        if each is not None and asked.purpose == pb.TRANSFER_PURPOSE_CASH_OUT and asked.player == each.player:
            each.paid_out, each.transfer, each.state = asked.amount, asked.transfer, WAITING


async def _answered(connection: Connection, hand: Voided) -> None:
    open_ = {each.transfer: each for each in hand.back if each.transfer}
    if not open_:
        return
    for version, body in await connection.fetch(_ANSWERS, hand.table, hand.version):
        event = pb.TableEvent.FromString(body)
        settled = event.HasField("transfer_settled")
        answer = event.transfer_settled if settled else event.transfer_refused
        each = open_.pop(answer.transfer, None)
        if each is not None:
            each.state, each.settled_version = SETTLED if settled else REFUSED, version
            each.why = "" if settled else event.transfer_refused.reason
    if not open_:
        return
    try:
        written = await connection.fetch(_WRITTEN, list(open_))
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InsufficientPrivilegeError):
        return
    for key, refusal in written:
        open_[key].state, open_[key].why = (REFUSED, refusal) if refusal else (MOVED, "")


def show(hands: Sequence[Voided], out: Out) -> None:
    """Print the voided hands."""
    if out.json:
        records = [
            {
                **asdict(hand),
                "time": iso(hand.time_us),
                "currency": word(hand.currency, game_pb2.Currency),
                "total": hand.total,
            }
            for hand in hands
        ]
        out.document(records)
        return
    for hand in hands:
        by = f" by {hand.operator}" if hand.operator else ""
        note = f" ({hand.note})" if hand.note else ""
        said = f"{hand.reason}{by}{note}, {amount(hand.total, hand.currency)} back from the pot"
        out.line(f"{when(hand.time_us)}  {hand.table} hand {hand.hand}, version {hand.version}: {said}", "bold")
        out.table(
            ["  seat>", "player", "from the pot>", "stack>", "paid out>", "transfer", "state"],
            [
                [each.seat, each.name, amount(each.amount, hand.currency), amount(each.stack, hand.currency),
                 amount(each.paid_out, hand.currency) if each.transfer else "-", each.transfer or "-",
                 f"{each.state} {each.why}".strip()]
                for each in hand.back
            ],
        )  # fmt: skip
    waiting = sum(each.state in {WAITING, MOVED} for hand in hands for each in hand.back)
    payments = counted(waiting, "payment")
    out.line(f"{counted(len(hands), 'voided hand')}, {payments} on {'its' if waiting == 1 else 'their'} way")
