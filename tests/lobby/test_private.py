"""Private tables: hosts, passwords, invites, and invitations that hold for one player at one table."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest_asyncio

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import houses_pb2, houses_pb2_grpc, private_pb2, private_pb2_grpc, waiting_pb2
from relance.api.table.v1 import table_pb2
from relance.room.embedded import Nats
from relance.runtime.auth import KeyRing
from relance.runtime.invitations import is_invited

from .conftest import Keys, LobbyFactory, Metadata
from .running import Room, refusal, running_tables


@pytest_asyncio.fixture
async def room(start: LobbyFactory, keys: Keys, nats_server: Nats) -> AsyncIterator[Room]:
    async with running_tables(keys, nats_server.url) as tables:
        made = Room(start, tables, nats_server.url, keys)
        await made.replica()
        yield made


class Friends:
    """What players and operators do about private tables."""

    def __init__(self, room: Room) -> None:
        self.stub = private_pb2_grpc.PrivateTableServiceStub(room.lobby.channel)
        self.room = room

    async def open(self, player: str = "ann", request_id: str = "r-1", password: str = "") -> str:
        table = table_pb2.OpenTableRequest(
            house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, currency=game_pb2.CURRENCY_EUR,
            stakes=game_pb2.Stakes(blinds=[1, 2]),
        )  # fmt: skip
        request = private_pb2.OpenPrivateTableRequest(request_id=request_id, table=table, password=password)
        opened = await self.stub.OpenPrivateTable(request, metadata=self.room.player(player))
        await self.room.followed(opened.table.removeprefix("tables/"))
        return opened.table

    async def invitation(self, player: str, table: str, password: str = "") -> str:
        request = private_pb2.GetInvitationRequest(table=table, password=password)
        answer = await self.stub.GetInvitation(request, metadata=self.room.player(player))
        assert answer.expire_time_us > time.time_ns() // 1000
        return answer.invitation

    async def invite(self, table: str, *players: str, by: Metadata) -> None:
        names = [f"players/{player}" for player in players]
        await self.stub.InvitePlayers(private_pb2.InvitePlayersRequest(table=table, players=names), metadata=by)

    async def invites(self, by: Metadata, table: str = "") -> list[tuple[str, str]]:
        answer = await self.stub.ListInvites(private_pb2.ListInvitesRequest(table=table), metadata=by)
        return [(invite.table, invite.player) for invite in answer.invites]


async def test_who_knows_the_password_or_is_invited_or_is_the_host_gets_an_invitation(room: Room, keys: Keys) -> None:
    friends = Friends(room)
    table = await friends.open(password="swordfish")
    assert room.tables.states[table.removeprefix("tables/")].config.private  # type: ignore[union-attr]
    await friends.invite(table, "bob", by=room.player("ann"))
    ring, now, short = KeyRing(keys.ring), time.time_ns() // 1000, table.removeprefix("tables/")
    for player, password in (("ann", ""), ("bob", ""), ("cid", "swordfish")):
        invitation = await friends.invitation(player, table, password)
        assert is_invited(ring, invitation, player, short, now_us=now)
        assert not is_invited(ring, invitation, "eve", short, now_us=now)
        assert not is_invited(ring, invitation, player, "other", now_us=now)
        assert not is_invited(ring, invitation, player, short, now_us=now + 3_600_000_000)
        token = (("authorization", f"Bearer {invitation}"),)
        assert (await refusal(friends.invites(token)))[0] == "TOKEN_INVALID"  # it is no token
    assert not is_invited(ring, "", "eve", short, now_us=now)
    assert not is_invited(ring, keys.player("eve")[0][1].removeprefix("Bearer "), "eve", short, now_us=now)
    assert (await refusal(friends.invitation("eve", table)))[0] == "NOT_INVITED"
    assert (await refusal(friends.invitation("eve", table, "guess")))[0] == "TABLE_PASSWORD_WRONG"


async def test_guessing_a_tables_password_is_slow(room: Room) -> None:
    friends = Friends(room)
    table = await friends.open(password="swordfish")
    reasons = [(await refusal(friends.invitation("eve", table, f"guess {i}")))[0] for i in range(6)]
    assert reasons == ["TABLE_PASSWORD_WRONG"] * 5 + ["TOO_MANY_REQUESTS"]
    assert await friends.invitation("cid", table, "swordfish")


async def test_the_host_and_operators_say_who_may_come(room: Room, keys: Keys) -> None:
    friends = Friends(room)
    table = await friends.open()
    ann, eve, floor = room.player("ann"), room.player("eve"), keys.operator("floor")
    assert (await refusal(friends.invitation("bob", table, "any")))[0] == "TABLE_PASSWORD_WRONG"  # it has none
    await friends.invite(table, "bob", "cid", by=ann)
    await friends.invite(table, "cid", "dan", by=floor)
    assert {player for _, player in await friends.invites(ann, table)} == {"players/bob", "players/cid", "players/dan"}
    assert await friends.invites(room.player("dan")) == [(table, "players/dan")]
    uninvite = private_pb2.UninvitePlayersRequest(table=table, players=["players/bob"])
    await friends.stub.UninvitePlayers(uninvite, metadata=ann)
    assert (await refusal(friends.invitation("bob", table)))[0] == "NOT_INVITED"
    password = private_pb2.SetTablePasswordRequest(table=table, password="open")
    await friends.stub.SetTablePassword(password, metadata=floor)
    assert await friends.invitation("bob", table, "open")
    password.password = ""
    await friends.stub.SetTablePassword(password, metadata=ann)
    assert (await refusal(friends.invitation("bob", table, "open")))[0] == "TABLE_PASSWORD_WRONG"
    for call in (
        friends.stub.SetTablePassword(password, metadata=eve),
        friends.stub.UninvitePlayers(uninvite, metadata=eve),
        friends.invite(table, "eve", by=eve),
        friends.invites(eve, table),
    ):
        assert (await refusal(call))[0] == "NOT_YOURS"
    await room.tables.open("public")
    await room.followed("public")
    assert (await refusal(friends.invite("tables/public", "bob", by=floor)))[0] == "FIELD_INVALID"
    assert (await refusal(friends.invitation("bob", "tables/none")))[0] == "TABLE_NOT_FOUND"


async def test_a_house_in_maintenance_opens_no_private_table_but_answers_a_repeat(room: Room, keys: Keys) -> None:
    friends, floor = Friends(room), keys.operator("floor")
    houses = houses_pb2_grpc.HouseServiceStub(room.lobby.channel)
    table = await friends.open()
    begin = houses_pb2.BeginMaintenanceRequest(house="houses/boulevard", reason="new chairs")
    await houses.BeginMaintenance(begin, metadata=floor)
    reason, metadata = await refusal(friends.open(request_id="r-2"))
    assert (reason, metadata["house"]) == ("MAINTENANCE", "houses/boulevard")
    assert await friends.open() == table
    await houses.EndMaintenance(houses_pb2.EndMaintenanceRequest(house="houses/boulevard"), metadata=floor)
    assert await friends.open(request_id="r-2") != table


async def test_a_repeat_opens_one_table_and_nobody_opens_too_many(room: Room) -> None:
    friends = Friends(room)
    tables = [await friends.open(request_id=f"r-{i}") for i in range(5)]
    assert len(set(tables)) == 5
    assert await friends.open(request_id="r-4") == tables[4]
    assert await refusal(friends.open(request_id="r-5")) == ("LIMIT_REACHED", {"limit": "5"})
    assert await friends.open(player="bob") not in tables


async def test_only_who_may_sit_waits_for_a_private_table(room: Room) -> None:
    friends = Friends(room)
    table = await friends.open()
    await friends.invite(table, "bob", by=room.player("ann"))
    request = waiting_pb2.JoinWaitlistRequest(table=table)
    assert (await refusal(room.waiting.JoinWaitlist(request, metadata=room.player("eve"))))[0] == "NOT_INVITED"
    await room.waiting.JoinWaitlist(request, metadata=room.player("bob"))
    assert (await room.offered("bob")).table == table
