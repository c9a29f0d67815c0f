"""One table as it runs: a mailbox, one command at a time, durable before visible.

    command -> known_request -> decide -> log.append … durable -> apply -> watchers, NATS, transfers -> answer

An actor is a state machine without a task of its own: a post runs it at once, the append's future runs it again. So a
caller whose call is cancelled stops nothing, and a table that nobody plays at costs its state and little more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from enum import Enum

import structlog

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1 import table_pb2
from relance.eventlog import Fenced, Unavailable
from relance.poker import (
    Context,
    Prompt,
    Rejected,
    Request,
    Seat,
    Table,
    advance,
    decide,
    has_secret,
    known_request,
    prompt,
    ready_to_start,
    view,
)
from relance.poker.commands import (
    Act,
    ActLate,
    AddChips,
    Command,
    ConnectionLost,
    ConnectionRestored,
    Drain,
    ExpireSeats,
    StartHand,
    TakeOver,
    TakeSeat,
    Timeout,
)
from relance.poker.deck import CardSource
from relance.poker.holding import next_expiry
from relance.runtime.errors import Refused
from relance.table import effects, notices, protections, wire
from relance.table.audience import Audience
from relance.table.clocks import Clocks
from relance.table.host import Host, closed
from relance.table.mail import MAILBOX, Answer, Mail, Mailbox, Outcome, Reply, nobody
from relance.table.streams import Stream
from relance.table.timers import NEVER
from relance.table.transfers import account, on_its_way
from relance.transport import tracing

log = structlog.get_logger(__name__)

RECONNECT_SECONDS = 15.0
"""How long players whose stream went with the former owner still count as connected."""
SNAPSHOT_EVERY = 500
"""Events between snapshots, which are made between hands only."""


class State(Enum):
    """What an actor does with its mail."""

    RUNNING = "running"
    PAUSED = "paused"
    """The database is away: commands are refused, clocks stand still, the deck is kept."""
    QUARANTINED = "quarantined"
    """The state cannot be trusted: everything is refused until people have looked."""
    GONE = "gone"
    """Drained, taken over or given back: another process runs it, or soon will."""


class Actor:
    """The owner's end of one table.

    table: its state, after every event that is durable and no other. fence: what it appends with.
    """

    __slots__ = (
        "_appending", "_asking", "_audience", "_changed", "_clocks", "_deck", "_mail", "_saved", "_start",
        "fence", "heir", "host", "id", "leaving", "state", "table", "timer_at", "why",
    )  # fmt: skip

    def __init__(self, host: Host, table: Table, fence: int) -> None:
        self.host = host
        self.table = table
        self.id = table.id
        self.fence = fence
        self.state = State.RUNNING
        self.why: Refused | None = None
        """What commands are answered with when it does not run."""
        self.timer_at = NEVER
        self.leaving = False
        """Whether it is given up as soon as no hand runs."""
        self.heir = ""
        """Id of the process that is to run it then; empty: any."""
        self._deck: CardSource | None = None
        self._clocks = Clocks()
        self._saved = table.version  # of the newest snapshot
        self._asking = False  # the lobby for a protection: what comes in waits
        self._start: asyncio.Future[None] | None = None  # of the next owner, until `open`
        self._appending: tuple[list[TableEvent], Answer, float] | None = None
        self._mail = Mailbox()
        self._changed: set[str] | None = None  # players whose streams came or went
        self._audience: Audience | None = None

    # Coming in

    def post(self, mail: Mail) -> None:
        """Put a command into the mailbox; its answer comes by `mail.answer`, refusals too."""
        if self.why is not None:
            mail.answer(self.why)
            return
        if self._mail.put(mail):
            self._step()
            return
        self.host.metrics.refused.inc()
        text = f"{MAILBOX} requests wait for table {self.id}."
        mail.answer(Refused(reason_pb2.REASON_MAILBOX_FULL, text, limit=MAILBOX))

    async def ask(self, command: Command, request: Request | None) -> int:
        """Post and wait. Raises Rejected or Refused; a cancelled caller does not take the command back."""
        reply = Reply()
        self.post(Mail(command, request, self.host.clock.monotonic(), reply))
        return await reply.version()

    def tell(self, command: Command) -> None:
        """Post a command of the room's own: past the mailbox's bound, and nobody waits for it."""
        if self.state is State.QUARANTINED or self.state is State.GONE:
            return
        self._mail.put_own(command)
        self._step()

    def begin(self, events: Sequence[TableEvent]) -> None:
        """Say what the first append of a new table did."""
        self._follow(events, {})
        self._arm(self.host.clock.monotonic())

    def take_over(self, command: TakeOver) -> asyncio.Future[None]:
        """Begin as the next owner: one command and one append. What is answered is done once that is durable, or never
        will be; what follows from it and the mailbox wait for `open`.
        """
        self.why = self.host.unavailable(self.id)
        self._clocks.reconnect = self.host.clock.monotonic() + RECONNECT_SECONDS
        self._start = start = asyncio.get_running_loop().create_future()
        self.tell(command)
        return start

    def open(self) -> None:
        """Go on after `take_over`, whose append is durable. Nothing where the table does not run here any more."""
        if self.state is State.QUARANTINED or self.state is State.GONE:
            return
        assert self._appending is not None
        events, answer, _ = self._appending
        self._start = self._appending = None
        self._go_on(events, {}, answer)

    def drain(self, *, void: bool, heir: str = "") -> None:
        """Give the table up: between hands, or with a hand that is still running voided. `heir`: who is to run it."""
        self.leaving, self.heir = True, heir
        self._clocks.starts = NEVER
        self.tell(Drain(void))

    def due(self, now: float) -> None:
        """A time that was asked for has come (Timers)."""
        self._step()
        self._arm(now)

    # Watching

    def attach(self, stream: Stream, welcome: table_pb2.Welcome, missed: Iterable[bytes]) -> None:
        """Begin to send to a stream: the welcome with the view at this version, what was missed before it, then
        everything after it. Raises Refused where the table does not run here any more.
        """
        if self.why is not None and self.state is not State.PAUSED:
            raise self.why
        welcome.view.CopyFrom(self.view(stream.player or None))
        seat = self.table.seat_of(stream.player) if stream.player else None
        if seat is not None:
            welcome.preferences.CopyFrom(preferences(seat))
        stream.push(wire.welcome(welcome))
        for message in missed:
            stream.push(message)
        for notice in notices.for_player(self.table, stream.player):
            stream.push(wire.notice(notice))
        if self._audience is None:
            self._audience = Audience()
        self._audience.streams.append(stream)
        self.host.metrics.streams.inc()
        if stream.seated:
            self._connection(stream.player)

    def detach(self, stream: Stream) -> None:
        """The stream is over. Nothing where it is over already."""
        if self._audience is None or stream not in self._audience.streams:
            return
        self._audience.streams.remove(stream)
        self.host.metrics.streams.dec()
        if not self._audience.streams:
            self._audience = None
        if stream.seated:
            self._connection(stream.player)

    def view(self, player: str | None) -> table_pb2.TableView:
        """The table as the player (None: the public) may see it, with the clock of the prompt."""
        seen = view(self.table, player)
        if seen.HasField("prompt"):
            left = self._clocks.left(self.host.clock.monotonic())
            seen.prompt.deadline_us = self.host.clock.now_us() + round(left * 1e6)
            seen.prompt.remaining_ms = round(left * 1e3)
        return seen

    def say(self, message: bytes) -> None:
        """Send what somebody said to everyone who watches."""
        if self._audience is not None:
            self._audience.say(message)

    @property
    def waiting(self) -> int:
        """Commands in the mailbox."""
        return len(self._mail)

    # One command at a time

    def _step(self) -> None:
        while self._appending is None and not self._asking and self.state is State.RUNNING and self._next():
            pass

    def _next(self) -> bool:
        """Take up what comes first; False: nothing does."""
        now = self.host.clock.monotonic()
        clocks = self._clocks
        if clocks.run_out(now, self._mail.next_received()):
            self.host.alone(self._run_out)
        elif (own := self._mail.take_own()) is not None:
            order, asked_in = own
            asked_in.run(self._decide, order, None, nobody)
        elif self._changed:
            self.host.alone(self._settle_connection, self._changed.pop())
        elif (mail := self._mail.take()) is not None:
            command = mail.command
            if isinstance(command, Act) and (used := clocks.bank_used(mail.received)):
                command = ActLate(command, used)
            mail.context.run(self._decide, command, mail.request, mail.answer)
        elif now >= clocks.starts:
            clocks.starts = NEVER
            self._deck = self.host.deck(self.table)
            self.host.alone(self._decide, StartHand(), None, nobody)
        elif now >= clocks.seats:
            clocks.seats = NEVER
            self.host.alone(self._decide, ExpireSeats(), None, self._expired)
        elif now >= clocks.reconnect:
            clocks.reconnect = NEVER
            self._changed = {seat.player for seat in self.table.seats.values() if seat.connected}
        else:
            self._changed = None
            return False
        return True

    def _decide(self, command: Command, request: Request | None, answer: Answer) -> None:
        table = self.table
        try:
            if request is not None:
                version = known_request(table, request)
                if version is not None:
                    answer(version)
                    return
                self._money_is_here(command)
            context = Context(
                at=self.host.clock.now_us(),
                cards=self._deck,
                request=request,
                draining=self.leaving or self.host.draining,
                rake=self.host.rake(table) if isinstance(command, StartHand) else None,
            )
            events = decide(table, command, context)
        except (Rejected, Refused) as refusal:
            answer(refusal)
            return
        except Exception:
            player = "" if request is None else request.player
            log.exception(
                "rules raised", table=self.id, hand=table.last_hand, player=player, command=type(command).__name__
            )
            if request is None:
                self.quarantine("the rules raised on a command of the room's own")
            answer(_fault(request))
            return
        if events:
            self._append(events, answer)
        else:
            answer(0)

    def _money_is_here(self, command: Command) -> None:
        """Whose cash-out is under way is not told for good that they have no money. Raises Refused."""
        config = self.table.config
        if isinstance(command, TakeSeat | AddChips) and config is not None:
            pending = self.host.transfers.cash_out(account(command.player, config.currency))
            if pending:
                raise on_its_way(pending)

    def _append(self, events: list[TableEvent], answer: Answer) -> None:
        self._appending = (events, answer, self.host.clock.monotonic())
        future = self.host.log.append(self.id, self.table.version, self.fence, events)
        future.add_done_callback(self._appended)

    def _appended(self, future: asyncio.Future[int]) -> None:
        """The append is durable, or another owner has the table."""
        assert self._appending is not None
        events, answer, since = self._appending
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._appending = None
            answer(self.host.unavailable(self.id))
            self._shut_out(error)
            return
        took = self.host.clock.monotonic() - since
        self.host.metrics.append_seconds.observe(took)
        if tracing.on():
            tracing.happened("relance.table/append", took, table=self.id)
        if self.state is State.QUARANTINED or self.state is State.GONE:
            answer(events[0].version)  # it was on its way when the table stopped here
            return
        try:
            owners = self._advance(events)
        except Exception:
            log.exception("apply raised", table=self.id, version=self.table.version)
            self._appending = None
            answer(_fault(None))
            self.quarantine("the rules raised on a durable event")
            return
        if self._start is not None:
            self._start.set_result(None)
            return
        self._appending = None
        self._go_on(events, owners, answer)

    def _go_on(self, events: Sequence[TableEvent], owners: dict[int, tuple[int, str]], answer: Answer) -> None:
        self._follow(events, owners)
        answer(events[0].version)
        if self.table.drained:
            self.leave(self.host.unavailable(self.id), "drained")
        elif self.table.finished:
            self.leave(closed(self.id), "closed")
        self._step()
        self._arm(self.host.clock.monotonic())

    def _shut_out(self, error: BaseException) -> None:
        if isinstance(error, Fenced):
            self.leave(self.host.unavailable(self.id), "fenced")
        elif isinstance(error, asyncio.CancelledError | Unavailable):
            # The log itself was closed: what became of the append is for the next owner to read.
            self.leave(self.host.unavailable(self.id), "the log was closed")
        else:
            self.quarantine(f"the log raised {error!r}")

    def _advance(self, events: list[TableEvent]) -> dict[int, tuple[int, str]]:
        """Take over what was decided; answer whose secrets the events hold: place -> seat and player."""
        table = self.table
        owners: dict[int, tuple[int, str]] = {}
        for place, event in enumerate(events):
            if has_secret(event):
                seat: int = getattr(event, event.WhichOneof("payload") or "").seat
                owners[place] = (seat, table.seats[seat].player)
        advance(table, events)
        table.conservation()
        return owners

    # What follows an append

    def _follow(self, events: Sequence[TableEvent], owners: dict[int, tuple[int, str]]) -> None:
        if self.why is not None and self.state is State.RUNNING and self.table.fence == self.fence:
            self.why = None  # this owner's start is durable: the mailbox opens
        if effects.follow(self.host, self.table, self._audience, events):
            self._watch_seats(0.0)
        if self.table.hand is None:
            self._between_hands()
        asked = prompt(self.table)
        fresh = self._set_clocks(asked)
        encoded = wire.Encoded(events, owners)
        self.host.publisher.publish(self.id, events, encoded.body)
        if self._audience is not None:
            self._audience.show(encoded, self._prompt_bytes(asked) if fresh and asked is not None else b"")

    def _between_hands(self) -> None:
        if self._deck is not None:
            self._deck = None
            self._clocks.hand_ended(self.host.clock.monotonic())
        if self.table.version - self._saved >= SNAPSHOT_EVERY:
            self._saved = self.table.version
            self.host.snapshot(self.table)

    def _set_clocks(self, asked: Prompt | None) -> bool:
        """Start and stop the clocks as the new state needs; whether a new prompt arose."""
        clocks = self._clocks
        if asked is None:
            clocks.turn = 0
            leaving = self.leaving or self.host.draining
            if not leaving and ready_to_start(self.table) and self.table.config is not None:
                clocks.may_start(self.table.config.timers.between_hands_ms / 1e3, self.host.clock.monotonic())
            return False
        if asked.turn == clocks.turn:
            return False
        clocks.ask(asked.turn, asked.clock_ms / 1e3, self.host.clock.monotonic(), asked.bank_ms / 1e3)
        return True

    def _watch_seats(self, least: float) -> None:
        """Wake up when the next seat expires, in `least` seconds at the earliest."""
        ends = next_expiry(self.table)
        if ends:
            left = max(least, (ends - self.host.clock.now_us()) / 1e6)
            self._clocks.seats = self.host.clock.monotonic() + left

    def _expired(self, outcome: Outcome) -> None:
        """Some seats have expired, or the wall clock is behind and none has yet."""
        nobody(outcome)
        self._watch_seats(0.001)

    def _arm(self, now: float) -> None:
        """Ask the timers for the next time that matters."""
        if self.state is not State.RUNNING or self._appending is not None:
            return
        when = self._clocks.next()
        if when != NEVER:
            self.host.timers.at(max(when, now), self)

    def _prompt_bytes(self, asked: Prompt) -> bytes:
        left = self._clocks.left(self.host.clock.monotonic())
        return asked.to_proto(self.host.clock.now_us() + round(left * 1e6), round(left * 1e3)).SerializeToString()

    def _run_out(self) -> None:
        """The clock wins (C1)."""
        turn, self._clocks.turn = self._clocks.turn, 0
        asked = prompt(self.table)
        if asked is None or asked.turn != turn:
            self.quarantine("a clock ran for a prompt that is not there")
            return
        seat = self.table.seats[asked.seat]
        if not seat.connected and protections.matter(self.table, asked):
            self._asking = True
            self.host.protections.use(self.table, seat, lambda left: self._protected(turn, left))
            return
        self._decide(Timeout(turn, seat.connected), None, self._ran_out)

    def _protected(self, turn: int, left: bool) -> None:
        """The lobby has said whether a disconnected player has a protection left (C2)."""
        self._asking = False
        if self.state is State.PAUSED:
            # Asked again once the database is back: the lobby has the same answer.
            self._clocks.ask(turn, 0.0, self.host.clock.monotonic())
        elif self.state is State.RUNNING:
            self._decide(Timeout(turn, connected=False, protection_left=left), None, self._ran_out)
            self._step()

    def _ran_out(self, outcome: Outcome) -> None:
        if outcome == 0 or isinstance(outcome, Rejected):
            # No clock runs any more and the prompt is still there: nobody would ever be asked again.
            self.quarantine(f"a clock that ran out led to nothing: {outcome}")

    # Connections

    def _connection(self, player: str) -> None:
        """The player's streams have changed: say so in the log if that changes whether they are connected."""
        if self._changed is None:
            self._changed = set()
        self._changed.add(player)
        self._step()

    def _settle_connection(self, player: str) -> None:
        seat = self.table.seat_of(player)
        if seat is None:
            return
        here = self._audience is not None and self._audience.has(player)
        if here != seat.connected:
            self._decide(ConnectionRestored(player) if here else ConnectionLost(player), None, nobody)

    # Stopping

    def pause(self) -> None:
        """The database is away: refuse commands, stop the clocks, keep the deck."""
        if self.state is not State.RUNNING:
            return
        self._clocks.stand_still(self.host.clock.monotonic())
        self.state = State.PAUSED
        self.why = self.host.unavailable(self.id)
        self._mail.refuse(self.why)
        self._notice("PAUSED", "The table waits for the room's database; clocks stand still.")

    def resume(self) -> None:
        """The database is back and the table still ours: go on with the time that was left."""
        if self.state is not State.PAUSED:
            return
        now = self.host.clock.monotonic()
        self.state = State.RUNNING
        if self.table.fence == self.fence and self._start is None:
            self.why = None
        self._clocks.go_on(now)
        if self._clocks.turn:
            asked = prompt(self.table)
            if asked is not None and self._audience is not None:
                self._audience.ask(self._prompt_bytes(asked))
        self._step()
        self._arm(now)

    def quarantine(self, why: str) -> None:
        """Stop this table alone, loudly; nothing is lost, and people must look at its log."""
        log.error("table quarantined", table=self.id, version=self.table.version, hand=self.table.last_hand, why=why)
        self.host.metrics.quarantined.inc()
        refused = Refused(
            reason_pb2.REASON_TABLE_QUARANTINED, "The table is stopped after a fault; operators know.", table=self.id
        )
        self._stop(State.QUARANTINED, refused)

    def leave(self, why: Refused, event: str) -> None:
        """Stop because the table is another process's, or soon will be, or is closed."""
        if self.state is State.GONE:
            return
        log.info("table left", table=self.id, version=self.table.version, fence=self.fence, why=event)
        self._notice(
            "DRAINING" if event == "drained" else "MOVED", "The table goes on elsewhere; locate it and join again."
        )
        self._stop(State.GONE, why)
        self.host.left(self)

    def _stop(self, state: State, why: Refused) -> None:
        self.state, self.why = state, why
        self._clocks.stop()
        self._deck = None
        if self._start is not None and not self._start.done():
            self._start.set_result(None)
        self._changed = None
        self._mail.close(why)
        if self._audience is not None:
            self._audience.end(why)

    def _notice(self, kind: str, text: str) -> None:
        if self._audience is not None:
            self._audience.notice(table_pb2.Notice(kind=kind, text=text, hand=self.table.last_hand))


def preferences(seat: Seat) -> table_pb2.SeatPreferences:
    """How a seat plays by itself."""
    return table_pb2.SeatPreferences(
        auto_post=seat.auto_post,
        auto_muck=seat.auto_muck,
        wait_for_big_blind=seat.wait,
        sit_out_next_big_blind=seat.sit_out_next_big_blind,
        auto_top_up=seat.auto_top_up,
    )


def _fault(request: Request | None) -> Refused:
    name = "" if request is None else request.id
    return Refused(reason_pb2.REASON_INTERNAL, "A fault of the room; it is logged.", request=name)
