"""Bad input: every refusal has its code and reason and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import grpc
import pytest
from tests.table.support import Client, Room, bearer, open_request, refusal
from tests.table.test_hand import ALL_IN, BET, CALL, CHECK, FOLD, RAISE, heads_up, play

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.runtime.auth import TokenSigner
from relance.runtime.errors import code_of, reason_name
from relance.table.process import Process

Kind: TypeAlias = "table_pb2.ActionKind.ValueType"


@asynccontextmanager
async def unchanged(process: Process, table: str) -> AsyncIterator[None]:
    """What is done inside leaves the table at its version."""
    actor = process.tables.actors[table]
    before = actor.table.version
    yield
    assert actor.table.version == before


async def refused(client: Client, kind: Kind, amount: int = 0, turn: int = 0) -> tuple[str, dict[str, str]]:
    """Reason and metadata of a refused action."""
    answer = await client.act(kind, amount, turn)
    assert answer.WhichOneof("message") == "refusal", answer
    return answer.refusal.reason, dict(answer.refusal.metadata)


async def test_an_action_that_is_not_legal_is_refused_with_what_would_be(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, other = await heads_up(players)
    prompt = await button.asked(button.seat)
    async with unchanged(process, table):
        assert (await refused(other, CHECK))[0] == "NOT_YOUR_TURN"
        assert (await refused(button, CALL, 0, prompt.turn - 1))[0] == "STALE_TURN"
        assert (await refused(button, CHECK))[0] == "ACTION_NOT_OFFERED"
        assert (await refused(button, BET, 100))[0] in {"ACTION_NOT_OFFERED", "RAISE_NOT_ALLOWED"}
        name, bounds = await refused(button, RAISE, 199)
        assert (name, bounds["min"], bounds["max"]) == ("AMOUNT_OUT_OF_RANGE", "200", "2000")
        assert (await refused(button, RAISE, 2001))[0] == "AMOUNT_OUT_OF_RANGE"
        for amount in (0, -100, 10**15 + 1, 2**63 - 1):
            assert (await refused(button, RAISE, amount))[0] == "INVALID_AMOUNT"
        unknown: Kind = 99  # type: ignore[assignment]
        name, allowed = await refused(button, unknown)
        assert (name, allowed["field"]) == ("FIELD_INVALID", "action.kind")
        assert (await refused(button, table_pb2.ACTION_KIND_UNSPECIFIED))[0] == "FIELD_MISSING"
        assert (await refused(button, CALL, 0, -1))[0] == "FIELD_INVALID"
    await play(button, ALL_IN)


WITHOUT_A_SEAT = (
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=1, buy_in=2000)), "SEAT_TAKEN"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=7, buy_in=2000)), "SEAT_OUT_OF_RANGE"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=-1, buy_in=2000)), "SEAT_OUT_OF_RANGE"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=4, buy_in=99)), "BUY_IN_OUT_OF_RANGE"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=4, buy_in=1_000_001)), "BUY_IN_OUT_OF_RANGE"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=4)), "INVALID_AMOUNT"),
    (table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=4, buy_in=-5)), "INVALID_AMOUNT"),
    (table_pb2.PlayRequest(act=table_pb2.ActRequest(action=table_pb2.Action(kind=FOLD))), "NOT_SEATED"),
    (table_pb2.PlayRequest(act=table_pb2.ActRequest()), "FIELD_MISSING"),
    (table_pb2.PlayRequest(add_chips=table_pb2.AddChipsRequest(amount=100)), "NOT_SEATED"),
    (table_pb2.PlayRequest(sit_out=table_pb2.SitOutRequest()), "NOT_SEATED"),
    (table_pb2.PlayRequest(sit_in=table_pb2.SitInRequest()), "NOT_SEATED"),
    (table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()), "NOT_SEATED"),
    (table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest(table="tables/other")), "FIELD_INVALID"),
    (table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest(request_id="x" * 65)), "FIELD_TOO_LONG"),
    (table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest(request_id="a b")), "FIELD_INVALID"),
)


async def test_a_player_without_a_seat_is_refused_on_the_stream_and_the_stream_goes_on(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    await room.seated(process, table, {"ann": 2000, "bob": 2000})
    eve = await room.join(process, table, "eve")
    for request, reason in WITHOUT_A_SEAT:
        for _ in range(2):
            async with unchanged(process, table):
                answer = await eve.ask(request)
                assert answer.refusal.reason == reason
                assert answer.refusal.code == code_of(reason_value(reason)).value[0]


async def test_what_is_no_message_is_refused_and_the_stream_goes_on(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    eve = await room.join(process, table, "eve")
    await eve.call.write(b"\xff\xff\xff")
    await eve.call.write(b"")
    await eve.call.write(table_pb2.PlayRequest(join=table_pb2.Join(table=f"tables/{table}")).SerializeToString())
    answer = await eve.ask(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
    assert answer.refusal.reason == "NOT_SEATED"
    reasons = [message.refusal.reason for message in eve.messages[1:]]
    assert reasons == ["FIELD_INVALID", "FIELD_MISSING", "FIELD_INVALID", "NOT_SEATED"]


async def test_no_money_is_a_recorded_refusal_and_the_seat_is_free_again(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    eve = await room.join(process, table, "eve")
    answer = await eve.ask(table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(seat=1, buy_in=2000)))
    assert answer.result.version
    await eve.saw("seat_released")
    refused = await eve.saw("transfer_refused")
    assert refused.transfer_refused.reason == "NO_MONEY"
    assert not process.tables.actors[table].table.seats


async def test_names_of_tables_that_are_none(room: Room) -> None:
    process = await room.start()
    me = bearer(room.keys.player("ann"))
    stub = room.tables(process)
    for name, reason in (
        ("", "FIELD_MISSING"),
        ("t1", "INVALID_NAME"),
        ("tables/A", "INVALID_NAME"),
        ("tables/" + "x" * 41, "INVALID_NAME"),
        ("tables/none", "TABLE_NOT_FOUND"),
    ):
        act = table_pb2.ActRequest(table=name, request_id="r", action=table_pb2.Action(kind=FOLD))
        for call in (
            stub.Act(act, metadata=me),
            stub.GetTable(table_pb2.GetTableRequest(table=name), metadata=me),
            stub.Locate(table_pb2.LocateRequest(table=name), metadata=me),
            stub.LeaveSeat(table_pb2.LeaveSeatRequest(table=name, request_id="r"), metadata=me),
        ):
            assert reason_name((await refusal(call)).reason) == reason
        stream = Client(room, process, name.removeprefix("tables/"), "ann")
        await stream.send(table_pb2.PlayRequest(join=table_pb2.Join(table=name)))
        await stream.end()
        assert reason_name(stream.refused().reason) == reason


async def test_who_may_not_is_refused_before_anything_else(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    name = f"tables/{table}"
    stub, admin = room.tables(process), room.admin(process)
    act = table_pb2.ActRequest(table=name, request_id="r", action=table_pb2.Action(kind=FOLD))
    forged = TokenSigner.generate("lobby-1").sign("ann", ("player",), seconds=60)[0]
    async with unchanged(process, table):
        for token, reason in (
            ("", "TOKEN_MISSING"),
            ("nonsense", "TOKEN_INVALID"),
            (forged, "TOKEN_INVALID"),
            (room.keys.player("ann", seconds=-60), "TOKEN_EXPIRED"),
            (room.keys.operator("floor"), "ROLE_REQUIRED"),
        ):
            metadata = bearer(token) if token else ()
            assert reason_name((await refusal(stub.Act(act, metadata=metadata))).reason) == reason
        player = bearer(room.keys.player("ann"))
        void = table_pb2.VoidHandRequest(table=name, request_id="r", hand=1, reason="why")
        assert reason_name((await refusal(admin.VoidHand(void, metadata=player))).reason) == "ROLE_REQUIRED"
        close = table_pb2.CloseTableRequest(table=name, request_id="r")
        viewer = bearer(room.keys.operator("viewer"))
        assert reason_name((await refusal(admin.CloseTable(close, metadata=viewer))).reason) == "ROLE_REQUIRED"
        assert reason_name((await refusal(admin.OpenTable(open_request(), metadata=viewer))).reason) == "ROLE_REQUIRED"
        heads = table_pb2.ListHeadsRequest()
        assert reason_name((await refusal(admin.ListHeads(heads, metadata=player))).reason) == "ROLE_REQUIRED"


async def test_a_message_over_64_KiB_is_refused_by_the_library(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    request = table_pb2.LeaveSeatRequest(table=f"tables/{table}", request_id="x" * 70_000)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await room.tables(process).LeaveSeat(request, metadata=bearer(room.keys.player("ann")))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_what_a_house_does_not_spread_is_refused_and_an_open_is_done_once(room: Room) -> None:
    process = await room.start()
    admin, floor = room.admin(process), bearer(room.keys.operator("floor"))
    for request, reason in (
        (open_request(house="casino"), "NOT_SPREAD"),
        (open_request(limit=77), "NOT_SPREAD"),
        (open_request(currency=0), "FIELD_MISSING"),
        (open_request(request_id=""), "FIELD_MISSING"),
        (open_request(display_name="x" * 65), "FIELD_TOO_LONG"),
        (open_request(stakes=game_pb2.Stakes(blinds=[50, -100], low_limit=100)), "INVALID_AMOUNT"),
    ):
        assert reason_name((await refusal(admin.OpenTable(request, metadata=floor))).reason) == reason
    once = await admin.OpenTable(open_request(), metadata=floor)
    assert await admin.OpenTable(open_request(), metadata=floor) == once
    assert once.address == process.address
    other = await refusal(admin.OpenTable(open_request(seats=2), metadata=floor))
    assert reason_name(other.reason) == "REQUEST_ID_REUSED"
    assert len(process.tables.actors) == 1


async def test_C4_a_hand_is_voided_while_it_runs_and_only_a_ruling_can_follow_it(room: Room) -> None:
    process = await room.start()
    table = await room.open(process, timers_between_ms=60_000)
    players = await room.seated(process, table, {"ann": 2000, "bob": 2000})
    button, _ = await heads_up(players)
    await play(button, RAISE, 300)
    admin, floor = room.admin(process), bearer(room.keys.operator("floor"))

    def void(hand: int, request_id: str, reason: str = "a player was ill") -> table_pb2.VoidHandRequest:
        return table_pb2.VoidHandRequest(table=f"tables/{table}", request_id=request_id, hand=hand, reason=reason)

    async with unchanged(process, table):
        for request, reason in (
            (void(2, "a"), "NO_ACTIVE_HAND"),
            (void(0, "b"), "FIELD_MISSING"),
            (void(1, "c", ""), "FIELD_MISSING"),
            (void(1, "d", "x" * 501), "FIELD_TOO_LONG"),
        ):
            assert reason_name((await refusal(admin.VoidHand(request, metadata=floor))).reason) == reason
    once = await admin.VoidHand(void(1, "e"), metadata=floor)
    assert await admin.VoidHand(void(1, "e"), metadata=floor) == once
    voided = (await button.saw("hand_voided")).hand_voided
    assert (voided.reason, voided.operator, voided.note) == (
        events_pb2.VOID_REASON_OPERATOR, "operators/ada", "a player was ill",
    )  # fmt: skip
    assert {refund.player: refund.stack for refund in voided.refunds} == {"ann": 2000, "bob": 2000}
    notices = [message.notice for message in button.messages if message.HasField("notice")]
    assert [(notice.kind, notice.amount) for notice in notices] == [("REFUND", 300)]
    assert reason_name((await refusal(admin.VoidHand(void(1, "f"), metadata=floor))).reason) == "HAND_ALREADY_OVER"
    ruling = table_pb2.RecordRulingRequest(table=f"tables/{table}", request_id="g", hand=1, text="chips given back")
    assert (await admin.RecordRuling(ruling, metadata=floor)).version
    recorded = (await button.saw("ruling_recorded")).ruling_recorded
    assert (recorded.operator, recorded.about_hand, recorded.text) == ("operators/ada", 1, "chips given back")


async def test_a_closed_table_pays_everyone_and_refuses_from_then_on(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    await room.deposit("ann", 2000)
    ann = await room.join(process, table, "ann")
    await ann.take_seat(1, 2000)
    close = table_pb2.CloseTableRequest(table=f"tables/{table}", request_id="r", reason="end of the day")
    floor = bearer(room.keys.operator("floor"))
    assert (await room.admin(process).CloseTable(close, metadata=floor)).version
    await ann.end()
    assert reason_name(ann.refused().reason) == "TABLE_CLOSED"
    assert await room.balance("ann") == 2000
    sit = table_pb2.TakeSeatRequest(table=f"tables/{table}", request_id="s", seat=1, buy_in=2000)
    me = bearer(room.keys.player("ann"))
    assert reason_name((await refusal(room.tables(process).TakeSeat(sit, metadata=me))).reason) == "TABLE_CLOSED"


async def test_hands_that_were_not_played_are_not_found(room: Room) -> None:
    process = await room.start()
    table = await room.open(process)
    me = bearer(room.keys.player("ann"))
    for hand, reason in ((1, "HAND_NOT_FOUND"), (0, "FIELD_MISSING"), (-1, "FIELD_INVALID")):
        request = table_pb2.GetHandRequest(table=f"tables/{table}", hand=hand)
        assert reason_name((await refusal(room.tables(process).GetHand(request, metadata=me))).reason) == reason


def reason_value(name: str) -> int:
    """Value of a reason by its name on the wire."""
    return reason_pb2.Reason.Value("REASON_" + name)
