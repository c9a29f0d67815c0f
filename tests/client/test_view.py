"""The client's view, moved on by redacted events alone, is the server's view at every version."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.client.view import LiveView
from relance.poker import Context, Rejected, Table, apply, decide, initial, prompt, ready_to_start, redact, view
from relance.poker import commands as cmd
from relance.poker.config import table_config
from relance.poker.deck import VirtualDeck

PLAYERS = [f"p{number}" for number in range(1, 8)]


class Simulation:
    """A table driven by chance, and the views of its players and of a watcher."""

    def __init__(self, seed: int, request: table_pb2.OpenTableRequest) -> None:
        self.rng = random.Random(seed)
        self.table: Table = initial("t1")
        self.deck = VirtualDeck(self.rng.shuffle, self.rng.randbytes)
        self.viewers = [LiveView(player) for player in (*PLAYERS, "")]
        self.now = 1_000_000
        self.turn = 0
        setup = table_config(request)
        self.do(cmd.OpenTable(setup.config, setup.rake, "floor"))
        self.do(cmd.TakeOver(1, "process", events_pb2.OWNER_REASON_OPENED))

    def do(self, command: cmd.Command) -> list[events_pb2.TableEvent]:
        """Decide, apply and show; nothing where it is refused."""
        self.now += 1_000_000
        try:
            events = decide(self.table, command, Context(self.now, cards=self.deck))
        except Rejected:
            return []
        for event in events:
            before = self.table.seat_of
            seats = {live.player: getattr(before(live.player), "number", 0) for live in self.viewers}
            apply(self.table, event)
            for live in self.viewers:
                live.apply(redact(event, seats[live.player]))
        asked = prompt(self.table)
        fresh = asked is not None and asked.turn != self.turn
        self.turn = asked.turn if asked is not None else 0
        for live in self.viewers:
            if asked is not None and fresh:
                live.shown.prompt.CopyFrom(asked.to_proto())
            self.compare(live)
        for event in events:
            if event.WhichOneof("payload") == "transfer_requested":
                self.do(cmd.TransferAnswered(event.transfer_requested.transfer, self.rng.random() < 0.95, "NO_MONEY"))
        return events

    def compare(self, live: LiveView) -> None:
        mine = table_pb2.TableView()
        mine.CopyFrom(live.shown)
        theirs = view(self.table, live.player or None)
        theirs.name = ""
        mine.name = ""
        assert str(mine) == str(theirs)

    def step(self) -> None:
        """Something that could happen next."""
        player = self.rng.choice(PLAYERS)
        asked = prompt(self.table)
        luck = self.rng.random()
        if luck < 0.06:
            self.do(cmd.TakeSeat(player, 0, self.rng.choice((2_000, 10_000)), self.rng.random() < 0.5))
        elif luck < 0.08:
            self.do(cmd.LeaveSeat(player))
        elif luck < 0.11:
            self.do(self.rng.choice((cmd.SitOut(player), cmd.SitIn(player), cmd.SitIn(player, True))))
        elif luck < 0.13:
            self.do(cmd.AddChips(player, 1_000))
        elif luck < 0.15:
            self.do(self.rng.choice((cmd.ConnectionLost(player), cmd.ConnectionRestored(player))))
        elif luck < 0.152:
            self.do(cmd.RecordRuling("floor", 0, "as it is"))
        elif luck < 0.153:
            self.do(cmd.CloseTable("floor"))
        elif luck < 0.157:
            self.do(cmd.VoidHand("floor", "", self.table.last_hand))
        elif asked is None:
            if ready_to_start(self.table):
                self.do(cmd.StartHand())
        elif luck < 0.2:
            self.do(cmd.Timeout(asked.turn, self.rng.random() < 0.5))
        else:
            self.do(self.act(asked.to_proto()))

    def act(self, asked: table_pb2.Prompt) -> cmd.Act:
        """A legal action."""
        kind = self.rng.choice(asked.actions)
        amount = 0
        if kind in {table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_COMPLETE}:
            top = min(asked.max_raise_to, asked.min_raise_to * 3)
            amount = self.rng.choice(asked.raise_sizes or [asked.min_raise_to, max(top, asked.min_raise_to)])
        player = self.table.seats[asked.seat].player
        return cmd.Act(player, asked.turn, kind, amount)


def holdem(limit: game_pb2.Limit.ValueType, **more: int) -> table_pb2.OpenTableRequest:
    stakes = game_pb2.Stakes(blinds=[50, 100], **more)  # type: ignore[arg-type]
    return table_pb2.OpenTableRequest(
        house="boulevard", game="holdem", limit=limit, stakes=stakes, seats=6, currency=game_pb2.CURRENCY_EUR,
        min_buy_in=2_000, max_buy_in=10_000,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [game_pb2.LIMIT_NO_LIMIT, game_pb2.LIMIT_POT])
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8, deadline=None)
def test_the_view_of_every_player_and_of_a_watcher_follows_the_events(
    limit: game_pb2.Limit.ValueType, seed: int
) -> None:
    simulation = Simulation(seed, holdem(limit))
    for player in PLAYERS[:5]:
        simulation.do(cmd.TakeSeat(player, 0, 10_000))
    for _ in range(150):
        simulation.step()
