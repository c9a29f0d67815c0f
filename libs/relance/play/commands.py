"""What a player does at a table besides the play: keys, questions, and what came of it in a line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from relance.client import RelanceError, Seat
from relance.play.buying import sit_down, top_up
from relance.play.dialogs import AnswerDialog
from relance.play.glyphs import money, signed
from relance.play.private import ask_guests
from relance.play.refusals import line
from relance.play.wishes import ask_wishes

if TYPE_CHECKING:
    from relance.play.app import PlayApp

Say = Callable[[str], None]
#: Keys of seats: the tenth is 0.
SEAT_KEYS: Final = {str(number % 10): number for number in range(1, 11)}


async def told(app: PlayApp, seat: Seat, command: Awaitable[str | None], say: Say) -> None:
    """Run a command, and say what came of it; what the room refuses is one line."""
    if not seat.connected:
        say("No connection to the table: this goes out when it is back.")
    try:
        done = await command
    except RelanceError as refusal:
        say(line(refusal, seat.view.config.currency, app.glyphs))
    else:
        if done is not None:
            say(done)


async def sit(app: PlayApp, seat: Seat, say: Say, number: int = 0) -> None:
    """Sit down, at a seat that was chosen by its key or at any."""
    if number and (number > len(seat.view.seats) or seat.view.seats[number - 1].player):
        say(f"Seat {number} is not free." if number <= len(seat.view.seats) else f"There is no seat {number} here.")
        return
    await sit_down(app, seat, say, number)


async def buy_more(app: PlayApp, seat: Seat, say: Say) -> None:
    """Top up."""
    await top_up(app, seat, say)


async def away_or_back(app: PlayApp, seat: Seat) -> str | None:
    """Sit out, now or at the next big blind; or sit in again (S4, S5)."""
    blinds = bool(seat.view.config.stakes.blinds)
    if seat.me.sitting_out:
        answers = [("z", "sit in: post what you missed, if anything")]
        if blinds:
            answers.append(("w", "sit in when the big blind comes to you"))
        answer = await app.push_screen_wait(AnswerDialog("You sit out.", answers)) if blinds else "z"
        if not answer:
            return None
        await seat.sit_in(wait_for_big_blind=answer == "w")
        return "You are back." if answer == "z" else "You are back at the next big blind."
    answers = [("z", "sit out now, from the next hand on")]
    if seat.preferences.sit_out_next_big_blind:
        answers.append(("p", "play on: you would sit out at the next big blind"))
    elif blinds:
        answers.append(("b", "sit out when the big blind comes to you"))
    answer = await app.push_screen_wait(AnswerDialog("Sit out?", answers))
    if answer == "z":
        await seat.sit_out()
        return "You sit out."
    if answer == "b":
        await seat.sit_out(at_next_big_blind=True)
        return "You sit out at the next big blind."
    if answer == "p":
        now = seat.preferences
        await seat.prefer(
            auto_post=now.auto_post,
            auto_muck=now.auto_muck,
            wait_for_big_blind=now.wait_for_big_blind,
            auto_top_up=now.auto_top_up,
        )
        return "You play on."
    return None


async def preferences(app: PlayApp, seat: Seat) -> str | None:
    """How the seat plays by itself, and how the screen looks."""
    return await ask_wishes(app, seat) or None


async def wait_for_seat(app: PlayApp, seat: Seat) -> str | None:
    """Wait for a seat here, or at any table like it."""
    return await app.places.ask(seat.table, seat.view.config) or None


async def guests(app: PlayApp, seat: Seat) -> str | None:
    """Who may sit at this private table."""
    if not seat.view.config.private:
        return "Everybody may sit here: the table is not private."
    return await ask_guests(app, seat.table) or None


async def acknowledge(seat: Seat) -> str | None:
    """The notices were seen."""
    await seat.acknowledge()
    seat.notices.clear()
    return None


async def leave(app: PlayApp, seat: Seat, say: Say, *, after_hand: bool) -> str:
    """Give the seat up and take the chips along; how the sitting went. Raises RelanceError."""
    if after_hand:
        say("You leave after this hand.")
    else:
        say("Leaving, with the end of the hand …" if seat.view.hand and seat.me.in_hand else "Leaving …")
    taken = await seat.leave(after_hand=after_hand)
    currency = seat.view.config.currency
    text = f"You took {money(taken, currency, app.glyphs)} along"
    try:
        session = await app.room.session(seat.table)
    except RelanceError:
        return f"{text}."
    hands = "1 hand" if session.hands == 1 else f"{session.hands} hands"
    return f"{text}: {signed(session.net, currency, app.glyphs)} in {hands}."


def ways_to_leave(seat: Seat) -> list[tuple[str, str]]:
    """Now, or after the hand where the player plays one."""
    me = seat.me
    if seat.view.hand and me.in_hand and not me.folded:
        return [("a", "leave after this hand, which you play to its end"), ("l", "leave now: your cards are folded")]
    return [("l", "leave the seat: take the chips along")]
