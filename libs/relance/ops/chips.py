"""The chips of one table, folded from those of its events that move any: a second set of books beside the rules.

Nothing is shared with `relance.poker.apply`. Every event that moves chips names its amounts, and what a player had,
put in, got back and went away with is said more than once: each is held against the others. So stacks + pot + top-ups
held + rake taken + cashed out = bought in at every version, or the fold raises at the event that breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.api.events.v1.events_pb2 import TableEvent

INBOUND: Final = frozenset({pb.TRANSFER_PURPOSE_BUY_IN, pb.TRANSFER_PURPOSE_TOP_UP})
"""Purposes that bring chips to the table."""


class Broken(Exception):
    """An event that does not follow from those before it. The text says how."""


class Seat:
    """A seat that is taken. held: bought and not in the stack yet; transfer: id of what is bought in or topped up."""

    __slots__ = ("held", "player", "stack", "transfer")

    def __init__(self, player: str) -> None:
        self.player = player
        self.stack = self.held = 0
        self.transfer = ""


class Hand:
    """The running hand by seat: stacks at its start and now, and what each has in the pot."""

    __slots__ = ("number", "pot", "put", "rake", "stack", "start")

    def __init__(self, number: int) -> None:
        self.number = number
        self.start: dict[int, int] = {}
        self.stack: dict[int, int] = {}
        self.put: dict[int, int] = {}
        self.pot = self.rake = 0


class Chips:
    """Where every chip of a table is.

    loose: given up by a seat and not yet asked to be paid out. open: transfers without an answer, purpose and amount.
    holds: for whom free seats are held.
    """

    __slots__ = (
        "bought_in", "cashed_out", "currency", "hand", "holds", "last_hand", "loose", "open", "rake_taken", "seats",
    )  # fmt: skip

    def __init__(self) -> None:
        self.currency = 0
        self.seats: dict[int, Seat] = {}
        self.holds: dict[int, str] = {}
        self.hand: Hand | None = None
        self.last_hand = 0
        self.loose = self.bought_in = self.cashed_out = self.rake_taken = 0
        self.open: dict[str, tuple[int, int]] = {}

    def total(self) -> int:
        """Chips at the table: stacks, the pot, top-ups held, and what is loose."""
        return sum(seat.stack + seat.held for seat in self.seats.values()) + self.loose

    def conserved(self) -> None:
        """Raises Broken when chips were made or lost."""
        total = self.total() + self.cashed_out + self.rake_taken
        if total != self.bought_in:
            raise Broken(f"{total} chips are accounted for, {self.bought_in} were bought in")

    def running(self) -> Hand:
        """The running hand. Raises Broken."""
        if self.hand is None:
            raise Broken("no hand is running")
        return self.hand

    def seat(self, number: int, player: str) -> Seat:
        """The seat that a player has. Raises Broken."""
        seat = self.seats.get(number)
        if seat is None or seat.player != player:
            raise Broken(f"seat {number} is not {player}'s")
        return seat


def _opened(chips: Chips, opened: pb.TableOpened, event: TableEvent) -> None:
    if chips.currency:
        raise Broken("the table opens again")
    chips.currency = opened.config.currency


def _reserved(chips: Chips, reserved: pb.SeatReserved, event: TableEvent) -> None:
    if reserved.seat in chips.seats:
        raise Broken(f"seat {reserved.seat} is taken")
    chips.holds.pop(reserved.seat, None)
    chips.seats[reserved.seat] = Seat(reserved.player)


def _held(chips: Chips, held: pb.SeatHeld, event: TableEvent) -> None:
    if held.seat in chips.seats:
        raise Broken(f"seat {held.seat} is held for {held.player} and taken")
    chips.holds[held.seat] = held.player


def _released(chips: Chips, released: pb.SeatReleased, event: TableEvent) -> None:
    if chips.holds.get(released.seat) == released.player:
        del chips.holds[released.seat]
        return
    chips.loose += _vacated(chips, released.seat, released.player)


def _sat(chips: Chips, sat: pb.PlayerSat, event: TableEvent) -> None:
    _join(chips.seat(sat.seat, sat.player), sat.stack)


def _added(chips: Chips, added: pb.ChipsAdded, event: TableEvent) -> None:
    _join(chips.seat(added.seat, added.player), added.amount)


def _join(seat: Seat, amount: int) -> None:
    if not 0 < amount <= seat.held:
        raise Broken(f"{amount} chips join a stack, {seat.held} were bought for it")
    seat.held -= amount
    seat.stack += amount


def _left(chips: Chips, left: pb.PlayerLeft, event: TableEvent) -> None:
    has = _vacated(chips, left.seat, left.player)
    if has != left.amount:
        raise Broken(f"{left.player} leaves with {left.amount} of {has} chips")
    chips.loose += has


def _vacated(chips: Chips, number: int, player: str) -> int:
    """Free a seat; the chips that were there. Nobody goes out of a running hand with chips in it."""
    seat = chips.seat(number, player)
    if chips.hand is not None and number in chips.hand.start:
        raise Broken(f"seat {number} is freed in a hand that it is in")
    del chips.seats[number]
    return seat.stack + seat.held


def _requested(chips: Chips, asked: pb.TransferRequested, event: TableEvent) -> None:
    if asked.transfer in chips.open or asked.amount <= 0:
        raise Broken(f"transfer {asked.transfer} of {asked.amount} is asked for")
    chips.open[asked.transfer] = (asked.purpose, asked.amount)
    if asked.purpose in INBOUND:
        chips.seat(asked.seat, asked.player).transfer = asked.transfer
        return
    if asked.amount > chips.loose:
        raise Broken(f"transfer {asked.transfer} pays {asked.amount} out, {chips.loose} were given up")
    chips.loose -= asked.amount
    chips.cashed_out += asked.amount


def _settled(chips: Chips, settled: pb.TransferSettled, event: TableEvent) -> None:
    seat = _answered(chips, settled)
    if settled.purpose not in INBOUND:
        return
    chips.bought_in += settled.amount
    if seat is None:
        chips.loose += settled.amount
    else:
        seat.held += settled.amount


def _refused(chips: Chips, refused: pb.TransferRefused, event: TableEvent) -> None:
    _answered(chips, refused)


def _answered(chips: Chips, answer: pb.TransferSettled | pb.TransferRefused) -> Seat | None:
    """Close a transfer; the seat that it was for, where that is still the one that asked."""
    asked = chips.open.pop(answer.transfer, None)
    if asked != (answer.purpose, answer.amount):
        raise Broken(f"transfer {answer.transfer} is answered with {answer.amount}, asked for was {asked}")
    seat = chips.seats.get(answer.seat)
    if seat is None or seat.transfer != answer.transfer:
        return None
    seat.transfer = ""
    return seat


def _hand_started(chips: Chips, started: pb.HandStarted, event: TableEvent) -> None:
    if chips.hand is not None or event.hand != chips.last_hand + 1:
        raise Broken(f"hand {event.hand} starts after hand {chips.last_hand}")
    chips.last_hand = event.hand
    hand = chips.hand = Hand(event.hand)
    for player in started.players:
        has = chips.seat(player.seat, player.player).stack
        if player.stack != has:
            raise Broken(f"{player.player} starts the hand with {player.stack} of {has} chips")
        hand.start[player.seat] = hand.stack[player.seat] = has


def _put(chips: Chips, put: Any, event: TableEvent) -> None:
    hand = chips.hand
    seat, amount = put.seat, put.amount
    if hand is None or amount < 0 or amount > hand.stack.get(seat, -1):
        raise Broken(f"seat {seat} puts {amount} in" + ("" if hand is None else f" of {hand.stack.get(seat)}"))
    hand.stack[seat] -= amount
    hand.put[seat] = hand.put.get(seat, 0) + amount
    hand.pot += amount


def _returned(chips: Chips, returned: pb.UncalledReturned, event: TableEvent) -> None:
    hand, seat, amount = chips.running(), returned.seat, returned.amount
    if not 0 < amount <= hand.put.get(seat, 0):
        raise Broken(f"seat {seat} gets {amount} back of {hand.put.get(seat, 0)} put in")
    hand.put[seat] -= amount
    hand.stack[seat] += amount
    hand.pot -= amount


def _rake(chips: Chips, taken: pb.RakeTaken, event: TableEvent) -> None:
    hand = chips.running()
    if hand.rake or not 0 <= taken.amount <= hand.pot:
        raise Broken(f"a rake of {taken.amount} is taken from {hand.pot}")
    hand.rake = taken.amount
    hand.pot -= taken.amount


def _awarded(chips: Chips, awarded: pb.PotAwarded, event: TableEvent) -> None:
    hand = chips.running()
    given = 0
    for share in awarded.shares:
        if share.seat not in hand.stack or share.amount < 0:
            raise Broken(f"seat {share.seat} wins {share.amount} in a hand that it is not in")
        hand.stack[share.seat] += share.amount
        given += share.amount
    if given != awarded.amount - awarded.rake or given > hand.pot:
        raise Broken(f"a pot of {awarded.amount} with a rake of {awarded.rake} gives {given}; {hand.pot} are there")
    hand.pot -= given


def _hand_ended(chips: Chips, ended: pb.HandEnded, event: TableEvent) -> None:
    hand = chips.running()
    put = sum(hand.put.values())
    if hand.pot or (ended.rake, ended.pot) != (hand.rake, put):
        raise Broken(f"a pot of {put} with a rake of {hand.rake} ends as {ended.pot} and {ended.rake}, {hand.pot} left")
    if len(ended.results) != len(hand.start):
        raise Broken(f"{len(hand.start)} players were in the hand, {len(ended.results)} have a result")
    for result in ended.results:
        seat, stack = result.seat, result.stack
        right = (hand.stack.get(seat), stack - hand.start.get(seat, 0), hand.put.get(seat, 0))
        if (stack, result.net, result.contributed) != right:
            said = (stack, result.net, result.contributed)
            raise Broken(f"{result.player} ends with stack, result and stake {said}, not {right}")
        chips.seats[seat].stack = stack
    chips.rake_taken += hand.rake
    chips.hand = None
    chips.conserved()


def _hand_voided(chips: Chips, voided: pb.HandVoided, event: TableEvent) -> None:
    hand = chips.running()
    for refund in voided.refunds:
        right = (hand.put.pop(refund.seat, 0), hand.start.get(refund.seat))
        if (refund.amount, refund.stack) != right:
            raise Broken(f"{refund.player} gets back {refund.amount} and has {refund.stack}, not {right}")
    if any(hand.put.values()):
        raise Broken(f"chips of a void hand did not go back: {hand.put}")
    chips.hand = None
    chips.conserved()


# Each step takes its own payload message; the dispatch by name is what makes that type-safe.
Step = Callable[[Chips, Any, TableEvent], None]
STEPS: Final[dict[str, Step]] = {
    "table_opened": _opened,
    "seat_reserved": _reserved,
    "seat_held": _held,
    "seat_released": _released,
    "player_sat": _sat,
    "chips_added": _added,
    "player_left": _left,
    "transfer_requested": _requested,
    "transfer_settled": _settled,
    "transfer_refused": _refused,
    "hand_started": _hand_started,
    "ante_posted": _put,
    "blind_posted": _put,
    "bring_in_posted": _put,
    "called": _put,
    "bet_made": _put,
    "raised": _put,
    "uncalled_returned": _returned,
    "rake_taken": _rake,
    "pot_awarded": _awarded,
    "hand_ended": _hand_ended,
    "hand_voided": _hand_voided,
}
"""What moves chips, by the name of the payload."""
OTHERS: Final = frozenset(field.name for field in TableEvent.DESCRIPTOR.oneofs_by_name["payload"].fields) - STEPS.keys()
"""Payloads that move none."""
