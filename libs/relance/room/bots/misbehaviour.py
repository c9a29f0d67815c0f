"""The ways in which bots misbehave: a small table of them, each with what the room may rightly answer."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2
from relance.api.table.v1.table_pb2 import (
    ACTION_KIND_ACCEPT_SPLIT,
    ACTION_KIND_BET,
    ACTION_KIND_BRING_IN,
    ACTION_KIND_COMPLETE,
    ACTION_KIND_DISCARD,
    ACTION_KIND_POST,
    ACTION_KIND_RAISE,
    ACTION_KIND_SHOW,
)
from relance.client import RelanceError, Turn
from relance.room.bots.rascal import Aside, Attempt, Misbehaviour, Occasion
from relance.room.bots.styles import Choice, quiet

AWAY_IN_TIME = (0.1, 1.0)
"""Seconds for which a stream is gone and no clock runs out, from and to."""
TOO_LONG_BY = (1.0, 4.0)
"""Seconds beyond the clock for which one is gone too long, from and to."""
CLOCK_GRACE = 10.0
"""Seconds after its deadline by which a turn must be over, on a machine that is busy, too."""
SPAM = 8
"""Messages at once, more than anybody may say."""
TOO_MUCH = 10**16
"""More than any amount may be."""

TOO_LATE = frozenset({"STALE_TURN", "NOT_YOUR_TURN", "NO_ACTIVE_HAND", "HAND_ALREADY_OVER", "NOT_SEATED"})
"""The turn, or the seat, is gone by now: right whatever was asked of it."""
NO_SEAT_NOW = frozenset(
    {"SEAT_TAKEN", "CASH_OUT_PENDING", "NO_MONEY", "TABLE_CLOSED", "ALREADY_SEATED", "SEAT_RELEASED"}
)
NO_CHIPS_NOW = frozenset({"TRANSFER_PENDING", "CASH_OUT_PENDING", "NOT_SEATED"})


# Streams and clocks


async def _drop_for_a_moment(attempt: Attempt) -> None:
    await _drop(attempt, attempt.bot.rng.uniform(*AWAY_IN_TIME))


async def _drop_for_too_long(attempt: Attempt) -> None:
    await _drop(attempt, attempt.turn.seconds_left + attempt.bot.rng.uniform(*TOO_LONG_BY))


async def _drop(attempt: Attempt, seconds: float) -> None:
    """The stream is gone in the middle of its turn, and comes back; the bot looks whether its cards are there."""
    attempt.bot.remember(attempt.seat)
    raise Aside(lambda: asyncio.sleep(seconds))


async def _drop_for_good(attempt: Attempt) -> None:
    """The seat is left to itself; the bot goes to another table."""
    bot, table = attempt.bot, attempt.seat.table

    async def forget() -> None:
        bot.avoids.add(table)
        bot.floor.taken(bot, "")

    raise Aside(forget)


async def _sleep(attempt: Attempt) -> None:
    """The clock must win (C1), and who slept sits out."""
    turn, seat = attempt.turn, attempt.seat
    while turn.open:
        await asyncio.sleep(0.1)
        if turn.open and seat.connected and time.monotonic() > turn.deadline + CLOCK_GRACE:
            attempt.finding(f"{turn} is open {CLOCK_GRACE:.0f} s after its deadline")
            return


# Actions


async def _answer_an_earlier_turn(attempt: Attempt) -> None:
    turn = attempt.turn
    await attempt.refused(attempt.seat.act(quiet(turn).kind, turn=turn.number - 1), "an answer to an earlier turn")


async def _answer_for_another(attempt: Attempt) -> None:
    """Out of turn: somebody else is asked, or nobody."""
    seat = attempt.seat
    prompt = seat.view.prompt if seat.view.HasField("prompt") else table_pb2.Prompt(turn=1)
    if prompt.seat != seat.number:
        await attempt.refused(seat.act(table_pb2.ACTION_KIND_FOLD, turn=prompt.turn), "a fold out of turn")


async def _bet_what_is_not_legal(attempt: Attempt) -> None:
    turn, rng = attempt.turn, attempt.bot.rng
    kind = next((each for each in (ACTION_KIND_RAISE, ACTION_KIND_COMPLETE) if each in turn.actions), ACTION_KIND_BET)
    wrong = [-1, TOO_MUCH, 2**62]
    if turn.max_raise_to:
        wrong += [turn.max_raise_to + 1, turn.min_raise_to - 1]
    amount = rng.choice(wrong)
    await attempt.refused(turn.act(kind, amount), f"{table_pb2.ActionKind.Name(kind)} to {amount} at {turn}")


async def _do_what_is_not_offered(attempt: Attempt) -> None:
    turn = attempt.turn
    kinds = {ACTION_KIND_SHOW, ACTION_KIND_POST, ACTION_KIND_BRING_IN, ACTION_KIND_ACCEPT_SPLIT} - turn.actions
    kind = attempt.bot.rng.choice(sorted(kinds))
    await attempt.refused(turn.act(kind), f"{table_pb2.ActionKind.Name(kind)} at {turn}")


async def _discard_cards_of_others(attempt: Attempt) -> None:
    own = attempt.seat.cards
    card = next(rank + suit for rank in "A87" for suit in "shdc" if rank + suit not in own)
    await attempt.refused(attempt.turn.act(ACTION_KIND_DISCARD, cards=card), f"a discard of {card} from {own}")


async def _double_click(attempt: Attempt) -> None:
    """Two answers to one turn at once: one at most counts."""
    turn = attempt.turn
    await _one_at_most(attempt, turn.act(*_parts(attempt.choice)), turn.act(*_parts(quiet(turn))))


async def _two_devices(attempt: Attempt) -> None:
    """The same seat on two connections, and both answer."""
    bot, turn = attempt.bot, attempt.turn
    async with bot.room.play(attempt.seat.table) as other:
        if not turn.open:
            return
        choice = quiet(turn)
        again = other.act(choice.kind, choice.amount, choice.cards, turn.number)
        await _one_at_most(attempt, again, turn.act(*_parts(attempt.choice)))


async def _one_at_most(attempt: Attempt, *answers: Awaitable[object]) -> None:
    outcomes = await asyncio.gather(*(attempt.outcome(answer) for answer in answers))
    if outcomes.count("") > 1:
        attempt.finding(f"{attempt.turn} was answered {outcomes.count('')} times")


async def _use_a_request_twice(attempt: Attempt) -> None:
    """The same again is answered alike and does nothing; the same id with something else is refused."""
    turn, seat, choice = attempt.turn, attempt.seat, quiet(attempt.turn)
    request_id = uuid.uuid4().hex
    try:
        first = await seat.command(_act(turn, choice, request_id))
    except RelanceError as refusal:
        if refusal.reason not in TOO_LATE:
            attempt.finding(f"{choice} at {turn} was refused with {refusal}")
        return
    again = await seat.command(_act(turn, choice, request_id))
    if again != first:
        attempt.finding(f"one request was answered with versions {first} and {again}")
    other = _act(turn, Choice(ACTION_KIND_RAISE, 7), request_id)
    await attempt.refused(seat.command(other), "another action under the same request_id")


def _act(turn: Turn, choice: Choice, request_id: str) -> table_pb2.PlayRequest:
    action = table_pb2.Action(turn=turn.number, kind=choice.kind, amount=choice.amount, cards=choice.cards)
    return table_pb2.PlayRequest(act=table_pb2.ActRequest(action=action, request_id=request_id))


def _parts(choice: Choice) -> tuple[table_pb2.ActionKind.ValueType, int, str]:
    return choice.kind, choice.amount, choice.cards


# Seats and money


async def _leave_in_the_hand(attempt: Attempt) -> None:
    await attempt.outcome(attempt.seat.leave())


async def _stay_after_all(attempt: Attempt) -> None:
    """Ask to leave after the hand, and take it back."""
    seat = attempt.seat
    leave = table_pb2.LeaveSeatRequest(after_hand=True)
    if await attempt.outcome(seat.command(table_pb2.PlayRequest(leave_seat=leave))):
        return
    if not await attempt.outcome(seat.sit_in()) and seat.number and seat.me.leaving:
        attempt.finding("leaves although it was taken back")


async def _rathole(attempt: Attempt) -> None:
    """Leave and come back at once with less (S8)."""
    raise Aside(lambda: _come_back_with_less(attempt))


async def _come_back_with_less(attempt: Attempt) -> None:
    bot = attempt.bot
    async with bot.room.play(attempt.seat.table) as seat:
        least, guarded = seat.view.config.min_buy_in, seat.view.config.rules.rathole_minutes > 0
        taken = await seat.leave(settled=True)
        played = (await bot.room.session(seat.table)).hands > 0
        reason = await attempt.outcome(seat.sit(least))
        if not reason and guarded and played and taken > least:
            attempt.finding(f"sat down with {least} right after leaving with {taken}")
        if reason == "BUY_IN_BELOW_PREVIOUS_STACK":
            await attempt.outcome(seat.sit(taken))
        if not seat.number:
            bot.floor.taken(bot, "")


async def _sit_again(attempt: Attempt) -> None:
    amount = attempt.bot.buy_in(attempt.seat.view.config)
    await attempt.refused(attempt.seat.sit(amount), "a second seat at one table")


async def _sit_out(attempt: Attempt) -> None:
    await attempt.outcome(attempt.seat.sit_out(at_next_big_blind=attempt.bot.rng.random() < 0.3))
    if attempt.bot.rng.random() < 0.5:
        await attempt.outcome(attempt.seat.sit_out())


async def _top_up(attempt: Attempt) -> None:
    """In the middle of hands, twice at once, more than the table allows."""
    seat, bot = attempt.seat, attempt.bot
    amounts = [bot.rng.choice((1, bot.buy_in(seat.view.config), 10**12)) for _ in range(bot.rng.choice((1, 2)))]
    await asyncio.gather(*(attempt.outcome(seat.add_chips(amount)) for amount in amounts))


async def _top_up_with_nonsense(attempt: Attempt) -> None:
    amount = attempt.bot.rng.choice((0, -500, TOO_MUCH, -(2**62)))
    await attempt.refused(attempt.seat.add_chips(amount), f"a top-up of {amount}")


async def _take_a_seat_that_is_taken(attempt: Attempt) -> None:
    seat, bot = attempt.seat, attempt.bot
    taken = [each.seat for each in seat.view.seats if each.player]
    if taken:
        # Whoever sits there may leave this very moment.
        await attempt.outcome(seat.sit(bot.buy_in(seat.view.config), bot.rng.choice(taken)))


async def _take_a_seat_that_is_none(attempt: Attempt) -> None:
    seat, bot = attempt.seat, attempt.bot
    number = bot.rng.choice((seat.view.config.seats + 1, -1, 2**30))
    await attempt.refused(seat.sit(bot.buy_in(seat.view.config), number), f"seat {number}")


async def _bring_nonsense(attempt: Attempt) -> None:
    seat, bot = attempt.seat, attempt.bot
    amount = bot.rng.choice((seat.view.config.min_buy_in - 1, 0, -100, TOO_MUCH))
    await attempt.refused(seat.sit(amount), f"a buy-in of {amount}")


async def _sit_and_leave_at_once(attempt: Attempt) -> None:
    """The leave comes before the buy-in has settled."""
    seat, bot = attempt.seat, attempt.bot
    request = table_pb2.TakeSeatRequest(buy_in=bot.buy_in(seat.view.config))
    with seat.events() as events:
        if await attempt.outcome(seat.command(table_pb2.PlayRequest(take_seat=request))):
            return
        if await attempt.outcome(seat.command(table_pb2.PlayRequest(leave_seat=table_pb2.LeaveSeatRequest()))):
            return
        async for event in events:
            data = event.data
            if isinstance(data, events_pb2.SeatReleased | events_pb2.PlayerLeft) and data.player == seat.player:
                return


# Talk and lists


async def _spam(attempt: Attempt) -> None:
    said = [attempt.outcome(attempt.seat.say(f"hurry up, {number}")) for number in range(SPAM)]
    outcomes = await asyncio.gather(*said)
    if not any(outcomes):
        attempt.finding(f"{SPAM} messages at once were all said")


async def _say_what_may_not_be_said(attempt: Attempt) -> None:
    text = attempt.bot.rng.choice(("x" * 129, "\u202egnp.exe", "two\nlines", ""))
    await attempt.refused(attempt.seat.say(text), f"the message {text[:20]!r}")


async def _wait_and_ignore_offers(attempt: Attempt) -> None:
    """A place on a list; whatever is offered runs out."""
    lists, table, config = attempt.bot.room.waitlist, attempt.seat.table, attempt.seat.view.config
    await attempt.outcome(lists.join(table) if attempt.bot.rng.random() < 0.5 else lists.join_any(config))


def _row(
    name: str,
    occasion: Occasion,
    chance: float,
    do: Callable[[Attempt], Awaitable[None]],
    *refusals: str | frozenset[str],
) -> Misbehaviour:
    reasons: set[str] = set()
    for each in refusals:
        reasons |= {each} if isinstance(each, str) else each
    return Misbehaviour(name, occasion, chance, do, frozenset(reasons))


_AT_TURN, _SEATED, _ARRIVING = Occasion.TURN, Occasion.SEATED, Occasion.ARRIVAL

MISBEHAVIOURS = (
    _row("drops, comes back in time", _AT_TURN, 0.040, _drop_for_a_moment),
    _row("drops, comes back late", _AT_TURN, 0.020, _drop_for_too_long),
    _row("drops for good", _AT_TURN, 0.006, _drop_for_good),
    _row("lets the clock run out", _AT_TURN, 0.024, _sleep),
    _row("answers an earlier turn", _AT_TURN, 0.040, _answer_an_earlier_turn, TOO_LATE),
    _row("bets what is not legal", _AT_TURN, 0.060, _bet_what_is_not_legal, TOO_LATE,
         "AMOUNT_OUT_OF_RANGE", "INVALID_AMOUNT", "RAISE_NOT_ALLOWED", "ACTION_NOT_OFFERED", "FIELD_INVALID"),
    _row("does what is not offered", _AT_TURN, 0.030, _do_what_is_not_offered, TOO_LATE, "ACTION_NOT_OFFERED"),
    _row("discards cards of others", _AT_TURN, 0.020, _discard_cards_of_others, TOO_LATE, "INVALID_CARDS",
         "ACTION_NOT_OFFERED"),
    _row("clicks twice", _AT_TURN, 0.060, _double_click, TOO_LATE),
    _row("plays on two devices", _AT_TURN, 0.020, _two_devices, TOO_LATE),
    _row("uses a request twice", _AT_TURN, 0.040, _use_a_request_twice, "REQUEST_ID_REUSED"),
    _row("leaves in the hand", _AT_TURN, 0.012, _leave_in_the_hand, "NOTHING_TO_CHANGE"),
    _row("stays after all", _AT_TURN, 0.020, _stay_after_all, "NOTHING_TO_CHANGE", "NOT_SEATED"),
    _row("ratholes", _AT_TURN, 0.016, _rathole, NO_SEAT_NOW, "BUY_IN_BELOW_PREVIOUS_STACK", "NOTHING_TO_CHANGE"),
    _row("answers for another", _SEATED, 0.100, _answer_for_another, TOO_LATE),
    _row("sits out", _SEATED, 0.040, _sit_out, "NOTHING_TO_CHANGE", "NOT_SEATED"),
    _row("tops up at a wrong time", _SEATED, 0.080, _top_up, NO_CHIPS_NOW, "BUY_IN_OUT_OF_RANGE", "NO_MONEY"),
    _row("tops up with nonsense", _SEATED, 0.050, _top_up_with_nonsense, NO_CHIPS_NOW, "INVALID_AMOUNT",
         "FIELD_INVALID"),
    _row("takes a second seat", _SEATED, 0.050, _sit_again, NO_SEAT_NOW),
    _row("floods the chat", _SEATED, 0.030, _spam, "TOO_MANY_REQUESTS", "MUTED", "NOT_SEATED"),
    _row("says what may not be said", _SEATED, 0.050, _say_what_may_not_be_said, "FIELD_TOO_LONG", "FIELD_INVALID",
         "FIELD_MISSING", "NOT_SEATED"),
    _row("waits and ignores offers", _SEATED, 0.020, _wait_and_ignore_offers, "ALREADY_SEATED", "LIMIT_REACHED",
         "TABLE_CLOSED"),
    _row("takes a seat that is taken", _ARRIVING, 0.250, _take_a_seat_that_is_taken, NO_SEAT_NOW,
         "BUY_IN_BELOW_PREVIOUS_STACK"),
    _row("takes a seat that is none", _ARRIVING, 0.100, _take_a_seat_that_is_none, NO_SEAT_NOW,
         "SEAT_OUT_OF_RANGE", "FIELD_INVALID"),
    _row("brings nonsense", _ARRIVING, 0.150, _bring_nonsense, NO_SEAT_NOW, "BUY_IN_OUT_OF_RANGE",
         "BUY_IN_BELOW_PREVIOUS_STACK", "INVALID_AMOUNT", "FIELD_INVALID"),
    _row("sits and leaves at once", _ARRIVING, 0.150, _sit_and_leave_at_once, NO_SEAT_NOW,
         "BUY_IN_BELOW_PREVIOUS_STACK", "NOT_SEATED"),
    _row("waits before it sits", _ARRIVING, 0.100, _wait_and_ignore_offers, "ALREADY_SEATED", "LIMIT_REACHED",
         "TABLE_CLOSED"),
)  # fmt: skip
"""Chances are of one occasion, and are added up in this order."""
