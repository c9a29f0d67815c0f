"""Logs that some version of the room wrote must replay for ever, and what it decided is decided again."""

from __future__ import annotations

import pytest
from tests.golden.recording import SeededDeck, differences, events_of, names, state_of, steps_of, stored_state

from relance.poker import Context, apply, decide, initial
from relance.poker.games import GAMES
from relance.poker.terms import RULES_VERSION


@pytest.mark.parametrize("name", names())
def test_a_golden_log_replays_to_its_state(name: str) -> None:
    events = events_of(name)
    table = initial(events[0].table)
    for event in events:
        apply(table, event)
        table.conservation()
    assert differences(stored_state(name), state_of(table)) == []


@pytest.mark.parametrize("name", [name for name in names() if name.endswith(f"-{RULES_VERSION}")])
def test_what_was_asked_is_decided_again_byte_for_byte(name: str) -> None:
    """Only under the rules by which it was decided: another version of them may decide otherwise."""
    stored = iter(events_of(name))
    cards = SeededDeck("")
    table = initial(events_of(name)[0].table)
    for step in steps_of(name):
        if step.deck:
            cards = SeededDeck(step.deck)
        events = list(decide(table, step.command, Context(step.at, cards=cards, request=step.request)))
        for event in events:
            assert event.SerializeToString(deterministic=True) == next(stored).SerializeToString(deterministic=True)
            apply(table, event)
    assert next(stored, None) is None


def test_there_is_a_golden_log_of_every_game() -> None:
    assert {name.split("-")[1] for name in names()} == set(GAMES)
