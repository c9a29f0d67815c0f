"""Protections against disconnection (C2): the lobby counts them over the whole room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import grpc
import structlog

from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.poker import Prompt, Seat, Table
from relance.runtime.auth import ServiceToken

log = structlog.get_logger(__name__)

DEADLINE_SECONDS = 2.0


class Protections(Protocol):
    """Who says whether a disconnected player has a protection left."""

    def use(self, table: Table, seat: Seat, answer: Callable[[bool], None]) -> None:
        """Use one of the player's protections in the running hand; the answer comes later."""


def matter(table: Table, asked: Prompt) -> bool:
    """Whether a protection would be used if the asked player, who is disconnected, ran out of time now.

    Only where there is something to protect: a bet to answer (checking is free otherwise) and chips put in.
    """
    hand, config = table.hand, table.config
    if hand is None or config is None or config.rules.protections_per_24h < 0:
        return False
    place = hand.index[asked.seat]
    return (
        asked.kind == table_pb2.PROMPT_KIND_BET
        and table_pb2.ACTION_KIND_CHECK not in asked.offer.actions
        and hand.put[place] + hand.dead[place] > 0
    )


class LobbyProtections:
    """Protections as the lobby counts them. No answer in two seconds: granted, and the lobby books it from the log."""

    def __init__(self, stub: lobby_pb2_grpc.ProtectionServiceAsyncStub, token: ServiceToken) -> None:
        self._stub = stub
        self._token = token
        self._asking: set[asyncio.Task[None]] = set()

    def use(self, table: Table, seat: Seat, answer: Callable[[bool], None]) -> None:
        """See Protections."""
        assert table.hand is not None
        assert table.config is not None
        request = lobby_pb2.UseProtectionRequest(
            table=f"tables/{table.id}",
            hand=table.hand.number,
            seat=seat.number,
            player=f"players/{seat.player}",
            limit=table.config.rules.protections_per_24h,
        )
        task = asyncio.ensure_future(self._ask(request, answer))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, request: lobby_pb2.UseProtectionRequest, answer: Callable[[bool], None]) -> None:
        try:
            response = await self._stub.UseProtection(
                request, timeout=DEADLINE_SECONDS, metadata=self._token.metadata()
            )
        except grpc.aio.AioRpcError as error:
            log.warning("lobby did not answer: protection granted", table=request.table, code=error.code().name)
            answer(True)
        else:
            answer(response.granted)


class FreeProtections:
    """Without a lobby every protection is granted."""

    def use(self, table: Table, seat: Seat, answer: Callable[[bool], None]) -> None:
        """See Protections."""
        answer(True)
