"""What goes on around the hands of a seat, through the client and the real services."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.live import BUY_IN, Live
from tests.client.players import check_down, eventually, player, two_seated

from relance.api.table.v1 import table_pb2
from relance.client import RelanceError

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_preferences_are_known_from_the_first_message_on_and_follow_what_happens(live: Live) -> None:
    table = await live.open_table()
    async with player(live) as room, room.play(table) as seat:
        assert seat.preferences == table_pb2.SeatPreferences(auto_post=True, auto_muck=True)
        await seat.sit(BUY_IN, ask_to_post=True)
        assert not seat.preferences.auto_post
        version = await seat.prefer(auto_muck=False, auto_top_up=BUY_IN)
        await seat.until(lambda: seat.version >= version)
        wanted = table_pb2.SeatPreferences(auto_post=True, auto_top_up=BUY_IN)
        assert seat.preferences == wanted
        async with room.play(table) as again:
            assert again.preferences == wanted
        await seat.until(lambda: seat.connected)
        version = await seat.sit_out(at_next_big_blind=True)
        await seat.until(lambda: seat.version >= version)
        assert seat.preferences.sit_out_next_big_blind
        assert seat.preferences.auto_top_up == BUY_IN
        await seat.leave()
        assert seat.preferences == table_pb2.SeatPreferences(auto_post=True, auto_muck=True)


async def test_what_is_said_is_heard_once_by_all_and_read_later(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, bob, second), player(live, money=0) as guest:
        await first.say("hello  café")
        await second.until(lambda: len(second.talk) == 1)
        assert (second.talk[0].text, second.talk[0].player) == ("hello  café", f"players/{ada.player}")
        async with guest.play(table) as watcher:
            await watcher.until(lambda: len(watcher.talk) == 1)
            with pytest.raises(RelanceError, match="NOT_SEATED"):
                await watcher.say("may I?")
        with pytest.raises(RelanceError, match="FIELD_TOO_LONG") as refused:
            await second.say("x" * 129)
        assert refused.value.metadata["max"] == "128"
        await live.operator.mute(table, bob.player, "language", seconds=600)
        with pytest.raises(RelanceError, match="MUTED") as refused:
            await second.say("why?")
        assert int(refused.value.metadata["until"]) > 0
        await live.operator.unmute(table, bob.player)
        await second.say("thanks")
        assert [said.text for said in await guest.talk(table)] == ["hello  café", "thanks"]
        assert [said.text for said in await guest.talk(table, limit=1)] == ["thanks"]
        said = await asyncio.gather(*(second.say(f"again {count}") for count in range(9)), return_exceptions=True)
        reasons = {failure.reason for failure in said if isinstance(failure, RelanceError)}
        assert reasons == {"TOO_MANY_REQUESTS"}


async def test_own_hands_show_ones_own_cards_and_the_sitting_adds_up(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, bob, second):
        numbers = [await check_down(first, second) for _ in range(2)]

        async def written() -> bool:
            hands = await ada.hands(table, limit=5)
            return {hand.hand for hand in hands if hand.end_time_us} >= set(numbers)

        await eventually(written)
        mine = {hand.hand: hand for hand in await ada.hands(table)}
        theirs = {hand.hand: hand for hand in await bob.hands(table)}
        for number in numbers:
            ours = mine[number], theirs[number]
            assert all(len(hand.cards) == 4 for hand in ours)
            assert ours[0].cards != ours[1].cards
            assert sum(hand.contributed for hand in ours) == ours[0].pot
            assert sum(hand.net for hand in ours) == -ours[0].rake
        seen = [event for event in await ada.hand(table, numbers[0]) if event.kind == "cards_dealt"]
        assert {getattr(event.data, "seat", 0) for event in seen if getattr(event.data, "down", "")} == {1}
        assert len(await ada.hands(table, limit=1)) == 1
        session = await ada.session(table)
        assert (session.seat, session.bought_in, session.end_time_us) == (1, BUY_IN, 0)
        assert session.net == session.cashed_out - BUY_IN
    async with player(live, money=0) as nobody:
        assert await nobody.hands(table) == []
        with pytest.raises(RelanceError, match="NOT_SEATED"):
            await nobody.session(table)


async def test_C4_a_void_hand_leaves_a_notice_until_it_was_seen(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, bob, _):
        await first.until(lambda: first.view.hand > 0 and first.view.pot > 0)
        hand, put = first.view.hand, first.me.contributed
        await live.operator.void_hand(table, hand, "wrong deal")
        await first.until(lambda: any(notice.kind == "REFUND" for notice in first.notices))
        found = [notice for notice in await ada.notices(table) if notice.hand == hand]
        assert [(notice.kind, notice.reason, notice.amount) for notice in found] == [("REFUND", "OPERATOR", put)]
        await first.acknowledge()
        assert await ada.notices(table) == []
        assert await bob.notices(table)
        await bob.acknowledge(table)
        assert await bob.notices(table) == []


async def test_S6_who_leaves_after_the_hand_plays_it_to_its_end(live: Live) -> None:
    table = await live.open_table()
    async with two_seated(live, table) as (ada, first, _, second):
        await first.until(lambda: first.view.hand > 0 and first.me.in_hand)
        hand = first.view.hand
        leaving = asyncio.create_task(first.leave(after_hand=True))
        await first.until(lambda: first.me.leaving)
        assert not first.me.folded
        await check_down(first, second)
        taken = await leaving
        session = await ada.session(table)
        assert (session.cashed_out, session.hands >= 1, session.end_time_us > 0) == (taken, True, True)
        assert (await ada.hands(table, limit=1))[0].hand == hand
