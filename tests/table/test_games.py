"""Every game through the services: opened, played over Play, killed in the middle of what makes it special."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.table.support import Client, Room, bearer, refusal, until
from tests.table.test_hand import to_act

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.client.events import event_of
from relance.client.proofs import Proofs
from relance.poker.games import GAMES, Forced
from relance.poker.houses import all_houses
from relance.table.process import Process

CHECK, CALL = table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL
BRING_IN, DISCARD = table_pb2.ACTION_KIND_BRING_IN, table_pb2.ACTION_KIND_DISCARD
OFFER_SPLIT, POST = table_pb2.ACTION_KIND_OFFER_SPLIT, table_pb2.ACTION_KIND_POST
BET, REFUSE = table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_REFUSE_SPLIT
QUIET = (CHECK, CALL, BRING_IN, DISCARD, REFUSE, POST)
STACKS = {"ann": 5000, "bob": 3000, "cyd": 8000}


def stakes_of(game: str) -> game_pb2.Stakes:
    """Stakes that fit a game's forced bets."""
    match GAMES[game].forced:
        case Forced.BLINDS:
            return game_pb2.Stakes(blinds=[50, 100])
        case Forced.BRING_IN:
            return game_pb2.Stakes(ante=10, bring_in=20, low_limit=100)
        case Forced.ANTES:
            return game_pb2.Stakes(ante=10)


async def opened(room: Room, process: Process, game: str, **changes: object) -> str:
    """A table of a game, for three players and deep stacks."""
    given: dict[str, object] = {"limit": game_pb2.LIMIT_NO_LIMIT, "seats": 3, "min_buy_in": 1000}
    return await room.open(process, game=game, **{**given, "max_buy_in": 100_000, **changes}, stakes=stakes_of(game))


async def play_until(players: dict[str, Client], reached: Callable[[table_pb2.Prompt], bool]) -> Client:
    """Check, call, stand pat, or bet where nothing else keeps the hand alive; who is asked when it is reached."""
    turn = 0
    clients = list(players.values())
    while True:
        await until(lambda: clients[0].prompt is not None and clients[0].prompt.turn > turn)  # noqa: B023
        asked = await to_act(players)
        prompt = await asked.asked(asked.seat, turn)
        if reached(prompt):
            return asked
        turn = prompt.turn
        kind = next(kind for kind in (*QUIET, BET) if kind in prompt.actions)
        answer = await asked.act(kind, prompt.min_raise_to if kind == BET else 0, turn)
        assert answer.WhichOneof("message") == "result", answer


async def test_every_game_and_limit_of_every_house_is_opened_and_anything_else_refused_with_what_is(
    room: Room,
) -> None:
    """D3, B3-B7, B14: the refusal lists what the house spreads."""
    process = await room.start()
    count = 0
    for house in all_houses():
        for offer in house.games.values():
            for limit in game_pb2.Limit.values()[1:]:
                count += 1
                request = table_pb2.OpenTableRequest(
                    request_id=f"open-{count}",
                    house=house.name,
                    game=offer.game,
                    limit=limit,
                    stakes=stakes_of(offer.game),
                    currency=house.currencies[0],
                )
                call = room.admin(process).OpenTable(request, metadata=bearer(room.keys.operator("floor")))
                if limit in offer.limits:
                    assert (await call).table
                else:
                    refused = await refusal(call)
                    assert refused.reason == reason_pb2.REASON_NOT_SPREAD
                    assert refused.metadata["field"] == "limit"
                    assert refused.metadata["allowed"]
    spread = sum(len(offer.limits) for house in all_houses() for offer in house.games.values())
    assert len(process.tables.actors) == spread


MOMENTS: dict[str, tuple[str, Callable[[table_pb2.Prompt], bool]]] = {
    "in the second draw": ("td27", lambda prompt: DISCARD in prompt.actions),
    "on third street": ("stud7", lambda prompt: CALL in prompt.actions),
    "with an open bet after the exchange": ("draw5", lambda prompt: CHECK in prompt.actions),
    "during a split offer": ("draw32", lambda prompt: OFFER_SPLIT in prompt.actions),
}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_C3_a_hand_that_is_killed_in_its_middle_is_refunded(room: Room, moment: str) -> None:
    """C3: in the draw, on third street, during a split offer: everyone has what they sat down with."""
    game, reached = MOMENTS[moment]
    first = await room.start()
    table = await opened(room, first, game)
    players = await room.seated(first, table, STACKS)
    asked = await play_until(players, reached)
    if game == "draw32":
        assert (await asked.act(OFFER_SPLIT)).WhichOneof("message") == "result"
        await asked.saw("split_offered")
    if game == "td27":
        assert (await asked.act(DISCARD)).WhichOneof("message") == "result"
    pot = first.tables.actors[table].table.pot()
    assert pot > 0
    await room.kill(first)
    second = await room.start()
    await until(lambda: table in second.tables.actors)
    actor = second.tables.actors[table]
    await until(lambda: not actor.table.seats and not actor.table.transfers)
    assert {player: await room.balance(player) for player in STACKS} == STACKS
    log = await room.log()
    voided = [event.hand_voided for event in await log.read(table) if event.HasField("hand_voided")]
    assert [sum(refund.amount for refund in each.refunds) for each in voided] == [pot]


async def test_F1_F2_F7_a_dealing_fault_that_the_floor_reports_is_ruled_on_before_everybodys_eyes(room: Room) -> None:
    """F1, F2, F7: watchers see fault, procedure and cards; a misdeal gives everything back and keeps the button."""
    process = await room.start()
    table = await opened(room, process, "holdem", house="salon")
    players = await room.seated(process, table, STACKS)
    watcher = await room.watch(process, table)

    async def report(fault: str, seat: int = 0) -> None:
        request = table_pb2.ReportDealingFaultRequest(
            table=f"tables/{table}",
            request_id=f"fault-{fault}",
            fault=pb.DealingFault.Value(f"DEALING_FAULT_{fault}"),
            seat=seat,
        )
        await room.admin(process).ReportDealingFault(request, metadata=bearer(room.keys.operator("floor")))

    await report("CARD_EXPOSED", 2)
    ruled = (await watcher.saw("dealing_fault_ruled")).dealing_fault_ruled
    assert (ruled.procedure, ruled.seat, ruled.operator) == ("REPLACE", 2, "operators/ada")
    assert len(ruled.exposed) == 2
    ann = players["ann"]
    await play_until(players, lambda prompt: any(event.HasField("board_dealt") for event in ann.events))
    board = await watcher.saw("board_dealt")
    await report("FLOP_TOO_MANY")
    again = await watcher.saw("board_dealt", lambda event: event.version > board.version)
    assert not set(again.board_dealt.positions) & set(board.board_dealt.positions)
    assert (await watcher.saw("deck_reshuffled")).deck_reshuffled.deck_commitments
    refused = await refusal(report("CARDS_EXPOSED"))
    assert refused.reason == reason_pb2.REASON_ACTION_NOT_OFFERED
    assert "FLOP_TOO_MANY" in refused.metadata["offered"]


async def test_F7_a_misdeal_is_dealt_again_with_the_same_button(room: Room) -> None:
    process = await room.start()
    table = await opened(room, process, "holdem", house="salon")
    players = await room.seated(process, table, STACKS)
    watcher = await room.watch(process, table)
    first = (await players["ann"].saw("hand_started")).hand_started
    request = table_pb2.ReportDealingFaultRequest(
        table=f"tables/{table}", request_id="fault", fault=pb.DEALING_FAULT_FIRST_CARD_EXPOSED
    )
    await room.admin(process).ReportDealingFault(request, metadata=bearer(room.keys.operator("floor")))
    voided = (await watcher.saw("hand_voided")).hand_voided
    assert voided.reason == pb.VOID_REASON_MISDEAL
    second = await watcher.saw("hand_started", lambda event: event.hand == 2)
    assert second.hand_started.button == first.button
    assert {player.player: player.stack for player in second.hand_started.players} == STACKS


@pytest.mark.parametrize("game", ["holdem", "stud7", "td27"])
async def test_decks_are_committed_to_and_every_card_that_a_player_sees_is_proven(room: Room, game: str) -> None:
    process = await room.start()
    table = await opened(room, process, game)
    players = await room.seated(process, table, STACKS)
    ann = players["ann"]
    await play_until(players, lambda prompt: prompt.hand > 1)
    proofs = Proofs()
    for event in ann.events:
        if event.hand == 1:
            proofs.check(event_of(event))
    cards = {"holdem": 2 + 5, "stud7": 7 + 4 + 4, "td27": 5}[game]
    assert proofs.proven >= cards
    assert proofs.unproven == 0
