"""The tables of this process: which it runs, how it comes by them and how it gives them up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.eventlog import Fenced, Load, LogError, StreamExists, StreamInfo, Unavailable
from relance.eventlog.ownership import Takeable
from relance.poker import Context, Request, Table, UnknownEvent, apply, decide, initial
from relance.poker.commands import Command, OpenTable, TakeOver
from relance.poker.snapshot import dump
from relance.runtime.errors import Refused
from relance.runtime.pipeline import shielded
from relance.table.actor import Actor
from relance.table.cash_outs import CashOuts
from relance.table.host import Host, closed
from relance.table.recovery import Recovered, recover

log = structlog.get_logger(__name__)


LAST_SECONDS = 3.0
"""What the last appends of a drain may take."""

READ_AGAIN_SECONDS = 0.2

TOGETHER_SECONDS = 2.0
"""How long tables that were taken over at once wait for one another's void hands to be durable."""

Give = Callable[[str, int, str], Awaitable[bool]]
"""Table, fence of the owner that gave it up, id of the heir (empty: any). Whether another process has it now."""


class Tables:
    """The actors of a process by table id, and the tables that it owns without running them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        host.left, host.snapshot = self._left, self._snapshot
        self.address = ""
        """host:port where others reach this process, once it serves."""
        self.actors: dict[str, Actor] = {}
        self.given_back: set[str] = set()
        """Tables that a newer version wrote to: not to be claimed again by this one."""
        self.stopped: dict[str, Refused] = {}  # owned but not run: closed for good, or not to be replayed
        self.cash_outs = CashOuts(_no_answer, tuple)
        """Finds money that is on its way from tables of other processes."""
        self.give: Give = _to_nobody
        """Offers a table that was given up to another process."""
        self._handed: dict[str, asyncio.Future[None]] = {}  # tables that are to be handed over, until they are
        self._kept: set[asyncio.Task[None]] = set()
        self._emptied = asyncio.Event()
        host.log.on_connection(self._connection_changed)

    # Finding

    async def find(self, table: str) -> Actor:
        """The actor of a table that runs here.

        Raises Refused TABLE_NOT_FOUND, TABLE_MOVED, TABLE_UNAVAILABLE, TABLE_CLOSED, TABLE_QUARANTINED.
        """
        actor = self.actors.get(table)
        if actor is not None:
            return actor
        if table in self.stopped:
            raise self.stopped[table]
        info = await self.locate(table)
        if info.writer == self.host.process or not info.address:
            raise self.host.unavailable(table)
        raise Refused(
            reason_pb2.REASON_TABLE_MOVED,
            f"Table {table} runs at {info.address}.",
            table=f"tables/{table}",
            address=info.address,
        )

    async def locate(self, table: str) -> StreamInfo:
        """Where a table lives, from the database. Raises Refused TABLE_NOT_FOUND, TABLE_UNAVAILABLE."""
        try:
            found = await self.host.log.streams([table])
        except Unavailable:
            raise self.host.unavailable(table) from None
        if not found:
            raise Refused(reason_pb2.REASON_TABLE_NOT_FOUND, f"There is no table {table}.", table=f"tables/{table}")
        return found[0]

    def tell(self, table: str, command: Command) -> None:
        """A command of the room's own to a table, if it runs here."""
        actor = self.actors.get(table)
        if actor is not None:
            actor.tell(command)

    def seats(self) -> int:
        """Seats taken at all tables."""
        return sum(len(actor.table.seats) for actor in list(self.actors.values()))

    def hands(self) -> int:
        """Hands that run."""
        return sum(actor.table.hand is not None for actor in list(self.actors.values()))

    def load(self) -> Load | None:
        """What this process carries; None: it takes no more."""
        return None if self.host.draining else Load(len(self.actors), self.seats())

    def waiting(self) -> int:
        """Commands in all mailboxes."""
        return sum(actor.waiting for actor in list(self.actors.values()))

    @property
    def closed(self) -> set[str]:
        """Tables of this process that are closed for good: only their hands can still be read."""
        return {table for table, why in self.stopped.items() if why.reason == reason_pb2.REASON_TABLE_CLOSED}

    async def ready(self) -> bool:
        """Whether tables can act: the readiness check."""
        return self.host.log.connected and not self.host.draining

    # Coming by tables

    async def open(self, table: str, command: OpenTable, request: Request) -> None:
        """Open a new table here; a repeat of the request opens none.

        Raises Rejected, Refused REQUEST_ID_REUSED, TABLE_CLOSED (archived since), TABLE_UNAVAILABLE.
        """
        if self.host.draining:
            raise self.host.unavailable(table)
        state = initial(table)
        now = self.host.clock.now_us()
        events: list[TableEvent] = []
        take = TakeOver(1, self.host.process, events_pb2.OWNER_REASON_OPENED)
        for each, asked in ((command, request), (take, None)):
            for event in decide(state, each, Context(at=now, request=asked)):
                apply(state, event)
                events.append(event)
        # To its end, whoever stops waiting: a table that is this process's and not run by it would stand still.
        if not await shielded(self._begin(state, events, command.opened_by)):
            await self._opened_before(table, request)

    async def _begin(self, state: Table, events: Sequence[TableEvent], opened_by: str) -> bool:
        """Run a new table once its first events are durable; False: there is one of its name."""
        try:
            ownership = await self.host.log.create(state.id, events)
        except StreamExists:
            return False
        actor = self._run(state, ownership.fence, head=0, mark=0)
        log.info("table opened", table=state.id, by=opened_by)
        actor.begin(events)
        return True

    async def _opened_before(self, table: str, request: Request) -> None:
        try:
            first = next(iter(await self.host.log.read(table, 0, 1)), None)
        except Unavailable:
            raise self.host.unavailable(table) from None
        if first is None:  # archived, and removed from the log
            raise closed(table)
        if first.request_hash != request.hash:
            raise Refused(
                reason_pb2.REASON_REQUEST_ID_REUSED,
                f"request {request.id} was used with other content",
                request_id=request.id,
            )

    async def claim(self, seen: Mapping[str, int]) -> list[str]:
        """Take over tables whose fences were seen (table -> fence) and run them; those that were to be had.

        Many at once: a few queries for all, and the take-overs' appends share commits. Wallet, watchers and NATS hear
        of it when they are durable at all tables: no hand stays open for work that can wait.
        """
        if self.host.draining:
            return []
        rest = await self.host.log.take_over_all(seen)
        taken = list(rest)
        starts: list[tuple[Actor, asyncio.Future[None]]] = []
        try:
            while rest:
                try:
                    marks = await self.host.log.marks.read(rest)
                    async for chunk in recover(self.host.log, rest):
                        for recovered in chunk:
                            actor = await self._recovered(recovered, marks[recovered.stream])
                            if actor is not None:
                                starts.append((actor, self._take_over(actor)))
                            del rest[recovered.stream]
                except Unavailable:
                    # They are this process's now: nobody else will run them.
                    log.warning("database away while tables were read back", tables=len(rest))
                    await self.host.clock.sleep(READ_AGAIN_SECONDS)
        finally:
            await self._open(starts)
        return taken

    def _take_over(self, actor: Actor) -> asyncio.Future[None]:
        reason = events_pb2.OWNER_REASON_HANDOVER if actor.table.drained else events_pb2.OWNER_REASON_CRASH
        return actor.take_over(TakeOver(actor.fence, self.host.process, reason))

    async def _open(self, starts: Sequence[tuple[Actor, asyncio.Future[None]]]) -> None:
        if starts:
            await asyncio.wait([start for _, start in starts], timeout=TOGETHER_SECONDS)
        for actor, start in starts:
            if start.done():
                table = actor.table
                log.info("table taken over", table=actor.id, version=table.version, fence=actor.fence)
                actor.open()
                await asyncio.sleep(0)
            else:
                start.add_done_callback(partial(_open_later, actor))

    async def _recovered(self, found: Recovered, mark: int) -> Actor | None:
        if isinstance(found.error, UnknownEvent):
            log.error("table given back: a newer version wrote to it", table=found.stream, what=str(found.error))
            self.given_back.add(found.stream)
            await self._release(found.stream, found.ownership.fence)
            return None
        table = found.table
        if table is None:
            log.error("table quarantined: its log cannot be replayed", table=found.stream, exc_info=found.error)
            self.host.metrics.quarantined.inc()
            self.stopped[found.stream] = Refused(
                reason_pb2.REASON_TABLE_QUARANTINED,
                "The table's log cannot be replayed; operators know.",
                table=f"tables/{found.stream}",
            )
            return None
        if table.finished:
            self.stopped[found.stream] = closed(found.stream)
            self.host.publisher.adopt_at(table.id, table.version, mark)
            self.host.publisher.finish(table.id)
            return None
        return self._run(table, found.ownership.fence, head=table.version, mark=mark)

    def _run(self, table: Table, fence: int, *, head: int, mark: int) -> Actor:
        self.host.publisher.adopt_at(table.id, head, mark)
        actor = self.actors[table.id] = Actor(self.host, table, fence)
        self.host.metrics.tables.set(len(self.actors))
        return actor

    def found(self, takeable: Sequence[Takeable]) -> None:
        """Take over what may be taken (Observer)."""
        seen = {each.stream: each.fence for each in takeable if each.stream not in self.given_back}
        if seen:
            self.keep(self._claimed(seen))

    async def _claimed(self, seen: Mapping[str, int]) -> None:
        await self.claim(seen)

    # Losing and giving up

    def _left(self, actor: Actor) -> None:
        self.actors.pop(actor.id, None)
        if actor.table.finished:
            self.host.publisher.finish(actor.id)
        else:
            self.host.publisher.drop(actor.id)
        self.host.transfers.forget(actor.id)
        self.host.metrics.tables.set(len(self.actors))
        if actor.table.finished:
            self.stopped[actor.id] = closed(actor.id)
            self._settle(actor.id)
        elif actor.table.drained:
            self.keep(self._given_up(actor))
        else:
            self._settle(actor.id)
        if not self.actors:
            self._emptied.set()

    async def _given_up(self, actor: Actor) -> None:
        """Give a drained table to its heir; where there is none, or it does not answer, leave it to whoever looks."""
        try:
            if not await self.give(actor.id, actor.fence, actor.heir):
                await self._release(actor.id, actor.fence)
        finally:
            self._settle(actor.id)

    def _settle(self, table: str) -> None:
        waiting = self._handed.pop(table, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def hand_over(self, table: str, heir: str) -> StreamInfo:
        """Give a table to another process as soon as no hand runs; where it lives then. To be repeated at will.

        Raises Refused, as `find`; TABLE_UNAVAILABLE where it is the table of nobody for the moment.
        """
        actor = self.actors.get(table)
        if actor is None and table not in self._handed:
            actor = await self.find(table)
        if actor is not None and actor.why is not None:
            raise actor.why  # it cannot act now, or is stopped after a fault
        if heir != self.host.process:
            waiting = self._handed.setdefault(table, asyncio.get_running_loop().create_future())
            if actor is not None:
                actor.drain(void=False, heir=heir)
            await asyncio.shield(waiting)
        return await self.locate(table)

    async def _release(self, table: str, fence: int) -> None:
        try:
            await self.host.log.release(table, fence)
        except Fenced:
            log.info("table taken before it was released", table=table)

    async def confirm(self) -> None:
        """Compare with the database what this process runs: stop what another owns, go on with what waits.

        Raises Unavailable.
        """
        actors = list(self.actors.values())
        if not actors:
            return
        rows = {info.stream: info for info in await self.host.log.streams([actor.id for actor in actors])}
        for actor in actors:
            info = rows.get(actor.id)
            if info is None or info.fence != actor.fence or info.writer != self.host.process:
                actor.leave(self.host.unavailable(actor.id), "fenced")
            elif self.host.log.connected:
                actor.resume()

    async def keep_confirming(self, seconds: float) -> None:
        """Confirm every so often, for ever: a process that was stopped for longer than its lease notices at once."""
        while True:
            try:
                await self.confirm()
            except Unavailable:
                log.debug("ownership not confirmed: the database is away")
            await self.host.clock.sleep(seconds)

    def _snapshot(self, table: Table) -> None:
        self.keep(self.host.log.snapshots.save(table.id, table.version, dump(table)))

    def _connection_changed(self, connected: bool) -> None:
        if connected:
            self.keep(self._confirmed())
            return
        log.warning("database away: tables wait", tables=len(self.actors))
        for actor in list(self.actors.values()):
            actor.pause()

    async def _confirmed(self) -> None:
        try:
            await self.confirm()
        except Unavailable:
            log.debug("database away again before tables went on")

    async def drain(self, seconds: float) -> None:
        """Give every table up in order: hands may end for that long, then they are void."""
        self.host.draining = True
        log.info("drain", tables=len(self.actors))
        for void, patience in ((False, seconds), (True, LAST_SECONDS)):
            self._emptied.clear()
            for actor in list(self.actors.values()):
                actor.drain(void=void)
            if self.actors:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await self._emptied.wait()
        if self.actors:
            log.error("tables not drained", tables=sorted(self.actors))
        if self._kept:
            await asyncio.wait(self._kept, timeout=LAST_SECONDS)

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something on the side, to its end; what it raises is logged."""
        task = asyncio.ensure_future(work)
        self._kept.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._kept.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LogError):
            log.warning("side work failed", error=repr(error))
        elif error is not None:
            log.error("side work failed", exc_info=error)


async def _no_answer(_address: str, _method: str, _seconds: float, _request: bytes) -> bytes | None:
    return None


async def _to_nobody(_table: str, _fence: int, _heir: str) -> bool:
    return False


def _open_later(actor: Actor, _start: asyncio.Future[None]) -> None:
    actor.open()
