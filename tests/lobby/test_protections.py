"""Protections against disconnection (C2), over the whole room."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import grpc
import pytest

from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.lobby import projection

from .conftest import Keys, Lobby, LobbyFactory, Story

DAY = 24 * 3600 * 1_000_000


async def use(lobby: Lobby, table: str, hand: int, seat: int = 1, player: str = "ann") -> tuple[bool, int]:
    request = lobby_pb2.UseProtectionRequest(
        table=f"tables/{table}", hand=hand, seat=seat, player=f"players/{player}", limit=2
    )
    answer = await lobby.protections.UseProtection(request, metadata=lobby.keys.table())
    return answer.granted, answer.left


async def test_C2_two_in_24_hours_over_all_tables_and_none_more(start: LobbyFactory) -> None:
    replicas = [await start(), await start()]
    answers = await asyncio.gather(*(use(replicas[i % 2], f"t{i}", 1) for i in range(10)))
    assert sorted(answers, reverse=True) == [(True, 1), (True, 0), *[(False, 0)] * 8]
    assert await use(replicas[0], "t1", 1, player="bob", seat=2) == (True, 1)


async def test_C2_the_same_hand_and_seat_has_the_same_answer(lobby: Lobby) -> None:
    assert await use(lobby, "t1", 1) == (True, 1)
    assert await use(lobby, "t1", 1) == (True, 1)
    assert await use(lobby, "t1", 2) == (True, 0)
    assert await use(lobby, "t1", 3) == (False, 0)
    assert await use(lobby, "t1", 3) == (False, 0)


async def test_C2_a_protection_counts_for_24_hours(lobby: Lobby, database_url: str) -> None:
    await use(lobby, "t1", 1)
    await use(lobby, "t1", 2)
    owner = await asyncpg.connect(database_url)
    await owner.execute("UPDATE lobby.protection SET at = at - $1 WHERE hand = 1", DAY)
    await owner.close()
    assert await use(lobby, "t1", 3) == (True, 0)


async def test_C2_what_the_table_granted_without_an_answer_is_booked_from_its_events_and_C3_a_void_hand_gives_it_back(
    lobby: Lobby, database_url: str
) -> None:
    story = Story("t1", time.time_ns() // 1000).sit(1).play(0, ended=False)
    story.add(protection_used=events_pb2.ProtectionUsed(seat=1, player="ann"))
    owner = await asyncpg.connect(database_url)
    async with owner.transaction():
        await projection.apply(owner, story.take())
    assert await use(lobby, "t1", 1) == (True, 1)
    assert await use(lobby, "t2", 1) == (True, 0)
    story.add(hand_voided=events_pb2.HandVoided(reason=events_pb2.VOID_REASON_CRASH))
    async with owner.transaction():
        await projection.apply(owner, story.take())
    await owner.close()
    assert await use(lobby, "t3", 1) == (True, 0)


async def test_C2_what_was_granted_and_not_needed_is_given_back_when_the_hand_ends(
    lobby: Lobby, database_url: str
) -> None:
    story = Story("t1", time.time_ns() // 1000).sit(1, 2).play(0, ended=False)
    assert await use(lobby, "t1", 1, seat=1) == (True, 1)
    assert await use(lobby, "t1", 1, seat=2, player="bob") == (True, 1)
    story.add(protection_used=events_pb2.ProtectionUsed(seat=2, player="bob"))
    story.add(hand_ended=events_pb2.HandEnded(pot=10))
    owner = await asyncpg.connect(database_url)
    async with owner.transaction():
        await projection.apply(owner, story.take())
    await owner.close()
    assert await use(lobby, "t2", 1) == (True, 1)
    assert await use(lobby, "t2", 1, seat=2, player="bob") == (True, 0)


async def test_protections_are_for_services_alone(lobby: Lobby, keys: Keys) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await lobby.protections.UseProtection(lobby_pb2.UseProtectionRequest(), metadata=keys.player())
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
