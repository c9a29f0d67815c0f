"""One table's books: the chips that its events move, held against what the wallet has written for its escrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.ops.chips import INBOUND, OTHERS, STEPS, Broken, Chips

_parse = TableEvent.FromString


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. `invariant`: 1 to 4; table, hand and transfer where they are known."""

    invariant: int
    text: str
    table: str = ""
    hand: int = 0
    transfer: str = ""

    def __str__(self) -> str:
        where = [f"table {self.table}"] if self.table else []
        where += [f"hand {self.hand}"] if self.hand else []
        where += [f"transfer {self.transfer}"] if self.transfer else []
        return f"invariant {self.invariant}: {', '.join([*where, self.text])}"


class Written(NamedTuple):
    """A row of the wallet for this table: a transfer, or a recorded refusal. Amounts in minor units."""

    payer: str
    payee: str
    amount: int
    currency: str
    refusal: str


@dataclass(slots=True)
class Figures:
    """What was looked at; adds up over tables."""

    tables: int = 0
    events: int = 0
    chips: int = 0
    rake_open: int = 0
    settled: int = 0
    refused: int = 0
    in_flight: int = 0
    collected: int = 0

    def add(self, other: Figures) -> None:
        """Add another table's."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Books:
    """Takes a table's events in order, then says what is wrong. Holds this one table's state and wallet rows.

    A table whose events cannot be replayed is one finding under invariant 1: nothing more can be said of it.
    """

    name: str
    written: dict[str, Written]
    """The wallet's rows for the table's escrow, by key; those with an event are taken out as the events come."""
    escrow: int
    """Balance of the table's escrow."""
    chips: Chips = field(default_factory=Chips)
    version: int = 0
    figures: Figures = field(default_factory=lambda: Figures(tables=1))
    findings: list[Finding] = field(default_factory=list)
    broken: bool = False
    rake: int = 0
    collected: int = 0
    arriving: dict[str, int] = field(default_factory=dict)
    """Moved into escrow by the wallet, not yet known to the table."""
    leaving: dict[str, int] = field(default_factory=dict)
    """Given up by the table, not yet moved by the wallet."""
    answers: dict[str, Written | None] = field(default_factory=dict)
    """The wallet's answer to each transfer that the table has not heard of yet."""

    def take(self, version: int, kind: str, body: bytes | None) -> None:
        """The next event, as it stands in the log: its payload's name, and its body where it is one of STEPS.

        Events that move no chips are only counted. One of the others that hides under such a name is missed where
        the chips that it moved are next held against what the events say.
        """
        if self.broken:
            return
        if version != self.version + 1:
            self._break(f"event {self.version + 1} is missing from the log; the next one is {version}")
            return
        self.version = version
        step = STEPS.get(kind)
        if step is None:
            if kind not in OTHERS:
                self._break(f"version {version} is a {kind!r}, which this program does not know")
            return
        try:
            event = _parse(body or b"")
            if event.version != version or event.table != self.name or event.WhichOneof("payload") != kind:
                raise Broken(f"the event in the row is {event.table}@{event.version}, {event.WhichOneof('payload')}")
            step(self.chips, getattr(event, kind), event)
        except (Broken, DecodeError) as error:
            hand = self.chips.hand.number if self.chips.hand is not None else 0
            self._break(f"version {version} does not follow from what was before: {error}", hand)
            return
        also = _ALSO.get(kind)
        if also is not None:
            also(self, event)

    def close(self, head: int) -> list[Finding]:
        """All findings, once every event was taken; `head` is the last version by the stream's own row."""
        self.figures.events = self.version
        if not self.broken and self.version != head:
            self._break(f"the log ends at version {self.version}, its head is {head}")
        if not self.broken:
            try:
                self.chips.conserved()
            except Broken as error:
                self._break(str(error))
        if self.broken:
            return self.findings
        for transfer, row in self.written.items():
            if transfer.startswith("rake/"):
                text = f"the wallet moved {row.amount} to {row.payee}; no hand of this table ended with that rake"
            else:
                text = f"the wallet wrote {row.amount} from {row.payer} to {row.payee}; the table never asked for it"
            self._find(4, text, transfer=transfer)
        chips = self.chips.total()
        arriving, leaving = sum(self.arriving.values()), sum(self.leaving.values())
        uncollected = self.rake - self.collected
        expected = chips + arriving + leaving + uncollected
        if self.escrow != expected:
            self._find(
                3,
                f"escrow holds {self.escrow}, not {expected} = {chips} chips at the table + {arriving} bought in but "
                f"not known there + {leaving} cashed out but not moved + {uncollected} rake not collected",
            )
        figures = self.figures
        figures.chips, figures.rake_open = chips, uncollected
        figures.in_flight = len(self.answers)
        return self.findings

    def _requested(self, event: TableEvent) -> None:
        asked = event.transfer_requested
        transfer = asked.transfer
        row = self.written.pop(transfer, None)
        self.answers[transfer] = row
        inbound = asked.purpose in INBOUND
        if row is not None:
            player = f"players/{asked.player}/{self._currency()}"
            escrow = f"tables/{self.name}"
            right = (player, escrow) if inbound else (escrow, player)
            if (row.payer, row.payee) != right:
                wrote, asked_for = f"from {row.payer} to {row.payee}", f"from {right[0]} to {right[1]}"
                self._find(4, f"the wallet wrote it {wrote}, the table asked {asked_for}", transfer=transfer)
            if row.amount != asked.amount:
                self._find(4, f"the wallet wrote {row.amount}, the table asked for {asked.amount}", transfer=transfer)
        moved = row is not None and not row.refusal
        if inbound and row is not None and moved:
            self.arriving[transfer] = row.amount
        elif not inbound and not moved:
            self.leaving[transfer] = asked.amount

    def _settled(self, event: TableEvent) -> None:
        self._answered(event.transfer_settled, settled=True)

    def _refused(self, event: TableEvent) -> None:
        self._answered(event.transfer_refused, settled=False)

    def _answered(self, answer: events_pb2.TransferSettled | events_pb2.TransferRefused, *, settled: bool) -> None:
        transfer = answer.transfer
        row = self.answers.pop(transfer, None)
        self.arriving.pop(transfer, None)
        if row is None:
            word = "settled" if settled else "refused"
            self._find(4, f"the table knows that it was {word}, the wallet has no such transfer", transfer=transfer)
        elif settled is bool(row.refusal):
            knows = "settled" if settled else "refused"
            wrote = f"refused it ({row.refusal})" if row.refusal else "moved the money"
            self._find(4, f"the table knows that it was {knows}, the wallet {wrote}", transfer=transfer)
        elif row.amount != answer.amount:
            self._find(4, f"the wallet wrote {row.amount}, the table took {answer.amount}", transfer=transfer)
        self.figures.settled += settled
        self.figures.refused += not settled

    def _ended(self, event: TableEvent) -> None:
        rake = event.hand_ended.rake
        self.rake += rake
        if not rake:
            return
        first = f"rake/{self.name}/{event.hand}"
        right = (f"tables/{self.name}", f"house/{self._currency()}")
        moved = 0
        transfer, attempt = first, 1
        while (row := self.written.pop(transfer, None)) is not None:
            if (row.payer, row.payee) != right:
                self._find(4, f"the wallet wrote it from {row.payer} to {row.payee}", event.hand, transfer)
            if row.amount != rake:
                self._find(4, f"the wallet wrote {row.amount}, the hand's rake is {rake}", event.hand, transfer)
            if not row.refusal:
                moved += 1
                self.collected += row.amount
            # A refusal is final under its key: a collection that an operator released is asked under the next one.
            attempt += 1
            transfer = f"{first}/{attempt}"
        if moved > 1:
            self._find(4, f"the hand's rake was moved {moved} times", event.hand, first)
        self.figures.collected += moved > 0

    def _currency(self) -> str:
        return "credit" if self.chips.currency == game_pb2.CURRENCY_CREDIT else "eur"

    def _find(self, invariant: int, text: str, hand: int = 0, transfer: str = "") -> None:
        self.findings.append(Finding(invariant, text, self.name, hand, transfer))

    def _break(self, text: str, hand: int = 0) -> None:
        self.broken = True
        self._find(1, text, hand)


# What else an event means, by the name of its payload.
_ALSO: Final[dict[str, Callable[[Books, TableEvent], None]]] = {
    "transfer_requested": Books._requested,
    "transfer_settled": Books._settled,
    "transfer_refused": Books._refused,
    "hand_ended": Books._ended,
}


def without_log(name: str, written: Mapping[str, Written], escrow: int) -> list[Finding]:
    """Findings for an escrow account whose table has no log: it must never have been used."""
    found = [Finding(4, f"the wallet wrote {row.amount}; there is no such table", name, transfer=key)
             for key, row in written.items() if not row.refusal]  # fmt: skip
    if escrow:
        found.append(Finding(3, f"escrow holds {escrow}; there is no such table", name))
    return found


def of_archived(name: str, escrow: int) -> list[Finding]:
    """Findings for an escrow account whose table was archived and removed from the log: it must be empty."""
    return [Finding(3, f"escrow holds {escrow}; the table was archived and removed", name)] if escrow else []
