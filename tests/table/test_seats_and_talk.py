"""A seat at a real table process: holds, invitations, preferences, chat, own hands, notices, the floor's words."""

from __future__ import annotations

from tests.table.support import Room, bearer, refusal, until

from relance.api.common.v1 import reason_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.runtime.invitations import invite

FOLD = table_pb2.ACTION_KIND_FOLD


async def test_C4_a_table_with_talk_own_hands_sessions_and_the_floor(room: Room) -> None:
    """N1, PROTO-16: chat is durable, normalised, bounded, can be muted; every word of the floor is an event."""
    process = await room.start()
    table = await room.open(process)
    name = f"tables/{table}"
    clients = await room.seated(process, table, {"ann": 5000, "bob": 5000})
    ann, tables = clients["ann"], room.tables(process)
    mine, floor = bearer(room.keys.player("ann")), bearer(room.keys.operator("floor"))

    said = await ann.ask(table_pb2.PlayRequest(chat=table_pb2.SendChatRequest(text="e\u0301" * 128)))
    assert said.HasField("result")
    await until(lambda: any(message.HasField("chat") for message in clients["bob"].messages))
    for text, why in (("x" * 129, "FIELD_TOO_LONG"), ("a\nb", "FIELD_INVALID")):
        answer = await ann.ask(table_pb2.PlayRequest(chat=table_pb2.SendChatRequest(text=text, request_id=why)))
        assert answer.refusal.reason == why
    request = table_pb2.SendChatRequest(table=name, request_id="hi", text="hi")
    once = await tables.SendChat(request, metadata=mine)
    assert await tables.SendChat(request, metadata=mine) == once
    talk = await tables.ListChat(table_pb2.ListChatRequest(table=name), metadata=mine)
    assert [message.text for message in talk.messages] == ["é" * 128, "hi"]
    late = await room.watch(process, table)
    await until(lambda: [m.chat.text for m in late.messages if m.HasField("chat")] == ["é" * 128, "hi"])
    assert (await refusal(tables.SendChat(request, metadata=bearer(room.keys.player("eve"))))).reason == (
        reason_pb2.REASON_NOT_SEATED
    )

    admin = room.admin(process)
    mute = table_pb2.MutePlayerRequest(table=name, request_id="m", player="players/ann", reason="rude")
    await admin.MutePlayer(mute, metadata=floor)
    silent = table_pb2.SendChatRequest(table=name, request_id="no", text="no")
    assert (await refusal(tables.SendChat(silent, metadata=mine))).reason == reason_pb2.REASON_MUTED
    warn = table_pb2.WarnPlayerRequest(table=name, request_id="w", player="players/ann", reason="dropping out (C2)")
    await admin.WarnPlayer(warn, metadata=floor)
    warned = (await ann.saw("player_warned")).player_warned
    assert (warned.operator, warned.reason) == ("operators/ada", "dropping out (C2)")

    prefer = table_pb2.SetSeatPreferencesRequest(preferences=table_pb2.SeatPreferences(auto_muck=True))
    assert (await ann.ask(table_pb2.PlayRequest(set_seat_preferences=prefer))).HasField("result")
    await until(lambda: ann.prompt is not None)
    asked = next(client for client in clients.values() if ann.prompt is not None and client.seat == ann.prompt.seat)
    await asked.act(FOLD)
    await ann.saw("hand_ended")
    hands = await tables.ListHands(table_pb2.ListHandsRequest(table=name, page_size=1), metadata=mine)
    assert hands.hands[0].seat == ann.seat
    assert len(hands.hands[0].cards) == 4
    session = await tables.GetSession(table_pb2.GetSessionRequest(table=name), metadata=mine)
    assert (session.bought_in, session.hands >= 1, session.end_time_us) == (5000, True, 0)

    change = table_pb2.ChangeSettingsRequest(table=name, request_id="c", reason="slower", display_name="Slow")
    await admin.ChangeSettings(change, metadata=floor)
    assert (await ann.saw("settings_changed")).settings_changed.config.display_name == "Slow"
    # Two at once do not undo one another; a repeat is answered as before, whatever has changed since.
    more = table_pb2.ChangeSettingsRequest(table=name, request_id="c1", reason="more", min_buy_in=900)
    wider = table_pb2.ChangeSettingsRequest(table=name, request_id="c2", reason="wider", display_name="Wide")
    calls = [admin.ChangeSettings(each, metadata=floor) for each in (more, wider)]
    raised, _ = [await call for call in calls]
    config = process.tables.actors[table].table.config
    assert config is not None
    assert (config.min_buy_in, config.display_name) == (900, "Wide")
    less = table_pb2.ChangeSettingsRequest(table=name, request_id="c3", reason="less", min_buy_in=100, max_buy_in=800)
    await admin.ChangeSettings(less, metadata=floor)
    assert await admin.ChangeSettings(more, metadata=floor) == raised
    dearer = table_pb2.ChangeSettingsRequest(table=name, request_id="k", reason="K6", rake_basis_points=100)
    assert (await refusal(admin.ChangeSettings(dearer, metadata=floor))).metadata["field"] == "rake_basis_points"
    ban = table_pb2.BanPlayerRequest(table=name, request_id="b", player="players/bob", reason="again (C2)")
    await admin.BanPlayer(ban, metadata=floor)
    assert (await ann.saw("player_banned")).player_banned.reason == "again (C2)"
    assert (await refusal(admin.BanPlayer(ban, metadata=mine))).reason == reason_pb2.REASON_ROLE_REQUIRED

    await admin.CloseTable(table_pb2.CloseTableRequest(table=name, request_id="x", reason="late"), metadata=floor)
    await until(lambda: table in process.tables.closed)
    ended = await tables.GetSession(table_pb2.GetSessionRequest(table=name), metadata=mine)
    assert (ended.bought_in, ended.start_time_us) == (5000, session.start_time_us)
    assert ended.end_time_us
    assert ended.leave_reason == events_pb2.LEAVE_REASON_TABLE_CLOSED
    assert not (await tables.ListNotices(table_pb2.ListNoticesRequest(table=name), metadata=mine)).notices
    never = tables.GetSession(table_pb2.GetSessionRequest(table=name), metadata=bearer(room.keys.player("eve")))
    assert (await refusal(never)).reason == reason_pb2.REASON_NOT_SEATED


async def test_S9_seats_are_held_and_private_tables_ask_for_an_invitation(room: Room) -> None:
    process = await room.start()
    table = await room.open(process, private=True)
    name, service = f"tables/{table}", bearer(room.keys.service())
    admin, tables = room.admin(process), room.tables(process)
    hold = table_pb2.HoldSeatRequest(table=name, request_id="h", player="players/ann", duration_ms=60_000)
    held = await admin.HoldSeat(hold, metadata=service)
    assert (held.seat, await admin.HoldSeat(hold, metadata=service)) == (1, held)
    await room.deposit("ann", 500)
    take = table_pb2.TakeSeatRequest(table=name, request_id="t", buy_in=500)
    await tables.TakeSeat(take, metadata=bearer(room.keys.player("ann")))
    bob = bearer(room.keys.player("bob"))
    assert (await refusal(tables.TakeSeat(take, metadata=bob))).reason == reason_pb2.REASON_NOT_INVITED
    now = process.tables.host.clock.now_us()
    take.invitation = invite(room.keys.lobby_signer, "bob", table, seconds=60, now_us=now)[0]
    await tables.TakeSeat(take, metadata=bob)
    other = table_pb2.HoldSeatRequest(table=name, request_id="o", player="players/cid", duration_ms=60_000)
    await admin.HoldSeat(other, metadata=service)
    release = table_pb2.ReleaseSeatRequest(table=name, request_id="r", player="players/cid")
    assert (await admin.ReleaseSeat(release, metadata=service)).version > 0
    assert not process.tables.actors[table].table.holds
