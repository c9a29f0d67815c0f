"""The table: seats, money on its way, the running hand. One table is one stream of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.events.v1 import events_pb2
from relance.poker.hand import Hand
from relance.poker.rejected import Rejected
from relance.poker.terms import Terms

Kept = TypeVar("Kept")

REQUESTS_KEPT: Final = 32
"""Requests of each player that are remembered, so that a repeat has the same answer."""
PLAYERS_KEPT: Final = 64
"""Players whose requests are remembered; the longest silent is forgotten first."""

BANK_HANDS: Final = 20
"""Paid hands that fill an empty time bank."""


class Request(NamedTuple):
    """Who asked for a command, under which id, and a hash of what was asked."""

    id: str
    hash: bytes
    player: str


class Transfer(NamedTuple):
    """Money that the table asked the wallet to move and that has no answer yet."""

    id: str
    seat: int
    player: str
    purpose: events_pb2.TransferPurpose.ValueType
    amount: int


class Hold(NamedTuple):
    """A free seat that one player alone may take. `until`: microseconds since 1970."""

    player: str
    until: int


class Session(NamedTuple):
    """A player's time at the table that is over: chips, times in microseconds since 1970, paid hands, LeaveReason."""

    seat: int
    since: int
    until: int
    bought_in: int
    cashed_out: int
    hands: int
    reason: int


class Notice(NamedTuple):
    """What a player should know of a void hand or a lost seat. `reason`: VoidReason; `taken`: chips cashed out."""

    hand: int
    refund: int
    reason: int
    at: int
    taken: int


@dataclass
class Seat:
    """A seat that somebody holds; not slotted, as `Hand` is not.

    While a hand runs `stack` is the stack before it; the hand knows the rest.
    """

    number: int
    player: str
    stack: int = 0
    held: int = 0
    """Chips that were bought and join the stack at the next hand."""
    reserved: bool = False
    """Whether the buy-in has not settled yet."""
    transfer: str = ""
    """The buy-in or top-up under way."""
    sitting_out: bool = False
    connected: bool = True
    leaving: int = 0
    """Reason to leave (LeaveReason) after the hand; 0: stays."""
    entry: bool = True
    """Owes an entry post (S4)."""
    wait: bool = False
    missed_big: bool = False
    missed_small: bool = False
    away: int = 0
    played: bool = False
    """Whether the player was dealt in since sitting down (S8)."""
    auto_post: bool = True
    auto_muck: bool = True
    sit_out_next_big_blind: bool = False
    auto_top_up: int = 0
    time_bank: int = 0
    """Milliseconds that betting decisions may still take beyond their time (C1)."""
    until: int = 0
    """When a reservation is given up, microseconds; 0 = never."""
    lost_at: int = 0
    """When the stream went, microseconds; meaningful while not `connected` (S6)."""
    since: int = 0
    bought: int = 0
    hands: int = 0
    """When the player sat down (microseconds), chips bought since then, paid hands."""

    def copy(self) -> Seat:
        """A seat that can be changed without touching this one."""
        new = object.__new__(Seat)
        new.__dict__ = self.__dict__.copy()
        return new


@dataclass
class Table:
    """State of a table after its event `version`. Changed by `apply` alone. Not slotted, as `Hand` is not."""

    id: str
    version: int = 0
    config: game_pb2.TableConfig | None = None
    terms: Terms | None = None
    rake: game_pb2.RakeSchedule | None = None
    seats: dict[int, Seat] = field(default_factory=dict)
    """Seats that somebody holds, by number, in rising order."""
    hand: Hand | None = None
    last_hand: int = 0
    """Number of the last hand begun."""
    last_over: int = 0
    """Number of the last hand that was paid or voided."""
    button: int = 0
    small_blind: int = 0
    big_blind: int = 0
    big_blind_player: str = ""
    """Button and blinds of the last hand that was paid (a void one changes nothing)."""
    last_dealt: int = 0
    """How many were dealt in in that hand."""

    fence: int = 0
    process: str = ""
    drained: bool = False
    closed: bool = False
    paused: bool = False

    transfers: dict[str, Transfer] = field(default_factory=dict)
    parked: dict[str, Transfer] = field(default_factory=dict)
    """Payments to players that the wallet refused: an alarm, nothing more can be done here."""
    loose: int = 0
    """Chips between two events of one append: taken from a seat, not yet asked for at the wallet."""
    bought_in: int = 0
    cashed_out: int = 0
    rake_taken: int = 0

    requests: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    bans: dict[str, int] = field(default_factory=dict)
    took_along: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Players who left, with when (microseconds) and what they took (S8)."""
    holds: dict[int, Hold] = field(default_factory=dict)
    mutes: dict[str, int] = field(default_factory=dict)
    """Players who may not chat, until when (microseconds; 0 = for good)."""
    sessions: dict[str, Session] = field(default_factory=dict)
    notices: dict[str, Notice] = field(default_factory=dict)
    """By player, the last of each; these four are replaced, never changed: forks share them."""

    @property
    def open(self) -> bool:
        """Whether the table was opened and not closed."""
        return self.terms is not None and not self.closed

    @property
    def finished(self) -> bool:
        """Whether a closed table has nothing left to do: no seat, no money on its way."""
        return self.closed and self.hand is None and not (self.seats or self.transfers)

    def seat_of(self, player: str) -> Seat | None:
        """The player's seat at this table (S9)."""
        for seat in self.seats.values():
            if seat.player == player:
                return seat
        return None

    def held_for(self, player: str) -> int:
        """The seat that is held for a player; 0: none."""
        return next((number for number, hold in self.holds.items() if hold.player == player), 0)

    def stack(self, number: int) -> int:
        """Chips that the player of a seat has behind now."""
        if self.hand is not None and number in self.hand.index:
            return self.hand.stack[self.hand.index[number]]
        return self.seats[number].stack

    def pot(self) -> int:
        """Chips in the pots and bets of the running hand."""
        return self.hand.pot if self.hand is not None else 0

    def fork(self) -> Table:
        """A table whose hand can be played on without touching this one; seats are shared until `own`."""
        new = object.__new__(Table)
        new.__dict__ = self.__dict__.copy()
        if self.hand is not None:
            new.hand = self.hand.copy()
        return new

    def own(self) -> None:
        """Make everything outside the hand this fork's own."""
        self.seats = {number: seat.copy() for number, seat in self.seats.items()}
        self.transfers = dict(self.transfers)
        self.parked = dict(self.parked)
        self.bans = dict(self.bans)
        self.took_along = dict(self.took_along)

    def conservation(self) -> None:
        """Assert that no chip was made or lost: stacks, pot, held, rake and cash-outs are what was bought in."""
        seated = sum(seat.stack + seat.held for seat in self.seats.values())
        total = seated + self.loose + self.cashed_out + self.rake_taken
        assert total == self.bought_in, f"{self.id}@{self.version}: {total} chips of {self.bought_in} bought in"
        hand = self.hand
        if hand is not None:
            in_hand, before = sum(hand.stack) + hand.pot + hand.rake, sum(hand.start)
            assert in_hand == before, f"{self.id}@{self.version}: {in_hand} chips in the hand, {before} before it"
            assert min(hand.stack) >= 0, f"{self.id}@{self.version}: negative stack {hand.stack}"


def initial(table_id: str) -> Table:
    """The state of a table before its first event."""
    return Table(table_id)


def put_last(kept: dict[str, Kept], player: str, value: Kept) -> None:
    """Keep something of a player, and of no more than PLAYERS_KEPT players: the oldest goes."""
    kept.pop(player, None)
    kept[player] = value
    while len(kept) > PLAYERS_KEPT:
        del kept[next(iter(kept))]


def known_request(table: Table, request: Request) -> int | None:
    """Version of the first event that the request caused before; None if it is new.

    Raises Rejected REQUEST_ID_REUSED (metadata request_id) when the id was used with other content.
    """
    known = table.requests.get(request.player)
    found = known.get(request.id) if known else None
    if found is None:
        return None
    if found[0] != request.hash:
        raise Rejected(
            reason_pb2.REASON_REQUEST_ID_REUSED,
            f"request {request.id} was used with other content",
            {"request_id": request.id},
        )
    return found[1]


def pending_transfers(table: Table) -> list[Transfer]:
    """Transfers that have no answer yet, oldest first: asked for again after a restart."""
    return list(table.transfers.values())
