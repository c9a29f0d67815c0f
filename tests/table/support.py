"""A room for the tests of the table service: real table processes, wallet, PostgreSQL and NATS; raw Play streams."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import grpc
import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.eventlog import PostgresLog
from relance.lobby.serve import started as lobby_started
from relance.lobby.settings import LobbySettings
from relance.poker import Table
from relance.poker.blinds import plan_hand
from relance.poker.cards import parse
from relance.poker.deck import CardSource, ScriptedDeck
from relance.runtime.auth import ROLES, TokenSigner
from relance.runtime.clock import Clock, SystemClock
from relance.runtime.errors import Refused, from_call
from relance.runtime.migrations import migrate
from relance.runtime.server import Server
from relance.table.actor import Actor
from relance.table.metrics import TableMetrics
from relance.table.process import Process, running
from relance.table.settings import TableSettings

LEASE = 0.5
"""Seconds: short, so that a crash is noticed soon."""
PATIENCE = 10.0
"""Seconds that a test waits for something that must happen."""


class Keys:
    """Keys of the three signers, and the ring that believes them, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._signers = {name: TokenSigner.generate(f"{name}-1") for name in ("lobby", "operator", "service")}
        roles = {"lobby": ("player",), "operator": tuple(ROLES - {"player", "service"}), "service": ("service",)}
        self.ring = folder / "keyring.json"
        entries = {signer.kid: signer.entry(*roles[name]) for name, signer in self._signers.items()}
        self.ring.write_text(json.dumps({"keys": entries}))
        self.service_key, self.lobby_key = folder / "service.pem", folder / "lobby.pem"
        self.service_key.write_bytes(self._signers["service"].pem())
        self.lobby_key.write_bytes(self._signers["lobby"].pem())

    @property
    def lobby_signer(self) -> TokenSigner:
        """What signs for players: tokens and invitations."""
        return self._signers["lobby"]

    def player(self, player: str, seconds: int = 600) -> str:
        """A player's token."""
        return self._signers["lobby"].sign(player, ("player",), seconds=seconds)[0]

    def operator(self, *roles: str) -> str:
        """An operator's token."""
        return self._signers["operator"].sign("operators/ada", roles, seconds=600)[0]

    def service(self) -> str:
        """A service's token."""
        return self._signers["service"].sign("services/test", ("service",), seconds=600, service="test")[0]


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Metadata of a call."""
    return (("authorization", f"Bearer {token}"),)


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until something holds, as the tasks of the test run. Fails after a long while."""
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.002)


async def beside(stack: AsyncExitStack, service: AbstractAsyncContextManager[Server]) -> str:
    """Run another service until the stack ends, in a task of its own; its address."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def serve() -> None:
        async with service as server:
            address.set_result(server.address)
            await stop.wait()

    serving = asyncio.create_task(serve())

    async def end() -> None:
        stop.set()
        await serving

    stack.push_async_callback(end)
    return await address


class Addressed(Protocol):
    """A table process, in this one or by itself."""

    @property
    def address(self) -> str:
        """host:port of its gRPC server."""


class Child(NamedTuple):
    """A table process by itself."""

    process: asyncio.subprocess.Process
    address: str


class Room:
    """Table processes on one database. `holes` (player -> cards) and `board` script the next hands' decks."""

    def __init__(self, stack: AsyncExitStack, keys: Keys, database: str, nats: str, wallet: str) -> None:
        self._stack = stack
        self.keys = keys
        self.database = database
        self._nats = nats
        self._wallet = wallet
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._processes: dict[str, AsyncExitStack] = {}
        self.holes: Mapping[str, str] = {}
        self.board = ""
        self.ledger = wallet_pb2_grpc.LedgerServiceStub(self.channel(wallet))
        self.wallet = wallet_pb2_grpc.WalletServiceStub(self.channel(wallet))

    # Processes

    async def lobby(self, tables: tuple[str, ...] = ()) -> str:
        """A lobby, which knows table processes; its address."""
        await migrate(self.database, "relance.lobby")
        settings = LobbySettings(
            database_url=SecretStr(self.database),
            nats_url=SecretStr(self._nats),
            keyring=self.keys.ring,
            signing_key=self.keys.service_key,
            player_signing_key=self.keys.lobby_key,
            table_addresses=tables,
        )
        return await beside(self._stack, lobby_started(settings, SystemClock()))

    async def start(
        self,
        *,
        clock: Clock | None = None,
        lease: float = LEASE,
        wallet: str | None = None,
        lobby: str = "",
        rake: str = "",
        listen: str = "127.0.0.1:0",
        routing: Literal["forward", "redirect"] = "redirect",
    ) -> Process:
        """A table process."""
        settings = TableSettings(
            database_url=SecretStr(self.database),
            nats_url=SecretStr(self._nats),
            keyring=self.keys.ring,
            signing_key=self.keys.service_key,
            wallet_address=self._wallet if wallet is None else wallet,
            lobby_address=lobby,
            rake_address=rake,
            listen=listen,
            lease=lease,
            routing=routing,
        )
        stack = AsyncExitStack()
        process = await stack.enter_async_context(
            running(settings, clock=clock, deck=self.deck, metrics=TableMetrics(CollectorRegistry()))
        )
        self._processes[process.address] = stack
        self._stack.push_async_callback(self.kill, process)
        return process

    async def kill(self, process: Process) -> None:
        """End a process as a crash would, for the log: nothing is drained, its heartbeat row stays."""
        stack = self._processes.pop(process.address, None)
        if stack is not None:
            await stack.aclose()

    def deck(self, table: Table) -> CardSource:
        """The next hand's deck: each player's scripted cards in the order of the deal (D4), then the board."""
        plan = plan_hand(table)
        assert plan is not None
        hands = [parse(self.holes.get(table.seats[number].player, "")) for number in plan.dealt]
        rounds = [cards[at] for at in range(2) for cards in hands if len(cards) > at]
        return ScriptedDeck([*rounds, *parse(self.board)])

    def channel(self, address: str) -> grpc.aio.Channel:
        """The channel to an address, made once."""
        if address not in self._channels:
            channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
            self._channels[address] = channel
            self._stack.push_async_callback(channel.close)
        return self._channels[address]

    async def spawn(self, folder: Path, lease: float = 1.0) -> Child:
        """A table process that is an operating system's process, ended with the test."""
        file = folder / "address"
        settings = {
            "DATABASE_URL": self.database,
            "NATS_URL": self._nats,
            "KEYRING": str(self.keys.ring),
            "SIGNING_KEY": str(self.keys.service_key),
            "WALLET_ADDRESS": self._wallet,
            "ADDRESS_FILE": str(file),
            "LEASE": str(lease),
            "DRAIN_TIMEOUT": "5",
        }
        environment = {**os.environ, **{f"RELANCE_{name}": value for name, value in settings.items()}}
        command = (sys.executable, "-m", "relance.table", "serve")
        child = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)

        async def end() -> None:
            if child.returncode is None:
                child.kill()
                await child.wait()

        self._stack.push_async_callback(end)
        await until(file.exists, 20)
        return Child(child, file.read_text())

    def tables(self, process: Addressed) -> table_pb2_grpc.TableServiceAsyncStub:
        """Stub of a process's TableService."""
        return table_pb2_grpc.TableServiceStub(self.channel(process.address))

    def admin(self, process: Addressed) -> table_pb2_grpc.TableAdminServiceAsyncStub:
        """Stub of a process's TableAdminService."""
        return table_pb2_grpc.TableAdminServiceStub(self.channel(process.address))

    def background(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run something beside the test."""
        return asyncio.create_task(work)

    # Money and tables

    async def deposit(self, player: str, amount: int) -> None:
        """Give a player euro cents."""
        request = wallet_pb2.DepositRequest(
            request_id=f"deposit-{player}-{amount}",
            player=f"players/{player}",
            currency=game_pb2.CURRENCY_EUR,
            amount=amount,
        )
        await self.ledger.Deposit(request, metadata=bearer(self.keys.operator("cashier")))

    async def balance(self, player: str) -> int:
        """A player's euro cents."""
        request = wallet_pb2.GetBalanceRequest(account=f"players/{player}/eur")
        answer = await self.wallet.GetBalance(request, metadata=bearer(self.keys.operator("auditor")))
        return answer.balance

    async def open(self, process: Addressed, **changes: object) -> str:
        """A no-limit hold'em table, blinds 50/100; its id. `changes`: fields of OpenTableRequest."""
        request = open_request(**changes)
        answer = await self.admin(process).OpenTable(request, metadata=bearer(self.keys.operator("floor")))
        return answer.table.removeprefix("tables/")

    async def join(self, process: Addressed, table: str, player: str, *, resume: int = 0) -> Client:
        """A player's Play stream, welcomed."""
        client = Client(self, process, table, player)
        await client.join(resume)
        return client

    async def watch(self, process: Addressed, table: str) -> Client:
        """A stream of somebody without a seat."""
        return await self.join(process, table, "nobody")

    async def seated(self, process: Addressed, table: str, stacks: Mapping[str, int]) -> dict[str, Client]:
        """Players with deposits of just what they sit down with, in seats 1, 2, …; a hand starts when all are there."""
        clients = {}
        floor = bearer(self.keys.operator("floor"))
        pause = table_pb2.PauseTableRequest(table=f"tables/{table}", request_id=f"pause-{table}")
        await self.admin(process).PauseTable(pause, metadata=floor)
        for number, (player, stack) in enumerate(stacks.items(), 1):
            await self.deposit(player, stack)
            clients[player] = client = await self.join(process, table, player)
            await client.take_seat(number, stack)
        resume = table_pb2.ResumeTableRequest(table=f"tables/{table}", request_id=f"resume-{table}")
        await self.admin(process).ResumeTable(resume, metadata=floor)
        for client in clients.values():
            await client.saw("hand_started")
        return clients

    async def log(self) -> PostgresLog:
        """The event log, to look into."""
        return await self._stack.enter_async_context(PostgresLog(self.database, "test"))


def open_request(**changes: object) -> table_pb2.OpenTableRequest:
    """A request for a no-limit hold'em table, blinds 50/100, with no pause between hands and no rake trouble."""
    request = table_pb2.OpenTableRequest(
        request_id="open-1",
        house="boulevard",
        game="holdem",
        limit=game_pb2.LIMIT_NO_LIMIT,
        stakes=game_pb2.Stakes(blinds=[50, 100], low_limit=100),
        currency=game_pb2.CURRENCY_EUR,
        seats=6,
        min_buy_in=100,
        max_buy_in=1_000_000,
        timers=game_pb2.Timers(between_hands_ms=1),
    )
    if "timers_between_ms" in changes:
        request.timers.between_hands_ms = int(str(changes.pop("timers_between_ms")))
    for field, value in changes.items():
        if isinstance(value, dict):
            getattr(request, field).update(value)
        elif isinstance(value, game_pb2.Timers | game_pb2.Stakes):
            getattr(request, field).CopyFrom(value)
        else:
            setattr(request, field, value)
    return request


async def refusal(call: Awaitable[object]) -> Refused:
    """The refusal that a call must end with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = from_call(caught.value)
    assert refused is not None, caught.value
    return refused


class Client:
    """One Play stream: raw bytes as they came, and what they say."""

    def __init__(self, room: Room, process: Addressed, table: str, player: str, token: str = "") -> None:
        self.player = player
        self.table = table
        self.raw: list[bytes] = []
        self.messages: list[table_pb2.PlayResponse] = []
        self.events: list[TableEvent] = []
        self.prompt: table_pb2.Prompt | None = None
        self.welcome = table_pb2.Welcome()
        self.error: grpc.aio.AioRpcError | None = None
        self.ended = False
        self.acted = 0
        self._asked = 0
        play: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = room.channel(process.address).stream_stream(
            "/relance.api.table.v1.TableService/Play"
        )
        self.call = play(metadata=bearer(token or room.keys.player(player)))
        self._reader = asyncio.ensure_future(self._read())

    async def join(self, resume: int = 0) -> None:
        """Join the table and wait for the welcome. Raises AssertionError with what came instead."""
        join = table_pb2.Join(table=f"tables/{self.table}", resume_version=resume)
        await self.send(table_pb2.PlayRequest(join=join))
        await until(lambda: bool(self.messages) or self.ended)
        assert self.messages, self.error
        self.welcome = self.messages[0].welcome
        if self.welcome.view.HasField("prompt"):
            self.prompt = self.welcome.view.prompt

    async def send(self, request: table_pb2.PlayRequest) -> None:
        """Send anything."""
        await self.call.write(request.SerializeToString())

    async def ask(self, request: table_pb2.PlayRequest) -> table_pb2.PlayResponse:
        """Send a command and wait for its answer."""
        command = getattr(request, request.WhichOneof("message") or "")
        if not command.request_id:
            self._asked += 1
            command.request_id = f"{self.player}-{self._asked}-{len(self.messages)}"
        before = len(self.messages)
        await self.send(request)

        def answered() -> table_pb2.PlayResponse | None:
            for message in self.messages[before:]:
                kind = message.WhichOneof("message")
                if kind in {"result", "refusal"} and getattr(message, kind).request_id == command.request_id:
                    return message
            return None

        await until(lambda: answered() is not None)
        answer = answered()
        assert answer is not None
        return answer

    async def take_seat(self, seat: int, buy_in: int) -> None:
        """Take a seat and wait until it is ours."""
        request = table_pb2.TakeSeatRequest(seat=seat, buy_in=buy_in)
        answer = await self.ask(table_pb2.PlayRequest(take_seat=request))
        assert answer.WhichOneof("message") == "result", answer
        await self.saw("player_sat", lambda event: event.player_sat.player == self.player)

    async def act(self, kind: table_pb2.ActionKind.ValueType, amount: int = 0, turn: int = 0) -> table_pb2.PlayResponse:
        """An action in a hand."""
        action = table_pb2.Action(kind=kind, amount=amount, turn=turn)
        return await self.ask(table_pb2.PlayRequest(act=table_pb2.ActRequest(action=action)))

    async def saw(self, payload: str, which: Callable[[TableEvent], bool] = lambda event: True) -> TableEvent:
        """Wait for an event on the stream."""
        found: list[TableEvent] = []

        def look() -> bool:
            found[:] = [event for event in self.events if event.WhichOneof("payload") == payload and which(event)]
            return bool(found)

        await until(look)
        return found[-1]

    @property
    def seat(self) -> int:
        """The player's seat, by the events seen."""
        sat = [event.player_sat for event in self.events if event.HasField("player_sat")]
        return next((each.seat for each in sat if each.player == self.player), self.welcome.view.your_seat)

    async def asked(self, seat: int, after: int = 0) -> table_pb2.Prompt:
        """Wait until a seat is asked, at a turn after `after`."""
        await until(lambda: self.prompt is not None and self.prompt.seat == seat and self.prompt.turn > after)
        assert self.prompt is not None
        return self.prompt

    async def end(self) -> None:
        """Wait until the server has ended the stream."""
        await until(lambda: self.ended)

    def actor(self, process: Process) -> Actor:
        """The table's actor, to look into."""
        return process.tables.actors[self.table]

    def refused(self) -> Refused:
        """Why it did."""
        assert self.error is not None
        refused = from_call(self.error)
        assert refused is not None, self.error
        return refused

    def vanish(self) -> None:
        """Go without a word."""
        self.call.cancel()

    def contains(self, cards: str) -> bool:
        """Whether the raw bytes of the stream contain these cards next to each other, in either order."""
        first, second = re.findall("..", cards)
        return any(form.encode() in raw for raw in self.raw for form in (first + second, second + first))

    async def _read(self) -> None:
        try:
            while isinstance(raw := await self.call.read(), bytes):
                self.raw.append(raw)
                message = table_pb2.PlayResponse.FromString(raw)
                if message.HasField("update"):
                    self._updated(message.update)
                self.messages.append(message)
        except grpc.aio.AioRpcError as error:
            self.error = error
        finally:
            self.ended = True

    def _updated(self, update: table_pb2.TableUpdate) -> None:
        self.events += update.events
        if update.HasField("prompt"):
            self.prompt = update.prompt
