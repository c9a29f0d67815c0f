"""`relance drill`: kill processes of a playing room in the middle of hands, and account for every cent."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import asyncpg
import grpc
from rich.console import Console
from rich.table import Table

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.ops.audit import audit
from relance.poker.games import GAMES as RULES
from relance.poker.games import Forced
from relance.poker.houses import load
from relance.room.accounts import Discrepancy, Mark, Movement, Statements
from relance.room.demo import open_tables
from relance.room.figures import money
from relance.room.folder import OPERATOR_ROLES
from relance.room.hands import Follower, Stake, TableHands, VoidedHand
from relance.room.play import BotPlan, play_command
from relance.room.processes import RoomError
from relance.room.room import Room, RoomOptions

KILLS = ("table", "wallet", "rake", "lobby", "nats", "postgres", "all")
EVERYTHING = ("table", "wallet", "rake", "lobby", "nats", "postgres")
IN_PROGRESS = 3
PLAYERS_A_TABLE = 5
# How long a step may take before the drill says that it failed.
PATIENCE = 60.0
LOOK_SECONDS = 0.05
LEAST_TABLES = 4
BETWEEN_HANDS_MS = 100
AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED,
)
EUR = game_pb2.CURRENCY_EUR
_FIXED, _POT, _NO_LIMIT = game_pb2.LIMIT_FIXED, game_pb2.LIMIT_POT, game_pb2.LIMIT_NO_LIMIT
GAMES = (
    ("boulevard", _NO_LIMIT, "holdem"),
    ("boulevard", _FIXED, "stud7"),
    ("boulevard", _NO_LIMIT, "draw32"),
    ("riviera", _POT, "omaha"),
    ("boulevard", game_pb2.LIMIT_SPREAD, "draw5"),
    ("comptoir", _NO_LIMIT, "stud5"),
    ("boulevard", _FIXED, "td27"),
    ("boulevard", _FIXED, "omaha8"),
    ("boulevard", game_pb2.LIMIT_HALF_POT, "soko"),
    ("boulevard", _FIXED, "stud8"),
)
"""House, limit and game of the tables, over and over."""


@dataclass(frozen=True, slots=True)
class DrillOptions:
    """What is killed, how often, and in how large a room. `data` None: a temporary folder, removed afterwards."""

    kill: str = "table"
    times: int = 1
    seed: int = 1
    data: Path | None = None
    bots: int = 24
    hands: int = 200


async def drill(options: DrillOptions, console: Console) -> bool:
    """Run the drill and print what it found. False: something is off by at least a cent. Raises RoomError."""
    with tempfile.TemporaryDirectory(prefix="relance-drill-") as temporary:
        room = Room(RoomOptions(options.data or Path(temporary), drain_seconds=5), console.print)
        began = time.monotonic()
        try:
            await room.start()
            console.print(f"room up in {time.monotonic() - began:.1f} s")
            return await _Drill(room, options, console).run()
        except Discrepancy as found:
            console.print(f"drill: FAILED: {found}")
            return False
        finally:
            await room.stop(drain=False)


class _Drill:
    def __init__(self, room: Room, options: DrillOptions, console: Console) -> None:
        self._room = room
        self._options = options
        self._console = console
        self._victims = EVERYTHING if options.kill == "all" else (options.kill,)
        self._voided: list[VoidedHand] = []

    async def run(self) -> bool:
        room, options = self._room, self._options
        names = await open_tables(room.folder, room.address("table"), busy_tables("drill", options.bots))
        self._follower = Follower(room.folder, room.address("table"), names)
        self._statements = Statements(room.folder, room.address("wallet"))
        await self._follower.follow()
        first = self._follower.ended
        plan = BotPlan(options.bots, "instant", options.seed)
        room.add("bots", play_command(plan, room.address("lobby"), room.folder.path))
        try:
            for kill in range(1, options.times + 1):
                await self._play(first + options.hands * kill // (options.times + 1))
                await self._kill()
            await self._play(first + options.hands)
        finally:
            await self._follower.close()
            await self._statements.close()
        await room.stop_services()
        report = await audit(room.audit_url)
        await room.stop_servers()
        for finding in report.findings:
            self._console.print(f"audit: {finding}")
        refunded = sum(refund.amount for hand in self._voided for refund in hand.refunds.values())
        self._console.print(
            f"drill: hands={self._follower.ended - first} voided={len(self._voided)} refunded={refunded} "
            f"audit={'ok' if report.ok else 'FAILED'}"
        )
        return bool(report.ok)

    @property
    def _tables(self) -> list[TableHands]:
        return list(self._follower.tables.values())

    async def _play(self, hands: int) -> None:
        await self._until(lambda: self._follower.ended >= hands, f"{hands} hands are played")

    async def _kill(self) -> None:
        """One kill: wait for the moment, kill, wait until the room plays again, account for the money."""
        players = sorted({player for table in self._tables for player in table.players})
        marks = await self._statements.marks(players)
        await self._hold_still()
        running = self._in_progress()
        hands = {(table.table, table.hand) for table in self._tables if table.hand}
        pots = sum(table.pot for table in running)
        fences = {table.table: table.fence for table in self._tables}
        voided = {table.table: len(table.voided) for table in self._tables}
        ended = {table.table: table.ended for table in self._tables}
        pids = {name: self._room.child(name).pid for name in self._victims}
        for name in self._victims:
            self._room.kill(name)
        self._room.child("table").send(signal.SIGCONT)
        began = time.monotonic()
        self._console.print(
            f"killed {', '.join(self._victims)} with {len(running)} hands in progress, {money(pots, EUR)} in the pots"
        )
        for name, pid in pids.items():
            await self._room.wait_restarted(name, pid)
        if "table" in self._victims:
            await self._until(
                lambda: all(table.fence > fences[table.table] and not table.open_cash_outs for table in self._tables),
                "every table has a new owner and every cash-out is settled",
            )
        else:
            await self._until(
                lambda: all(table.ended > ended[table.table] for table in running),
                "every table that was playing has ended another hand",
            )
        self._console.print(f"the room is whole again after {time.monotonic() - began:.1f} s")
        new = [hand for table in self._tables for hand in table.voided[voided[table.table] :]]
        await self._account_for(new, marks, hands if "table" in self._victims else set())

    async def _hold_still(self) -> None:
        """Stop the table process at a moment at which enough hands are in progress. The log says how many they are: it
        is read to its end while nothing can be added to it.
        """
        enough = f"{IN_PROGRESS} hands have chips in the pot"
        owner = await asyncpg.connect(self._room.owner_url)
        deadline = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < deadline:
                await self._until(lambda: len(self._in_progress()) >= IN_PROGRESS, enough)
                self._room.child("table").send(signal.SIGSTOP)
                await self._follower.settle(owner)
                if len(self._in_progress()) >= IN_PROGRESS:
                    return
                self._room.child("table").send(signal.SIGCONT)
        finally:
            await owner.close()
        raise RoomError(f"gave up after {PATIENCE:.0f} s of waiting until {enough}; logs: {self._room.folder.logs}")

    async def _account_for(self, voided: list[VoidedHand], marks: dict[str, Mark], hands: set[tuple[str, int]]) -> None:
        """The hands of `hands` (table, number) were voided and no others, and every chip is back where it was. Raises
        Discrepancy.
        """
        compare(hands, {(hand.table, hand.hand) for hand in voided})
        movements = {player: await self._statements.since(player, mark) for player, mark in marks.items()}
        moved = sum(len(of_player) for of_player in movements.values())
        if voided:
            names = await self._names({stake.player for hand in voided for stake in hand.stakes.values()})
            table = Table("table", "hand", "player", box=None)
            for heading in ("stack before", "in the pot", "refunded", "account before", "account after"):
                table.add_column(heading, justify="right")
            for hand in voided:
                for stake in hand.stakes.values():
                    before, after = check(hand, stake, movements.get(stake.player, []), marks.get(stake.player))
                    refund = hand.refunds[stake.seat].amount if stake.seat in hand.refunds else 0
                    amounts = (stake.stack, stake.put, refund, before, after)
                    table.add_row(
                        hand.table.removeprefix("tables/"),
                        str(hand.hand),
                        names[stake.player],
                        *(money(each, EUR) for each in amounts),
                    )
            self._console.print(table)
        self._console.print(f"{len(marks)} accounts follow, transfer by transfer: {moved} transfers since the kill")
        self._voided += voided

    async def _names(self, players: set[str]) -> dict[str, str]:
        """Names that people know, by player id."""
        token = self._room.folder.operator_token("drill", OPERATOR_ROLES, seconds=60)
        request = lobby_pb2.BatchGetPlayersRequest(players=[f"players/{player}" for player in sorted(players)][:100])
        async with grpc.aio.insecure_channel(self._room.address("lobby")) as channel:
            answer = await lobby_pb2_grpc.LobbyServiceStub(channel).BatchGetPlayers(
                request, metadata=(("authorization", f"Bearer {token}"),), timeout=10, wait_for_ready=True
            )
        known = {player.name.removeprefix("players/"): player.display_name for player in answer.players}
        return {player: known.get(player, player) for player in players}

    def _in_progress(self) -> list[TableHands]:
        return [table for table in self._tables if table.pot > 0]

    async def _until(self, reached: Callable[[], bool], what: str) -> None:
        """Follow the log until a condition holds. Raises RoomError when it does not."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                await self._follower.follow()
                if reached():
                    return
            except grpc.aio.AioRpcError as error:
                if error.code() not in AWAY:
                    raise RoomError(f"the log cannot be read: {error.details()}") from error
            except ValueError as error:
                raise Discrepancy(str(error)) from error
            if time.monotonic() > deadline:
                raise RoomError(
                    f"gave up after {PATIENCE:.0f} s of waiting until {what}; logs: {self._room.folder.logs}"
                )
            await asyncio.sleep(LOOK_SECONDS)


def busy_tables(
    name: str, bots: int, *, least: int = LEAST_TABLES, bring_in: bool = True
) -> list[table_pb2.OpenTableRequest]:
    """Requests for tables for euros, never quite full, with hardly a pause between hands: of all games, or of those
    without a bring-in.
    """
    games = [each for each in GAMES if bring_in or RULES[each[2]].forced is not Forced.BRING_IN]
    count = max(least, -(-bots // PLAYERS_A_TABLE))
    requests = []
    for number, (house, limit, game) in zip(range(1, count + 1), cycle(games), strict=False):
        request = table_pb2.OpenTableRequest(request_id=f"{name}-{number}", house=house, game=game, limit=limit)
        request.currency = EUR
        request.display_name = f"{name.capitalize()} {number}"
        request.seats = min(6, load(house).games[game].seats)
        request.timers.between_hands_ms = BETWEEN_HANDS_MS
        if RULES[game].forced is Forced.BRING_IN:
            request.stakes.ante, request.stakes.bring_in, request.stakes.low_limit = 10, 20, 100
        else:
            request.stakes.blinds.extend((50, 100))
        requests.append(request)
    return requests


def compare(running: set[tuple[str, int]], voided: set[tuple[str, int]]) -> None:
    """The hands (table, number) that ran when the table process died are those that were voided. Raises Discrepancy."""
    for what, hands in (
        ("ran and were not voided", running - voided),
        ("were voided and did not run", voided - running),
    ):
        if hands:
            names = ", ".join(f"{table} hand {number}" for table, number in sorted(hands))
            raise Discrepancy(f"{len(hands)} of {len(running)} hands in progress {what}: {names}")


def check(hand: VoidedHand, stake: Stake, movements: list[Movement], mark: Mark | None) -> tuple[int, int]:
    """A player of a voided hand has everything back; the account before and after. Raises Discrepancy."""
    where = f"table {hand.table}, hand {hand.hand}, player {stake.player}"
    refund = hand.refunds.get(stake.seat, events_pb2.Refund(amount=0, stack=stake.stack))
    if refund.amount != stake.put:
        raise Discrepancy(f"{where}: {stake.put} in the pot, {refund.amount} refunded")
    if refund.stack != stake.stack:
        raise Discrepancy(f"{where}: a stack of {stake.stack} before the hand, {refund.stack} after the refund")
    cash_out = hand.cash_outs.get(stake.player)
    if cash_out is None:
        balance = mark.balance if mark is not None else 0
        return balance, balance
    if cash_out.amount < stake.stack:
        raise Discrepancy(f"{where}: a stack of {stake.stack}, {cash_out.amount} cashed out")
    paid = next((movement for movement in movements if movement.key == cash_out.transfer), None)
    if paid is None or not cash_out.settled:
        raise Discrepancy(f"{where}: the cash-out {cash_out.transfer} of {cash_out.amount} is not on the account")
    if paid.after - paid.before != cash_out.amount:
        raise Discrepancy(f"{where}: {cash_out.amount} cashed out, {paid.after - paid.before} on the account")
    return paid.before, paid.after
