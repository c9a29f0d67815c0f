"""The audit's own fold of a table's chips: exactly the rules' figures, in every game, at every version."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.ops.books import BOULEVARD
from tests.poker import playing
from tests.poker.playing import room
from tests.poker.test_properties import Player, stakes_of

from relance.api.events.v1.events_pb2 import TableEvent
from relance.ops.books import Books
from relance.ops.chips import STEPS, Broken, Chips
from relance.poker import Table, apply, initial, ready_to_start
from relance.poker import commands as cmd
from relance.poker.games import GAMES


def take(chips: Chips, event: TableEvent) -> None:
    """Take an event in where it moves chips."""
    name = event.WhichOneof("payload") or ""
    step = STEPS.get(name)
    if step is not None:
        step(chips, getattr(event, name), event)


def fold(events: list[TableEvent]) -> None:
    """Take a whole log in."""
    chips = Chips()
    for event in events:
        take(chips, event)


def same(chips: Chips, table: Table) -> bool:
    """Whether both know the same of every chip."""
    hand = chips.hand
    seats = {number: (seat.player, seat.stack, seat.held) for number, seat in table.seats.items()}
    ours = {number: (seat.player, seat.stack, seat.held) for number, seat in chips.seats.items()}
    if (hand is None) is not (table.hand is None):
        return False
    if hand is not None and table.hand is not None:
        theirs = table.hand
        if (hand.pot, hand.rake) != (theirs.pot, theirs.rake):
            return False
        if [hand.stack[seat] for seat in theirs.seats] != theirs.stack:
            return False
    figures = (chips.loose, chips.bought_in, chips.cashed_out, chips.rake_taken, set(chips.open))
    return ours == seats and figures == (
        table.loose, table.bought_in, table.cashed_out, table.rake_taken, set(table.transfers),
    )  # fmt: skip


def played(game: str, seed: int) -> list[TableEvent]:
    """A few hands of a game."""
    limit = playing.NO_LIMIT if seed % 2 else playing.FIXED
    player = Player(seed, game, limit)
    stacks = [player.random.choice([60, 999, 5000]) for _ in range(min(GAMES[game].seats, 5))]
    player.room = room(stacks, game, limit, stakes=stakes_of(game), rake=BOULEVARD, button=None)
    while ready_to_start(player.room.table) and player.room.table.last_hand < 4:
        player.hand()
    return player.room.log


@pytest.mark.parametrize("game", [name for name in GAMES if GAMES[name].seats])
def test_the_fold_knows_of_every_chip_what_the_rules_know(game: str) -> None:
    for seed in range(6):
        chips, table = Chips(), initial("t")
        for event in played(game, seed):
            apply(table, event)
            take(chips, event)
            assert same(chips, table), event
            chips.conserved()


AMOUNTS: list[tuple[str, Callable[[TableEvent], None]]] = [
    ("hand_started", lambda e: _add(e.hand_started.players[0], "stack")),
    ("blind_posted", lambda e: _add(e.blind_posted, "amount")),
    ("called", lambda e: _add(e.called, "amount")),
    ("raised", lambda e: _add(e.raised, "amount")),
    ("bet_made", lambda e: _add(e.bet_made, "amount")),
    ("uncalled_returned", lambda e: _add(e.uncalled_returned, "amount")),
    ("rake_taken", lambda e: _add(e.rake_taken, "amount")),
    ("pot_awarded", lambda e: _add(e.pot_awarded.shares[0], "amount")),
    ("hand_ended", lambda e: _add(e.hand_ended.results[0], "stack")),
    ("hand_ended", lambda e: _add(e.hand_ended.results[0], "net")),
    ("hand_ended", lambda e: _add(e.hand_ended.results[0], "contributed")),
    ("hand_ended", lambda e: _add(e.hand_ended, "rake")),
    ("transfer_requested", lambda e: _add(e.transfer_requested, "amount")),
    ("transfer_settled", lambda e: _add(e.transfer_settled, "amount")),
    ("player_sat", lambda e: _add(e.player_sat, "stack")),
]


def _add(message: object, field: str) -> None:
    setattr(message, field, getattr(message, field) + 1)


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    """A log with one of everything."""
    wanted = {payload for payload, _ in AMOUNTS}
    logs = (played("holdem", seed) for seed in range(1, 100, 2))
    whole = next(events for events in logs if wanted <= {event.WhichOneof("payload") for event in events})
    return [event.SerializeToString() for event in whole]


@pytest.mark.parametrize(("payload", "change"), AMOUNTS)
def test_a_changed_amount_anywhere_is_noticed(
    log: list[bytes], payload: str, change: Callable[[TableEvent], None]
) -> None:
    events = [TableEvent.FromString(body) for body in log]
    found = [event for event in events if event.WhichOneof("payload") == payload]
    assert found, f"the log has no {payload}"
    change(found[0])
    with pytest.raises(Broken):
        fold(events)


@pytest.mark.parametrize("payload", ["raised", "called", "blind_posted", "pot_awarded", "player_sat", "hand_ended"])
def test_an_event_that_hides_under_another_name_is_noticed(log: list[bytes], payload: str) -> None:
    events = [TableEvent.FromString(body) for body in log]
    hidden = next(event for event in events if event.WhichOneof("payload") == payload)
    books = Books("t", {}, 0)
    for event in events:
        books.take(
            event.version, "checked" if event is hidden else event.WhichOneof("payload") or "", log[event.version - 1]
        )
    books.close(len(events))
    assert any(finding.invariant == 1 for finding in books.findings)


def test_an_event_of_an_unknown_kind_is_noticed() -> None:
    books = Books("t", {}, 0)
    books.take(1, "money_made", b"")
    assert "does not know" in books.close(1)[0].text


def held_and_given_up() -> list[TableEvent]:
    """Seats that were held: one whose time was over, one that was given up, one that was taken."""
    made = playing.Room(playing.config(seats=3))
    for player in ("ann", "bob", "cid"):
        made.do(cmd.HoldSeat(player, made.at + 10_000_000))
    made.do(cmd.ReleaseSeat("bob"))
    made.do(cmd.TakeSeat("cid", 0, 500))
    made.at += 20_000_000
    made.do(cmd.ExpireSeats())
    return made.log


def test_S9_a_seat_that_was_held_and_never_taken_moves_no_chip() -> None:
    events = held_and_given_up()
    assert [event.seat_released.player for event in events if event.HasField("seat_released")] == ["bob", "ann"]
    fold(events)


def test_S9_a_seat_that_is_given_up_for_another_than_it_was_held_for_is_noticed() -> None:
    events = held_and_given_up()
    next(event for event in events if event.HasField("seat_released")).seat_released.player = "ann"
    with pytest.raises(Broken):
        fold(events)
