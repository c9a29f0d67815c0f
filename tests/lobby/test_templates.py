"""Templates: of each kind one table with a free seat, no more empty ones than wanted, whatever dies on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest_asyncio

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.lobby.v1 import houses_pb2, houses_pb2_grpc, templates_pb2, templates_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.poker.houses import load
from relance.room.embedded import Nats
from relance.runtime.errors import Refused

from .conftest import Keys, LobbyFactory
from .running import Room, refusal, running_tables, until


@pytest_asyncio.fixture
async def room(start: LobbyFactory, keys: Keys, nats_server: Nats) -> AsyncIterator[Room]:
    """A lobby that closes surplus at once."""
    async with running_tables(keys, nats_server.url) as tables:
        made = Room(start, tables, nats_server.url, keys)
        await made.replica(empty_seconds=0)
        yield made


def wanted(**fields: object) -> table_pb2.OpenTableRequest:
    """Heads-up no-limit hold'em 1/2."""
    request = table_pb2.OpenTableRequest(
        house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, currency=game_pb2.CURRENCY_EUR, seats=2,
        display_name="Duel",
    )  # fmt: skip
    fields.setdefault("stakes", game_pb2.Stakes(blinds=[1, 2]))
    request.MergeFrom(table_pb2.OpenTableRequest(**fields))  # type: ignore[arg-type]
    return request


class Office:
    """The operators' end of a room."""

    def __init__(self, room: Room) -> None:
        self.templates = templates_pb2_grpc.TemplateServiceStub(room.lobby.channel)
        self.houses = houses_pb2_grpc.HouseServiceStub(room.lobby.channel)
        self.floor = room.keys.operator("floor")

    async def create(self, min_open: int = 1, max_open: int = 0, **fields: object) -> templates_pb2.Template:
        request = templates_pb2.CreateTemplateRequest(table=wanted(**fields), min_open=min_open, max_open=max_open)
        return await self.templates.CreateTemplate(request, metadata=self.floor)

    async def list(self) -> list[templates_pb2.Template]:
        answer = await self.templates.ListTemplates(templates_pb2.ListTemplatesRequest(), metadata=self.floor)
        return list(answer.templates)

    async def update(self, template: str, **fields: object) -> templates_pb2.Template:
        request = templates_pb2.UpdateTemplateRequest(template=template, **fields)  # type: ignore[arg-type]
        return await self.templates.UpdateTemplate(request, metadata=self.floor)


def open_tables(room: Room) -> list[str]:
    return sorted(table for table, state in room.tables.states.items() if not state.closed)


async def has_open(room: Room, count: int) -> None:
    """Return once so many tables are open."""

    async def there() -> bool:
        return len(open_tables(room)) == count

    await until(there)


async def keep(office: Office, counts: list[int]) -> None:
    """Return once the templates say that they keep so many tables open, each."""

    async def so_many() -> bool:
        return [len(template.tables) for template in await office.list()] == counts

    await until(so_many)


async def test_a_houses_preset_becomes_templates_once_and_each_gets_its_table(room: Room) -> None:
    office = Office(room)
    request = templates_pb2.SeedTemplatesRequest(house="comptoir")
    seeded = (await office.templates.SeedTemplates(request, metadata=office.floor)).templates
    assert len(seeded) == len(load("comptoir").tables)
    again = (await office.templates.SeedTemplates(request, metadata=office.floor)).templates
    assert [template.name for template in again] == [template.name for template in seeded]
    await has_open(room, len(seeded))
    await room.followed(*room.tables.states)
    found = (await room.lobby.tables(page_size=500)).tables
    games = sorted(table.config.game for table in found)
    assert games == sorted(table.game for table in load("comptoir").tables)


async def test_one_table_has_a_free_seat_and_surplus_that_is_empty_is_closed(room: Room) -> None:
    office = Office(room)
    template = await office.create(max_open=3)
    await has_open(room, 1)
    (first,) = open_tables(room)
    assert room.tables.states[first].config.display_name == "Duel 1"  # type: ignore[union-attr]
    await room.tables.sit(first, "ann", "bob")
    await has_open(room, 2)
    (second,) = set(open_tables(room)) - {first}
    await room.tables.sit(second, "cid", "dan")
    await has_open(room, 3)
    (third,) = set(open_tables(room)) - {first, second}
    await room.tables.sit(third, "eve", "fay")
    await room.followed(first, second, third)
    await keep(office, [3])  # as many as there may be
    assert [listed.name for listed in await office.list()] == [template.name]
    for player in ("ann", "bob"):
        await room.tables.leave(first, player)
    for player in ("cid", "dan"):
        await room.tables.leave(second, player)
    await has_open(room, 2)
    assert set(open_tables(room)) == {first, third}  # the older one stays
    await room.tables.leave(third, "eve")
    await has_open(room, 1)


async def test_replicas_together_open_one_table_of_each_kind(room: Room) -> None:
    await room.replica(empty_seconds=0)
    await room.replica(empty_seconds=0)
    office = Office(room)
    for big in (1, 2, 3, 4):
        await office.create(stakes=game_pb2.Stakes(blinds=[big]), display_name=f"of {big}", seats=2)
    await has_open(room, 4)
    for table in open_tables(room):
        await room.tables.sit(table, f"{table}-a"[-20:], f"{table}-b"[-20:])
    await has_open(room, 8)
    await keep(office, [2, 2, 2, 2])
    assert len(room.tables.states) == 8


async def test_a_lobby_that_dies_between_asking_and_writing_opens_no_second_table(
    room: Room, database_url: str
) -> None:
    office = Office(room)
    template = await office.create()
    await has_open(room, 1)
    owner = await asyncpg.connect(database_url)

    async def known() -> bool:
        return bool(await owner.fetchval('SELECT "table" IS NOT NULL FROM lobby.template_table'))

    await until(known)
    await owner.execute('UPDATE lobby.template_table SET "table" = NULL')  # as if the answer had not been written
    await until(known)
    assert len(room.tables.states) == 1
    assert room.tables.asked.count(f"template-{template.name.removeprefix('templates/')}-1") >= 2
    await owner.close()


async def test_tables_of_the_same_kind_that_others_opened_serve_as_well(room: Room) -> None:
    await room.tables.open("theirs", seats=2)
    await room.followed("theirs")
    office = Office(room)
    await office.create()
    await office.create(stakes=game_pb2.Stakes(blinds=[2, 4]), display_name="other")
    await has_open(room, 2)
    await keep(office, [0, 1])
    await room.tables.sit("theirs", "ann", "bob")
    await has_open(room, 3)


async def test_a_stopped_template_closes_its_tables_when_they_are_empty_and_a_deleted_one_is_gone(room: Room) -> None:
    office = Office(room)
    template = await office.create(min_open=2)
    await has_open(room, 2)
    first, second = open_tables(room)
    await room.tables.sit(first, "ann")
    await room.followed(first)
    assert (await office.update(template.name, stopped=True)).stopped
    await has_open(room, 1)
    assert open_tables(room) == [first]
    request = templates_pb2.DeleteTemplateRequest(template=template.name)
    await office.templates.DeleteTemplate(request, metadata=office.floor)
    assert await office.list() == []
    assert (await refusal(office.update(template.name, max_open=3)))[0] == "TEMPLATE_NOT_FOUND"
    await room.tables.leave(first, "ann")
    await has_open(room, 0)
    again = await office.create()
    await has_open(room, 1)
    assert not again.stopped
    assert second != open_tables(room)[0]


async def test_fewer_tables_are_kept_when_fewer_are_wanted(room: Room) -> None:
    office = Office(room)
    template = await office.create(min_open=2)
    await has_open(room, 2)
    assert (await office.update(template.name, min_open=1)).min_open == 1
    await has_open(room, 1)


async def test_what_no_house_opens_is_no_template(room: Room) -> None:
    office = Office(room)
    await office.create()
    reason, metadata = await refusal(office.create(display_name="other name"))
    assert reason == "TEMPLATE_EXISTS"
    assert metadata["template"] == (await office.list())[0].name
    assert (await refusal(office.create(house="riviera", game="soko")))[0] == "NOT_SPREAD"
    assert (await refusal(office.create(min_open=5, max_open=4, seats=6)))[0] == "FIELD_INVALID"
    player = office.templates.ListTemplates(templates_pb2.ListTemplatesRequest(), metadata=room.player("ann"))
    assert (await refusal(player))[0] == "ROLE_REQUIRED"
    seed = office.templates.SeedTemplates(
        templates_pb2.SeedTemplatesRequest(house="casino"), metadata=room.keys.operator("floor")
    )
    assert (await refusal(seed))[0] == "FIELD_INVALID"
    viewer = office.templates.SeedTemplates(
        templates_pb2.SeedTemplatesRequest(house="club"), metadata=room.keys.operator("viewer")
    )
    assert (await refusal(viewer))[0] == "ROLE_REQUIRED"


async def test_what_the_table_service_refuses_is_shown_to_operators(room: Room) -> None:
    room.tables.refuses["OpenTable"] = Refused(reason_pb2.REASON_NOT_SPREAD, "not today")
    office = Office(room)
    await office.create()

    async def said() -> bool:
        return [template.problem for template in await office.list()] == ["not today"]

    await until(said)
    del room.tables.refuses["OpenTable"]
    await has_open(room, 1)

    async def mended() -> bool:
        return [template.problem for template in await office.list()] == [""]

    await until(mended)


async def test_a_house_in_maintenance_pauses_its_tables_and_opens_none(room: Room) -> None:
    await room.tables.open("theirs", seats=6)
    await room.tables.open("elsewhere", house="riviera")
    await room.tables.open("paused")
    await room.tables.pause("paused")
    await room.followed("theirs", "elsewhere", "paused")
    office = Office(room)
    begin = houses_pb2.BeginMaintenanceRequest(house="houses/boulevard", reason="new chairs")
    house = await office.houses.BeginMaintenance(begin, metadata=office.floor)
    assert (house.maintenance, house.operator, house.reason) == (True, "operators/ada", "new chairs")

    async def all_paused(*tables: str) -> bool:
        return all(room.tables.states[table].paused for table in tables)

    await until(lambda: all_paused("theirs"))
    assert "new chairs" in room.tables.events("theirs", "table_paused")[0].table_paused.reason
    await office.create()
    await room.tables.open("late", seats=9)
    await room.followed("late")
    await until(lambda: all_paused("late"))
    await room.followed(*room.tables.states)
    assert not room.tables.states["elsewhere"].paused
    assert len(room.tables.states) == 4
    filtered = (await room.lobby.tables(filter="maintenance = true")).tables
    assert {table.name for table in filtered} == {"tables/theirs", "tables/paused", "tables/late"}

    end = houses_pb2.EndMaintenanceRequest(house="houses/boulevard")
    await office.houses.EndMaintenance(end, metadata=office.floor)
    await has_open(room, 5)

    async def resumed() -> bool:
        return not room.tables.states["theirs"].paused and not room.tables.states["late"].paused

    await until(resumed)
    assert room.tables.states["paused"].paused
    answer = await office.houses.ListHouses(houses_pb2.ListHousesRequest(), metadata=room.player("ann"))
    assert [house.name for house in answer.houses if house.tables] == ["houses/boulevard", "houses/riviera"]
    # And again: another round, other requests.
    await office.houses.BeginMaintenance(begin, metadata=office.floor)
    await until(lambda: all_paused("theirs", "late"))
    with_role = office.houses.EndMaintenance(end, metadata=room.player("ann"))
    assert (await refusal(with_role))[0] == "ROLE_REQUIRED"
    unknown = houses_pb2.BeginMaintenanceRequest(house="houses/casino", reason="x")
    assert (await refusal(office.houses.BeginMaintenance(unknown, metadata=office.floor)))[0] == "FIELD_INVALID"
