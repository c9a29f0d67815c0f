"""`relance rebalance`: tables from table processes that carry much to those that carry little, one after another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import click
import grpc

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.ops.errors import NoAnswer
from relance.ops.output import Out
from relance.ops.words import counted
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.runtime.errors import code_of, from_call
from relance.transport import Tls, TlsError, open_channel

TOKEN_SECONDS = 3600
CALL_SECONDS = 10.0
PAUSE_SECONDS = 0.5
_AGAIN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
COLUMNS = ("table", "seats>", "from", "to", "seconds>", "")


@dataclass(frozen=True, slots=True)
class Move:
    """A table that is to go from one process to another (addresses)."""

    table: str
    seats: int
    source: str
    target: str


def plan(processes: Sequence[table_pb2.TableProcess]) -> list[Move]:
    """Moves after which no further one would bring processes nearer to each other. A process carries its tables and the
    seats taken at them; each table moves once at most, and those of a process that takes none stay: it gives them up
    by itself. Processes that did not say what they run are left alone.
    """
    known = [each for each in processes if each.takes_tables and len(each.running) == each.tables]
    tables = {each.address: list(each.running) for each in known}
    carried = {address: sum(map(_weight, running)) for address, running in tables.items()}
    moves: list[Move] = []
    moved: set[str] = set()
    while len(tables) > 1:
        source = max(carried, key=lambda address: (carried[address], address))
        target = min(carried, key=lambda address: (carried[address], address))
        gap = carried[source] - carried[target]
        # The nearer to half of the gap, the better; nothing that would only turn it round.
        found = [each for each in tables[source] if _weight(each) < gap and each.table not in moved]
        if not found:
            break
        best = min(found, key=lambda each: (abs(2 * _weight(each) - gap), each.seats, each.table))
        tables[source].remove(best)
        tables[target].append(best)
        carried[source] -= _weight(best)
        carried[target] += _weight(best)
        moved.add(best.table)
        moves.append(Move(best.table, best.seats, source, target))
    return moves


def _weight(table: table_pb2.RunningTable) -> int:
    return 1 + table.seats


class Processes:
    """The table processes, by any of them."""

    def __init__(self, stack: AsyncExitStack, address: str, token: str, tls: Tls | None, patience: float) -> None:
        self._stack, self._address, self._tls, self._patience = stack, address, tls, patience
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._stubs: dict[str, table_pb2_grpc.TableAdminServiceAsyncStub] = {}

    async def list(self) -> list[table_pb2.TableProcess]:
        """Those that live, with what they run. Raises NoAnswer."""
        request = table_pb2.ListProcessesRequest(tables=True)
        try:
            stub = await self._at(self._address)
            answer = await stub.ListProcesses(request, timeout=CALL_SECONDS, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise _no_answer(error) from None
        return list(answer.processes)

    async def hand_over(self, move: Move) -> str:
        """Have a table run elsewhere; the address where it runs then. Raises NoAnswer.

        It waits for the hand that runs.
        """
        request = table_pb2.HandOverTableRequest(table=move.table, process=move.target)
        address, until = self._address, time.monotonic() + self._patience
        while True:
            try:
                stub = await self._at(address)
                answer = await stub.HandOverTable(request, timeout=CALL_SECONDS, metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                refused = from_call(error)
                if refused is not None and refused.reason == reason_pb2.REASON_TABLE_MOVED:
                    address = refused.metadata["address"]
                    continue
                code = error.code() if refused is None else code_of(refused.reason)
                if code not in _AGAIN or time.monotonic() > until:
                    raise _no_answer(error) from None
                address = self._address
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return answer.address

    async def _at(self, address: str) -> table_pb2_grpc.TableAdminServiceAsyncStub:
        if address not in self._stubs:
            channel = await self._stack.enter_async_context(open_channel(address, self._tls))
            self._stubs[address] = table_pb2_grpc.TableAdminServiceStub(channel)
        return self._stubs[address]


def _no_answer(error: grpc.aio.AioRpcError) -> NoAnswer:
    refused = from_call(error)
    return NoAnswer(str(refused) if refused is not None else f"{error.code().name}: {error.details()}")


async def rebalance(processes: Processes, out: Out, *, dry_run: bool) -> bool:
    """Plan, move, show. Whether every move was made."""
    before = await processes.list()
    moves = plan(before)
    rows: list[tuple[Move, str, float, str]] = []
    if dry_run:
        rows = [(move, move.target, 0.0, "would move") for move in moves]
    else:
        rows = [row async for row in _moved(processes, moves)]
    if out.json:
        out.document(
            [
                {"table": move.table, "seats": move.seats, "from": move.source, "to": to, "what": what}
                for move, to, _, what in rows
            ]
        )
    elif rows:
        out.table(
            COLUMNS,
            [(move.table, move.seats, move.source, to, f"{took:.1f}", what) for move, to, took, what in rows],
        )
    if not out.json:
        after = before if dry_run or not rows else await processes.list()
        for each in after:
            tables = counted(each.tables, "table")
            taking = "" if each.takes_tables else ", is being stopped"
            out.line(f"{each.address} runs {tables} with {counted(each.seats, 'seat')} taken{taking}")
        if not rows:
            out.line("nothing to move")
    return all(what in {"moved", "would move"} for *_, what in rows)


async def _moved(processes: Processes, moves: Sequence[Move]) -> AsyncIterator[tuple[Move, str, float, str]]:
    """One by one: where each table runs, how long it took, what became of the move."""
    for move in moves:
        started = time.monotonic()
        try:
            address = await processes.hand_over(move)
        except NoAnswer as why:
            yield move, "", time.monotonic() - started, str(why)
        else:
            what = "moved" if address == move.target else "moved elsewhere"
            yield move, address, time.monotonic() - started, what


@click.command("rebalance")
@click.option("--dry-run", is_flag=True, help="Say what would move.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--wait", type=click.FloatRange(1), default=900, show_default=True, help="Seconds for a hand to end.")
@click.option("--address", metavar="HOST:PORT", help="A room's table service elsewhere; needs --token.")
@click.option("--token", envvar="RELANCE_TOKEN", show_envvar=True, help="A token of the floor's.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("data"), show_default=True,
    envvar="RELANCE_DATA", help="Data folder of the room.",
)  # fmt: skip
def rebalance_command(
    dry_run: bool, as_json: bool, wait: float, address: str | None, token: str | None, data: Path
) -> None:
    """Move tables from table processes that carry much to those that carry little, each between two hands.

    Seats, stacks, button and waiting lists stay as they are. TLS by RELANCE_TLS_CA, RELANCE_TLS_CERT, RELANCE_TLS_KEY,
    RELANCE_TLS_SERVER_NAME where --address is given.
    """
    if address is not None and not token:
        raise click.UsageError("--address needs --token")
    try:
        tls = Tls.from_environment() if address is not None else None
    except TlsError as error:
        raise click.UsageError(str(error)) from error
    where = address or DataFolder(data).addresses()["table"]
    given = token or DataFolder(data).operator_token("relance", OPERATOR_ROLES, TOKEN_SECONDS)

    async def work() -> bool:
        async with AsyncExitStack() as stack:
            return await rebalance(Processes(stack, where, given, tls, wait), Out(as_json=as_json), dry_run=dry_run)

    if not asyncio.run(work()):
        raise click.exceptions.Exit(1)
