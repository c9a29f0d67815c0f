"""Money on its way to and from a table: cash-outs that are pending, exclusions, schedules that are adopted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.table.support import Client, Keys, Room, bearer, beside, refusal, until

from relance.api.common.v1 import game_pb2
from relance.api.rake.v1 import rake_pb2, rake_pb2_grpc
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.ops.audit import audit
from relance.rake.serve import started as rake_started
from relance.rake.settings import RakeSettings
from relance.room.embedded import Nats
from relance.room.ports import free_port
from relance.runtime.clock import SystemClock
from relance.wallet.serve import started as wallet_started
from relance.wallet.settings import WalletSettings

CALL, CHECK = table_pb2.ACTION_KIND_CALL, table_pb2.ACTION_KIND_CHECK


async def test_who_waits_for_a_cash_out_is_told_so_and_not_that_they_have_no_money(
    migrated: Migrated, nats_server: Nats, tmp_path: Path
) -> None:
    url = await migrated("relance.eventlog", "relance.table", "relance.wallet")
    keys = Keys(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    settings = WalletSettings(
        database_url=SecretStr(url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
        signing_key=keys.service_key, listen=address,
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        wallet = AsyncExitStack()
        await beside(wallet, wallet_started(settings))
        room = Room(stack, keys, url, nats_server.url, address)
        process = await room.start()
        one, two = await room.open(process), await room.open(process, request_id="open-2")
        other = await room.start()
        three = await room.open(other, request_id="open-3")
        await until(lambda: [each.id for each in other.observer.living] == [process.tables.host.process])
        await room.deposit("ann", 5000)
        ann = await room.join(process, one, "ann")
        await ann.take_seat(1, 5000)
        await wallet.aclose()  # the wallet goes down

        left = await ann.ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
        assert left.WhichOneof("message") == "result"
        stub, token = room.tables(process), bearer(room.keys.player("ann"))
        for number, table in enumerate((one, two)):
            sit = table_pb2.TakeSeatRequest(table=f"tables/{table}", request_id=f"sit-{number}", seat=1, buy_in=5000)
            refused = await refusal(stub.TakeSeat(sit, metadata=token))
            assert str(refused).startswith("CASH_OUT_PENDING")
            assert refused.metadata["pending"].startswith(f"{one}-")
        # Another process asks the one that runs the table.
        sit = table_pb2.TakeSeatRequest(table=f"tables/{three}", request_id="sit-there", seat=1, buy_in=5000)
        refused = await refusal(room.tables(other).TakeSeat(sit, metadata=token))
        assert refused.metadata["pending"].startswith(f"{one}-")
        there = await room.join(other, three, "ann")
        answer = await there.ask(table_pb2.PlayRequest(take_seat=sit))
        assert answer.refusal.reason == "CASH_OUT_PENDING"

        wallet = AsyncExitStack()
        await beside(wallet, wallet_started(settings))  # and is there again: the money arrives, and sits down
        stack.push_async_callback(wallet.aclose)
        await until(lambda: not process.tables.host.transfers.cash_out("players/ann/eur"))
        again = await room.join(process, two, "ann")
        await again.take_seat(1, 5000)
        assert (await audit(url)).ok


async def test_an_excluded_player_does_not_get_the_seat_and_the_table_says_why(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    await room.deposit("ann", 5000)
    exclude = wallet_pb2.ExcludePlayerRequest(for_good=True)
    await room.wallet.ExcludePlayer(exclude, metadata=bearer(room.keys.player("ann")))
    ann = await room.join(process, table, "ann")
    answer = await ann.ask(table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=1, buy_in=5000)))
    assert answer.WhichOneof("message") == "result"
    refused = await ann.saw("transfer_refused")
    assert refused.transfer_refused.reason == "SELF_EXCLUDED"
    assert (await ann.saw("seat_released")).seat_released.reason == "REFUSED"
    assert await room.balance("ann") == 5000


async def test_who_excludes_themselves_at_the_table_keeps_the_seat_gets_no_more_chips_and_is_paid(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    clients = await room.seated(process, table, {"ann": 5000, "bob": 5000})
    ann, stub = clients["ann"], room.tables(process)
    await room.deposit("ann", 3000)
    exclude = wallet_pb2.ExcludePlayerRequest(for_good=True)
    await room.wallet.ExcludePlayer(exclude, metadata=bearer(room.keys.player("ann")))

    top_up = table_pb2.PlayRequest(add_chips=table_pb2.AddChipsRequest(request_id="more", amount=500))
    assert (await ann.ask(top_up)).WhichOneof("message") == "result"
    assert (await ann.saw("transfer_refused")).transfer_refused.reason == "SELF_EXCLUDED"
    assert ann.seat == 1
    assert await room.balance("ann") == 3000
    leave = table_pb2.LeaveSeatRequest(table=f"tables/{table}", request_id="leave")
    await stub.LeaveSeat(leave, metadata=bearer(room.keys.player("ann")))
    left = (await ann.saw("player_left")).player_left.amount
    assert left > 0
    await ann.saw("transfer_settled", lambda event: event.version > top_up_version(ann))
    assert await room.balance("ann") == 3000 + left
    sit = table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(request_id="again", seat=1, buy_in=left))
    await ann.ask(sit)
    assert (await ann.saw("seat_released")).seat_released.reason == "REFUSED"
    assert await room.balance("ann") == 3000 + left


def top_up_version(client: Client) -> int:
    """Where the table wrote that the top-up was refused."""
    return next(event.version for event in client.events if event.WhichOneof("payload") == "transfer_refused")


async def test_K7_a_new_schedule_is_adopted_at_the_next_hands_start_recorded_and_recounted(
    migrated: Migrated, nats_server: Nats, tmp_path: Path
) -> None:
    url = await migrated("relance.eventlog", "relance.table", "relance.wallet", "relance.rake")
    keys = Keys(tmp_path)
    common: dict[str, Any] = {
        "database_url": SecretStr(url), "nats_url": SecretStr(nats_server.url), "keyring": keys.ring,
        "signing_key": keys.service_key,
    }  # fmt: skip
    table_address = f"127.0.0.1:{free_port()}"
    async with AsyncExitStack() as stack:
        wallet = await beside(stack, wallet_started(WalletSettings(**common)))
        rake_settings = RakeSettings(**common, wallet_address=wallet, table_addresses=(table_address,))
        rake_address = await beside(stack, rake_started(rake_settings, SystemClock()))
        room = Room(stack, keys, url, nats_server.url, wallet)
        rake = rake_pb2_grpc.RakeServiceStub(room.channel(rake_address))
        floor = bearer(keys.operator("floor"))
        process = await room.start(rake=rake_address, listen=table_address)
        table = await room.open(process, timers_between_ms=1)
        wanted = rake_pb2.GetScheduleRequest(
            house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, low_limit=100,
            currency=game_pb2.CURRENCY_EUR,
        )  # fmt: skip
        schedule = await rake.GetSchedule(wanted, metadata=floor)
        clients = await room.seated(process, table, {"ann": 100_000, "bob": 100_000})
        actor = process.tables.actors[table]

        async def act(last: int) -> int:
            """Whoever is asked after turn `last` checks or calls; their turn."""
            await until(lambda: any(c.prompt is not None and c.prompt.turn > last for c in clients.values()))
            asked = max((c.prompt for c in clients.values() if c.prompt is not None), key=lambda prompt: prompt.turn)
            client = next(c for c in clients.values() if c.seat == asked.seat)
            await client.act(CHECK if CHECK in asked.actions else CALL, turn=asked.turn)
            return asked.turn

        async def play_on() -> None:
            last = 0
            while True:
                last = await act(last)

        playing = room.background(play_on())
        await until(lambda: actor.table.last_hand >= 3)
        schedule.version += 1
        schedule.tiers[0].small_rake += 1
        put = rake_pb2.PutScheduleRequest(schedule=schedule, request_id="dearer")
        await rake.PutSchedule(put, metadata=floor)
        started = await clients["ann"].saw("hand_started", lambda event: event.hand_started.HasField("new_rake"))
        assert started.hand_started.new_rake == schedule
        assert started.hand_started.rake_schedule == "boulevard/no_limit@2"
        await clients["ann"].saw("hand_ended", lambda event: event.hand > started.hand)
        playing.cancel()

        owner = await asyncpg.connect(url)
        stack.push_async_callback(owner.close)
        recounted: list[asyncpg.Record] = []

        async def look() -> None:
            query = "SELECT hand, schedule, mismatch, state FROM rake.hand ORDER BY hand"
            while len(recounted) < started.hand or any(row["state"] == "open" for row in recounted):
                recounted[:] = await owner.fetch(query)

        await look()
        assert {row["mismatch"] for row in recounted} == {""}
        for row in recounted:
            assert row["schedule"] == f"boulevard/no_limit@{1 + (row['hand'] >= started.hand)}"
        report = await audit(url)
        assert report.ok, report.findings


async def test_V3_the_wallet_knows_what_a_player_has_at_tables_however_the_chips_move(
    migrated: Migrated, nats_server: Nats, tmp_path: Path
) -> None:
    url = await migrated("relance.eventlog", "relance.table", "relance.wallet")
    keys = Keys(tmp_path)
    table_address = f"127.0.0.1:{free_port()}"
    settings = WalletSettings(
        database_url=SecretStr(url), nats_url=SecretStr(nats_server.url), keyring=keys.ring,
        signing_key=keys.service_key, table_addresses=(table_address,),
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        wallet = await beside(stack, wallet_started(settings))
        room = Room(stack, keys, url, nats_server.url, wallet)
        process = await room.start(listen=table_address)
        table = await room.open(process, currency=game_pb2.CURRENCY_CREDIT)
        clients = {}
        for seat, player in enumerate(("ann", "bob"), 1):
            request = wallet_pb2.DepositRequest(
                request_id=f"d-{player}", player=f"players/{player}", currency=game_pb2.CURRENCY_CREDIT, amount=1000
            )
            await room.ledger.Deposit(request, metadata=bearer(keys.operator("cashier")))
            clients[player] = await room.join(process, table, player)
            await clients[player].take_seat(seat, 400)

        async def credits(player: str) -> wallet_pb2.Credits:
            look = wallet_pb2.GetCreditsRequest(player=f"players/{player}")
            return await room.wallet.GetCredits(look, metadata=bearer(keys.operator("auditor")))

        first = await clients["ann"].saw("hand_started")
        await until(lambda: clients["ann"].prompt is not None)
        asked = clients["ann"].prompt
        assert asked is not None
        loser = next(client for client in clients.values() if client.seat == asked.seat)
        await loser.act(table_pb2.ACTION_KIND_FOLD, turn=asked.turn)
        await clients["ann"].saw("hand_ended", lambda event: event.hand == first.hand)
        await clients["ann"].ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
        await clients["bob"].saw("player_left")  # out of the next hand, which she loses by that
        nets = {"ann": 0, "bob": 0}
        for event in clients["bob"].events:
            for result in event.hand_ended.results:
                nets[result.player] += result.net
        assert nets["ann"] == -nets["bob"]
        async with asyncio.timeout(20):
            # Whatever is on its way, account and chips together are what came in and what was won.
            while {player: (await credits(player)).total - 1000 for player in nets} != nets:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await credits("bob")).balance == 600
        assert (await credits("bob")).not_due == "BALANCE"
