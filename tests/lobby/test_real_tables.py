"""The lobby with a real table process and wallet: seats are held, invitations let in, houses rest, templates open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Keys, Room, bearer, beside, open_request, refusal

import relance.client
from relance.api.lobby.v1 import (
    houses_pb2,
    houses_pb2_grpc,
    lobby_pb2,
    private_pb2,
    private_pb2_grpc,
    templates_pb2,
    templates_pb2_grpc,
    waiting_pb2,
    waiting_pb2_grpc,
)
from relance.api.table.v1 import table_pb2
from relance.lobby.serve import started
from relance.lobby.settings import LobbySettings
from relance.room.embedded import Nats
from relance.runtime.clock import SystemClock
from relance.runtime.errors import Refused, reason_name
from relance.table.process import Process
from relance.wallet.serve import started as wallet_started
from relance.wallet.settings import WalletSettings

from .running import TICK, until


class Whole:
    """A room of real services, and what one asks it."""

    def __init__(self, room: Room, process: Process, lobby: str) -> None:
        self.room, self.process, self.lobby = room, process, lobby
        channel = room.channel(lobby)
        self.waiting = waiting_pb2_grpc.WaitingServiceStub(channel)
        self.private = private_pb2_grpc.PrivateTableServiceStub(channel)
        self.houses = houses_pb2_grpc.HouseServiceStub(channel)
        self.templates = templates_pb2_grpc.TemplateServiceStub(channel)
        self.floor = bearer(room.keys.operator("floor"))

    def player(self, player: str) -> tuple[tuple[str, str], ...]:
        return bearer(self.room.keys.player(player))

    async def sit(self, table: str, player: str, buy_in: int = 1000, invitation: str = "") -> None:
        """Take a seat, wherever there is one for the player, and be there."""
        await self.room.deposit(player, buy_in)
        request = table_pb2.TakeSeatRequest(
            table=f"tables/{table}", request_id=f"sit-{player}", buy_in=buy_in, invitation=invitation
        )
        await self.room.tables(self.process).TakeSeat(request, metadata=self.player(player))
        await until(self.holds(lambda: self.seat_of(table, player) > 0))

    def seat_of(self, table: str, player: str) -> int:
        seat = self.process.tables.actors[table].table.seat_of(player)
        return 0 if seat is None or seat.reserved else seat.number

    def holds(self, condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            return condition()

        return asked


@pytest_asyncio.fixture
async def whole(migrated: Migrated, nats_server: Nats, tmp_path: Path) -> AsyncIterator[Whole]:
    """Wallet, one table process, one lobby, on a database of their own."""
    database_url = await migrated("relance.eventlog", "relance.table", "relance.wallet", "relance.lobby")
    keys = Keys(tmp_path)
    settings = WalletSettings(
        database_url=SecretStr(database_url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
        signing_key=keys.service_key,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        wallet = await beside(stack, wallet_started(settings))
        room = Room(stack, keys, database_url, nats_server.url, wallet)
        process = await room.start()
        lobby = LobbySettings(
            database_url=SecretStr(database_url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
            signing_key=keys.service_key, player_signing_key=keys.lobby_key, table_addresses=(process.address,),
            wallet_address=wallet, tick_seconds=TICK,
        )  # fmt: skip
        address = await beside(stack, started(lobby, SystemClock()))
        yield Whole(room, process, address)


async def refused(call: Awaitable[object]) -> str:
    found: Refused = await refusal(call)
    return reason_name(found.reason)


async def test_an_offered_seat_is_held_at_the_table_for_its_player_alone(whole: Whole) -> None:
    table = await whole.room.open(whole.process, seats=2, request_id="held")
    await whole.sit(table, "ann")
    await whole.sit(table, "bob")
    name = f"tables/{table}"
    tables = whole.room.tables(whole.process)

    async def joined() -> bool:
        try:
            request = waiting_pb2.JoinWaitlistRequest(table=name)
            return bool(await whole.waiting.JoinWaitlist(request, metadata=whole.player("cid")))
        except grpc.aio.AioRpcError:
            return False  # the lobby has not followed the table yet

    await until(joined)
    leave = table_pb2.LeaveSeatRequest(table=name, request_id="leave")
    await tables.LeaveSeat(leave, metadata=whole.player("bob"))
    found: list[waiting_pb2.Offer] = []

    async def offered() -> bool:
        answer = await whole.waiting.ListOffers(waiting_pb2.ListOffersRequest(), metadata=whole.player("cid"))
        found[:] = answer.offers
        return bool(found)

    await until(offered)
    take = table_pb2.TakeSeatRequest(table=name, request_id="take", buy_in=1000)
    assert await refused(tables.TakeSeat(take, metadata=whole.player("dan"))) == "SEAT_TAKEN"
    accepted = await whole.waiting.AcceptOffer(
        waiting_pb2.AcceptOfferRequest(offer=found[0].name), metadata=whole.player("cid")
    )
    assert accepted.seat == 2
    await whole.sit(table, "cid")
    assert whole.seat_of(table, "cid") == 2

    async def over() -> bool:
        return await offered() is False

    await until(over)


async def test_an_invitation_lets_in_at_a_private_table_and_nothing_else_does(whole: Whole) -> None:
    wanted = open_request(request_id="")
    request = private_pb2.OpenPrivateTableRequest(request_id="r-1", table=wanted, password="swordfish")
    opened = await whole.private.OpenPrivateTable(request, metadata=whole.player("ann"))
    table = opened.table.removeprefix("tables/")
    take = table_pb2.TakeSeatRequest(table=opened.table, request_id="take", buy_in=1000)
    tables = whole.room.tables(whole.process)
    assert await refused(tables.TakeSeat(take, metadata=whole.player("bob"))) == "NOT_INVITED"
    ask = private_pb2.GetInvitationRequest(table=opened.table, password="swordfish")
    answer = await whole.private.GetInvitation(ask, metadata=whole.player("bob"))
    take.invitation = answer.invitation
    assert await refused(tables.TakeSeat(take, metadata=whole.player("eve"))) == "NOT_INVITED"
    await whole.sit(table, "bob", invitation=answer.invitation)


async def test_a_house_in_maintenance_plays_no_hands_and_a_template_opens_its_table_after_it(whole: Whole) -> None:
    table = await whole.room.open(whole.process, request_id="resting")

    begin = houses_pb2.BeginMaintenanceRequest(house="houses/boulevard", reason="new chairs")
    await whole.houses.BeginMaintenance(begin, metadata=whole.floor)
    await until(whole.holds(lambda: whole.process.tables.actors[table].table.paused))
    create = templates_pb2.CreateTemplateRequest(table=open_request(request_id="", seats=3), min_open=1)
    template = await whole.templates.CreateTemplate(create, metadata=whole.floor)
    await whole.houses.EndMaintenance(houses_pb2.EndMaintenanceRequest(house="houses/boulevard"), metadata=whole.floor)
    await until(whole.holds(lambda: not whole.process.tables.actors[table].table.paused))
    await until(whole.holds(lambda: len(whole.process.tables.actors) == 2))
    stop = templates_pb2.UpdateTemplateRequest(template=template.name, stopped=True)
    await whole.templates.UpdateTemplate(stop, metadata=whole.floor)
    await until(whole.holds(lambda: len(whole.process.tables.actors) == 1))


async def test_a_client_waits_watches_and_sits_down_through_the_lobbys_address(whole: Whole) -> None:
    floor = relance.client.connect(whole.lobby, patience=10).operator(whole.room.keys.operator("floor"))
    await floor.house_keeping.seed_templates("salon")
    (template,) = [each for each in await floor.house_keeping.templates("salon") if each.table.seats == 6]
    assert not (await floor.house_keeping.houses())[0].maintenance
    async with relance.client.connect(whole.lobby, patience=10) as eve, relance.client.connect(whole.lobby) as dan:
        for room, name in ((eve, "Eve"), (dan, "Dan")):
            await room.register(name, "correct horse")
            await room.sign_in(name, "correct horse")
        await eve.change_password("correct horse", "battery staple")
        watch = eve.watch_tables("seats = 6")
        tables: dict[str, lobby_pb2.Table] = {}
        while not tables:
            tables = await anext(watch)
        (table,) = tables.values()
        assert table.config.house == "salon"
        wait = await eve.waitlist.join_any(table.config, any_seats=False)
        offers = eve.waitlist.watch()
        offer = await anext(offers)
        assert (offer.table, offer.wait) == (table.name, wait.name)
        assert [each.name for each in await eve.waitlist.offers()] == [offer.name]
        accepted = await eve.waitlist.accept(offer)
        assert (await anext(offers)).state == accepted.state == waiting_pb2.OFFER_STATE_ACCEPTED
        assert await eve.waitlist.waits() == []
        await whole.room.deposit(eve.player, 50_000)
        async with dan.watch(table) as seen, eve.play(table) as seat:
            assert seen.view.seats[offer.seat - 1].reserved
            assert await seat.sit(table.config.min_buy_in) == offer.seat
        assert (await anext(offers)).state == waiting_pb2.OFFER_STATE_TAKEN
        wanted = table_pb2.OpenTableRequest()
        wanted.CopyFrom(template.table)
        private = await dan.private.open(wanted, "swordfish")
        await dan.private.invite(private, [eve.player])
        assert [invite.table for invite in await eve.private.invites()] == [private]
        await whole.room.deposit(dan.player, 50_000)
        async with dan.play(private) as seat:
            assert await seat.sit(10_000, invitation=await dan.private.invitation(private))
        with pytest.raises(relance.client.RelanceError, match="NOT_YOURS"):
            await eve.private.set_password(private, "")
        await watch.aclose()
        await offers.aclose()
