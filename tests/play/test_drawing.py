"""The table as it is drawn: all of it, within the terminal, without colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.play.scenes import asked, playing, scene

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.play.drawing import Scene, Seconds, draw_table
from relance.play.glyphs import LETTERS
from relance.play.recap import Recap


def drawn(of: Scene, width: int = 80, height: int = 14) -> str:
    return draw_table(of, width, height).plain


@pytest.mark.parametrize("seats", range(2, 11))
def test_every_player_stack_and_bet_is_there_at_80_by_13(seats: int) -> None:
    view = playing(seats)
    for seat in view.seats:
        seat.bet = 100 * seat.seat
    text = drawn(scene(asked(view, 2, pb.ACTION_KIND_FOLD)), height=13)
    for number in range(1, seats + 1):
        assert f"Player {number}" in text
        assert f"100.{number:02d}" in text
        assert f"bet {number}.00" in text


@given(
    seats=st.integers(2, 10),
    mine=st.integers(0, 2),
    width=st.integers(80, 200),
    height=st.integers(13, 60),
    cards=st.integers(0, 7),
    names=st.lists(st.text(max_size=32), min_size=10, max_size=10),
    asks=st.integers(0, 2),
)
def test_the_drawing_has_exactly_the_size_asked_for(
    seats: int, mine: int, width: int, height: int, cards: int, names: list[str], asks: int
) -> None:
    view = playing(seats, mine, cards=cards, own="AsKdQh" if mine else "")
    view.board = "2c3d4h5s6c"
    if asks:
        asked(view, asks, pb.ACTION_KIND_CHECK)
    shown = Scene(view, {f"p{at + 1}": name for at, name in enumerate(names)}, Recap(), Seconds(3.0, 20.0))
    lines = draw_table(shown, width, height).plain.split("\n")
    assert len(lines) == height
    assert {cell_len(line) for line in lines} == {width}


def test_the_viewer_sits_at_the_bottom_and_the_others_follow_clockwise() -> None:
    rows = [line.split() for line in drawn(scene(playing(6, mine=4))).split("\n") if "Player" in line]
    assert [[word for word in row if word.isdigit()] for row in rows] == [["1", "2"], ["6", "3"], ["5", "4"]]
    assert rows[-1][-2:] == ["4", "(you)"]


def test_own_cards_are_seen_and_others_are_as_many_backs() -> None:
    text = drawn(scene(playing(3, own="AsKd")))
    assert "A♠ K♦" in text
    assert text.count("▒▒") == 2


def test_up_cards_of_stud_stand_beside_the_backs_and_seven_own_cards_fit() -> None:
    view = playing(8, mine=1, cards=3, own="AsKd2c")
    view.seats[0].up = "9h8h7hQs"
    view.seats[1].up = "Td"
    text = drawn(scene(view))
    assert "▒▒▒ T♦" in text
    assert "A♠ K♦ 2♣ 9♥ 8♥ 7♥ Q♠" in text
    assert "A♠K♦2♣ 9♥8♥7♥Q♠" in drawn(scene(view), width=66), "less room, no gaps"


def test_states_are_words_not_colours() -> None:
    view = playing(6)
    view.seats[1].folded = True
    view.seats[2].all_in = True
    view.seats[3].connected = False
    view.seats[4].sitting_out, view.seats[4].in_hand = True, False
    view.seats[5].Clear()
    view.seats[5].seat = 6
    text = drawn(scene(view))
    for word in ("folded", "ALL-IN", "lost", "sits out", "seat 6", "free"):
        assert word in text


def test_whose_turn_it_is_and_the_clock_are_in_the_middle() -> None:
    view = asked(playing(6), 3, pb.ACTION_KIND_FOLD)
    text = drawn(scene(view, seconds=Seconds(12.4, 20.0)))
    assert "► Player 3 to act" in text
    assert " 12 s ████████████░░░░░░░░" in text
    view.prompt.seat = 1
    assert "► Your turn" in drawn(scene(view, seconds=Seconds(12.4, 20.0)))


def test_in_five_lines_the_clock_shares_the_line_of_the_turn() -> None:
    text = drawn(scene(asked(playing(6), 1, pb.ACTION_KIND_FOLD), seconds=Seconds(9.0, 20.0)), height=13)
    line = next(line for line in text.split("\n") if "Your turn" in line)
    assert "9 s" in line


def test_side_pots_are_told_apart() -> None:
    view = asked(playing(6), 3, pb.ACTION_KIND_FOLD)
    view.pot = 5_000
    view.pots.add(amount=3_000)
    view.pots.add(amount=1_500)
    assert "Pot 50.00 € = 30.00 + 15.00 + bets" in drawn(scene(view), width=100)
    assert "Pot 50.00 € in 2 pots" in drawn(scene(view), width=72)


def test_after_a_hand_the_winners_and_what_they_showed_stay_until_the_next() -> None:
    recap = Recap()
    shares = [
        events_pb2.PotShare(seat=1, amount=900, part=events_pb2.POT_PART_HIGH),
        events_pb2.PotShare(seat=2, amount=800, part=events_pb2.POT_PART_LOW),
    ]
    for event in (
        events_pb2.HandStarted(),
        events_pb2.BoardDealt(cards="2c3d4h"),
        events_pb2.HandShown(seat=1, cards="AsKd", high="pair of aces"),
        events_pb2.HandShown(seat=2, cards="5s6s", high="nothing", low="6-5-4-3-2 low"),
        events_pb2.PotAwarded(amount=1_700, shares=shares),
        events_pb2.HandEnded(pot=1_700),
    ):
        recap.follow(event, 7)
    view = playing(6)
    view.hand = 0
    for seat in view.seats:
        seat.in_hand = False
    text = drawn(scene(view, recap=recap), width=140)
    assert "You win 9.00 € for high: pair of aces" in text
    assert "Player 2 wins 8.00 € for low: nothing; 6-5-4-3-2 low" in text
    assert "2♣  3♦  4♥" in text
    assert "wins 8.00" in text
    assert "5♠ 6♠" in text
    recap.follow(events_pb2.HandStarted(), 8)
    assert "wins" not in drawn(scene(view, recap=recap), width=140)


def test_a_winner_and_the_hand_are_there_whole_at_80_by_13_and_that_the_table_is_paused() -> None:
    recap = Recap()
    for event in (
        events_pb2.HandStarted(),
        events_pb2.HandShown(seat=1, cards="9hJs", high="two pair, jacks and sevens"),
        events_pb2.PotAwarded(amount=15_812, shares=[events_pb2.PotShare(seat=1, amount=15_812)]),
        events_pb2.HandEnded(pot=15_812),
    ):
        recap.follow(event, 7)
    view = playing(6)
    view.hand = 0
    text = drawn(scene(view, recap=recap), height=13)
    assert "You win 158.12 €" in text
    assert "two pair, jacks and sevens" in text
    view.paused = True
    assert "Paused by the floor" in drawn(scene(view, recap=recap), height=13)


def test_plain_terminals_get_plain_letters() -> None:
    view = asked(playing(10, cards=5, own="AsKdQhJcTs"), 3, pb.ACTION_KIND_FOLD)
    view.pot, view.board = 300, "2c3d4h"
    text = drawn(scene(view, seconds=Seconds(4.0, 20.0), glyphs=LETTERS))
    assert text.isascii()
    assert "As Kd Qh Jc Ts" in text
    assert "Pot 3.00 EUR" in text
