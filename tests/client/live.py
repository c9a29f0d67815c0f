"""A real room for clients: embedded servers, the services as processes. One a test run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from relance.api.common.v1.game_pb2 import Timers
from relance.client import Operator, Room, connect
from relance.room.folder import OPERATOR_ROLES
from relance.room.room import Room as Supervisor
from relance.room.room import RoomOptions

BLINDS = (50, 100)
BUY_IN = 10_000
# Nobody waits between hands, and nobody runs out of time.
TIMERS = Timers(between_hands_ms=1, decision_ms=60_000)


@dataclass(frozen=True, slots=True)
class Live:
    """A running room and its operator."""

    supervisor: Supervisor
    lobby: str
    operator: Operator
    client: Room

    async def open_table(self, **more: object) -> str:
        """A six-seat no-limit table."""
        options = {"blinds": BLINDS, "seats": 6, "min_buy_in": BUY_IN, "max_buy_in": BUY_IN, "timers": TIMERS} | more
        return await self.operator.open_table(**options)  # type: ignore[arg-type]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    """The room; tests that use it run in the loop of the session, and open tables of their own.

    It has servers of its own: other tests change the passwords of roles, wipe streams and restart what they use.
    """
    folder = tmp_path_factory.mktemp("room")
    supervisor = Supervisor(RoomOptions(folder), lambda sentence: None)
    await supervisor.start()
    try:
        token = supervisor.folder.operator_token("test", OPERATOR_ROLES, 3600)
        async with connect(supervisor.address("lobby")) as client:
            yield Live(supervisor, supervisor.address("lobby"), client.operator(token), client)
    finally:
        await supervisor.stop(drain=False)
