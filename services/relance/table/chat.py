"""Talk at the tables: beside the log, in a table of its own; durable before anybody hears it."""

from __future__ import annotations

from typing import Final

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Table
from relance.poker.names import check_chat
from relance.runtime import database, validation
from relance.runtime.clock import Clock
from relance.runtime.database import Pool
from relance.runtime.errors import Refused
from relance.table import wire
from relance.table.actor import Actor

BURST: Final = 5
"""Messages that a player may say in a row; then one every `EACH_SECONDS`."""
EACH_SECONDS: Final = 2.0
ON_JOIN: Final = 20
"""Messages that somebody who joins gets."""

_SAY = """
INSERT INTO log.chat (stream, player, request_id, body, time_us) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (stream, player, request_id) DO NOTHING RETURNING number
"""
_SAID = """
SELECT number, body, time_us FROM log.chat WHERE stream = $1 AND player = $2 AND request_id = $3
"""
_LAST = """
SELECT number, player, body, time_us FROM log.chat WHERE stream = $1 ORDER BY number DESC LIMIT $2
"""


class Chat:
    """The talk at all tables of this process."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._budgets: dict[str, tuple[float, float]] = {}  # player -> messages left, as of when

    async def say(self, actor: Actor, player: str, request: table_pb2.SendChatRequest) -> table_pb2.ChatMessage:
        """Say something at a table; a repeat of the request is said once and answered alike.

        Raises Rejected FIELD_MISSING, FIELD_TOO_LONG, FIELD_INVALID; Refused NOT_SEATED, MUTED, TOO_MANY_REQUESTS,
        REQUEST_ID_REUSED, TABLE_UNAVAILABLE.
        """
        validation.request_id(request.request_id)
        text = check_chat(request.text)
        now = self._clock.now_us()
        _may_speak(actor.table, player, now)
        try:
            said = await self._pool.fetchrow(_SAID, actor.id, player, request.request_id)
            if said is None:
                self._spend(player)
                number = await self._pool.fetchval(_SAY, actor.id, player, request.request_id, text, now)
                if number is not None:
                    message = _message(actor.id, number, player, text, now)
                    actor.say(wire.chat(message))
                    return message
                said = await self._pool.fetchrow(_SAID, actor.id, player, request.request_id)
        except database.OUTAGE:
            raise actor.host.unavailable(actor.id) from None
        assert said is not None
        if said["body"] != text:
            raise Refused(
                reason_pb2.REASON_REQUEST_ID_REUSED,
                f"request {request.request_id} was used with other content",
                request_id=request.request_id,
            )
        return _message(actor.id, said["number"], player, said["body"], said["time_us"])

    async def last(self, table: str, count: int) -> list[table_pb2.ChatMessage]:
        """What was said last, oldest first. Raises what database.OUTAGE names."""
        rows = await self._pool.fetch(_LAST, table, count)
        return [_message(table, row["number"], row["player"], row["body"], row["time_us"]) for row in reversed(rows)]

    async def on_join(self, table: str) -> list[bytes]:
        """What somebody who joins is sent; nothing while the database is away."""
        try:
            return [wire.chat(message) for message in await self.last(table, ON_JOIN)]
        except database.OUTAGE:
            return []

    def _spend(self, player: str) -> None:
        now = self._clock.monotonic()
        left, since = self._budgets.pop(player, (float(BURST), now))
        left = min(float(BURST), left + (now - since) / EACH_SECONDS)
        spent = left >= 1.0
        self._budgets[player] = (left - 1.0 if spent else left, now)
        if len(self._budgets) > _KEPT:
            del self._budgets[next(iter(self._budgets))]
        if not spent:
            wait = max(1, round((1.0 - left) * EACH_SECONDS))
            raise Refused(
                reason_pb2.REASON_TOO_MANY_REQUESTS,
                f"Too many messages; say more in {wait} seconds.",
                retry_after_seconds=wait,
            )


_KEPT: Final = 10_000
"""Players whose budgets are remembered; the longest silent has the full one again long since."""


def _may_speak(table: Table, player: str, now_us: int) -> None:
    """Raises Refused NOT_SEATED, MUTED."""
    seat = table.seat_of(player)
    if seat is None or seat.reserved:
        raise Refused(reason_pb2.REASON_NOT_SEATED, "Only who has a seat may talk at the table.")
    until = table.mutes.get(player)
    if until is not None and (until == 0 or until > now_us):
        raise Refused(reason_pb2.REASON_MUTED, "An operator muted you at this table.", until=until)


def _message(table: str, number: int, player: str, text: str, time_us: int) -> table_pb2.ChatMessage:
    return table_pb2.ChatMessage(
        table=f"tables/{table}", number=number, player=f"players/{player}", text=text, time_us=time_us
    )
