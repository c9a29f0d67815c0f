"""The client against a real room: accounts, money, a hand, a killed process, operators."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.client.live import BUY_IN, Live
from tests.client.players import PASSWORD, check_down, check_or_call, eventually, player, two_seated

from relance.api.events.v1 import events_pb2
from relance.client import ActionRefused, NoMoney, RelanceError, Room, SignInRequired, StaleAction, Watch, connect
from relance.client.proofs import verify_hand
from relance.room.bots import BotFleet

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def has(room: Room, amount: int) -> bool:
    """Whether there is exactly this much on the account."""
    return await room.balance() == amount


async def test_an_account_signs_in_by_a_name_that_only_one_has(live: Live) -> None:
    name = f"Zoë {uuid.uuid4().hex[:8]}"
    async with connect(live.lobby) as room:
        registered = await room.register(name, PASSWORD)
        assert await room.sign_in(name.upper(), PASSWORD) == registered == room.player
        assert await room.names([registered, "nobody"]) == {registered: name}
        with pytest.raises(RelanceError, match="NAME_TAKEN"):
            await room.register(name.upper(), PASSWORD)
        with pytest.raises(RelanceError, match="SIGN_IN_REFUSED"):
            await room.sign_in(name, "wrong password")
        assert room.player == registered


async def test_nothing_but_the_front_door_is_open_without_a_token(live: Live) -> None:
    async with connect(live.lobby) as room:
        assert (await room.services()).table_addresses
        with pytest.raises(SignInRequired):
            await room.balance()


async def test_the_faucet_pays_and_the_statement_shows_it(live: Live) -> None:
    async with player(live, money=0) as room:
        assert await room.balance() == 0
        await room.faucet(300)
        await room.faucet(50)
        assert await room.balance() == 350
        assert [transfer.order.amount async for transfer in room.transfers()] == [50, 300]


async def test_two_players_play_a_hand_whose_cards_are_proven_and_take_their_money_home(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, bob, second):
        hand = await check_down(first, second)
        seen = await ada.hand(table, hand)
        kinds = [event.kind for event in seen]
        assert kinds[0] == "hand_started"
        assert kinds[-1] == "hand_ended"
        assert verify_hand(seen) >= 7
        assert first.proofs.proven >= 7
        assert first.proofs.broken == second.proofs.broken == []
        taken = await asyncio.gather(first.leave(settled=True), second.leave(settled=True))
        ended = next(event.data for event in seen if isinstance(event.data, events_pb2.HandEnded))
        assert sum(taken) <= 2 * BUY_IN - ended.rake
        assert await ada.balance() + await bob.balance() == 8 * BUY_IN + sum(taken)


async def test_a_watcher_sees_the_hand_and_nobodys_cards(live: Live) -> None:
    table = await live.open_table()
    async with live_watch(live, table) as watch:
        with watch.events() as events:
            async with two_seated(live, table) as (_, first, _, second):
                await check_down(first, second)
                seen = [await anext(events)]
                while seen[-1].kind != "hand_ended":
                    seen.append(await anext(events))
        dealt = [event.data for event in seen if isinstance(event.data, events_pb2.CardsDealt)]
        assert [(cards.down, cards.down_count, cards.down_salts) for cards in dealt] == [("", 2, b"")] * 2
        assert watch.view.your_seat == 0
        assert [event.version for event in seen] == list(range(seen[0].version, seen[-1].version + 1))


@asynccontextmanager
async def live_watch(live: Live, table: str) -> AsyncIterator[Watch]:
    """A watcher without money."""
    async with player(live, money=0) as room, room.watch(table) as watch:
        yield watch


async def test_a_refused_action_says_what_is_legal_and_the_turn_stands(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (_, first, _, second):
        turns = [asyncio.ensure_future(anext(seat.turns())) for seat in (first, second)]
        done, _ = await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
        turn = done.pop().result()
        assert turn.can_call
        assert turn.can_raise
        with pytest.raises(ActionRefused) as refused:
            await turn.raise_to(turn.min_raise_to - 1)
        assert refused.value.metadata["min"] == str(turn.min_raise_to)
        assert refused.value.metadata["max"] == str(turn.max_raise_to)
        await turn.fold()
        with pytest.raises(StaleAction):
            await turn.fold()
        for waiting in turns:
            waiting.cancel()


async def test_a_seat_costs_money_that_must_be_there(live: Live) -> None:
    table = await live.open_table()
    async with player(live, money=BUY_IN - 1) as room, room.play(table) as seat:
        with pytest.raises(NoMoney):
            await seat.sit(buy_in=BUY_IN)
        with pytest.raises(RelanceError, match="BUY_IN_OUT_OF_RANGE") as refused:
            await seat.sit(buy_in=1)
        assert refused.value.metadata == {"min": str(BUY_IN), "max": str(BUY_IN)}
        assert (seat.number, await room.balance()) == (0, BUY_IN - 1)


async def test_a_killed_table_process_gives_every_chip_back_and_the_streams_go_on(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, bob, second):
        await first.until(lambda: first.view.hand > 0 and first.view.pot > 0)
        with first.events() as events:
            live.supervisor.kill("table")
            kinds = set()
            async for event in events:
                kinds.add(event.kind)
                if event.kind == "transfer_settled" and not any(seat.player for seat in first.view.seats):
                    break
        assert {"owner_started", "hand_voided", "player_left"} <= kinds
        assert first.reconnects > 0
        await second.until(lambda: second.number == 0)
        for room in (ada, bob):
            await eventually(lambda room=room: has(room, 5 * BUY_IN))  # type: ignore[misc]
        assert await first.sit(buy_in=BUY_IN) > 0


async def test_an_operator_voids_rules_reads_and_closes(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (_, first, _, second):
        await first.until(lambda: first.view.hand > 0 and first.view.pot > 0)
        hand = first.view.hand
        await live.operator.void_hand(table, hand, "the clock was wrong")
        version = await live.operator.record_ruling(table, "Both keep their chips.", hand)
        await first.until(lambda: first.version >= version)
        assert [seat.stack + seat.contributed for seat in first.view.seats[:2]] == [BUY_IN, BUY_IN]
        await live.operator.close_table(table, "end of the day")
        await asyncio.gather(check_or_call(first), check_or_call(second))
        await first.until(lambda: first.view.closed)
    heads = await live.operator.list_heads([table])
    log = [event async for event in live.operator.read_stream(table)]
    assert [event.version for event in log] == list(range(1, len(log) + 1))
    assert len(log) <= heads[table.removeprefix("tables/")] + 2
    assert {"hand_voided", "ruling_recorded", "table_closed"} <= {event.WhichOneof("payload") for event in log}


async def test_the_catalogue_shows_what_the_events_said(live: Live) -> None:
    table = await live.open_table(display_name="Corner table")
    async with player(live) as room:

        async def listed() -> bool:
            return any(row.name == table for row in await room.list_tables('game = "holdem"', "create_time desc"))

        await eventually(listed)
        row = next(row for row in await room.list_tables() if row.name == table)
        assert (row.config.display_name, row.seats_free) == ("Corner table", 6)


async def test_bots_play_on_through_a_killed_wallet_and_keep_their_seats_when_stopped(
    live: Live, tmp_path: Path
) -> None:
    table = await live.open_table()
    fleet = BotFleet(live.lobby, 6, folder=tmp_path, pace="instant", seed=7)
    await fleet.start()
    try:
        await eventually(lambda: played(fleet, hands=5, seated=2))
        live.supervisor.kill("wallet")
        before = fleet.stats().hands
        await eventually(lambda: played(fleet, hands=before + 5, seated=2))
        assert {bot.last_error for bot in fleet.stats().bots if bot.errors} <= {"UNAVAILABLE", "DEADLINE"}
    finally:
        await fleet.stop()
    view = await live.operator.table(table)
    assert {seat.player for seat in view.seats if seat.player} <= {bot.room.player for bot in fleet.bots}
    assert (tmp_path / "bots.json").exists()


async def played(fleet: BotFleet, *, hands: int, seated: int) -> bool:
    """Whether a fleet has played so many hands and so many bots sit."""
    stats = fleet.stats()
    return stats.hands >= hands and stats.seated >= seated
