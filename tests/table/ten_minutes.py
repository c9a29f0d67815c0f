"""A room of real services on a simulated clock: players who misbehave, one thing at a time, checked after each.

Table service, wallet and lobby run in this process on a real database and NATS, and players reach them over gRPC. Only
time is simulated: it moves on when everything that the last thing caused has come to rest. So minutes take seconds, and
a seed leads to the same story again.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count

import grpc
from pydantic import SecretStr
from tests.table.bad_habits import LATE, SEATED, STANDING, TURNS
from tests.table.checks import Protected, Replay
from tests.table.support import Keys, Room, bearer, beside

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import waiting_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.eventlog import PostgresLog
from relance.lobby.serve import started as lobby_started
from relance.lobby.settings import LobbySettings
from relance.poker import Prompt, Table, prompt
from relance.poker.cards import NAMES
from relance.poker.deck import CardSource, VirtualDeck
from relance.room.ports import free_port
from relance.runtime.clock import SimulatedClock
from relance.runtime.errors import from_call, reason_name
from relance.table.actor import State
from relance.table.process import Process
from relance.table.transfers import Transfers

FUNDS = 100_000
IDLE_SECONDS = 8.0
"""Between two things that a player does, turns apart, on average."""
TICK = 10.0
"""Seconds between two looks of the lobby."""
CALM_POLLS = 40
"""Polls without a change after which the start of the services is over."""
TOO_LONG = 60.0
"""Real seconds in which whatever was caused must have come to rest."""
SIZED = (table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE, table_pb2.ACTION_KIND_COMPLETE)

WAITING = frozenset({"ALREADY_SEATED", "LIMIT_REACHED", "OFFER_OVER", "TABLE_NOT_FOUND"})


class PatientClock(SimulatedClock):
    """A simulated clock that knows how many tasks sleep by it."""

    def __init__(self) -> None:
        super().__init__()
        self.sleepers = 0

    async def sleep(self, seconds: float) -> None:
        self.sleepers += 1
        try:
            await super().sleep(seconds)
        finally:
            self.sleepers -= 1


class Line:
    """One Play stream of a player."""

    def __init__(self, channel: grpc.aio.Channel, token: str, table: str) -> None:
        self.table = table
        self.version = 0
        self.prompt = table_pb2.Prompt()
        self.ended = False
        self._answers: dict[str, asyncio.Future[str]] = {}
        self._writing = asyncio.Lock()
        play: grpc.aio.StreamStreamMultiCallable[table_pb2.PlayRequest, table_pb2.PlayResponse] = channel.stream_stream(
            "/relance.api.table.v1.TableService/Play",
            request_serializer=table_pb2.PlayRequest.SerializeToString,
            response_deserializer=table_pb2.PlayResponse.FromString,
        )
        self._call = play(metadata=bearer(token))
        self._reader = asyncio.ensure_future(self._read())

    async def join(self) -> None:
        """Join the table; the welcome comes when it comes."""
        await self._call.write(table_pb2.PlayRequest(join=table_pb2.Join(table=f"tables/{self.table}")))

    async def ask(self, request: table_pb2.PlayRequest) -> str:
        """A command; the reason of its refusal, or nothing."""
        request_id = getattr(request, request.WhichOneof("message") or "").request_id
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        async with self._writing:
            await self._call.write(request)
        return await answer

    async def close(self) -> None:
        """The connection breaks."""
        self._call.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while isinstance(message := await self._call.read(), table_pb2.PlayResponse):
                self._take(message)
        except grpc.aio.AioRpcError:
            pass  # the server ended it, or is gone
        finally:
            self.ended = True
            for answer in self._answers.values():
                answer.cancel()

    def _take(self, message: table_pb2.PlayResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "welcome":
            self.version = message.welcome.view.version
            self.prompt = message.welcome.view.prompt
        elif kind == "update":
            if message.update.events:
                assert message.update.events[0].version == self.version + 1, "a stream has a gap"
                self.version = message.update.events[-1].version
            if message.update.HasField("prompt"):
                self.prompt = message.update.prompt
        elif kind == "result":
            self._answers.pop(message.result.request_id).set_result("")
        elif kind == "refusal":
            self._answers.pop(message.refusal.request_id).set_result(message.refusal.reason)


class SimulatedRoom(Room):
    """A room on a simulated clock, whose cards come from a seed."""

    def __init__(self, stack: AsyncExitStack, keys: Keys, database: str, nats: str, wallet: str, seed: int) -> None:
        super().__init__(stack, keys, database, nats, wallet)
        self.clock = PatientClock()
        self.random = random.Random(seed)
        self.address = f"127.0.0.1:{free_port()}"
        self._lobby_settings = LobbySettings(
            database_url=SecretStr(database), nats_url=SecretStr(nats), keyring=keys.ring,
            signing_key=keys.service_key, player_signing_key=keys.lobby_key, table_addresses=(self.address,),
            tick_seconds=TICK,
        )  # fmt: skip

    async def timed_lobby(self) -> str:
        """A lobby on the simulated clock; its address."""
        return await beside(self._stack, lobby_started(self._lobby_settings, self.clock))

    async def serve(self, lobby: str) -> Process:
        """A table process on the simulated clock, always at the same address."""
        return await self.start(clock=self.clock, lease=500, lobby=lobby, listen=self.address)

    def deck(self, table: Table) -> CardSource:
        """A shuffled one."""
        return VirtualDeck(self.random.shuffle, self.random.randbytes)


class Player:
    """Somebody with a token, money, and at most one connection that they use (and a second one that they forgot)."""

    def __init__(self, name: str, token: str) -> None:
        self.name, self.token = name, token
        self.line: Line | None = None
        self.second: Line | None = None
        self.took = 0

    @property
    def lines(self) -> list[Line]:
        """Connections that are up."""
        return [line for line in (self.line, self.second) if line is not None and not line.ended]


class Story:
    """The room, its players, and what happens, in the order of simulated time."""

    def __init__(self, room: SimulatedRoom) -> None:
        self.room, self.random, self.clock = room, room.random, room.clock
        self.tables: dict[str, Replay] = {}
        self.players: dict[str, Player] = {}
        self.protected = Protected()
        self.refusals: Counter[str] = Counter()
        self.did: Counter[str] = Counter()
        self.process: Process
        self._plan: list[tuple[int, int, Callable[[], Awaitable[None]]]] = []
        self._numbers = count(1)
        self._asked: dict[str, int] = {}
        self._sleepers = 0
        self._log: PostgresLog
        self._lobby = ""

    async def start(self, openings: list[table_pb2.OpenTableRequest], names: list[str]) -> None:
        """Open the tables, give everybody money, and let them come in."""
        self._lobby = await self.room.timed_lobby()
        self.process = await self.room.serve(self._lobby)
        self._log = await self.room.log()
        await self._until(self._started)
        for opening in openings:
            floor = bearer(self.room.keys.operator("floor"))
            answer = await self.room.admin(self.process).OpenTable(opening, metadata=floor)
            table = answer.table.removeprefix("tables/")
            self.tables[table] = Replay(table, self.protected)
        for name in names:
            self.players[name] = Player(name, self.room.keys.player(name, seconds=10**8))
            await self._fund(name)
            self.later(self.random.uniform(0, 5), self._idle(self.players[name]))
        await self.quiet()

    async def _started(self) -> bool:
        """Whether the services' loops have all come to their first rest."""
        before = self.clock.sleepers
        for _ in range(CALM_POLLS):
            await asyncio.sleep(0.002)
            if self.clock.sleepers != before:
                return False
        self._sleepers = before
        return before > 0

    async def _fund(self, name: str) -> None:
        for currency in (game_pb2.CURRENCY_EUR, game_pb2.CURRENCY_CREDIT):
            request = wallet_pb2.DrawFaucetRequest(request_id=f"f-{name}-{currency}", currency=currency, amount=FUNDS)
            await self.room.wallet.DrawFaucet(request, metadata=bearer(self.room.keys.player(name)))

    # Time

    def later(self, seconds: float, what: Callable[[], Awaitable[None]]) -> None:
        """Do something in a while."""
        at = self.clock.now_us() + round(seconds * 1e6)
        heapq.heappush(self._plan, (at, next(self._numbers), what))

    async def run(self, seconds: float) -> None:
        """Let that much time go by. Raises AssertionError where something does not hold."""
        end = self.clock.now_us() + round(seconds * 1e6)
        while self._plan and self._plan[0][0] <= end:
            at, _, what = heapq.heappop(self._plan)
            await self._pass_until(at)
            await what()
            await self.quiet()
            await self.check()
        await self._pass_until(end)

    async def _pass_until(self, at: int) -> None:
        """Time goes by; whatever falls due has come to rest before the next thing does."""
        while (due := self.clock.next_due()) is not None and self.clock.now_us() + round(due * 1e6) <= at:
            await self.clock.advance(due)
            await self.quiet()
            await self.check()
        await self.clock.advance((at - self.clock.now_us()) / 1e6)

    async def quiet(self) -> None:
        """Return once all that was caused has come to rest; whoever is asked will answer in their time."""
        await self._until(self._is_quiet)
        for table in self.tables:
            actor = self.process.tables.actors[table]
            asked = prompt(actor.table)
            if asked is not None and self._asked.get(table) != asked.turn:
                self._asked[table] = asked.turn
                self._expect_answer(table, asked)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(TOO_LONG):
            while not await condition():  # noqa: ASYNC110 - what is waited for knows nothing of it
                await asyncio.sleep(0.0002)

    async def _is_quiet(self) -> bool:
        tables = self.process.tables
        transfers = tables.host.transfers
        assert isinstance(transfers, Transfers)
        if self.clock.sleepers < self._sleepers or set(transfers._open) - transfers._parked:
            return False
        lines = [line for player in self.players.values() for line in player.lines]
        for table in self.tables:
            actor = tables.actors[table]
            assert actor.state is State.RUNNING, f"{table} is {actor.state}"
            here = [line for line in lines if line.table == table]
            streams = actor._audience.streams if actor._audience is not None else []
            if (
                actor._appending is not None
                or actor._asking
                or actor._changed
                or actor.waiting
                or len(streams) != len(here)
                or any(line.version != actor.table.version for line in here)
            ):
                return False
        return True

    async def check(self) -> None:
        """What the log says so far is right, and leads to the state that is live."""
        for table, replay in self.tables.items():
            live = self.process.tables.actors[table].table
            if live.version != replay.table.version:
                replay.see(await self._log.read(table, replay.table.version))
                assert replay.table == live, f"{table}: replay and live differ at {live.version}"

    # What players do

    def _expect_answer(self, table: str, asked: Prompt) -> None:
        """Most answer soon, some late, some never."""
        luck = self.random.random()
        if luck < 0.04:
            return
        clock = (asked.clock_ms - asked.bank_ms) / 1e3
        think = self.random.uniform(0.2, 4.0) if luck < 0.94 else self.random.uniform(0.5, 1.2) * clock
        self.later(think, lambda: self._answer(table, asked))

    async def _answer(self, table: str, asked: Prompt) -> None:
        player = self.players[asked.player]
        line = player.line
        if line is None or line.ended or line.table != table:
            return  # whoever is not there does not answer
        if prompt(self.process.tables.actors[table].table) == asked:
            assert line.prompt.turn == asked.turn, f"{player.name} was not told of turn {asked.turn}"
        names = list(TURNS)
        name = self.random.choices(names, [TURNS[each][0] for each in names])[0]
        self.did[name] += 1
        await TURNS[name][1](self, player, line, asked)

    async def act(self, line: Line, asked: Prompt, *, sure: bool = False) -> str:
        """A legal answer to a prompt. `sure`: it must be in time."""
        reason = await self.ask(line, self.legal(line.table, asked), LATE)
        assert not (sure and reason), f"what was offered was refused: {reason}"
        return reason

    def legal(self, table: str, asked: Prompt) -> table_pb2.PlayRequest:
        """An answer that is offered, as long as that is what is asked."""
        offer = asked.offer
        kind = self.random.choice(offer.actions)
        if kind in {table_pb2.ACTION_KIND_FOLD, table_pb2.ACTION_KIND_ALL_IN} and self.random.random() < 0.7:
            kind = self.random.choice(offer.actions)
        amount, cards = 0, ""
        if kind in SIZED:
            room = offer.max_raise_to - offer.min_raise_to
            amount = offer.min_raise_to + round(self.random.random() ** 4 * room)
            amount = self.random.choice(offer.raise_sizes) if offer.raise_sizes else amount
        if kind == table_pb2.ACTION_KIND_DISCARD:
            hand = self.process.tables.actors[table].table.hand
            if hand is not None and hand.turn == asked.turn:
                cards = "".join(NAMES[card] for card in hand.down[hand.asked][: self.random.randrange(4)])
        return self.action(kind, amount, cards, asked.turn)

    def action(self, kind: int, amount: int = 0, cards: str = "", turn: int = 0) -> table_pb2.PlayRequest:
        """An Act with a request_id of its own."""
        action = table_pb2.Action(kind=kind, amount=amount, cards=cards, turn=turn)  # type: ignore[arg-type]
        return table_pb2.PlayRequest(act=table_pb2.ActRequest(action=action, request_id=self.request_id()))

    def request_id(self) -> str:
        """A new one."""
        return f"r-{next(self._numbers)}"

    async def ask(self, line: Line, request: table_pb2.PlayRequest, expected: frozenset[str] = frozenset()) -> str:
        """A command on a line; the reason of its refusal, which must be an expected one, or nothing."""
        command = getattr(request, request.WhichOneof("message") or "")
        command.request_id = command.request_id or self.request_id()
        reason = await line.ask(request)
        if reason:
            assert reason in expected, f"{request} was refused: {reason}"
            self.refusals[reason] += 1
        return reason

    async def refused(self, line: Line, request: table_pb2.PlayRequest, *expected: str) -> None:
        """A command that must be refused."""
        reason = await self.ask(line, request, LATE | set(expected))
        assert reason, f"{request} was accepted"

    def _idle(self, player: Player) -> Callable[[], Awaitable[None]]:
        """What a player does between turns, again and again."""

        async def once() -> None:
            self.later(self.random.expovariate(1 / IDLE_SECONDS), self._idle(player))
            line = player.line
            if line is not None and line.ended:
                player.line = line = None
            if line is None:
                await self.join(player, self.random.choice(list(self.tables)))
                return
            seated = self.process.tables.actors[line.table].table.seat_of(player.name) is not None
            habits = SEATED if seated else STANDING
            names = list(habits)
            name = self.random.choices(names, [habits[each][0] for each in names])[0]
            self.did[name] += 1
            await habits[name][1](self, player, line)

        return once

    async def join(self, player: Player, table: str) -> Line:
        """Connect to a table."""
        line = player.line = await self.connect(player, table)
        return line

    async def connect(self, player: Player, table: str) -> Line:
        """One more connection of a player's."""
        line = Line(self.room.channel(self.process.address), player.token, table)
        await line.join()
        return line

    async def drop(self, player: Player) -> None:
        """All connections of a player's break."""
        for line in player.lines:
            await line.close()
        player.line = player.second = None

    async def crash(self) -> None:
        """The table process dies and another takes its tables over; connections are gone, and what was asked is."""
        seen = {table: self.process.tables.actors[table].fence for table in self.tables}
        await self.room.kill(self.process)
        for player in self.players.values():
            await self.drop(player)
        self.process = await self.room.serve(self._lobby)
        await self.process.tables.claim(seen)
        self._asked.clear()
        await self.quiet()
        await self.check()

    def is_asked(self, name: str, table: str, turn: int) -> bool:
        """Whether a player is asked at a table, in a turn."""
        asked = prompt(self.process.tables.actors[table].table)
        return asked is not None and asked.player == name and asked.turn == turn

    def ask_again(self, table: str) -> None:
        """Whoever is asked there, and has come back in time, answers after all."""
        self._asked.pop(table, None)

    async def waiting(
        self,
        player: Player,
        call: Callable[[waiting_pb2_grpc.WaitingServiceAsyncStub, tuple[tuple[str, str], ...]], Awaitable[object]],
    ) -> None:
        """Something about waiting lists."""
        try:
            await call(waiting_pb2_grpc.WaitingServiceStub(self.room.channel(self._lobby)), bearer(player.token))
        except grpc.aio.AioRpcError as error:
            refused = from_call(error)
            reason = reason_name(refused.reason) if refused is not None else "none"
            if reason not in WAITING:
                raise
            self.refusals[reason] += 1

    def told(self) -> str:
        """What happened, in figures."""
        hands = ", ".join(f"{table} {replay.table.last_hand}" for table, replay in self.tables.items())
        fired = sum(replay.clocks.fired for replay in self.tables.values())
        guarded = sum(replay.ratholes.guarded for replay in self.tables.values())
        return (
            f"{self.clock.monotonic():.0f} s; hands: {hands}; {fired} clocks ran out, {guarded} came back with what "
            f"they took, {self.protected.used} protections\ndid: {dict(self.did)}\nrefused: {dict(self.refusals)}"
        )
