"""Rows of a form: keys in, values out, and what is wrong with them."""

from __future__ import annotations

import pytest

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import waiting_pb2
from relance.play.glyphs import SYMBOLS
from relance.play.rows import Amount, Choice, Line, Row, switch
from relance.play.waiting import Offered, ordinal, places_text

EUR = game_pb2.CURRENCY_EUR


def value(row: Row) -> object:
    return row.value


def typed(row: Amount | Line, text: str) -> None:
    for letter in text:
        row.press({" ": "space"}.get(letter, letter), letter)


def test_a_choice_goes_round() -> None:
    row = Choice("seat", "Seat", [("any", 0), ("3", 3)])
    assert value(row) == 0
    assert row.press("left", "")
    assert value(row) == 3
    assert row.press("space", " ")
    assert value(row) == 0
    assert not row.press("x", "x")
    assert switch("wait", "Wait", on=True).value is True


def test_an_amount_is_typed_or_moved_and_kept_within_its_bounds() -> None:
    row = Amount("buy", "Chips", EUR, 2_000, 10_000, 10_000, step=500)
    assert value(row) == 10_000
    row.press("left", "")
    assert value(row) == 9_500
    row.press("m", "m")
    assert value(row) == 2_000
    typed(row, "45,5")
    assert value(row) == 4_550
    row.press("backspace", "")
    row.press("backspace", "")
    typed(row, "00")
    with pytest.raises(ValueError, match=r"Chips: 20\.00 – 100\.00 would be accepted"):
        _ = row.value
    row.press("x", "x")
    assert value(row) == 10_000


def test_an_empty_amount_is_what_it_says() -> None:
    row = Amount("fill", "Fill", EUR, 100, empty=0, nothing="no")
    assert (value(row), row.shown(chosen=False, glyphs=SYMBOLS).plain) == (0, "no")
    with pytest.raises(ValueError, match="no amount"):
        _ = Amount("buy", "Chips", EUR).value


def test_a_secret_is_not_shown_and_no_longer_than_it_may_be() -> None:
    row = Line("password", "Password", most=4, secret=True, needed=True)
    with pytest.raises(ValueError, match="something must be typed"):
        _ = row.value
    typed(row, "ab cd")
    assert (value(row), row.shown(chosen=True, glyphs=SYMBOLS).plain) == ("ab c", "****_")
    row.press("ctrl+u", "")
    assert row.text == ""


def test_an_offer_counts_down_by_this_machines_clock() -> None:
    offered = Offered()
    offered.where = "Blue room"
    offer = waiting_pb2.Offer(name="offers/1", state=waiting_pb2.OFFER_STATE_OPEN, remaining_ms=30_000)
    assert offered.see(offer, now=100.0) == ""
    assert offered.text(106.0) == "24 s  A seat at Blue room is yours: ^y take it  ^n leave it"
    offer.state, offer.remaining_ms = waiting_pb2.OFFER_STATE_ACCEPTED, 60_000
    offered.see(offer, now=110.0)
    assert offered.text(111.0) == "59 s  Your seat at Blue room is held: ^y buy in  ^n give it up"
    offer.state = waiting_pb2.OFFER_STATE_EXPIRED
    assert "went to the next" in offered.see(offer, now=170.0)
    assert offered.text(170.0) == ""


def test_places_are_told_with_their_position() -> None:
    kind = waiting_pb2.TableKind(game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, currency=EUR, low_limit=100)
    waits = [waiting_pb2.Wait(table="tables/t1", position=2), waiting_pb2.Wait(kind=kind, position=1)]
    assert places_text(waits, {"tables/t1": "Blue room"}, SYMBOLS) == (
        "2nd at Blue room, 1st for any Hold'em no limit 1.00 €"
    )
    assert [ordinal(place) for place in (1, 2, 3, 4, 11, 22)] == ["1st", "2nd", "3rd", "4th", "11th", "22nd"]
