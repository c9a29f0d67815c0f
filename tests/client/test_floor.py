"""What operators do through the client, and what players see of it; lists, clubs, limits and rake."""

from __future__ import annotations

import time

import pytest
from tests.client.live import BLINDS, BUY_IN, Live
from tests.client.players import eventually, player, two_seated

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.client import RelanceError

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_C4_what_the_floor_does_is_seen_at_the_table_with_its_reason(live: Live) -> None:
    table = await live.open_table()
    floor = live.operator
    async with two_seated(live, table) as (_, first, bob, second):
        with first.events() as events:
            await floor.pause_table(table, "a fire alarm")
            await floor.resume_table(table)
            await floor.warn(table, bob.player, "slow")
            await floor.change_settings(table, "a better name", display_name="Alarm", min_buy_in=BUY_IN // 2)
            await floor.ban(table, bob.player, "warned before", seconds=600)
            seen: dict[str, object] = {}
            async for event in events:
                seen[event.kind] = event.data
                if event.kind == "player_banned":
                    break
        assert getattr(seen["table_paused"], "reason", "") == "a fire alarm"
        assert getattr(seen["player_warned"], "reason", "") == "slow"
        assert {"table_resumed", "settings_changed"} <= seen.keys()
        assert first.view.config.display_name == "Alarm"
        await second.until(lambda: second.number == 0)
        refusals: list[RelanceError] = []

        async def refused_for_good() -> bool:
            with pytest.raises(RelanceError) as refused:
                await second.sit(BUY_IN)
            refusals.append(refused.value)
            return refused.value.reason != "CASH_OUT_PENDING"

        await eventually(refused_for_good)
        assert refusals[-1].reason == "PLAYER_BANNED"
        assert int(refusals[-1].metadata["until"]) > time.time() * 1e6


async def test_places_in_line_are_joined_listed_and_given_up(live: Live) -> None:
    table = await live.open_table(seats=2, blinds=(40, 80))  # stakes of its own: no other table's seat is offered
    async with two_seated(live, table), player(live) as room, player(live) as other:

        async def listed() -> bool:
            """Whether the lobby knows the table yet."""
            try:
                await room.listed(table)
            except RelanceError:
                return False
            return True

        await eventually(listed)
        first = await room.waitlist.join(table)
        assert (await room.waitlist.join(table)).name == first.name
        second = await other.waitlist.join(table)
        assert (first.position, second.position) == (1, 2)
        await room.waitlist.join_any((await live.operator.table(table)).config)
        assert len(await room.waitlist.waits()) == 2
        assert [wait.position for wait in await live.operator.waitlist.waits(table)] == [1, 2]

        async def counted() -> bool:
            return (await room.listed(table)).waiting >= 2

        await eventually(counted)
        for wait in await room.waitlist.waits():
            await room.waitlist.leave(wait)
        assert [wait.position for wait in await other.waitlist.waits()] == [1]
        with pytest.raises(RelanceError, match="WAIT_NOT_FOUND"):
            await room.waitlist.leave(first)
        with pytest.raises(RelanceError, match="TABLE_NOT_FOUND"):
            await room.listed("nowhere")


async def test_a_host_says_who_may_sit_at_a_private_table(live: Live) -> None:
    like = table_pb2.OpenTableRequest(
        house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, stakes=game_pb2.Stakes(blinds=BLINDS),
        currency=game_pb2.CURRENCY_EUR, min_buy_in=BUY_IN, max_buy_in=BUY_IN,
    )  # fmt: skip
    async with player(live) as host, player(live) as guest:
        table = await host.private.open(like, "sesame")
        with pytest.raises(RelanceError, match="TABLE_PASSWORD_WRONG"):
            await guest.private.invitation(table, "wrong")
        assert await guest.private.invitation(table, "sesame")
        await host.private.set_password(table, "")
        with pytest.raises(RelanceError, match=r"TABLE_PASSWORD_WRONG|NOT_INVITED"):
            await guest.private.invitation(table, "sesame")
        await host.private.invite(table, [guest.player])
        assert [invite.table for invite in await guest.private.invites()] == [table]
        async with guest.play(table) as seat:
            with pytest.raises(RelanceError, match="NOT_INVITED"):
                await seat.sit(BUY_IN)
            assert await seat.sit(BUY_IN, invitation=await guest.private.invitation(table)) > 0
            await host.private.uninvite(table, [guest.player])
            assert seat.number > 0, "who is seated stays"
        assert await host.private.invites(table) == []
        with pytest.raises(RelanceError, match="NOT_YOURS"):
            await guest.private.set_password(table, "mine")


async def test_templates_are_kept_and_a_house_rests(live: Live) -> None:
    keeping = live.operator.house_keeping
    like = table_pb2.OpenTableRequest(
        house="salon", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT, stakes=game_pb2.Stakes(blinds=[700, 1_400]),
        currency=game_pb2.CURRENCY_EUR, display_name="Kept",
    )  # fmt: skip
    kept = await keeping.create_template(like, min_open=0, max_open=2)
    with pytest.raises(RelanceError, match="TEMPLATE_EXISTS"):
        await keeping.create_template(like)
    stopped = await keeping.update_template(kept.name, stopped=True, max_open=3)
    assert (stopped.stopped, stopped.max_open, stopped.min_open) == (True, 3, 0)
    assert kept.name in {template.name for template in await keeping.templates("salon")}
    await keeping.delete_template(kept.name)
    with pytest.raises(RelanceError, match="TEMPLATE_NOT_FOUND"):
        await keeping.update_template(kept.name, stopped=False)
    resting = await keeping.begin_maintenance("salon", "carpets")
    assert (resting.maintenance, resting.reason) == (True, "carpets")
    assert not (await keeping.end_maintenance("salon")).maintenance
    assert {house.name: house.maintenance for house in await keeping.houses()}["houses/salon"] is False


async def test_V2_V3_credits_come_by_pass_and_by_refill_once_they_are_due(live: Live) -> None:
    async with player(live, money=0) as room:
        assert (await room.club.credits()).total == 0
        refill = await room.club.refill()
        assert refill.state in {wallet_pb2.REFILL_STATE_PENDING, wallet_pb2.REFILL_STATE_GRANTED}
        await live.operator.club.sell_pass(room.player, days=30)
        found = await live.operator.club.credits(room.player)
        assert found.total >= 1_000
        assert found.pass_until_us > time.time() * 1e6
        with pytest.raises(RelanceError, match="REFILL_NOT_DUE"):
            await room.club.refill()


async def test_who_limits_or_excludes_themselves_is_held_to_it(live: Live) -> None:
    table = await live.open_table()
    async with player(live, money=0) as room:
        limits = await room.limits.deposits("week", 5_000)
        assert [(limit.amount, limit.remaining) for limit in limits.deposits] == [(5_000, 5_000)]
        await live.operator.deposit(room.player, 3_000)
        assert (await live.operator.limits.read(room.player)).deposits[0].remaining == 2_000
        with pytest.raises(RelanceError, match="DEPOSIT_LIMIT"):
            await live.operator.deposit(room.player, 2_001)
        until = round((time.time() + 3_600) * 1e6)
        assert (await room.limits.exclude(until_us=until)).excluded_until_us == until
        async with room.play(table) as seat:
            with pytest.raises(RelanceError, match="SELF_EXCLUDED"):
                await seat.sit(BUY_IN)
        assert (await live.operator.limits.exclude(player=room.player, for_good=True)).excluded_for_good
        assert (await room.limits.read()).excluded_for_good


async def test_K3_what_a_hand_costs_is_quoted_and_a_schedule_has_a_next_version(live: Live) -> None:
    table = await live.open_table()
    config = (await live.operator.table(table)).config
    async with player(live, money=0) as room:
        schedule = await room.rake.schedule(config)
        quote = await room.rake.quote(schedule, [303, 1_000], players=3)
        assert quote.rake == sum(quote.by_pot) > 0
        assert quote.steps
        with pytest.raises(RelanceError, match="ROLE_REQUIRED"):
            await room.rake.put(schedule)
    with pytest.raises(RelanceError, match="SCHEDULE_VERSION") as refused:
        await live.operator.rake.put(schedule)
    assert refused.value.metadata["expected"] == str(schedule.version + 1)
    assert isinstance(await live.operator.rake.report("house"), list)
    with pytest.raises(RelanceError):
        await live.operator.rake.release(table, 1, "nothing was stopped")


async def test_the_floor_knows_which_processes_run_what(live: Live) -> None:
    table = await live.open_table()

    async def named() -> bool:
        found = await live.operator.table_processes(tables=True)
        return any(running.table == table for process in found for running in process.running)

    await eventually(named)
    there = (await live.operator.table_processes())[0]
    assert (await live.operator.hand_over(table, there.id)).process == there.id
