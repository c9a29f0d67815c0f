"""What a Deployment does next, against the promises of its strategy."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from relance.cluster.manifests import Strategy
from relance.cluster.pods import Probe
from relance.cluster.probing import Verdict
from relance.cluster.rollout import Replica, Step, next_step


def pods(*words: str) -> list[Replica]:
    """Replicas from `name revision` or `name revision!`, the latter not available; made in this order."""
    found = []
    for number, word in enumerate(words):
        name, revision = word.split()
        found.append(Replica(name, revision.rstrip("!"), not revision.endswith("!"), number))
    return found


ONE_MORE, ONE_LESS = Strategy(1, 0), Strategy(0, 1)


@pytest.mark.parametrize(
    ("there", "strategy", "step"),
    [
        ([], ONE_MORE, Step(start=3)),
        (["a 1", "b 1", "c 1"], ONE_MORE, Step()),
        (["a 0", "b 0", "c 0"], ONE_MORE, Step(start=1)),
        (["a 0", "b 0", "c 0", "d 1!"], ONE_MORE, Step()),
        (["a 0", "b 0", "c 0", "d 1"], ONE_MORE, Step(stop=("c",))),
        (["a 0", "b 0", "d 1"], ONE_MORE, Step(start=1)),
        (["a 0", "b 0", "c 0"], ONE_LESS, Step(stop=("c",))),
        (["a 0", "b 0"], ONE_LESS, Step(start=1)),
        (["a 0", "b 0", "d 1!"], ONE_LESS, Step()),
        (["a 0", "b 0!", "c 0", "d 1!"], ONE_MORE, Step()),
        (["a 0", "b 0!", "c 0"], ONE_LESS, Step(stop=("b",))),
        (["a 1", "b 1!", "c 1", "d 1", "e 1"], ONE_MORE, Step(stop=("b", "e"))),
        (["a 0", "b 0"], Strategy(recreate=True), Step(stop=("a", "b"))),
    ],
)
def test_pods_start_and_end_as_the_strategy_says(there: list[str], strategy: Strategy, step: Step) -> None:
    found = next_step(pods(*there), revision="1", wanted=3, strategy=strategy)
    assert replace(found, stop=tuple(sorted(found.stop))) == step


def test_nothing_new_starts_while_old_pods_of_a_recreated_deployment_end() -> None:
    assert next_step([], revision="1", wanted=1, strategy=Strategy(recreate=True), ending=1) == Step()
    assert next_step([], revision="1", wanted=1, strategy=Strategy(recreate=True)) == Step(start=1)


@pytest.mark.parametrize("seed", range(40))
def test_an_update_ends_and_keeps_to_its_bounds_whatever_the_order_in_which_pods_get_ready(seed: int) -> None:
    chance = random.Random(seed)
    wanted, surge, unavailable = chance.randint(1, 6), chance.randint(0, 3), chance.randint(0, 3)
    strategy = Strategy(surge, unavailable if surge or unavailable else 1)
    there = {f"old{number}": Replica(f"old{number}", "0", True, number) for number in range(wanted)}
    made = wanted
    for _ in range(200):
        step = next_step(list(there.values()), revision="1", wanted=wanted, strategy=strategy)
        for name in step.stop:
            del there[name]
        for _ in range(step.start):
            made += 1
            there[f"new{made}"] = Replica(f"new{made}", "1", False, made)
        assert len(there) <= wanted + strategy.surge
        assert sum(replica.available for replica in there.values()) >= wanted - strategy.unavailable
        late = [replica for replica in there.values() if not replica.available]
        if late:
            ready = chance.choice(late)
            there[ready.name] = replace(ready, available=True)
    assert sorted(replica.revision for replica in there.values()) == ["1"] * wanted


def test_a_probe_believes_so_many_equal_answers_in_a_row() -> None:
    verdict = Verdict(Probe("tcp", 1, success=2, failure=3))
    said = []
    for answer in (True, True, False, False, True, False, False, False, True, True):
        verdict.hear(answer)
        said.append(verdict.value)
    assert said == [None, True, True, True, True, True, True, False, False, True]
