"""The comparison with PokerKit: a short run of every game, and proof that it would see a fault."""

from __future__ import annotations

import pytest
from tests.poker.oracle import DIFFERENCES, Unlisted, main, run
from tests.poker.oracle_games import GAMES

from relance.poker import limits
from relance.poker.ranking.high import Omaha, Standard


@pytest.mark.parametrize("game", [game.name for game in GAMES])
def test_hands_go_as_in_pokerkit_but_for_the_listed_differences(game: str) -> None:
    report = run(40, seed=20_000, games=(game,))
    assert report.hands == 40
    assert report.finished > 20
    assert set(report.differences) <= set(DIFFERENCES)


def test_B3_a_fifth_bet_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIXED_CAP", 5)
    with pytest.raises(Unlisted, match="raise to"):
        run(200, games=("fl-holdem",))


def test_H1_a_wrong_winner_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Standard.best
    monkeypatch.setattr(Standard, "best", lambda self, hole, board: -right(self, hole, board))
    with pytest.raises(Unlisted, match="stacks"):
        run(50, games=("nl-holdem",))


def test_H4_a_hand_of_five_board_cards_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    board_plays = Standard("standard").best
    monkeypatch.setattr(Omaha, "best", lambda self, hole, board: board_plays(hole[:2], board))
    with pytest.raises(Unlisted, match="stacks"):
        run(100, games=("pl-omaha",))


def test_the_command_reports_what_it_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["oracle", "--hands", "24", "--seed", "5"])
    assert main() == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("oracle: hands=24 prompts=")
    monkeypatch.setattr(limits, "FIXED_CAP", 1)
    monkeypatch.setattr("sys.argv", ["oracle", "--hands", "24", "--game", "fl-holdem"])
    assert main() == 1
    assert "unlisted difference: fl-holdem, seed " in capsys.readouterr().err
