"""Bots that misbehave: what they note, and what the room that they play in looks for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import grpc
import pytest

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2
from relance.client import RelanceError, Seat
from relance.poker.config import table_config
from relance.poker.houses import HOUSES
from relance.room.bots import MISBEHAVIOURS, Blotter
from relance.room.bots.rascal import Attempt, Misbehaviour, Occasion, Rascal
from relance.room.demo import demo_tables
from relance.room.folder import DataFolder
from relance.room.mischief import Mischief, could_play, hurried, is_loud
from relance.room.play import BLOTTER


async def _nothing(attempt: Attempt) -> None:
    """Behave."""


HABIT = Misbehaviour("shouts", Occasion.SEATED, 0.5, _nothing, frozenset({"MUTED"}))


@pytest.fixture
def attempt() -> Attempt:
    found = Blotter()
    bot = SimpleNamespace(blotter=found, finding=found.found)
    return Attempt(HABIT, cast(Rascal, bot), cast(Seat, None), None)


async def answer(reason: str) -> int:
    """The room's answer: a refusal, or nothing against it."""
    if reason:
        raise RelanceError(reason, "because", code=grpc.StatusCode.FAILED_PRECONDITION)
    return 1


def test_chances_of_an_occasion_leave_room_for_good_behaviour_and_names_are_told_apart() -> None:
    for occasion in Occasion:
        assert 0 < sum(habit.chance for habit in MISBEHAVIOURS if habit.occasion is occasion) < 0.9
    assert len({habit.name for habit in MISBEHAVIOURS}) == len(MISBEHAVIOURS)


async def test_a_refusal_that_the_behaviour_explains_is_counted_and_another_is_a_finding(attempt: Attempt) -> None:
    assert await attempt.outcome(answer("MUTED")) == "MUTED"
    assert attempt.bot.blotter.refusals == {"shouts": {"MUTED": 1}}
    assert attempt.bot.blotter.findings == []
    await attempt.outcome(answer("INTERNAL"))
    assert attempt.bot.blotter.findings == ["shouts: refused with INTERNAL: because"]


async def test_what_must_be_refused_and_is_not_is_a_finding(attempt: Attempt) -> None:
    assert await attempt.refused(answer(""), "a shout") == ""
    assert attempt.bot.blotter.findings == ["shouts: a shout was accepted"]


def test_what_was_noted_survives_a_file(tmp_path: Path) -> None:
    before = Blotter()
    before.tried("shouts")
    before.refused("shouts", "MUTED")
    before.refused("shouts", "MUTED")
    before.found("something")
    before.write(tmp_path / "b.json")
    after = Blotter.read(tmp_path / "b.json")
    assert after == before
    assert after.lines(["shouts", "is quiet"]) == ["shouts        1  MUTED 2", "is quiet      0"]
    assert Blotter.read(tmp_path / "none.json") == Blotter()


@pytest.mark.parametrize("house", HOUSES)
def test_every_house_spreads_its_tables_with_short_clocks_too(house: str) -> None:
    for usual, quick in zip(demo_tables(house), hurried(demo_tables(house)), strict=True):
        assert quick.request_id != usual.request_id
        assert table_config(quick).config.timers.decision_ms < table_config(usual).config.timers.decision_ms


def test_a_line_of_a_log_is_loud_when_something_broke() -> None:
    assert is_loud('{"event": "rules raised", "level": "error"}')
    assert is_loud("Traceback (most recent call last):")
    assert not is_loud('{"event": "table opened", "level": "info"}')
    assert not is_loud("error: not of ours")


def test_a_table_could_play_with_two_who_sit_in_with_chips() -> None:
    def view(*seats: table_pb2.SeatView, **more: bool) -> table_pb2.TableView:
        return table_pb2.TableView(seats=seats, **more)  # type: ignore[arg-type]

    ann = table_pb2.SeatView(seat=1, player="ann", stack=5)
    bob = table_pb2.SeatView(seat=2, player="bob", chips_held=5)
    out = table_pb2.SeatView(seat=2, player="bob", stack=5, sitting_out=True)
    assert could_play(view(ann, bob))
    assert not could_play(view(ann, out, table_pb2.SeatView(seat=3)))
    assert not could_play(view(ann, bob, paused=True))


async def test_the_room_says_what_bots_found_and_what_the_logs_of_this_run_tell(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.logs.mkdir()
    old = '{"level": "error", "event": "before"}\n'
    (folder.logs / "table.log").write_text(old)
    said: list[str] = []
    mischief = Mischief(folder, "127.0.0.1:1", said.append)
    still = lobby_pb2.Table(name="tables/t", version=7)
    still.config.timers.CopyFrom(game_pb2.Timers(decision_ms=60_000))
    await mischief.look([still])
    assert mischief.report()[-1] == "misbehaviour: 0 times, 0 refusals, ok"
    found = Blotter()
    found.found("a double seat")
    await asyncio.to_thread(found.write, tmp_path / BLOTTER)
    (folder.logs / "table.log").write_text(old + '{"level": "error", "event": "rules raised"}\n')
    await mischief.look([still])
    await mischief.look([still])
    told = mischief.report()
    assert mischief.findings == ["a double seat", 'the log of table: {"level": "error", "event": "rules raised"}']
    assert "FINDING: a double seat" in said
    assert "misbehaviour: FINDING: a double seat" in told
    assert told[-1] == "misbehaviour: 0 times, 0 refusals, 2 FINDINGS"
