"""What must hold of tables whatever players do, checked event by event on a replay of what is in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from relance.api.events.v1 import events_pb2 as pb
from relance.api.events.v1.events_pb2 import TableEvent
from relance.poker import Table, apply, initial, prompt

ANSWERS = frozenset(
    {
        "timed_out", "checked", "called", "bet_made", "raised", "bring_in_posted", "protection_used",
        "cards_discarded", "ante_posted",
    }
)  # fmt: skip
PAID = frozenset({pb.BLIND_KIND_BIG, pb.BLIND_KIND_POST})
DAY_US = 24 * 3600 * 1_000_000
MINUTE_US = 60 * 1_000_000


class Check(Protocol):
    """One thing that must hold. Raises AssertionError."""

    def before(self, table: Table, event: TableEvent) -> None:
        """An event that is about to be applied."""

    def after(self, table: Table, event: TableEvent) -> None:
        """The same, applied."""


class OneSeat:
    """S9: a player holds one seat, and a seat holds one player."""

    def before(self, table: Table, event: TableEvent) -> None:
        if event.WhichOneof("payload") == "seat_reserved":
            seat, player = event.seat_reserved.seat, event.seat_reserved.player
            assert seat not in table.seats, f"{event.version}: seat {seat} is taken"
            assert table.seat_of(player) is None, f"{event.version}: {player} has a seat"
            hold = table.holds.get(seat)
            assert hold is None or hold.player == player or hold.until <= event.time_us, f"{event.version}: held"

    def after(self, table: Table, event: TableEvent) -> None:
        players = [seat.player for seat in table.seats.values()]
        assert len(players) == len(set(players)), f"{event.version}: {players}"
        held = [hold.player for hold in table.holds.values()]
        assert len(held) == len(set(held)), f"{event.version}: {held} are held for"
        assert not set(table.seats) & set(table.holds), f"{event.version}: a seat is held and taken"


class Chips:
    """Chips at the table are those that came in and have not gone."""

    def before(self, table: Table, event: TableEvent) -> None:
        pass

    def after(self, table: Table, event: TableEvent) -> None:
        table.conservation()


class ClocksFireOnce:
    """C1: a prompt is answered by an action or by the clock, once, and the clock is never early."""

    def __init__(self) -> None:
        self._answered: set[tuple[int, int]] = set()
        self._arose: dict[tuple[int, int], int] = {}
        self.fired = 0

    def before(self, table: Table, event: TableEvent) -> None:
        kind = event.WhichOneof("payload") or ""
        asked = prompt(table) if kind in ANSWERS else None
        if kind == "timed_out":
            assert asked is not None, f"{event.version}: the clock fired and nobody was asked"
            assert event.timed_out.seat == asked.seat, f"{event.version}: the clock fired for seat {asked.seat}'s turn"
        if asked is None or getattr(event, kind).seat != asked.seat:
            return
        turn = (asked.hand, asked.turn)
        if kind == "timed_out":
            waited = event.time_us - self._arose[turn]
            assert waited >= asked.clock_ms * 1000 - 2, f"{event.version}: {waited} us of {asked.clock_ms} ms"
            assert turn not in self._answered, f"{event.version}: turn {turn} was answered before"
            self.fired += 1
        self._answered.add(turn)

    def after(self, table: Table, event: TableEvent) -> None:
        asked = prompt(table)
        if asked is not None:
            self._arose.setdefault((asked.hand, asked.turn), event.time_us)


class BlindsGoRound:
    """S1-S5: the big blind goes round, nobody plays long without it, nobody comes in for nothing."""

    def __init__(self) -> None:
        self._last_big, self._button = "", 0
        self._dealt: set[str] = set()
        self._free: Counter[str] = Counter()
        self._posts: dict[int, int] = {}
        self._owes: set[str] = set()

    def before(self, table: Table, event: TableEvent) -> None:
        kind = event.WhichOneof("payload") or ""
        if kind == "hand_started":
            self._owes = owing(table, event.hand_started)
            self._posts = {}
        elif kind == "blind_posted" and event.blind_posted.kind != pb.BLIND_KIND_DEAD:
            self._posts[event.blind_posted.seat] = event.blind_posted.kind
        elif kind == "hand_ended" and self._posts:
            self._ended(table, event)

    def _ended(self, table: Table, event: TableEvent) -> None:
        hand, posts, config = table.hand, self._posts, table.config
        assert hand is not None
        assert config is not None
        big = next((hand.players[hand.index[seat]] for seat, k in posts.items() if k == pb.BLIND_KIND_BIG), "")
        if big and big == self._last_big:
            # S2 forbids it where two are dealt in. Among more the button goes its way, also where it comes to somebody
            # new, or passes a seat that is empty by now.
            two = len(hand.players) == 2 or (len(self._dealt) == 2 and self._dealt <= set(hand.players))
            assert not two, f"{event.version}: {big} has the big blind twice running"
            assert config.rules.button_rule != "dead", f"{event.version}: the big blind did not move on from {big}"
            assert hand.button != self._button, f"{event.version}: the button stands still, {big} pays twice"
        self._last_big, self._button, self._dealt = big or self._last_big, hand.button, set(hand.players)
        paid = {hand.players[hand.index[seat]] for seat, k in posts.items() if k in PAID}
        assert self._owes <= paid, f"{event.version}: {self._owes - paid} came in for nothing"
        for player in hand.players:
            self._free[player] = 0 if player in paid else self._free[player] + 1
            most = 2 * config.seats + 2
            assert self._free[player] <= most, f"{event.version}: {player} has not paid for {most} hands"

    def after(self, table: Table, event: TableEvent) -> None:
        pass


def owing(table: Table, started: pb.HandStarted) -> set[str]:
    """Who is dealt in and owes an entry post or a missed big blind, where the game goes on without them (S4, S5)."""
    seats = [table.seats[player.seat] for player in started.players]
    ready = [seat for seat in seats if not (seat.entry or seat.missed_big)]
    if table.last_dealt < 2 or len(ready) < 2:
        return set()
    return {seat.player for seat in seats if seat.entry or seat.missed_big}


class NobodyRatholes:
    """S8: who left with winnings comes back with them; sitting down and leaving without a hand changes nothing."""

    def __init__(self) -> None:
        self._played: set[str] = set()
        self._took: dict[str, tuple[int, int]] = {}
        self.guarded = 0

    def before(self, table: Table, event: TableEvent) -> None:
        kind = event.WhichOneof("payload") or ""
        if kind == "hand_started":
            self._played |= {player.player for player in event.hand_started.players}
        elif kind == "player_left" and event.player_left.player in self._played:
            left = event.player_left
            self._played.discard(left.player)
            self._took.pop(left.player, None)
            if left.amount:
                self._took[left.player] = (event.time_us, left.amount)
        elif kind == "seat_reserved" and event.seat_reserved.player in self._took:
            self._comes_back(table, event)

    def _comes_back(self, table: Table, event: TableEvent) -> None:
        assert table.config is not None
        at, amount = self._took[event.seat_reserved.player]
        if event.time_us - at < table.config.rules.rathole_minutes * MINUTE_US:
            self.guarded += 1
            brought = event.seat_reserved.amount
            assert brought >= amount, f"{event.version}: left with {amount}, came back with {brought}"

    def after(self, table: Table, event: TableEvent) -> None:
        pass


class Protected:
    """C2: a player's artificial all-ins in 24 hours, over all tables that share this."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, int, str], int] = {}

    @property
    def used(self) -> int:
        """How many there were."""
        return len(self._uses)

    def before(self, table: Table, event: TableEvent) -> None:
        kind = event.WhichOneof("payload") or ""
        if kind == "hand_voided":  # what was used in it is given back (C3)
            self._uses = {use: at for use, at in self._uses.items() if use[:2] != (table.id, event.hand)}
        elif kind == "protection_used":
            assert table.config is not None
            player, most = event.protection_used.player, table.config.rules.protections_per_24h
            self._uses[table.id, event.hand, player] = event.time_us
            day = [at for use, at in self._uses.items() if use[2] == player and at > event.time_us - DAY_US]
            assert len(day) <= most, f"{event.version}: {player} was protected {len(day)} times, {most} are allowed"

    def after(self, table: Table, event: TableEvent) -> None:
        pass


class Replay:
    """One table's log, replayed and checked as it grows. `protected`: shared by the tables of a room."""

    def __init__(self, table: str, protected: Protected | None = None) -> None:
        self.table = initial(table)
        self.clocks, self.ratholes = ClocksFireOnce(), NobodyRatholes()
        self.protected = protected or Protected()
        self._checks: tuple[Check, ...] = (
            OneSeat(), Chips(), self.clocks, BlindsGoRound(), self.ratholes, self.protected,
        )  # fmt: skip

    def see(self, events: Iterable[TableEvent]) -> None:
        """The next events. Raises AssertionError."""
        for event in events:
            assert event.version == self.table.version + 1, f"{event.version} follows {self.table.version}"
            for check in self._checks:
                check.before(self.table, event)
            apply(self.table, event)
            for check in self._checks:
                check.after(self.table, event)
