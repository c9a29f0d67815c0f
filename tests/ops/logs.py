"""Logs for operators' commands: random hands of any game, and a log in memory to read them from."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence

from tests.poker import playing
from tests.poker.oracle_games import GAMES, OracleGame
from tests.poker.playing import Room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.eventlog import Snapshot, StreamInfo
from relance.ops.source import Connection, Row, named
from relance.poker import commands as cmd
from relance.poker import prompt
from relance.poker.cards import render
from relance.poker.deck import ScriptedDeck, VirtualDeck

ORACLE_GAMES = {game.name: game for game in GAMES}


class LoggedRoom(Room):
    """A table whose appends are remembered as well as its events."""

    def __init__(
        self, config: game_pb2.TableConfig, rake: game_pb2.RakeSchedule | None = None, name: str = "t"
    ) -> None:
        self.appends: list[list[pb.TableEvent]] = []
        super().__init__(config, rake)
        assert name == self.table.id

    def do(self, command: cmd.Command, **context: object) -> list[pb.TableEvent]:
        """Decide, apply, remember."""
        events = super().do(command, **context)
        if events:
            self.appends.append(events)
        return events


class ListSource:
    """A LogSource over appends in memory."""

    connection: Connection | None = None

    def __init__(self, appends: Sequence[Sequence[pb.TableEvent]], table: str = "t") -> None:
        self.table = table
        self.all = [
            Row(
                e.version,
                1,
                f"append-{number}",
                e.hand,
                e.WhichOneof("payload") or "",
                e.time_us,
                e.SerializeToString(),
            )
            for number, append in enumerate(appends)
            for e in append
        ]
        self.head = self.all[-1].version if self.all else 0

    async def streams(self, names: Sequence[str] = ()) -> list[StreamInfo]:
        """See LogSource."""
        return named([StreamInfo(self.table, self.head, 1, "p", "")], names)

    async def rows(self, stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[list[Row]]:
        """See LogSource."""
        found = [row for row in self.all if row.version > after and (upto is None or row.version <= upto)]
        for start in range(0, len(found), 7):
            yield found[start : start + 7]

    async def bounds(self, stream: str, hand: int) -> tuple[int, int] | None:
        """See LogSource."""
        versions = [row.version for row in self.all if row.hand == hand]
        return (versions[0], versions[-1]) if hand and versions else None

    async def snapshot(self, stream: str, at: int | None = None) -> Snapshot | None:
        """See LogSource."""
        return None


def play_on(room: Room, chance: random.Random) -> None:
    """Play the running hand to its end, at random."""
    while (asked := prompt(room.table)) is not None:
        hand = room.table.hand
        assert hand is not None
        offer = asked.offer
        if offer.max_discards:
            held = list(hand.down[hand.asked])
            count = min(chance.choice((0, 1, 1, 2, 3)), offer.max_discards)
            room.act(asked.seat, playing.DISCARD, cards=render(chance.sample(held, count)))
            continue
        raises = [kind for kind in (playing.BET, playing.RAISE, playing.COMPLETE) if kind in offer.actions]
        if raises and chance.random() < 0.3:
            least, most = offer.min_raise_to, offer.max_raise_to
            to = (
                offer.raise_sizes[0] if offer.raise_sizes else chance.choice((least, chance.randint(least, most), most))
            )
            room.act(asked.seat, raises[0], to)
            continue
        kinds = (playing.BRING_IN, playing.CHECK, playing.POST, playing.REFUSE_SPLIT, playing.SHOW)
        usual = next((kind for kind in kinds if kind in offer.actions), playing.CALL)
        if usual == playing.CALL and (playing.CALL not in offer.actions or chance.random() < 0.2):
            usual = playing.FOLD
        room.act(asked.seat, usual)


def oracle_room(game: OracleGame, seed: int, *, least: int = 2_000, commit: bool = False) -> LoggedRoom:
    """A table of a game that PokerKit knows too, players seated."""
    chance = random.Random(seed)
    players = chance.randint(2, game.players)
    rules = game_pb2.TableRules(deck_commitments=commit)
    config = playing.config(game.id, game.limit, seats=game.players, stakes=game.stakes(game.antes[-1]), rules=rules)
    room = LoggedRoom(config)
    for seat in range(1, players + 1):
        room.sit(seat, chance.randint(least, 3 * least))
    return room


def play_hands(room: Room, count: int, seed: int) -> None:
    """Hands with decks of their own, one after another, as long as two players have chips."""
    chance = random.Random(seed)
    for _ in range(count):
        if sum(seat.stack > 0 for seat in room.table.seats.values()) < 2:
            return
        room.at += 60_000_000
        if room.table.terms is not None and room.table.terms.commitments:
            room.start(VirtualDeck(chance.shuffle, chance.randbytes))
        else:
            deck = list(range(52))
            chance.shuffle(deck)
            room.start(ScriptedDeck(deck))
        play_on(room, chance)


def draws_without_a_bet() -> LoggedRoom:
    """A hand of triple draw in which both are all-in before the first draw, and change two cards each time."""
    game = ORACLE_GAMES["fl-td27"]
    room = LoggedRoom(playing.config(game.id, game.limit, seats=2, stakes=game.stakes(0)))
    deck = list(range(52))
    random.Random(1).shuffle(deck)
    room.sit(1, 200)
    room.sit(2, 200)
    room.start(ScriptedDeck(deck))
    while (asked := prompt(room.table)) is not None:
        hand = room.table.hand
        assert hand is not None
        if asked.offer.max_discards:
            room.act(asked.seat, playing.DISCARD, cards=render(hand.down[hand.asked][:2]))
        elif playing.RAISE in asked.offer.actions:
            room.act(asked.seat, playing.RAISE, 200)
        else:
            room.act(asked.seat, playing.CALL)
    return room
