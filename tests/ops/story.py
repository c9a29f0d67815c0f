"""The table of the operators' page: a hand that is paid, and one that a crash ends."""

from __future__ import annotations

import asyncpg
from tests.ops.logs import LoggedRoom
from tests.poker import playing
from tests.poker.playing import CALL, CHECK, FOLD, RAISE

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.eventlog import PostgresLog
from relance.poker import commands as cmd
from relance.poker.cards import parse
from relance.poker.deck import ScriptedDeck
from relance.poker.houses import load
from relance.poker.rake import schedule_for

BOULEVARD = schedule_for(load("boulevard"), game_pb2.LIMIT_NO_LIMIT, 100, game_pb2.CURRENCY_EUR)
NAMES = {"p1": "Ada", "p2": "Bruno", "p3": "Carla"}
BEGIN = 1_780_000_000_000_000


def told() -> LoggedRoom:
    """The table `t`, its three players, two hands, a crash, and a ruling."""
    room = LoggedRoom(playing.config(seats=6), BOULEVARD)
    room.appends[0][0].time_us = room.at = BEGIN
    room.do(cmd.TakeOver(1, "table-a", pb.OWNER_REASON_OPENED))
    for seat in NAMES:
        room.sit(int(seat[1]), 10_000)
    room.at += 5_000_000
    room.start(ScriptedDeck(parse("Ah Kd 7c As Kh 2d Ks 9h 4c Jd 3s")))
    for kind, amount in ((RAISE, 300), (FOLD, 0), (CALL, 0), (CHECK, 0), (playing.BET, 500), (CALL, 0)):
        room.at += 2_000_000
        room.act(room.asked().seat, kind, amount)
    room.passive()
    room.at += 5_000_000
    room.start(ScriptedDeck(parse("Qc Qd 8s 8h Ac Jc")))
    room.at += 3_000_000
    room.act(room.asked().seat, RAISE, 400)
    room.at += 8_000_000
    room.do(cmd.TakeOver(2, "table-b", pb.OWNER_REASON_CRASH))
    room.at += 1_000_000
    for transfer in list(room.table.transfers.values())[:2]:
        room.do(cmd.TransferAnswered(transfer.id, settled=True))
    room.do(cmd.RecordRuling("ann", 2, "Void after the crash: house rule C3."))
    return room


async def write(url: str) -> None:
    """Put the table into the log, and the names into the lobby."""
    room = told()
    async with PostgresLog(url, "table-b") as log:
        owned = await log.create("t", room.appends[0])
        head = owned.head
        for append in room.appends[1:]:
            head = await log.append("t", head, owned.fence, append)
    owner = await asyncpg.connect(url)
    for player, name in NAMES.items():
        await owner.execute(
            "INSERT INTO lobby.player (id, display_name, folded_name, password, request_id, created_at)"
            " VALUES ($1, $2, $2, 'x', $1, 1)",
            player,
            name,
        )
    await owner.close()
