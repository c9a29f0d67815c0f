"""The real services under players who misbehave, for minutes of simulated time; and proof that the checks can fail.

RELANCE_SIMULATED_MINUTES=10 RELANCE_SIMULATED_SEED=7 pytest tests/table/test_ten_minutes.py
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Keys, beside, open_request
from tests.table.ten_minutes import FUNDS, TOO_LONG, SimulatedRoom, Story

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.ops.audit import audit
from relance.room.embedded import Nats
from relance.table import protections, transfers
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

MINUTES = float(os.environ.get("RELANCE_SIMULATED_MINUTES", "10"))
SEED = int(os.environ.get("RELANCE_SIMULATED_SEED", "1"))
NAMES = [f"player-{number:02}" for number in range(1, 10)]


def tables() -> list[table_pb2.OpenTableRequest]:
    """Blinds, antes and draws, and a bring-in: each with its clocks and its ways to leave."""
    quick = game_pb2.Timers(
        decision_ms=8_000, draw_ms=8_000, time_bank_ms=4_000, between_hands_ms=1_000, reservation_ms=10_000
    )
    holdem = open_request(
        request_id="holdem", seats=6, min_buy_in=2_000, max_buy_in=20_000, timers=quick,
        choices={"after_crash": "keep_seats", "away_hands": "8"},
    )  # fmt: skip
    club = open_request(
        request_id="club", house="club", game="closed", stakes=game_pb2.Stakes(ante=100), min_buy_in=2_000,
        max_buy_in=0, currency=game_pb2.CURRENCY_CREDIT, seats=5, timers=quick,
    )  # fmt: skip
    draw = open_request(
        request_id="draw", game="td27", limit=game_pb2.LIMIT_FIXED, seats=5, timers=quick, min_buy_in=1_000,
        max_buy_in=0, stakes=game_pb2.Stakes(blinds=[50, 100], low_limit=100),
        choices={"button_rule": "dead", "away_hands": "8"},
    )  # fmt: skip
    three = [holdem, club, draw]
    return three if MINUTES > 10 else [each for number, each in enumerate(three) if number != SEED % 3]


@pytest_asyncio.fixture
async def room(
    migrated: Migrated, nats_server: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SimulatedRoom]:
    """A room of real services with a wallet that gives money.

    Nobody is too slow in simulated time: a lobby that a busy machine holds up would be a reason to protect without it.
    """
    for asking in (protections, transfers):
        monkeypatch.setattr(asking, "DEADLINE_SECONDS", TOO_LONG)
    database_url = await migrated("relance.eventlog", "relance.table", "relance.wallet", "relance.lobby")
    keys = Keys(tmp_path)
    settings = WalletSettings(
        database_url=SecretStr(database_url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
        signing_key=keys.service_key, faucet_limit=10 * FUNDS,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        wallet = await beside(stack, started(settings))
        yield SimulatedRoom(stack, keys, database_url, nats_server.url, wallet, SEED)


async def test_minutes_of_bad_play_leave_nothing_wrong(room: SimulatedRoom) -> None:
    """S1-S9, C1-C3, chips and replay, checked after whatever happens."""
    story = Story(room)
    try:
        await story.start(tables(), NAMES)
        await story.run(MINUTES * 30)
        await story.crash()
        await story.run(MINUTES * 30)
        report = await audit(room.database)
        assert report.ok, report.findings
    except BaseException as error:
        again = f"RELANCE_SIMULATED_MINUTES={MINUTES:g} RELANCE_SIMULATED_SEED={SEED} pytest {__file__}"
        error.add_note(f"again: {again}\n{story.told()}")
        raise
    print(story.told())  # noqa: T201 - shown with -s
