"""One table under everything that players do, at random, on a simulated clock: what must hold after each step."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.table.checks import Replay
from tests.table.simulated import TABLE, Simulation
from tests.table.support import open_request

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import commands as cmd
from relance.poker import prompt, ready_to_start
from relance.poker.cards import NAMES
from relance.poker.config import table_config
from relance.table.actor import State

PLAYERS = ("ann", "bob", "cid", "dan", "eve")
HOUSES = ("moving", "dead", "club")


def config_of(kind: str) -> game_pb2.TableConfig:
    """A table with short pauses and all its clocks."""
    timers = game_pb2.Timers(between_hands_ms=1000, reservation_ms=30_000, time_bank_ms=5_000)
    if kind == "club":
        return table_config(
            open_request(
                house="club", game="closed", stakes=game_pb2.Stakes(ante=5), min_buy_in=100, max_buy_in=0,
                currency=game_pb2.CURRENCY_CREDIT, timers=timers, seats=4,
            )
        ).config  # fmt: skip
    choices = {"button_rule": kind, "after_crash": "keep_seats", "away_hands": "6"}
    return table_config(open_request(seats=4, timers=timers, choices=choices)).config


class OneTable(RuleBasedStateMachine):
    """Players come, go, play, sleep and lose their connections."""

    room: Simulation

    @initialize(kind=st.sampled_from(HOUSES), seed=st.integers(0, 10**6))
    def open(self, kind: str, seed: int) -> None:
        self.room = Simulation(config_of(kind), seed)
        self.crashes = 0
        for seat, player in enumerate(PLAYERS[:3], 1):
            self.room.join(player)
            self.room.ask(player, cmd.TakeSeat(player, seat, 1000))
        self.room.settle(9)

    @rule(player=st.sampled_from(PLAYERS))
    def join(self, player: str) -> None:
        self.room.join(player)

    @rule(player=st.sampled_from(PLAYERS))
    def drop(self, player: str) -> None:
        self.room.drop(player)

    @rule(player=st.sampled_from(PLAYERS), seat=st.integers(0, 4), amount=st.sampled_from((100, 150, 1000)))
    def sit(self, player: str, seat: int, amount: int) -> None:
        self.room.ask(player, cmd.TakeSeat(player, seat, amount, wait_for_big_blind=bool(seat % 2)))

    @rule(player=st.sampled_from(PLAYERS))
    def hold(self, player: str) -> None:
        self.room.ask("lobby", cmd.HoldSeat(player, self.room.clock.now_us() + 15_000_000, "lobby"))

    @rule(count=st.integers(1, 4))
    def wallet(self, count: int) -> None:
        self.room.settle(count)

    @rule(player=st.sampled_from(PLAYERS), later=st.booleans())
    def sit_out(self, player: str, later: bool) -> None:
        self.room.ask(player, cmd.SitOut(player, at_next_big_blind=later))

    @rule(player=st.sampled_from(PLAYERS), wait=st.booleans())
    def sit_in(self, player: str, wait: bool) -> None:
        self.room.ask(player, cmd.SitIn(player, wait_for_big_blind=wait))

    @rule(player=st.sampled_from(PLAYERS), after_hand=st.booleans())
    def leave(self, player: str, after_hand: bool) -> None:
        self.room.ask(player, cmd.LeaveSeat(player, after_hand=after_hand))

    @rule(player=st.sampled_from(PLAYERS), amount=st.integers(1, 500))
    def top_up(self, player: str, amount: int) -> None:
        self.room.ask(player, cmd.AddChips(player, amount))

    @rule(player=st.sampled_from(PLAYERS), post=st.booleans(), muck=st.booleans(), top_up=st.sampled_from((0, 800)))
    def prefer(self, player: str, post: bool, muck: bool, top_up: int) -> None:
        self.room.ask(player, cmd.SetPreferences(player, auto_post=post, auto_muck=muck, auto_top_up=top_up))

    @rule(seconds=st.sampled_from((0.4, 2.0, 12.0, 22.0, 35.0)))
    def wait(self, seconds: float) -> None:
        self.room.pass_time(seconds)

    @rule(moves=st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=8))
    def play(self, moves: list[tuple[int, float]]) -> None:
        """Whoever is asked answers, one after another, some late."""
        for choice, size in moves:
            asked = prompt(self.room.table)
            if asked is None:
                self.room.pass_time(1.1)
                continue
            if size < 0.1:
                self.room.pass_time(asked.clock_ms / 1000 - asked.bank_ms / 1000 + 1)
                if prompt(self.room.table) != asked:
                    continue
            offer = asked.offer
            kind = offer.actions[choice % len(offer.actions)]
            amount, cards = 0, ""
            if kind in {table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_COMPLETE}:
                amount = offer.min_raise_to + round(size * (offer.max_raise_to - offer.min_raise_to))
                amount = offer.raise_sizes[0] if offer.raise_sizes else amount
            hand = self.room.table.hand
            assert hand is not None
            if kind == table_pb2.ACTION_KIND_DISCARD:
                cards = "".join(NAMES[card] for card in hand.down[hand.asked][: choice % 5])
            refused = self.room.ask(asked.player, cmd.Act(asked.player, asked.turn, kind, amount, cards))
            assert not refused, f"{kind} was offered and refused: {refused}"

    @precondition(lambda self: self.crashes < 2)
    @rule()
    def crash(self) -> None:
        self.crashes += 1
        self.room.crash(f"next-{self.crashes}")

    @invariant()
    def the_table_runs(self) -> None:
        assert self.room.actor.state is State.RUNNING

    @invariant()
    def one_seat_a_player(self) -> None:
        """S9."""
        table = self.room.table
        players = [seat.player for seat in table.seats.values()]
        assert len(players) == len(set(players))
        assert not set(table.seats) & set(table.holds)
        held = [hold.player for hold in table.holds.values()]
        assert len(held) == len(set(held))

    @invariant()
    def chips_are_conserved(self) -> None:
        room = self.room
        room.table.conservation()
        wallet = room.wallet
        assert sum(wallet.balances.values()) + wallet.escrow == 10_000 * len(wallet.balances)
        applied = room.table.bought_in - room.table.cashed_out
        owed = sum(each.amount for each in room.table.transfers.values() if each.purpose not in (1, 2))
        assert wallet.escrow == applied + owed

    @invariant()
    def somebody_s_clock_runs_while_they_are_asked(self) -> None:
        asked = prompt(self.room.table)
        if asked is not None:
            assert self.room.actor.view(None).prompt.remaining_ms > 0
            assert self.room.clock.next_due() is not None

    @invariant()
    def a_hand_starts_when_it_can(self) -> None:
        if ready_to_start(self.room.table):
            assert self.room.clock.next_due() is not None

    @invariant()
    def nobody_stays_reserved_for_ever(self) -> None:
        now = self.room.clock.now_us()
        for seat in self.room.table.seats.values():
            assert not seat.reserved or seat.until > now
        assert all(hold.until > now for hold in self.room.table.holds.values())

    def teardown(self) -> None:
        if not hasattr(self, "room"):
            return
        room = self.room
        replay = Replay(TABLE)
        replay.see(room.events())
        assert replay.table == room.table
        for player in PLAYERS:
            room.ask(player, cmd.LeaveSeat(player))
        room.pass_time(200)
        room.settle(99)
        room.settle(99)
        assert not room.table.seats
        assert room.wallet.escrow == 0
        room.close()


TestOneTable = OneTable.TestCase
TestOneTable.settings = settings(
    max_examples=12, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
