"""`relance houses` prints what the house files say."""

from __future__ import annotations

import json

import pytest

from relance.cli.houses import describe
from relance.ops.output import Out
from relance.poker.houses import CHOICES, HOUSES, load


@pytest.mark.parametrize("house", HOUSES)
def test_a_house_is_printed_with_every_choice_and_every_game(capsys: pytest.CaptureFixture[str], house: str) -> None:
    describe(Out(), house)
    printed = capsys.readouterr().out
    assert [choice for choice in CHOICES if choice not in printed] == []
    assert [game for game in load(house).games if game not in printed] == []


def test_G11_choices_that_differ_by_game_stand_beside_the_houses_own(capsys: pytest.CaptureFixture[str]) -> None:
    describe(Out(), "comptoir")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("fourth_street_high"))
    assert "stud7: always, stud5: always" in line


def test_all_houses_as_json_carry_the_choices_of_every_game(capsys: pytest.CaptureFixture[str]) -> None:
    describe(Out(as_json=True), None)
    houses = {house["house"]: house for house in json.loads(capsys.readouterr().out)}
    assert tuple(houses) == HOUSES
    stud = {game["game"]: game for game in houses["boulevard"]["games"]}["stud7"]
    assert stud["choices"]["fourth_street_high"] == "pair"
    assert set(stud["choices"]) == set(CHOICES)
    assert houses["club"]["rake"] == []
