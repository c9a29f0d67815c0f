"""Playing at a table: one Play stream, commands that survive the connection, turns."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import grpc

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.client.channels import Peer
from relance.client.connection import Connection
from relance.client.credentials import Credentials, bearer
from relance.client.errors import OutcomeUnknown, RelanceError, Unavailable, error, from_refusal
from relance.client.stream import TableStream
from relance.client.turns import Turn

_RETRY_SECONDS = 0.25
_Call = grpc.aio.StreamStreamCall[table_pb2.PlayRequest, table_pb2.PlayResponse]


@dataclass(slots=True)
class _Pending:
    """A command without an answer yet. Sent again, unchanged, on every new connection: the room applies it once."""

    request: table_pb2.PlayRequest
    answer: asyncio.Future[int]


class Seat(TableStream[_Call]):
    """A player at a table.

    Commands return the table version that they caused and raise RelanceError when refused. A connection that goes in
    between does not matter: the command is sent again with its request_id until it is answered, for at most the
    room's patience; then OutcomeUnknown is raised.
    """

    def __init__(self, connection: Connection, table: str, credentials: Credentials, player: str) -> None:
        super().__init__(connection, table, credentials, player)
        # Commands without an answer, in the order in which they were given.
        self._waiting: dict[str, _Pending] = {}
        self._outbox: asyncio.Queue[table_pb2.PlayRequest | None] | None = None
        self._turn: Turn | None = None
        self._served = 0

    @property
    def number(self) -> int:
        """The player's seat; 0: none."""
        return self.view.your_seat

    @property
    def stack(self) -> int:
        """Chips behind."""
        return self.me.stack if self.number else 0

    @property
    def me(self) -> table_pb2.SeatView:
        """The player's seat in the view. Raises NOT_SEATED."""
        if not self.number:
            raise RelanceError("NOT_SEATED", "the player has no seat here", code=grpc.StatusCode.FAILED_PRECONDITION)
        return self.view.seats[self.number - 1]

    @property
    def cards(self) -> str:
        """The player's own cards, those face down first, for example "AsKd"."""
        return self.me.down + self.me.up if self.number else ""

    async def sit(
        self,
        buy_in: int,
        seat: int = 0,
        *,
        wait_for_big_blind: bool = False,
        invitation: str = "",
        ask_to_post: bool = False,
    ) -> int:
        """Take a seat (0: the one held for the player, else any) and wait until it is ours; its number.

        `invitation`: what private tables want, from `room.private.invitation(table)`. `ask_to_post`: antes do not
        post by themselves (S7).
        Raises RelanceError: what TakeSeat refuses, or what the wallet refused (NoMoney), or SEAT_RELEASED.
        """
        request = table_pb2.TakeSeatRequest(
            seat=seat,
            buy_in=buy_in,
            wait_for_big_blind=wait_for_big_blind,
            invitation=invitation,
            ask_to_post=ask_to_post,
        )
        refusal = ""
        with self.events() as events:
            await self.command(table_pb2.PlayRequest(take_seat=request))
            async for event in events:
                match event.data:
                    case events_pb2.PlayerSat(player=self.player, seat=number):
                        return number
                    case events_pb2.TransferRefused(player=self.player, reason=reason):
                        refusal = reason
                    case events_pb2.SeatReleased(player=self.player, reason=reason):
                        text = "the wallet refused the buy-in" if refusal else f"the seat was released: {reason}"
                        raise error(refusal or "SEAT_RELEASED", text, {}, grpc.StatusCode.FAILED_PRECONDITION)
                    case _:
                        pass
        raise Unavailable("UNAVAILABLE", "the stream was closed")

    async def add_chips(self, amount: int) -> int:
        """Buy more chips; they join the stack at the next hand."""
        return await self.command(table_pb2.PlayRequest(add_chips=table_pb2.AddChipsRequest(amount=amount)))

    async def sit_out(self, *, at_next_big_blind: bool = False) -> int:
        """Sit out from the next hand on, or when the big blind comes."""
        request = table_pb2.SitOutRequest(at_next_big_blind=at_next_big_blind)
        return await self.command(table_pb2.PlayRequest(sit_out=request))

    async def prefer(
        self,
        *,
        auto_post: bool = True,
        auto_muck: bool = True,
        wait_for_big_blind: bool = False,
        sit_out_next_big_blind: bool = False,
        auto_top_up: int = 0,
    ) -> int:
        """How the seat plays by itself; what is not given is as for a new seat."""
        wish = table_pb2.SeatPreferences(
            auto_post=auto_post,
            auto_muck=auto_muck,
            wait_for_big_blind=wait_for_big_blind,
            sit_out_next_big_blind=sit_out_next_big_blind,
            auto_top_up=auto_top_up,
        )
        request = table_pb2.SetSeatPreferencesRequest(preferences=wish)
        return await self.command(table_pb2.PlayRequest(set_seat_preferences=request))

    async def say(self, text: str) -> None:
        """Say something at the table. Raises MUTED, TOO_MANY_REQUESTS, FIELD_TOO_LONG, FIELD_INVALID."""
        await self.command(table_pb2.PlayRequest(chat=table_pb2.SendChatRequest(text=text)))

    async def acknowledge(self) -> int:
        """The notices were seen: they do not come again."""
        return await self.command(table_pb2.PlayRequest(ack_notices=table_pb2.AckNoticesRequest()))

    async def sit_in(self, *, wait_for_big_blind: bool = False) -> int:
        """Sit in again; who has asked to leave after the hand stays."""
        request = table_pb2.SitInRequest(wait_for_big_blind=wait_for_big_blind)
        return await self.command(table_pb2.PlayRequest(sit_in=request))

    async def leave(self, *, settled: bool = False, after_hand: bool = False) -> int:
        """Leave and wait until the seat is given up (after the hand, S6); the chips taken along.

        `settled`: wait until they are back on the account, too. `after_hand`: play the running hand to its end, turns
        are still to be answered. Without a seat: 0 at once.
        """
        request = table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest(after_hand=after_hand))
        with self.events() as events:
            try:
                await self.command(request)
            except RelanceError as refusal:
                # A table that is closed and gone has given every seat up.
                if refusal.reason not in {"NOT_SEATED", "TABLE_CLOSED"}:
                    raise
                return 0
            taken = 0
            async for event in events:
                match event.data:
                    case events_pb2.PlayerLeft(player=self.player, amount=amount):
                        taken = amount
                        if not settled or amount == 0:
                            return taken
                    case events_pb2.SeatReleased(player=self.player):
                        return 0
                    case events_pb2.TransferSettled(
                        player=self.player, purpose=events_pb2.TRANSFER_PURPOSE_CASH_OUT
                    ) if taken:
                        return taken
                    case _:
                        pass
        raise Unavailable("UNAVAILABLE", "the stream was closed")

    async def act(self, kind: table_pb2.ActionKind.ValueType, amount: int = 0, cards: str = "", turn: int = 0) -> int:
        """Any action in a hand. `turn` 0 answers whatever is asked now. Raises ActionRefused, StaleAction."""
        action = table_pb2.Action(turn=turn, kind=kind, amount=amount, cards=cards)
        return await self.command(table_pb2.PlayRequest(act=table_pb2.ActRequest(action=action)))

    async def command(self, request: table_pb2.PlayRequest) -> int:
        """Any command of the contract, as it is, with a request_id of its own where it has one: a program that begins
        anew may so ask again for what it asked before. Not the same request_id twice at once.
        """
        if self._failure is not None:
            raise self._failure
        command = getattr(request, request.WhichOneof("message") or "")
        request_id = command.request_id = command.request_id or uuid.uuid4().hex
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = _Pending(request, answer)
        self._send(request)
        try:
            async with asyncio.timeout(self._connection.patience):
                return await answer
        except TimeoutError:
            raise OutcomeUnknown(
                "DEADLINE",
                f"no answer within {self._connection.patience:g} s; the command may have been done",
                {"request_id": request_id},
                grpc.StatusCode.DEADLINE_EXCEEDED,
            ) from None
        finally:
            self._waiting.pop(request_id, None)

    async def turns(self) -> AsyncIterator[Turn]:
        """The player's turns as they come; only the newest is kept. Ends when the player has no seat any more.

        Who sits out, or has lost the whole stack, is not asked: watch `me.sitting_out` beside it.
        """
        while True:
            await self.until(lambda: not self.number or self._fresh_turn() is not None)
            turn = self._fresh_turn()
            if turn is None:
                return
            self._served = turn.number
            yield turn

    async def hand(self) -> AsyncIterator[Turn]:
        """The turns of one hand: the running one if the player is in it, else the next that they are dealt into.

        Ends when the hand is over, paid or void, or the seat is given up.
        """
        await self.until(lambda: not self.number or self.me.in_hand)
        hand = self.view.hand
        while self.number and self.view.hand == hand:
            turn = self._fresh_turn()
            if turn is not None and turn.hand == hand:
                self._served = turn.number
                yield turn
            else:
                await self.until(lambda: not self.number or self.view.hand != hand or self._fresh_turn() is not None)

    def _fresh_turn(self) -> Turn | None:
        turn = self._turn
        return turn if turn is not None and turn.number > self._served and turn.open else None

    def _changed(self) -> None:
        prompt = self.view.prompt if self.view.HasField("prompt") else None
        if prompt is None or prompt.seat != self.number:
            if self._turn is not None:
                self._turn.close()
                self._turn = None
        elif self._turn is None or self._turn.number != prompt.turn:
            if self._turn is not None:
                self._turn.close()  # the clock won, and the next question is to the same seat
            self._turn = Turn(self, prompt)
        else:
            self._turn.asked_again(prompt)
        super()._changed()

    def _open(self, peer: Peer, token: str) -> _Call:
        return peer.table.Play(metadata=bearer(token))

    async def _join(self, call: _Call) -> None:
        join = table_pb2.Join(table=self.table, resume_version=self.version)
        await call.write(table_pb2.PlayRequest(join=join))

    async def _talk(self, call: _Call, token: str) -> None:
        """Write what waits and what comes, read until the server ends the stream."""
        outbox: asyncio.Queue[table_pb2.PlayRequest | None] = asyncio.Queue()
        for pending in self._waiting.values():
            outbox.put_nowait(pending.request)
        self._outbox = outbox
        writer = asyncio.create_task(self._write(call, outbox, token))
        try:
            await super()._talk(call, token)
        finally:
            self._outbox = None
            writer.cancel()

    async def _write(self, call: _Call, outbox: asyncio.Queue[table_pb2.PlayRequest | None], token: str) -> None:
        """The only writer of a stream. None in the outbox: a new token is due. Its death is the reader's to see."""
        loop = asyncio.get_running_loop()
        renewal: asyncio.TimerHandle | None = None
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            try:
                while True:
                    if renewal is None and (delay := self._credentials.renew_in()) is not None:
                        renewal = loop.call_later(delay + 0.05, outbox.put_nowait, None)
                    message = await outbox.get()
                    if message is None:
                        renewal = None
                        token, old = await self._credentials.token(), token
                        if token == old:
                            continue
                        message = table_pb2.PlayRequest(refresh_token=table_pb2.RefreshToken(token=token))
                    await call.write(message)
            finally:
                if renewal is not None:
                    renewal.cancel()

    def _send(self, request: table_pb2.PlayRequest) -> None:
        if self._outbox is not None:
            self._outbox.put_nowait(request)

    def _receive(self, message: table_pb2.PlayResponse) -> None:
        kind = message.WhichOneof("message")
        if kind == "result":
            pending = self._waiting.pop(message.result.request_id, None)
            if pending is not None and not pending.answer.done():
                pending.answer.set_result(message.result.version)
        elif kind == "refusal":
            self._refused(message.refusal)
        else:
            super()._receive(message)

    def _refused(self, refusal: table_pb2.Refusal) -> None:
        failure = from_refusal(refusal)
        pending = self._waiting.get(refusal.request_id)
        if failure.reason == "TABLE_MOVED":
            raise Unavailable(failure.reason, failure.message, failure.metadata, failure.code)
        if pending is None or pending.answer.done():
            return
        if failure.reason in {"TABLE_UNAVAILABLE", "MAILBOX_FULL", "UNAVAILABLE"}:
            delay = _RETRY_SECONDS * random.uniform(0.5, 1.5)
            asyncio.get_running_loop().call_later(delay, self._send_again, refusal.request_id)
            return
        del self._waiting[refusal.request_id]
        pending.answer.set_exception(failure)

    def _send_again(self, request_id: str) -> None:
        pending = self._waiting.get(request_id)
        if pending is not None:
            self._send(pending.request)

    def _end(self, failure: RelanceError | None) -> None:
        super()._end(failure)
        for pending in self._waiting.values():
            if not pending.answer.done():
                pending.answer.set_exception(failure or Unavailable("UNAVAILABLE", "the stream was closed"))
        if self._turn is not None:
            self._turn.close()
