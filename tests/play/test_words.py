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
from relance.play.catalogue import NARROW, ORDERS, WIDE, Listed, cells, details, matches
from relance.play.choices import Marks, sizes
from relance.play.drawing import Seconds
from relance.play.filters import Wanted, is_expression
from relance.play.glyphs import LETTERS, SYMBOLS, glyphs_for, short
from relance.play.help import KEYS, help_text
from relance.play.notices import notice_bar, notices_text
from relance.play.panel import Absence, Clock, Panel, head_text, keys_text, panel_text
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
        head_text(view, SYMBOLS, width, connected=False),
        panel_text(Panel(view, SYMBOLS, message="m" * 300), width),
        keys_text(view, width, SYMBOLS),
    ]
    lines = [line for text in texts for line in text.plain.split("\n")]
    assert len(lines) == 5
    assert {cell_len(line) for line in lines} == {width}


def test_the_head_says_whether_the_connection_stands() -> None:
    view = playing(3)
    assert "○ RECONNECTING" in head_text(view, SYMBOLS, 80, connected=False).plain
    assert "Blue room · Hold'em no limit 0.50/1.00 € · hand 7" in head_text(view, SYMBOLS, 80, connected=True).plain


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
    assert clock.seconds(105.0) == Seconds(15.0, 20.0)
    clock.see(view, now=106.0)
    assert clock.seconds(130.0) == Seconds(0.0, 20.0)
    view.prompt.deadline_us, view.prompt.remaining_ms = 2, 9_000
    clock.see(view, now=110.0)
    assert clock.seconds(110.0) == Seconds(9.0, 20.0), "the room moved the deadline of the same turn"
    view.ClearField("prompt")
    clock.see(view, now=111.0)
    assert clock.seconds(111.0) is None


def test_C1_the_time_bank_begins_where_the_decision_time_ends() -> None:
    clock = Clock()
    clock.see(
        asked(playing(3), 2, pb.ACTION_KIND_FOLD, remaining_ms=50_000, time_bank_ms=30_000, deadline_us=1), now=0.0
    )
    assert clock.seconds(5.0) == Seconds(15.0, 20.0, 30.0)
    assert clock.seconds(25.0) == Seconds(0.0, 20.0, 25.0)


def test_an_absence_is_told_while_it_lasts_and_once_when_it_is_over() -> None:
    absence = Absence(now=10.0)
    assert absence.text(11.0) == "Joining the table …"
    assert "does not answer" in absence.text(15.0)
    assert absence.see(connected=True, now=16.0, message="") == "", "joining is no coming back"
    assert absence.see(connected=False, now=20.0, message="old news") == ""
    assert absence.text(23.0) == "The table does not answer; trying again … 3 s"
    assert absence.see(connected=False, now=24.0, message="") == ""
    assert absence.see(connected=True, now=25.0, message="") == "The table is back after 5 s."
    assert absence.see(connected=True, now=26.0, message="said") == "said"


def test_notices_are_one_line_and_each_is_told_once() -> None:
    notices = [
        pb.Notice(kind="REFUND", hand=12, amount=350, reason="CRASH", time_us=1),
        pb.Notice(kind="CASHED_OUT", hand=12, amount=9_700, reason="CRASH", time_us=1),
        pb.Notice(kind="DRAINING", text="later"),
    ]
    said = notices_text([*notices, *notices], EUR, SYMBOLS)
    assert said == "Hand 12 void (server crash): 3.50 € back, 97.00 € to your account"
    assert cell_len(notice_bar(said, 80, SYMBOLS).plain) == 80
    assert notice_bar("x" * 200, 80, SYMBOLS).plain.endswith("…  k: seen ")
    seat = notices_text([pb.Notice(kind="CASHED_OUT", amount=100, reason="CRASH")], EUR, SYMBOLS)
    assert seat == "Seat lost (server crash): 1.00 € to your account"


def test_the_slider_shows_where_a_bet_stands_between_its_bounds() -> None:
    view = asked(playing(3), 1, pb.ACTION_KIND_BET, min_raise_to=100, max_raise_to=10_001)
    for total, full in ((100, 0.0), (5_050, 0.5), (10_001, 1.0)):
        panel = Panel(view, SYMBOLS, entering=True, sizes=sizes(view.prompt, view), total=total)
        slider = panel_text(panel, 80).plain.split("\n")[1]
        bar = slider.count("█") + slider.count("░")
        assert abs(slider.count("█") / bar - full) < 0.05
        assert slider.startswith("1.00 ")
        assert "100.01  up/down  enter: send  esc: back" in slider


@pytest.mark.parametrize("width", [80, 120])
def test_all_keys_fit_on_the_help_screen(width: int) -> None:
    text = help_text(width - 2).plain
    assert max(cell_len(row) for row in text.split("\n")) <= width - 2
    for _, keys in KEYS:
        assert all(meaning in text for _, meaning in keys)


def in_lobby(**more: object) -> lobby_pb2.Table:
    return lobby_pb2.Table(name="tables/t1", config=config(), players=3, **more)  # type: ignore[arg-type]


def test_a_table_of_the_lobby_is_a_row() -> None:
    listed = Listed(in_lobby(average_pot=1_250, waiting=2, players_per_flop=2.5), seated=True)
    for columns, row in (
        (NARROW, ["* Hold'em NL", "0.50/1.00 €", "3/6", "2", "12.50", "2.5", "–", ""]),
        (WIDE, ["* Hold'em", "no limit", "0.50/1.00 €", "boulevard", "3/6", "2", "12.50", "2.5", "–", "YOUR SEAT"]),
    ):
        drawn = [cell.plain for cell in cells(listed, columns, SYMBOLS)]
        assert [cell.strip() for cell in drawn] == row
        assert [cell_len(cell) for cell in drawn] == [column.width for column in columns]
        assert sum(column.width for column in columns) <= (80 if columns is NARROW else 120) - 1
    assert "buy-in 20.00 - 100.00 EUR" in details(Listed(in_lobby()), LETTERS)[0]
    assert "2 waiting" in details(listed, SYMBOLS)[1]


def test_words_are_matched_here_and_expressions_by_the_room() -> None:
    assert matches(in_lobby(), "hold NO")
    assert not matches(in_lobby(), "omaha")
    assert not is_expression("hold no")
    assert is_expression('game = "holdem" OR micro')
    assert matches(in_lobby(), 'game = "omaha"'), "the room has chosen already"


def test_a_filter_is_an_expression_of_the_room() -> None:
    wanted = Wanted(
        "boulevard", "holdem", game_pb2.LIMIT_NO_LIMIT, EUR, 50, 200, free=2, turbo=False, heads_up=True, private=None
    )
    assert wanted.expression() == (
        'house = "boulevard" AND game = "holdem" AND limit = NO_LIMIT AND currency = EUR AND low_limit >= 50 '
        "AND low_limit <= 200 AND seats_free >= 2 AND NOT turbo AND heads_up"
    )
    assert is_expression(wanted.expression())
    assert Wanted().expression() == ""
    assert is_expression(Wanted(turbo=False).expression())


def test_the_list_has_an_order() -> None:
    tables = [in_lobby(average_pot=pot, waiting=1_000 - pot) for pot in (100, 900, 500)]
    by_words = {order.words: [table.average_pot for table in order.sorted(tables)] for order in ORDERS}
    assert by_words["largest pots"] == [900, 500, 100]
    assert by_words["shortest waiting list"] == [900, 500, 100]
    assert len(by_words["most players"]) == 3


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
