"""What is told of bots: what they complained of, and whom they are connected to."""

from __future__ import annotations

import json
from pathlib import Path

from relance.api.events.v1 import events_pb2
from relance.cluster.clients import PROGRAMS, Clients
from relance.cluster.record import not_refunded
from relance.room.hands import Stake, VoidedHand


def entry(event: str, **more: str) -> str:
    """A line of a log."""
    return json.dumps({"event": event, **more}) + "\n"


def test_complaints_are_counted_once_each_by_reason_and_a_program_that_died_is_one(tmp_path: Path) -> None:
    clients = Clients(tmp_path, "127.0.0.1:1", 10, "fast", 1)
    log = tmp_path / "clients-1.log"
    log.write_text(entry("bot_refused", reason="DEADLINE", message="late") * 2 + "noise\n" + entry("other"))
    with log.open("a") as half:
        half.write('{"event": "bot_re')
    found = clients.complaints()
    assert found.reasons == {"DEADLINE": 2, "PROGRAM_DIED": PROGRAMS}
    with log.open("a") as rest:
        rest.write('fused", "reason": "UNAVAILABLE"}\n')
    assert clients.complaints().reasons == {"UNAVAILABLE": 1, "PROGRAM_DIED": PROGRAMS}


def test_bots_of_all_programs_have_names_of_their_own(tmp_path: Path) -> None:
    Clients(tmp_path, "127.0.0.1:1", 10, "fast", 1)
    rows = [row for file in tmp_path.glob("clients-*/bots.json") for row in json.loads(file.read_text())]
    assert len({row["name"] for row in rows}) == len(rows) == 10


def test_a_voided_hand_that_gave_back_less_is_found_to_the_cent() -> None:
    stakes = {1: Stake(1, "ann", 500, 100), 2: Stake(2, "bob", 300, 50)}
    refunds = {1: events_pb2.Refund(seat=1, amount=100, stack=500), 2: events_pb2.Refund(seat=2, amount=49, stack=299)}
    hand = VoidedHand("t", 7, events_pb2.VOID_REASON_CRASH, stakes, refunds)
    assert not_refunded(hand) == [
        "table t, hand 7, seat 2: 50 put in and 49 refunded, a stack of 300 before and 299 after"
    ]
