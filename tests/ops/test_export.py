"""Exports: names of any kind come back, what a viewer could not see is not there, what was interrupted goes on."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ops.logs import ORACLE_GAMES, ListSource, LoggedRoom, draws_without_a_bet, oracle_room, play_hands

from relance.api.events.v1 import events_pb2 as pb
from relance.ops.errors import NoAnswer
from relance.ops.export import ohh, phh, pokerstars
from relance.ops.export.record import HandRecord, records
from relance.ops.export.run import FORMATS, Order, export, jsonl
from relance.ops.names import Names
from relance.ops.output import Out

NAMES = {
    "p1": "Ann \"the 'fish'\" O'Neill",
    "p2": "[brackets] {and} <tags>: raises €5",
    "p3": "two\nlines\r\u2028three\x7f",
    "p4": "מלכת הפוקר",
    "p5": "🂡 Ünïcødé 👩‍🚀",
    "p6": "back\\slash \\u000a \\",
}


def from_phh(text: str) -> list[str]:
    return list(tomllib.loads(text)["players"])


def from_ohh(text: str) -> list[str]:
    return [player["name"] for player in json.loads(text)["ohh"]["players"]]


def from_pokerstars(text: str) -> list[str]:
    found = re.findall(r"^Seat \d+: (.*) \([^()]* in chips\)$", text, re.MULTILINE)
    return [pokerstars.name_of(name) for name in found]


def from_jsonl(text: str) -> list[str]:
    return list(json.loads(text)["players"].values())


FORMS: dict[str, tuple[Callable[[HandRecord], str], Callable[[str], list[str]]]] = {
    "phh": (phh.write, from_phh),
    "ohh": (ohh.write, from_ohh),
    "pokerstars": (pokerstars.write, from_pokerstars),
    "jsonl": (jsonl, from_jsonl),
}


def full_table(game: str = "nl-holdem") -> LoggedRoom:
    """Three hands of a game that were played at a table of many."""
    room = next(room for seed in range(50) if len((room := oracle_room(ORACLE_GAMES[game], seed)).table.seats) > 4)
    play_hands(room, 3, 1)
    return room


async def hands_of(room: LoggedRoom, who: str = "auditor") -> list[HandRecord]:
    return [hand async for hand in records(ListSource(room.appends), None, "t", who)]


@pytest.mark.parametrize("form", FORMS)
async def test_names_of_any_kind_survive(form: str) -> None:
    """PROTO-15: names with a format's own words and separators in them."""
    write, read = FORMS[form]
    for hand in await hands_of(full_table()):
        hand.names = Names(NAMES)
        expected = {NAMES.get(each.player, each.player) for each in hand.players}
        assert set(read(write(hand))) == expected


def hidden(room: LoggedRoom, player: str) -> dict[int, set[str]]:
    """Cards that a viewer was not shown, by hand: down cards of others that were never turned up."""
    found: dict[int, set[str]] = {}
    shown: dict[int, set[str]] = {}
    seats: dict[int, str] = {}
    for event in room.log:
        if event.HasField("hand_started"):
            seats = {each.seat: each.player for each in event.hand_started.players}
        if event.HasField("cards_dealt") and seats[event.cards_dealt.seat] != player:
            found.setdefault(event.hand, set()).update(cards_in(event.cards_dealt.down))
        elif event.HasField("cards_drawn") and seats[event.cards_drawn.seat] != player:
            found.setdefault(event.hand, set()).update(cards_in(event.cards_drawn.cards))
        for payload in (event.hand_shown.cards, event.board_dealt.cards):
            shown.setdefault(event.hand, set()).update(cards_in(payload))
        if event.HasField("cards_drawn") and seats[event.cards_drawn.seat] == player:
            shown.setdefault(event.hand, set()).update(cards_in(event.cards_drawn.cards))
    return {hand: cards - shown.get(hand, set()) for hand, cards in found.items()}


def cards_in(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(0, len(text), 2)}


CARD = re.compile(r"(?<![0-9A-Za-z])(?:[2-9TJQKA][cdhs])+(?![0-9A-Za-z])")


@pytest.mark.parametrize("who", ["public", "p2"])
@pytest.mark.parametrize("game", ["nl-holdem", "fl-stud7", "fl-td27"])
@pytest.mark.parametrize("form", FORMS)
async def test_what_a_viewer_could_not_see_is_not_in_their_export(form: str, game: str, who: str) -> None:
    room = full_table(game)
    secrets = hidden(room, who)
    assert any(secrets.values())
    for hand in await hands_of(room, who):
        text = FORMS[form][0](hand)
        written = {card for run in CARD.findall(text) for card in cards_in(run)}
        assert not written & secrets[hand.number], (written & secrets[hand.number], text)


async def test_an_auditor_sees_what_was_held() -> None:
    room = full_table()
    for hand in await hands_of(room):
        written = {card for run in CARD.findall(phh.write(hand)) for card in cards_in(run)}
        assert hidden(room, "nobody").get(hand.number, set()) <= written


@pytest.mark.parametrize("form", FORMATS)
async def test_an_export_goes_on_where_it_stopped(form: str, tmp_path: Path) -> None:
    room = full_table()
    ended = [number for number, append in enumerate(room.appends) if _ends(append)]
    order = Order(form, tmp_path / "some", "auditor")
    await export(ListSource(room.appends[: ended[1] + 1]), None, (), order, Out(as_json=True))
    file = order.out / f"t.{FORMATS[form].ending}"
    with file.open("a") as half:
        half.write("half a li")
    await export(ListSource(room.appends), None, (), order, Out(as_json=True))
    whole = Order(form, tmp_path / "whole", "auditor")
    await export(ListSource(room.appends), None, (), whole, Out(as_json=True))
    assert file.read_text() == (whole.out / file.name).read_text()


def _ends(append: list[pb.TableEvent]) -> bool:
    return any(event.HasField("hand_ended") for event in append)


async def test_another_export_is_not_mixed_in(tmp_path: Path) -> None:
    source = ListSource(full_table().appends)
    await export(source, None, (), Order("phh", tmp_path, "auditor"), Out(as_json=True))
    with pytest.raises(NoAnswer, match="another export"):
        await export(source, None, (), Order("phh", tmp_path, "public"), Out(as_json=True))


async def test_amounts_of_ohh_are_what_an_action_added() -> None:
    for hand in await hands_of(full_table()):
        told = json.loads(ohh.write(hand))["ohh"]
        put = sum(round(each.get("amount", 0) * 100) for row in told["rounds"] for each in row["actions"])
        back = sum(event.uncalled_returned.amount for event in hand.events if event.HasField("uncalled_returned"))
        assert put - back == sum(round(pot["amount"] * 100) for pot in told["pots"])
        assert hand.ended is not None
        assert sum(round(pot["rake"] * 100) for pot in told["pots"]) == hand.ended.rake


async def test_draws_that_follow_one_another_without_a_bet_are_streets_of_their_own() -> None:
    (hand,) = await hands_of(draws_without_a_bet())
    parts = re.split(r"^\*\*\* (.*) \*\*\*$", pokerstars.write(hand), flags=re.MULTILINE)
    headings, texts = parts[1::2], parts[2::2]
    assert headings[:5] == ["HOLE CARDS", "FIRST DRAW", "SECOND DRAW", "THIRD DRAW", "SHOW DOWN"]
    assert [text.count("discards 2 cards") for text in texts[:5]] == [0, 2, 2, 2, 0]
    rounds = json.loads(ohh.write(hand))["ohh"]["rounds"]
    assert [len([each for each in row["actions"] if each["action"] == "Dealt Cards"]) for row in rounds] == [
        2,
        2,
        2,
        2,
        0,
    ]
