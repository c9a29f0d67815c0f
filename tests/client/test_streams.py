"""What the client does when a Play stream goes wrong, against a room on cue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio
from tests.client.scripted import PLAYER, TABLE, Line, ScriptedRoom, checked, prompt, scripted_room, signed_in, view

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.api.table.v1.table_pb2 import (
    ACTION_KIND_ACCEPT_SPLIT,
    ACTION_KIND_ALL_IN,
    ACTION_KIND_CALL,
    ACTION_KIND_CHECK,
    ACTION_KIND_DISCARD,
    ACTION_KIND_FOLD,
    ACTION_KIND_MUCK,
    ACTION_KIND_POST,
    ACTION_KIND_REFUSE_SPLIT,
    ACTION_KIND_SHOW,
)
from relance.client import (
    ActionRefused,
    NoMoney,
    OutcomeUnknown,
    RelanceError,
    ResumeImpossible,
    StaleAction,
    Unavailable,
)
from relance.client import events as client_events
from relance.client.errors import SlowReader


@pytest_asyncio.fixture
async def scripted() -> AsyncIterator[ScriptedRoom]:
    async with scripted_room() as room:
        yield room


async def test_a_turn_says_what_is_legal_and_its_action_is_answered_with_a_version(scripted: ScriptedRoom) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_CHECK, ACTION_KIND_FOLD)))
        act = await line.act()
        assert (act.action.turn, act.action.kind) == (5, ACTION_KIND_CHECK)
        await line.result(act.request_id, 6)
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play("t1") as seat:
        turn = await anext(seat.turns())
        assert (turn.can_check, turn.can_call, turn.can_raise, turn.open) == (True, False, False, True)
        assert 15 < turn.seconds_left <= 20
        assert await turn.check_or_call() == 6


async def test_check_or_call_answers_every_turn_for_the_least(scripted: ScriptedRoom) -> None:
    asked = (
        ((ACTION_KIND_ALL_IN, ACTION_KIND_FOLD), ACTION_KIND_ALL_IN),
        ((ACTION_KIND_DISCARD,), ACTION_KIND_DISCARD),
        ((ACTION_KIND_POST, ACTION_KIND_FOLD), ACTION_KIND_POST),
        ((ACTION_KIND_MUCK, ACTION_KIND_SHOW), ACTION_KIND_SHOW),
        ((ACTION_KIND_ACCEPT_SPLIT, ACTION_KIND_REFUSE_SPLIT), ACTION_KIND_REFUSE_SPLIT),
    )

    async def script(line: Line) -> None:
        for version, (offered, expected) in enumerate(asked, 5):
            if version == 5:
                await line.welcome(view(5, seat=1, prompt=prompt(5, *offered)))
            else:
                await line.update(checked(version), prompt=prompt(version, *offered))
            act = await line.act()
            assert (act.action.turn, act.action.kind, act.action.cards) == (version, expected, "")
            await line.result(act.request_id, version + 1)
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play("t1") as seat:
        turns = seat.turns()
        for version in range(5, 5 + len(asked)):
            turn = await anext(turns)
            assert turn.number == version
            assert await turn.check_or_call() == version + 1


async def test_a_lost_stream_resumes_at_the_version_last_seen_and_misses_nothing(scripted: ScriptedRoom) -> None:
    async def first(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.update(checked(6))

    async def second(line: Line) -> None:
        await line.welcome(view(9, seat=1))
        await line.update(checked(7), checked(8))
        await line.update(checked(9))
        await line.update(checked(10))
        await line.wait()

    scripted.scripts = [first, second]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        with seat.events() as events:
            versions = [(await anext(events)).version for _ in range(5 if seat.version == 5 else 4)]
        assert versions == list(range(versions[0], 11))
        assert scripted.joins == [0, 6]
        assert (seat.version, seat.reconnects) == (10, 1)


async def test_an_unanswered_command_is_sent_again_with_its_request_id(scripted: ScriptedRoom) -> None:
    ids: list[str] = []

    async def dies(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_CALL)))
        ids.append((await line.act()).request_id)

    async def answers(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_CALL)))
        ids.append((await line.act()).request_id)
        await line.result(ids[-1], 6)
        await line.wait()

    scripted.scripts = [dies, dies, answers]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        assert await (await anext(seat.turns())).call() == 6
    assert len(ids) == 3
    assert len(set(ids)) == 1


@pytest.mark.parametrize("reason", ["TABLE_UNAVAILABLE", "MAILBOX_FULL"])
async def test_a_refusal_that_says_not_now_is_tried_again_on_the_same_stream(
    scripted: ScriptedRoom, reason: str
) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        first = await line.read()
        await line.refuse(first.sit_out.request_id, reason)
        again = await line.read()
        assert again == first
        await line.result(again.sit_out.request_id, 6)
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        assert await seat.sit_out() == 6


@pytest.mark.parametrize("how", ["notice", "refusal", "status"])
async def test_a_moved_table_is_followed_to_where_the_server_says(scripted: ScriptedRoom, how: str) -> None:
    async with scripted_room() as elsewhere:

        async def moved(line: Line) -> None:
            if how == "status":
                code = grpc.StatusCode.FAILED_PRECONDITION
                await line.hang_up("TABLE_MOVED", code, table="t1", address=elsewhere.address)
            await line.welcome(view(5, seat=1))
            if how == "notice":
                await line.notice("MOVED", elsewhere.address)
            else:
                request = await line.read()
                await line.refuse(request.sit_out.request_id, "TABLE_MOVED", address=elsewhere.address)
            await line.wait()

        async def here(line: Line) -> None:
            await line.welcome(view(5, seat=1))
            await line.result((await line.read()).sit_out.request_id, 6)
            await line.wait()

        scripted.scripts, elsewhere.scripts = [moved], [here]
        async with signed_in(scripted) as room, room.play(TABLE) as seat:
            assert await seat.sit_out() == 6
        assert len(elsewhere.joins) == 1


async def test_who_is_served_by_a_process_that_passes_calls_on_stays_with_it_wherever_the_table_goes(
    scripted: ScriptedRoom,
) -> None:
    scripted.forwards, scripted.home = True, "127.0.0.1:1"

    async def moved(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.notice("MOVED", scripted.home)
        await line.wait()

    async def here(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.result((await line.read()).sit_out.request_id, 6)
        await line.wait()

    scripted.scripts = [moved, here]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        assert await seat.sit_out() == 6
    assert len(scripted.joins) == 2


async def test_a_gap_in_the_versions_is_asked_for_once_and_then_an_error(scripted: ScriptedRoom) -> None:
    async def gap(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.update(checked(7))
        await line.wait()

    scripted.scripts = [gap]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        with pytest.raises(ResumeImpossible, match="version 7 came after 5"):
            await seat.until(lambda: seat.version > 5)
        assert scripted.joins == [0, 5]


async def test_a_gap_that_a_new_stream_fills_is_not_noticed(scripted: ScriptedRoom) -> None:
    async def gap(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.update(checked(7))
        await line.wait()

    async def filled(line: Line) -> None:
        await line.welcome(view(7, seat=1))
        await line.update(checked(6), checked(7))
        await line.wait()

    scripted.scripts = [gap, filled]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        await seat.until(lambda: seat.version == 7)


async def test_a_server_behind_the_client_cannot_be_resumed_from(scripted: ScriptedRoom) -> None:
    async def ahead(line: Line) -> None:
        await line.welcome(view(9, seat=1))

    async def behind(line: Line) -> None:
        await line.welcome(view(4, seat=1))
        await line.wait()

    scripted.scripts = [ahead, behind]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        with pytest.raises(ResumeImpossible, match="saw version 9, the server is at 4"):
            await seat.until(lambda: False)
        with pytest.raises(ResumeImpossible):
            await seat.sit_out()


async def test_an_unknown_table_is_an_error_at_once(scripted: ScriptedRoom) -> None:
    async def unknown(line: Line) -> None:
        await line.hang_up("TABLE_NOT_FOUND", grpc.StatusCode.NOT_FOUND, table="t9")

    scripted.scripts = [unknown]
    async with signed_in(scripted) as room:
        with pytest.raises(RelanceError) as refused:
            await room.play("t9").__aenter__()
    assert (refused.value.reason, refused.value.metadata) == ("TABLE_NOT_FOUND", {"table": "t9"})
    assert len(scripted.joins) == 1


async def test_patience_ends_with_unavailable_and_commands_with_outcome_unknown(scripted: ScriptedRoom) -> None:
    async def silent(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.wait()

    async def refuses(line: Line) -> None:
        await line.hang_up("TABLE_UNAVAILABLE", grpc.StatusCode.UNAVAILABLE, table="t1")

    scripted.scripts = [silent, refuses]
    async with signed_in(scripted, patience=0.3) as room:
        async with room.play(TABLE) as seat:
            with pytest.raises(OutcomeUnknown, match="may have been done"):
                await seat.sit_out()
        with pytest.raises(Unavailable):
            await room.play(TABLE).__aenter__()


async def test_refused_actions_say_why_and_what_would_be_accepted(scripted: ScriptedRoom) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_FOLD)))
        await line.refuse((await line.act()).request_id, "AMOUNT_OUT_OF_RANGE", min="200", max="900")
        await line.refuse((await line.act()).request_id, "STALE_TURN", turn="9")
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        turn = await anext(seat.turns())
        with pytest.raises(ActionRefused) as refused:
            await turn.raise_to(1)
        assert refused.value.metadata == {"min": "200", "max": "900"}
        assert refused.value.code is grpc.StatusCode.FAILED_PRECONDITION
        assert turn.open
        with pytest.raises(StaleAction):
            await turn.fold()


async def test_a_turn_closes_when_it_is_answered_and_only_the_newest_is_served(scripted: ScriptedRoom) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_FOLD)))
        await line.read()
        await line.update(checked(6, seat=1), prompt=prompt(6, ACTION_KIND_CHECK, seat=2))
        await line.update(checked(7), prompt=prompt(7, ACTION_KIND_CHECK))
        await line.update(checked(8, seat=1), prompt=prompt(8, ACTION_KIND_CALL))
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        turns = seat.turns()
        first = await anext(turns)
        asked = asyncio.create_task(seat.sit_out())
        await seat.until(lambda: seat.version == 8)
        assert not first.open
        assert (await anext(turns)).number == 8
        asked.cancel()


async def test_the_turns_of_one_hand_end_with_it(scripted: ScriptedRoom) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        started = events_pb2.HandStarted(players=[events_pb2.HandPlayer(seat=1, player=PLAYER, stack=500)], button=1)
        await line.update(
            events_pb2.TableEvent(table="t1", version=6, hand=1, hand_started=started),
            prompt=prompt(6, ACTION_KIND_CHECK),
        )
        await line.result((await line.act()).request_id, 7)
        ended = events_pb2.HandEnded(results=[events_pb2.SeatResult(seat=1, player=PLAYER, stack=700)])
        await line.update(checked(7, seat=1), events_pb2.TableEvent(table="t1", version=8, hand=1, hand_ended=ended))
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        turns = [(turn.number, await turn.check()) async for turn in seat.hand()]
        assert turns == [(6, 7)]
        assert (seat.view.hand, seat.view.last_hand, seat.stack) == (0, 1, 700)


async def test_sitting_down_waits_for_the_money_and_says_that_there_is_none(scripted: ScriptedRoom) -> None:
    def event(version: int, **payload: object) -> events_pb2.TableEvent:
        return events_pb2.TableEvent(table="t1", version=version, **payload)  # type: ignore[arg-type]

    async def script(line: Line) -> None:
        await line.welcome(view(5))
        request = await line.read()
        await line.result(request.take_seat.request_id, 6)
        await line.update(event(6, seat_reserved=events_pb2.SeatReserved(seat=2, player=PLAYER, amount=100)))
        await line.update(
            event(7, transfer_refused=events_pb2.TransferRefused(seat=2, player=PLAYER, amount=100, reason="NO_MONEY")),
            event(8, seat_released=events_pb2.SeatReleased(seat=2, player=PLAYER, reason="REFUSED")),
        )
        request = await line.read()
        await line.update(event(9, player_sat=events_pb2.PlayerSat(seat=1, player=PLAYER, stack=50)))
        await line.result(request.take_seat.request_id, 9)
        request = await line.read()
        await line.result(request.leave_seat.request_id, 10)
        await line.update(event(10, player_left=events_pb2.PlayerLeft(seat=1, player=PLAYER, amount=50)))
        await line.update(
            event(
                11,
                transfer_settled=events_pb2.TransferSettled(
                    player=PLAYER, amount=50, seat=1, purpose=events_pb2.TRANSFER_PURPOSE_CASH_OUT
                ),
            )
        )
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        with pytest.raises(NoMoney):
            await seat.sit(buy_in=100, seat=2)
        assert seat.number == 0
        assert await seat.sit(buy_in=50) == 1
        assert (seat.number, seat.stack) == (1, 50)
        assert await seat.leave(settled=True) == 50
        assert [turn async for turn in seat.turns()] == []


async def test_a_stream_is_given_a_new_token_before_the_old_one_runs_out(scripted: ScriptedRoom) -> None:
    given: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        given.set_result((await line.read()).refresh_token.token)
        await line.wait()

    scripted.scripts, scripted.token_seconds = [script], 0.5
    async with signed_in(scripted) as room, room.play(TABLE):
        async with asyncio.timeout(5):
            assert (await given).startswith("x.")


async def test_a_stream_whose_token_expired_signs_in_again_and_goes_on(scripted: ScriptedRoom) -> None:
    async def expired(line: Line) -> None:
        await line.welcome(view(5, seat=1))
        await line.hang_up("TOKEN_EXPIRED", grpc.StatusCode.UNAUTHENTICATED)

    async def fine(line: Line) -> None:
        await line.welcome(view(6, seat=1))
        await line.update(checked(6))
        await line.wait()

    scripted.scripts = [expired, fine]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        await seat.until(lambda: seat.version == 6)
    assert scripted.sign_ins == 2


async def test_a_turn_is_over_when_the_next_one_is_the_same_seat_s(scripted: ScriptedRoom) -> None:
    """The clock won, a street was dealt, and whoever was asked last is asked first."""

    async def script(line: Line) -> None:
        await line.welcome(view(5, seat=1, prompt=prompt(5, ACTION_KIND_CHECK)))
        await line.read()
        await line.update(checked(6, seat=1), checked(7), prompt=prompt(7, ACTION_KIND_CHECK))
        await line.wait()

    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        turns = seat.turns()
        first = await anext(turns)
        asked = asyncio.create_task(seat.sit_out())
        second = await anext(turns)
        assert (first.number, first.open, second.number, second.open) == (5, False, 7, True)
        asked.cancel()


async def test_a_reader_that_does_not_read_is_cut_off_alone(
    scripted: ScriptedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(line: Line) -> None:
        await line.welcome(view(1, seat=1))
        await line.read()
        for version in range(2, 12):
            await line.update(checked(version))
        await line.wait()

    monkeypatch.setattr(client_events, "BUFFER", 4)
    scripted.scripts = [script]
    async with signed_in(scripted) as room, room.play(TABLE) as seat:
        slow, asked = seat.events(), asyncio.create_task(seat.sit_out())
        await seat.until(lambda: seat.version == 11)
        assert [(await anext(slow)).version for _ in range(4)] == [2, 3, 4, 5]
        with pytest.raises(SlowReader):
            await anext(slow)
        asked.cancel()


async def test_calls_page_retry_and_renew_their_token(scripted: ScriptedRoom) -> None:
    scripted.refusals = [
        ("UNAVAILABLE", grpc.StatusCode.UNAVAILABLE),
        ("CANCELLED", grpc.StatusCode.CANCELLED),
        ("TOKEN_EXPIRED", grpc.StatusCode.UNAUTHENTICATED),
    ]
    async with signed_in(scripted) as room:
        assert [table.name for table in await room.list_tables()] == ["tables/t1", "tables/t2", "tables/t3"]
        assert len(await room.list_tables(limit=2)) == 2
    assert scripted.tokens[0] == scripted.tokens[1] == scripted.tokens[2] != scripted.tokens[3]
    assert scripted.sign_ins == 2


async def test_a_room_that_nobody_serves_is_unavailable_after_patience() -> None:
    from relance.client import connect

    async with connect("127.0.0.1:1", patience=0.2) as room:
        with pytest.raises(Unavailable):
            await room.services()


def test_event_payloads_can_be_matched_by_class() -> None:
    event = client_events.event_of(checked(4, seat=2))
    match event.data:
        case events_pb2.Checked(seat=seat):
            assert (event.kind, event.version, seat) == ("checked", 4, 2)
        case _:
            pytest.fail("not matched")


def test_table_names_are_taken_in_every_form() -> None:
    from relance.client.names import plain_id, table_name

    assert table_name("t1") == table_name("tables/t1") == "tables/t1"
    assert plain_id("tables/t1") == "t1"
    assert table_pb2.ActionKind.Name(ACTION_KIND_FOLD) == "ACTION_KIND_FOLD"
