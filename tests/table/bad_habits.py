"""What the players of a simulated room do when they are asked, sitting at a table, or standing beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from relance.api.lobby.v1 import waiting_pb2
from relance.api.table.v1 import table_pb2
from relance.poker import Prompt

if TYPE_CHECKING:
    from tests.table.ten_minutes import Line, Player, Story

LATE = frozenset({"STALE_TURN", "NOT_YOUR_TURN", "NO_ACTIVE_HAND", "NOT_SEATED"})
"""The turn, or the seat, is gone by now."""
SITTING = frozenset(
    {
        "SEAT_TAKEN", "ALREADY_SEATED", "CASH_OUT_PENDING", "BUY_IN_BELOW_PREVIOUS_STACK", "BUY_IN_OUT_OF_RANGE",
        "SEAT_OUT_OF_RANGE", "INVALID_AMOUNT",
    }
)  # fmt: skip
CHIPS = frozenset({"TRANSFER_PENDING", "CASH_OUT_PENDING", "BUY_IN_OUT_OF_RANGE", "INVALID_AMOUNT", "NOT_SEATED"})
CHANGES = frozenset({"NOTHING_TO_CHANGE", "NOT_SEATED"})
TALK = frozenset({"TOO_MANY_REQUESTS", "FIELD_TOO_LONG", "FIELD_INVALID", "NOT_SEATED"})
TOO_MUCH = 10**16


# When they are asked


async def answers(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    await story.act(line, asked)


async def answers_an_earlier_turn(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    fold = story.action(table_pb2.ACTION_KIND_FOLD, turn=asked.turn - 1)
    await story.refused(line, fold)
    await story.act(line, asked)


async def bets_what_is_not_legal(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    amount = story.random.choice((-1, TOO_MUCH, asked.offer.max_raise_to + 1, asked.offer.min_raise_to - 1))
    kind = story.random.choice((table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE))
    reasons = ("AMOUNT_OUT_OF_RANGE", "INVALID_AMOUNT", "RAISE_NOT_ALLOWED", "ACTION_NOT_OFFERED")
    await story.refused(line, story.action(kind, amount, turn=asked.turn), *reasons)
    await story.act(line, asked)


async def clicks_twice(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    """Two answers on their way at once: one at most counts."""
    both = (story.legal(line.table, asked), story.legal(line.table, asked))
    outcomes = await asyncio.gather(*(story.ask(line, each, LATE) for each in both))
    assert outcomes.count("") <= 1, f"turn {asked.turn} was answered twice: {both}"


async def plays_on_two_devices(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    """A second connection, which stays open and is forgotten."""
    if player.second is None or player.second.ended or player.second.table != line.table:
        if player.second is not None:
            await player.second.close()
        player.second = await story.connect(player, line.table)
        await story.quiet()
    outcomes = [await story.act(each, asked) for each in (player.second, line)]
    assert outcomes.count("") <= 1, f"turn {asked.turn} was answered on two connections"


async def uses_a_request_twice(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    request = story.legal(line.table, asked)
    if await story.ask(line, request, LATE):
        return
    await story.quiet()
    version = story.process.tables.actors[line.table].table.version
    assert await story.ask(line, request) == ""
    assert story.process.tables.actors[line.table].table.version == version, "one request did two things"
    other = story.action(table_pb2.ACTION_KIND_FOLD, 12_345)
    other.act.request_id = request.act.request_id
    assert await story.ask(line, other, frozenset({"REQUEST_ID_REUSED"})), "a request_id stood for two requests"


async def drops(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    """Gone in the middle of the turn; back in time, late, or after longer than any grace."""
    await story.drop(player)
    away = story.random.choice((1.0, 5.0, 30.0, 90.0))
    story.later(away, lambda: comes_back(story, player, line.table))


async def comes_back(story: Story, player: Player, table: str) -> None:
    """To the same table, unless they are somewhere else already; who is asked still answers."""
    if player.line is not None and not player.line.ended:
        return
    line = await story.join(player, table)
    await story.quiet()
    if line.prompt.turn and story.is_asked(player.name, table, line.prompt.turn):
        story.ask_again(table)


async def leaves(story: Story, player: Player, line: Line, asked: Prompt) -> None:
    await stands_up(story, player, line)


TURNS: Mapping[str, tuple[float, Callable[[Story, Player, Line, Prompt], Awaitable[None]]]] = {
    "answers": (70, answers),
    "answers an earlier turn": (4, answers_an_earlier_turn),
    "bets what is not legal": (5, bets_what_is_not_legal),
    "clicks twice": (6, clicks_twice),
    "plays on two devices": (3, plays_on_two_devices),
    "uses a request twice": (4, uses_a_request_twice),
    "drops": (5, drops),
    "leaves in the hand": (1, leaves),
}
"""Weight and deed by name."""


# At the table


async def stands_up(story: Story, player: Player, line: Line) -> None:
    leave = table_pb2.LeaveSeatRequest(after_hand=story.random.random() < 0.3)
    await story.ask(line, table_pb2.PlayRequest(leave_seat=leave), CHANGES)


async def sits_out(story: Story, player: Player, line: Line) -> None:
    sit_out = table_pb2.SitOutRequest(at_next_big_blind=story.random.random() < 0.3)
    await story.ask(line, table_pb2.PlayRequest(sit_out=sit_out), CHANGES)


async def sits_in(story: Story, player: Player, line: Line) -> None:
    sit_in = table_pb2.SitInRequest(wait_for_big_blind=story.random.random() < 0.3)
    await story.ask(line, table_pb2.PlayRequest(sit_in=sit_in), CHANGES)


async def tops_up(story: Story, player: Player, line: Line) -> None:
    """In the middle of hands, twice at once, too much, nothing."""
    for _ in range(story.random.choice((1, 2))):
        amount = story.random.choice((1, 500, 3_000, 50_000, 0, -5, TOO_MUCH))
        await story.ask(line, table_pb2.PlayRequest(add_chips=table_pb2.AddChipsRequest(amount=amount)), CHIPS)


async def takes_a_second_seat(story: Story, player: Player, line: Line) -> None:
    request = table_pb2.PlayRequest(take_seat=table_pb2.TakeSeatRequest(buy_in=2_000))
    await story.refused(line, request, "ALREADY_SEATED", "CASH_OUT_PENDING")


async def talks_too_much(story: Story, player: Player, line: Line) -> None:
    for text in story.random.choice((["hello"] * 7, ["x" * 129], ["two\nlines"])):
        await story.ask(line, table_pb2.PlayRequest(chat=table_pb2.SendChatRequest(text=text)), TALK)


async def prefers(story: Story, player: Player, line: Line) -> None:
    wish = table_pb2.SeatPreferences(
        auto_post=story.random.random() < 0.7,
        auto_muck=story.random.random() < 0.7,
        wait_for_big_blind=story.random.random() < 0.2,
        auto_top_up=story.random.choice((0, 2_500)),
    )
    request = table_pb2.SetSeatPreferencesRequest(preferences=wish)
    await story.ask(line, table_pb2.PlayRequest(set_seat_preferences=request), CHANGES)


async def goes_away(story: Story, player: Player, line: Line) -> None:
    await story.drop(player)
    away = story.random.choice((2.0, 15.0, 60.0))
    story.later(away, lambda: comes_back(story, player, line.table))


async def ratholes(story: Story, player: Player, line: Line) -> None:
    """Leave, and come back with the least as soon as the seat is given up (S8)."""
    await story.ask(line, table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()), CHANGES)
    await story.quiet()
    await takes_a_seat(story, player, line)


async def behaves(story: Story, player: Player, line: Line) -> None:
    """Nothing: most of the time."""


SEATED: Mapping[str, tuple[float, Callable[[Story, Player, Line], Awaitable[None]]]] = {
    "behaves": (25, behaves),
    "sits in": (40, sits_in),
    "sits out": (3, sits_out),
    "stands up": (1, stands_up),
    "tops up": (8, tops_up),
    "takes a second seat": (3, takes_a_second_seat),
    "talks too much": (3, talks_too_much),
    "prefers": (4, prefers),
    "goes away": (3, goes_away),
    "ratholes": (3, ratholes),
}


# Beside the table


async def takes_a_seat(story: Story, player: Player, line: Line) -> None:
    """Any seat, or one that may be taken; with the least, with enough, with too little."""
    table = story.process.tables.actors[line.table].table
    config = table.config
    assert config is not None
    seat = story.random.choice((0, 0, 0, 0, 0, 0, 1, 2, config.seats, config.seats + 1))
    most = min(config.max_buy_in or 5_000, 5_000)
    amount = story.random.choice((config.min_buy_in, most, most, most, most, most, 0, config.min_buy_in - 1))
    request = table_pb2.TakeSeatRequest(
        seat=seat,
        buy_in=amount,
        wait_for_big_blind=story.random.random() < 0.3,
        ask_to_post=story.random.random() < 0.3,
    )
    reason = await story.ask(line, table_pb2.PlayRequest(take_seat=request), SITTING)
    if reason == "BUY_IN_BELOW_PREVIOUS_STACK" and story.random.random() < 0.7:
        again = table_pb2.TakeSeatRequest(buy_in=table.took_along[player.name][1])
        await story.ask(line, table_pb2.PlayRequest(take_seat=again), SITTING)


async def sits_and_leaves_at_once(story: Story, player: Player, line: Line) -> None:
    """The leave comes before the wallet has answered, mostly."""
    request = table_pb2.TakeSeatRequest(buy_in=5_000)
    both = (table_pb2.PlayRequest(take_seat=request), table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))
    await asyncio.gather(*(story.ask(line, each, SITTING | CHANGES) for each in both))


async def acts_without_a_seat(story: Story, player: Player, line: Line) -> None:
    await story.refused(line, story.action(table_pb2.ACTION_KIND_FOLD))


async def waits_and_ignores_offers(story: Story, player: Player, line: Line) -> None:
    request = waiting_pb2.JoinWaitlistRequest(table=f"tables/{line.table}")
    await story.waiting(player, lambda lobby, metadata: lobby.JoinWaitlist(request, metadata=metadata))


async def goes_elsewhere(story: Story, player: Player, line: Line) -> None:
    await story.drop(player)


STANDING: Mapping[str, tuple[float, Callable[[Story, Player, Line], Awaitable[None]]]] = {
    "takes a seat": (60, takes_a_seat),
    "sits and leaves at once": (8, sits_and_leaves_at_once),
    "acts without a seat": (5, acts_without_a_seat),
    "waits and ignores offers": (8, waits_and_ignores_offers),
    "goes elsewhere": (8, goes_elsewhere),
}
