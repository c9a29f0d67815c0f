"""How bots play: a style answers a turn with an action. Seeded, so that a fleet can be run again alike."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

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
)
from relance.client import Turn

_SIZED = (ACTION_KIND_RAISE, ACTION_KIND_BET, ACTION_KIND_COMPLETE)
# What is done where a style has no opinion, the first that is offered.
_QUIET = (
    ACTION_KIND_CHECK,
    ACTION_KIND_POST,
    ACTION_KIND_DISCARD,
    ACTION_KIND_MUCK,
    ACTION_KIND_SHOW,
    ACTION_KIND_REFUSE_SPLIT,
    ACTION_KIND_BRING_IN,
    ACTION_KIND_FOLD,
    ACTION_KIND_CALL,
    ACTION_KIND_ALL_IN,
)
_HIGH = "TJQKA"


@dataclass(frozen=True, slots=True)
class Choice:
    """An action: kind, total for the round (bets and raises), cards (draws)."""

    kind: table_pb2.ActionKind.ValueType
    amount: int = 0
    cards: str = ""


@dataclass(frozen=True, slots=True)
class Style:
    """A way to play. `stay`: hands at a table before moving on, from and to."""

    name: str
    choose: Callable[[Turn, str, random.Random], Choice]
    stay: tuple[int, int]


def quiet(turn: Turn) -> Choice:
    """The cheapest action that is offered."""
    return Choice(next(kind for kind in _QUIET if kind in turn.actions))


def _of(turn: Turn, *kinds: table_pb2.ActionKind.ValueType) -> Choice:
    """The first of these that is offered, or the quiet one."""
    return next((Choice(kind) for kind in kinds if kind in turn.actions), quiet(turn))


def _raise(turn: Turn, rng: random.Random, boldness: float) -> Choice:
    """A bet or raise somewhere between least and most; small boldness stays near the least."""
    kind = next((kind for kind in _SIZED if kind in turn.actions), None)
    if kind is None or not turn.min_raise_to:
        return _of(turn, ACTION_KIND_CALL, ACTION_KIND_CHECK, ACTION_KIND_ALL_IN)
    if turn.raise_sizes:
        return Choice(kind, rng.choice(turn.raise_sizes))
    room = max(turn.max_raise_to - turn.min_raise_to, 0)
    return Choice(kind, turn.min_raise_to + int(room * rng.random() ** (1 / boldness)))


def _cards(down: str) -> list[str]:
    return [down[start : start + 2] for start in range(0, len(down), 2)]


def _paired(down: str) -> bool:
    ranks = [card[0] for card in _cards(down)]
    return len(set(ranks)) < len(ranks)


def _aside(turn: Turn, down: str, rng: random.Random) -> Choice | None:
    """Answers to prompts that are no bets."""
    if turn.kind == table_pb2.PROMPT_KIND_DRAW:
        return Choice(ACTION_KIND_DISCARD, cards=_draw(turn, down, rng))
    if turn.kind == table_pb2.PROMPT_KIND_SPLIT:
        return _of(turn, *rng.sample((ACTION_KIND_ACCEPT_SPLIT, ACTION_KIND_REFUSE_SPLIT), 2))
    if turn.kind == table_pb2.PROMPT_KIND_SHOW:
        return _of(turn, *rng.sample((ACTION_KIND_SHOW, ACTION_KIND_MUCK), 2))
    if turn.kind == table_pb2.PROMPT_KIND_POST:
        return _of(turn, ACTION_KIND_POST)
    return None


def _draw(turn: Turn, down: str, rng: random.Random) -> str:
    counts = Counter(card[0] for card in _cards(down))
    loose = [card for card in _cards(down) if counts[card[0]] == 1]
    return "".join(loose[: rng.randint(0, turn.max_discards)])


def _rock(turn: Turn, down: str, rng: random.Random) -> Choice:
    """Plays pairs and high cards, raises the best of them, folds the rest."""
    high = sum(card[0] in _HIGH for card in _cards(down))
    if _paired(down) and high >= 2 and rng.random() < 0.6:
        return _raise(turn, rng, 0.2)
    if _paired(down) or high >= 2:
        return _of(turn, ACTION_KIND_CHECK, ACTION_KIND_CALL, ACTION_KIND_ALL_IN)
    return _of(turn, ACTION_KIND_CHECK, ACTION_KIND_FOLD)


def _station(turn: Turn, down: str, rng: random.Random) -> Choice:
    """Pays to see everything."""
    return _of(turn, ACTION_KIND_CHECK, ACTION_KIND_CALL, ACTION_KIND_ALL_IN)


def _aggressor(turn: Turn, down: str, rng: random.Random) -> Choice:
    """Raises half of the time, shoves now and then."""
    luck = rng.random()
    if luck < 0.02:
        return _of(turn, ACTION_KIND_ALL_IN, ACTION_KIND_CALL)
    if luck < 0.5:
        return _raise(turn, rng, 0.35)
    if luck < 0.6:
        return _of(turn, ACTION_KIND_CHECK, ACTION_KIND_FOLD)
    return _of(turn, ACTION_KIND_CHECK, ACTION_KIND_CALL, ACTION_KIND_ALL_IN)


def _random(turn: Turn, down: str, rng: random.Random) -> Choice:
    """Anything that is legal; shoves less than the rest."""
    kind = rng.choice(sorted(turn.actions))
    if kind == ACTION_KIND_ALL_IN and rng.random() < 0.8:
        return _station(turn, down, rng)
    if kind in _SIZED:
        return _raise(turn, rng, 0.5)
    if kind == ACTION_KIND_OFFER_SPLIT and rng.random() < 0.5:
        return quiet(turn)
    return Choice(kind)


def _with_asides(choose: Callable[[Turn, str, random.Random], Choice]) -> Callable[[Turn, str, random.Random], Choice]:
    def answer(turn: Turn, down: str, rng: random.Random) -> Choice:
        return _aside(turn, down, rng) or choose(turn, down, rng)

    return answer


STYLES = (
    Style("station", _with_asides(_station), (60, 240)),
    Style("aggressor", _with_asides(_aggressor), (30, 120)),
    Style("random", _with_asides(_random), (20, 80)),
    Style("rock", _with_asides(_rock), (40, 160)),
    Style("leaver", _with_asides(_random), (3, 12)),
)
