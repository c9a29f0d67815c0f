"""What is said around the table: the story, the panel, the lobby's rows, refusals."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from rich.cells import cell_len
from tests.play.scenes import asked, config, playing

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as ev
from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.client import NoMoney, RelanceError, StaleAction
from relance.client.events import event_of
from relance.play.app import light_background
from relance.play.catalogue import COLUMNS, details, matches, room_filter, row
from relance.play.choices import Marks
from relance.play.glyphs import LETTERS, SYMBOLS, glyphs_for, short
from relance.play.panel import Clock, Panel, head_text, keys_text, panel_text
from relance.play.refusals import line
from relance.play.story import Teller

EUR = game_pb2.CURRENCY_EUR


def told(*payloads: Message) -> list[str]:
    """The story of events at a table where "me" sits in seat 1 and Ann in seat 2."""
    teller = Teller("me", {"ann": "Ann"}, EUR, SYMBOLS)
    teller.seats = {1: "me", 2: "ann"}
    fields = ev.TableEvent.DESCRIPTOR.oneofs_by_name["payload"].fields
    kinds = {field.message_type.name: field.name for field in fields if field.message_type is not None}
    lines = []
    for payload in payloads:
        event = ev.TableEvent(hand=3, **{kinds[type(payload).DESCRIPTOR.name]: payload})  # type: ignore[arg-type]
        text = teller.tell(event_of(event))
        if text is not None:
            lines.append(text.plain)
    return lines


def test_a_hand_is_told_in_the_players_words() -> None:
    assert told(
        ev.HandStarted(players=[ev.HandPlayer(seat=1, player="me"), ev.HandPlayer(seat=2, player="ann")]),
        ev.BlindPosted(seat=1, kind=ev.BLIND_KIND_SMALL, amount=50),
        ev.CardsDealt(seat=1, down="AsKd", down_count=2),
        ev.CardsDealt(seat=2, down_count=2),
        ev.Raised(seat=1, amount=250, to=300, raise_by=200),
        ev.Called(seat=2, amount=200, all_in=True),
        ev.BoardDealt(cards="2c3d4h"),
        ev.HandShown(seat=1, cards="AsKd", high="ace high"),
        ev.HandMucked(seat=2),
        ev.PotAwarded(shares=[ev.PotShare(seat=1, amount=600)]),
    ) == [
        "── Hand 3 ──",
        "You post the small blind 0.50",
        "You get A♠ K♦",
        "You raise to 3.00",
        "Ann calls 2.00, all-in",
        "Board 2♣ 3♦ 4♥",
        "You show A♠ K♦ ace high",
        "Ann mucks",
        "You win 6.00",
    ]


def test_C3_a_void_hand_says_why_and_what_came_back() -> None:
    refunds = [ev.Refund(seat=1, player="me", amount=350), ev.Refund(seat=2, player="ann", amount=50)]
    assert told(
        ev.HandVoided(reason=ev.VOID_REASON_CRASH, refunds=refunds),
        ev.PlayerLeft(seat=1, player="me", amount=9_000, reason=ev.LEAVE_REASON_CRASH),
    ) == ["Hand void (the server crashed); 3.50 € back to you", "You leave with 90.00 (server crash)"]


def test_draws_show_ones_own_cards_and_the_number_of_others() -> None:
    assert told(
        ev.CardsDiscarded(seat=1, count=2, cards="2c3d"),
        ev.CardsDrawn(seat=1, count=2, cards="KsKh"),
        ev.CardsDiscarded(seat=2, count=1),
        ev.CardsDrawn(seat=2, count=1),
        ev.CardsDiscarded(seat=2, timed_out=True),
    ) == ["You discard 2: 2♣ 3♦", "You draw K♠ K♥", "Ann discards 1", "Ann stands pat (time)"]


def test_what_people_write_cannot_move_the_cursor() -> None:
    assert told(ev.RulingRecorded(text="play\x1b[2J on\n")) == ["Ruling of the floor: play [2J on "]
    assert short("A\x07da", 10, SYMBOLS) == "A da"


@pytest.mark.parametrize("width", [80, 120])
def test_head_panel_and_keys_are_as_wide_as_the_terminal(width: int) -> None:
    view = playing(3)
    texts = [
        head_text(view, SYMBOLS, width, connected=False, reconnects=2),
        panel_text(Panel(view, SYMBOLS, message="m" * 300), width),
        keys_text(view, width, SYMBOLS),
    ]
    lines = [line for text in texts for line in text.plain.split("\n")]
    assert len(lines) == 5
    assert {cell_len(line) for line in lines} == {width}


def test_the_head_says_whether_the_connection_stands() -> None:
    view = playing(3)
    assert "● connected (2 reconnects)" in head_text(view, SYMBOLS, 80, connected=True, reconnects=2).plain
    assert "○ RECONNECTING" in head_text(view, SYMBOLS, 80, connected=False).plain
    assert "Blue room · Hold'em no limit 0.50/1.00 · hand 7" in head_text(view, SYMBOLS, 80, connected=True).plain


def test_marked_cards_are_in_brackets() -> None:
    marks = Marks("AsKd", 5)
    marks.toggle(1)
    text = panel_text(Panel(asked(playing(3), 1, pb.ACTION_KIND_DISCARD), SYMBOLS, marks=marks), 80).plain
    assert "1 A♠" in text
    assert "2[K♦]x" in text
    assert "enter exchange 1" in text


def test_the_clock_runs_by_this_machine_from_what_the_room_said_was_left() -> None:
    clock, view = Clock(), asked(playing(3), 2, pb.ACTION_KIND_FOLD, remaining_ms=20_000, deadline_us=1)
    clock.see(view, now=100.0)
    assert clock.seconds(105.0) == (15.0, 20.0)
    clock.see(view, now=106.0)
    assert clock.seconds(130.0) == (0.0, 20.0)
    view.prompt.deadline_us, view.prompt.remaining_ms = 2, 9_000
    clock.see(view, now=110.0)
    assert clock.seconds(110.0) == (9.0, 20.0), "the room moved the deadline of the same turn"
    view.ClearField("prompt")
    clock.see(view, now=111.0)
    assert clock.seconds(111.0) is None


def in_lobby(**more: object) -> lobby_pb2.Table:
    return lobby_pb2.Table(name="tables/t1", config=config(), players=3, **more)  # type: ignore[arg-type]


def test_a_table_of_the_lobby_is_a_row() -> None:
    cells = dict(zip(COLUMNS, row(in_lobby(average_pot=1_250, waiting=2), SYMBOLS, seated=True), strict=True))
    assert cells == {
        "Game": "Hold'em", "Limit": "no limit", "Stakes": "0.50/1.00 €", "Seats": "3/6", "State": "YOUR SEAT 2 wait",
        "Avg pot": "12.50", "Hands/h": "–", "Name": "Blue room",
    }  # fmt: skip
    assert "buy-in 20.00 EUR - 100.00 EUR" in details(in_lobby(), LETTERS)


def test_words_are_matched_here_and_expressions_by_the_room() -> None:
    assert matches(in_lobby(), "hold NO")
    assert not matches(in_lobby(), "omaha")
    assert room_filter("hold no", free_only=False) == ""
    assert room_filter('game = "holdem" OR micro', free_only=True) == '(game = "holdem" OR micro) AND seats_free > 0'
    assert matches(in_lobby(), 'game = "omaha"'), "the room has chosen already"


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (StaleAction("STALE_TURN", "no"), "Too late: the turn is over."),
        (NoMoney("NO_MONEY", "no", {"available": "150"}), "Not enough money: 1.50 € on your account."),
        (RelanceError("BUY_IN_OUT_OF_RANGE", "no", {"min": "2000", "max": "0"}), "Not accepted: at least 20.00 €."),
        (RelanceError("NAME_TAKEN", "no"), "That name is taken."),
        (RelanceError("SOMETHING_NEW", "the room says so"), "the room says so"),
    ],
)
def test_a_refusal_is_one_line(refusal: RelanceError, said: str) -> None:
    assert line(refusal, EUR) == said


def test_terminals_that_cannot_show_symbols_get_letters() -> None:
    assert glyphs_for("utf-8") is SYMBOLS
    assert glyphs_for("latin-1") is glyphs_for("none such") is glyphs_for("utf-8", ascii_only=True) is LETTERS


def test_a_light_terminal_is_told_by_its_own_word() -> None:
    assert light_background({"COLORFGBG": "0;15"})
    assert not light_background({"COLORFGBG": "15;0"})
    assert not light_background({})
