"""Replaying: what each viewer sees step by step, and how keys move."""

from __future__ import annotations

import json
import os
import sys

import pytest
from tests.ops.logs import ListSource, LoggedRoom
from tests.ops.test_export import full_table, hidden
from tests.poker import playing

from relance.ops import replay
from relance.ops.errors import NoAnswer
from relance.ops.events import Wanted, check_types, wanted_events
from relance.ops.output import Out
from relance.ops.replay import moved, screen, show_steps
from relance.ops.state import show_changes, show_state
from relance.ops.steps import steps_of
from relance.poker.deck import ScriptedDeck

Capture = pytest.CaptureFixture[str]


def running() -> LoggedRoom:
    """A table on which a hand runs: nobody has acted yet."""
    room = LoggedRoom(playing.config())
    for seat in (1, 2, 3):
        room.sit(seat, 10_000)
    room.start(ScriptedDeck([]))
    return room


@pytest.mark.parametrize("who", ["public", "p1"])
async def test_steps_show_only_what_the_viewer_saw(who: str, capsys: Capture) -> None:
    room = full_table()
    hand = await steps_of(ListSource(room.appends), None, "t", 1, who)
    show_steps(hand, Out())
    shown = set(capsys.readouterr().out.replace("|", " ").split())
    assert not shown & hidden(room, who)[1]
    assert hand.over


@pytest.mark.parametrize("who", ["auditor", "p1", "public"])
async def test_cards_of_a_running_hand_are_nobodys_to_see(who: str, capsys: Capture) -> None:
    source = ListSource(running().appends)
    hand = await steps_of(source, None, "t", 1, who)
    assert not hand.over
    for step in hand.steps:
        assert not any(seat.down for seat in step.view.seats)
        assert not step.event.cards_dealt.down
    async for event in wanted_events(source, Wanted("t"), who):
        assert not event.cards_dealt.down
    await show_state(source, None, "t", None, who, Out(as_json=True))
    state = json.loads(capsys.readouterr().out)
    assert "down" not in state["hand"]


async def test_a_step_is_drawn_with_pot_and_stacks() -> None:
    hand = await steps_of(ListSource(running().appends), None, "t", 1, "public")
    drawn = screen(hand, len(hand.steps) - 1).plain
    assert "p1" in drawn
    assert "?? ??" in drawn
    assert "pot    1.50 €" in drawn


def test_keys_move_forward_back_and_to_the_ends() -> None:
    assert [moved(key, 3, 9) for key in ("n", "\x1b[C", " ", "p", "\x1b[D", "g", "G", "x")] == [4, 4, 4, 2, 2, 0, 8, 3]
    assert moved("p", 0, 9) == 0
    assert moved("n", 8, 9) == 8


async def test_what_is_not_there_is_said_in_one_line() -> None:
    source = ListSource(running().appends)
    with pytest.raises(NoAnswer, match="no hand 7; its hands are 1 to 1"):
        await steps_of(source, None, "t", 7, "public")
    with pytest.raises(NoAnswer, match="no table 'x'"):
        await steps_of(source, None, "x", 1, "public")
    with pytest.raises(NoAnswer, match="hand_started"):
        check_types(("hand-begun",))
    assert check_types(("HandStarted", "pot-awarded")) == {"hand_started", "pot_awarded"}


async def test_the_difference_of_two_versions_is_what_the_event_did(capsys: Capture) -> None:
    room = running()
    room.act(room.asked().seat, playing.RAISE, 300)
    version = room.table.version
    await show_changes(ListSource(room.appends), "t", version - 1, version, "auditor", Out(as_json=True))
    changed = {each["path"]: each["after"] for each in json.loads(capsys.readouterr().out)}
    assert changed["hand.pot"] == 450
    assert changed["version"] == version


async def test_events_are_chosen_by_hand_version_and_type() -> None:
    room = full_table()
    source = ListSource(room.appends)
    everything = [event async for event in wanted_events(source, Wanted("t"), "auditor")]
    assert [event.version for event in everything] == list(range(1, room.table.version + 1))
    kinds = frozenset({"pot_awarded"})
    awards = [event async for event in wanted_events(source, Wanted("t", hand=1, types=kinds), "public")]
    assert awards
    assert all(event.hand == 1 for event in awards)
    part = [event.version async for event in wanted_events(source, Wanted("t", first=5, last=8), "public")]
    assert part == [5, 6, 7, 8]


def test_keys_that_come_in_one_burst_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["\x1b[C", "\x1b[C", "n", "\x1b[1~", "\x1bOC", "3"]
    reading, writing = os.pipe()
    with os.fdopen(reading) as held_down:
        monkeypatch.setattr(sys, "stdin", held_down)
        os.write(writing, "".join(keys).encode())
        assert [replay._key() for _ in keys] == keys
    os.close(writing)
