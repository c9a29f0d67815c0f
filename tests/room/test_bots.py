"""Bots choose only what is offered, the same from the same seed, and keep their accounts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relance.api.table.v1 import table_pb2
from relance.api.table.v1.table_pb2 import (
    ACTION_KIND_ACCEPT_SPLIT,
    ACTION_KIND_ALL_IN,
    ACTION_KIND_BET,
    ACTION_KIND_BRING_IN,
    ACTION_KIND_CALL,
    ACTION_KIND_CHECK,
    ACTION_KIND_COMPLETE,
    ACTION_KIND_DISCARD,
    ACTION_KIND_FOLD,
    ACTION_KIND_MUCK,
    ACTION_KIND_OFFER_SPLIT,
    ACTION_KIND_POST,
    ACTION_KIND_RAISE,
    ACTION_KIND_REFUSE_SPLIT,
    ACTION_KIND_SHOW,
    PROMPT_KIND_BET,
    PROMPT_KIND_DRAW,
    PROMPT_KIND_POST,
    PROMPT_KIND_SHOW,
    PROMPT_KIND_SPLIT,
)
from relance.client import Seat, Turn
from relance.room.bots.accounts import Accounts
from relance.room.bots.styles import STYLES, Style, quiet

DOWN = "As2d2hTc9s"

PROMPTS = [
    table_pb2.Prompt(kind=PROMPT_KIND_BET, actions=[ACTION_KIND_FOLD, ACTION_KIND_CHECK]),
    table_pb2.Prompt(
        kind=PROMPT_KIND_BET, actions=[ACTION_KIND_FOLD, ACTION_KIND_CALL, ACTION_KIND_RAISE, ACTION_KIND_ALL_IN],
        call=50, min_raise_to=200, max_raise_to=5_000,
    ),
    table_pb2.Prompt(kind=PROMPT_KIND_BET, actions=[ACTION_KIND_FOLD, ACTION_KIND_ALL_IN]),
    table_pb2.Prompt(
        kind=PROMPT_KIND_BET, actions=[ACTION_KIND_FOLD, ACTION_KIND_CHECK, ACTION_KIND_BET],
        min_raise_to=500, max_raise_to=1_000, raise_sizes=[500, 1_000],
    ),
    table_pb2.Prompt(
        kind=PROMPT_KIND_BET, actions=[ACTION_KIND_BRING_IN, ACTION_KIND_COMPLETE], min_raise_to=500, max_raise_to=500
    ),
    table_pb2.Prompt(kind=PROMPT_KIND_DRAW, actions=[ACTION_KIND_DISCARD], max_discards=5),
    table_pb2.Prompt(kind=PROMPT_KIND_SPLIT, actions=[ACTION_KIND_ACCEPT_SPLIT, ACTION_KIND_REFUSE_SPLIT]),
    table_pb2.Prompt(
        kind=PROMPT_KIND_BET, actions=[ACTION_KIND_FOLD, ACTION_KIND_CHECK, ACTION_KIND_OFFER_SPLIT]
    ),
    table_pb2.Prompt(kind=PROMPT_KIND_POST, actions=[ACTION_KIND_POST, ACTION_KIND_FOLD]),
    table_pb2.Prompt(kind=PROMPT_KIND_SHOW, actions=[ACTION_KIND_SHOW, ACTION_KIND_MUCK]),
]  # fmt: skip


def turn_of(prompt: table_pb2.Prompt) -> Turn:
    return Turn(cast(Seat, None), prompt)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@given(seed=st.integers(0, 10_000), prompt=st.sampled_from(PROMPTS))
def test_a_bot_chooses_what_is_offered_within_the_bounds(style: Style, seed: int, prompt: table_pb2.Prompt) -> None:
    turn = turn_of(prompt)
    choice = style.choose(turn, DOWN, random.Random(seed))
    assert choice.kind in turn.actions
    if choice.kind in {ACTION_KIND_BET, ACTION_KIND_RAISE, ACTION_KIND_COMPLETE}:
        assert turn.min_raise_to <= choice.amount <= turn.max_raise_to
        assert not turn.raise_sizes or choice.amount in turn.raise_sizes
    cards = [choice.cards[start : start + 2] for start in range(0, len(choice.cards), 2)]
    assert len(cards) <= turn.max_discards
    assert set(cards) <= {"As", "2d", "2h", "Tc", "9s"}
    assert len(set(cards)) == len(cards)


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_there_is_a_quiet_answer_to_every_prompt(prompt: table_pb2.Prompt) -> None:
    assert quiet(turn_of(prompt)).kind in prompt.actions


def test_the_same_seed_plays_alike() -> None:
    def play() -> list[object]:
        rng = random.Random("1/Ada")
        return [style.choose(turn_of(prompt), DOWN, rng) for style in STYLES for prompt in PROMPTS]

    assert play() == play()


def test_accounts_stay_the_same_and_are_private(tmp_path: Path) -> None:
    file = tmp_path / "bots" / "bots.json"
    first = Accounts(file).get(50)
    assert Accounts(file).get(50) == first
    assert len({account.name for account in Accounts(file).get(60)}) == 60
    assert file.stat().st_mode & 0o077 == 0
