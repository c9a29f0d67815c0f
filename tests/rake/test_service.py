"""Schedules, quotes and reports over gRPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import asyncpg
import grpc
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from relance.api.common.v1 import game_pb2
from relance.api.common.v1.game_pb2 import CURRENCY_CREDIT, CURRENCY_EUR, LIMIT_FIXED, LIMIT_NO_LIMIT, RakeSchedule
from relance.api.rake.v1 import rake_pb2
from relance.api.rake.v1.rake_pb2 import GetScheduleRequest
from relance.cli.main import cli
from relance.runtime.errors import from_call

from .conftest import BOULEVARD, Rooms, raked_table, until
from .test_collect import collected


async def refusal(call: Awaitable[Any]) -> tuple[str, dict[str, str]]:
    """gRPC code and reason of a call that must fail, and the metadata."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = from_call(caught.value)
    assert refused is not None
    return f"{caught.value.code().name} {str(refused).split(':', maxsplit=1)[0]}", refused.metadata


async def test_K7_the_band_of_the_stakes_is_found(rooms: Rooms) -> None:
    rake, player = await rooms.start_rake(), rooms.token("ann", "player")

    async def band(limit: Any, low: int, currency: Any = CURRENCY_EUR) -> str:
        request = GetScheduleRequest(house="boulevard", game="holdem", limit=limit, low_limit=low, currency=currency)
        return (await rake.GetSchedule(request, metadata=player)).band

    bands = [await band(LIMIT_FIXED, low) for low in (1, 2, 99, 100, 199, 200, 5000)]
    assert bands == ["fixed_2", "fixed_2", "fixed_2", "fixed_100", "fixed_100", "fixed_200", "fixed_200"]
    assert await band(LIMIT_NO_LIMIT, 100) == "no_limit"
    assert await band(LIMIT_NO_LIMIT, 100, CURRENCY_CREDIT) == "none"
    nowhere = GetScheduleRequest(house="nowhere", limit=LIMIT_FIXED, currency=CURRENCY_EUR)
    assert await refusal(rake.GetSchedule(nowhere, metadata=player)) == (
        "NOT_FOUND SCHEDULE_NOT_FOUND",
        {"schedule": "nowhere"},
    )


async def test_a_new_version_is_exactly_one_above_and_put_once(rooms: Rooms) -> None:
    rake, floor = await rooms.start_rake(), rooms.token("fred", "floor")
    wanted = GetScheduleRequest(
        house="boulevard", game="holdem", limit=LIMIT_NO_LIMIT, low_limit=100, currency=CURRENCY_EUR
    )
    new = await rake.GetSchedule(wanted, metadata=floor)
    new.version = 2
    new.tiers[0].cap = 50
    request = rake_pb2.PutScheduleRequest(schedule=new, request_id="r1")
    assert await rake.PutSchedule(request, metadata=floor) == new
    assert await rake.PutSchedule(request, metadata=floor) == new
    assert await rake.GetSchedule(wanted, metadata=floor) == new

    again = rake_pb2.PutScheduleRequest(schedule=new, request_id="r2")
    expected = ("FAILED_PRECONDITION SCHEDULE_VERSION", {"expected": "3"})
    assert await refusal(rake.PutSchedule(again, metadata=floor)) == expected
    new.tiers[0].cap = 60
    other = rake_pb2.PutScheduleRequest(schedule=new, request_id="r1")
    assert (await refusal(rake.PutSchedule(other, metadata=floor)))[0] == "ALREADY_EXISTS REQUEST_ID_REUSED"
    del new.tiers[1]
    gap = rake_pb2.PutScheduleRequest(schedule=new, request_id="r3")
    assert (await refusal(rake.PutSchedule(gap, metadata=floor)))[0] == "INVALID_ARGUMENT FIELD_INVALID"
    unknown = rake_pb2.PutScheduleRequest(schedule=RakeSchedule(id="club", band="x", version=1), request_id="r4")
    assert (await refusal(rake.PutSchedule(unknown, metadata=floor)))[0] == "NOT_FOUND SCHEDULE_NOT_FOUND"
    player = rooms.token("ann", "player")
    assert (await refusal(rake.PutSchedule(request, metadata=player)))[0] == "PERMISSION_DENIED ROLE_REQUIRED"


async def test_K3_a_quote_explains_itself_step_by_step(rooms: Rooms) -> None:
    rake, player = await rooms.start_rake(), rooms.token("ann", "player")
    request = rake_pb2.QuoteRequest(schedule=BOULEVARD, pots=[303, 1000], players=5)
    quote = await rake.Quote(request, metadata=player)
    assert (quote.rake, list(quote.by_pot)) == (65, [15, 50])
    assert any("303" in step for step in quote.steps)
    for wrong in (
        rake_pb2.QuoteRequest(pots=[5], players=2),
        rake_pb2.QuoteRequest(schedule=BOULEVARD, players=2),
        rake_pb2.QuoteRequest(schedule=BOULEVARD, pots=[-5], players=2),
        rake_pb2.QuoteRequest(schedule=BOULEVARD, pots=[5], players=1),
    ):
        assert (await refusal(rake.Quote(wrong, metadata=player)))[0].startswith("INVALID_ARGUMENT ")


async def test_a_report_adds_up_pots_rake_and_what_is_collected(
    rooms: Rooms, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    wallet = await rooms.start_wallet()
    log = raked_table("a", 3).log
    next(e for e in log if e.hand == 2 and e.WhichOneof("payload") == "hand_ended").hand_ended.rake = 31
    rooms.tables.logs = {"a": log, "b": raked_table("b", 2).log}
    for name in ("a", "b"):
        await rooms.fund(wallet, name, 150_000)
    rake, auditor = await rooms.start_rake(), rooms.token("audit", "auditor")
    await collected(owner, 4)

    async def report(group: Any, **span: int) -> list[tuple[object, ...]]:
        answer = await rake.Report(rake_pb2.ReportRequest(group=group, **span), metadata=auditor)
        return [(r.key, r.currency, r.hands, r.pots, r.rake, r.collected, r.mismatches) for r in answer.rows]

    eur = game_pb2.CURRENCY_EUR
    assert await report(rake_pb2.REPORT_GROUP_TABLE) == [
        ("tables/a", eur, 3, 1800, 91, 60, 1),
        ("tables/b", eur, 2, 1200, 60, 60, 0),
    ]
    assert await report(rake_pb2.REPORT_GROUP_DAY) == [("1970-01-01", eur, 5, 3000, 151, 120, 1)]
    assert await report(rake_pb2.REPORT_GROUP_LIMIT) == [("no_limit", eur, 5, 3000, 151, 120, 1)]
    players = await report(rake_pb2.REPORT_GROUP_PLAYER)
    assert [row[0] for row in players] == ["players/p1", "players/p2", "players/p3"]
    assert (sum(int(str(row[3])) for row in players), sum(int(str(row[4])) for row in players)) == (3000, 151)
    assert sum(int(str(row[5])) for row in players) == 120
    assert await report(rake_pb2.REPORT_GROUP_DAY, since_us=2_000_000) == []
    call = rake.Report(rake_pb2.ReportRequest(), metadata=rooms.token("ann", "player"))
    assert (await refusal(call))[0] == "PERMISSION_DENIED ROLE_REQUIRED"


async def test_a_stopped_collection_goes_on_once_people_have_said_why(
    rooms: Rooms, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    wallet = await rooms.start_wallet()
    log = raked_table("a", 2).log
    next(e for e in log if e.hand == 2 and e.WhichOneof("payload") == "hand_ended").hand_ended.rake = 31
    rooms.tables.logs = {"a": log}
    await rooms.fund(wallet, "a", 150_000)
    rake, floor = await rooms.start_rake(), rooms.token("fred", "floor")
    await collected(owner, 1)
    request = rake_pb2.ReleaseCollectionRequest(
        table="tables/a", hand=2, reason="Counted by hand: 31 is what was taken."
    )
    player = rake.ReleaseCollection(request, metadata=rooms.token("ann", "player"))
    assert (await refusal(player))[0] == "PERMISSION_DENIED ROLE_REQUIRED"
    assert (await rake.ReleaseCollection(request, metadata=floor)).rake == 31
    await collected(owner, 2)
    assert await owner.fetchval("SELECT balance FROM wallet.account WHERE name = 'house/eur'") == 61
    row = await owner.fetchrow("SELECT operator, reason, attempt FROM rake.release")
    assert row is not None
    assert tuple(row) == ("fred", request.reason, 1)
    assert (await refusal(rake.ReleaseCollection(request, metadata=floor)))[0] == "NOT_FOUND HAND_NOT_FOUND"
    silent = rake_pb2.ReleaseCollectionRequest(table="tables/a", hand=1)
    assert (await refusal(rake.ReleaseCollection(silent, metadata=floor)))[0] == "INVALID_ARGUMENT FIELD_MISSING"


async def test_a_refused_collection_is_asked_under_the_next_key(
    rooms: Rooms, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    wallet = await rooms.start_wallet()  # with nothing in escrow
    rooms.tables.logs["a"] = raked_table("a", 1).log
    rake, floor = await rooms.start_rake(), rooms.token("fred", "floor")

    async def refused() -> bool:
        return bool(await owner.fetchval("SELECT count(*) = 1 FROM rake.hand WHERE state = 'refused'"))

    await until(refused)
    await rooms.fund(wallet, "a", 150_000)
    request = rake_pb2.ReleaseCollectionRequest(table="tables/a", hand=1, reason="The buy-ins are there now.")
    await rake.ReleaseCollection(request, metadata=floor)
    await collected(owner, 1)
    keys = await owner.fetch("SELECT key, refusal FROM wallet.transfer WHERE purpose = 'RAKE' ORDER BY id")
    assert [tuple(row) for row in keys] == [("rake/a/1", "NO_MONEY"), ("rake/a/1/2", None)]


async def test_the_report_on_the_command_line(rooms: Rooms, owner: asyncpg.Connection[asyncpg.Record]) -> None:
    wallet = await rooms.start_wallet()
    rooms.tables.logs = {"a": raked_table("a", 2).log}
    await rooms.fund(wallet, "a", 150_000)
    address = await rooms.start_rake_at()
    await collected(owner, 2)
    token = dict(rooms.token("audit", "auditor"))["authorization"].removeprefix("Bearer ")

    async def ran(*arguments: str) -> str:
        line = ["rake", "report", "--address", address, "--token", token, *arguments]
        with capture_logs():  # of the services beside it, which would print into what the command prints
            result = await asyncio.to_thread(CliRunner().invoke, cli, line)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.output

    table = (await ran()).splitlines()
    assert table[1].split() == ["tables/a", "2", "12.00", "€", "0.60", "€", "0.60", "€"]
    assert table[2].split()[0] == "total"
    assert (await ran("--by", "day", "--csv")).splitlines() == [
        "key,currency,hands,pots,rake,collected,mismatches", "1970-01-01,eur,2,1200,60,60,0",
    ]  # fmt: skip
    shares = json.loads(await ran("--by", "player", "--json"))
    assert sum(row["rake"] for row in shares) == 60
