"""What a player prefers: of the screen, and of how a seat plays by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relance.api.table.v1 import table_pb2 as pb
from relance.client import Seat
from relance.play.form import Answers, Form
from relance.play.rows import Amount, Row, switch

if TYPE_CHECKING:
    from relance.play.app import PlayApp


@dataclass(slots=True)
class Wishes:
    """For new seats; the seat that one has is asked for its own. Defaults are those of the room."""

    auto_post: bool = True
    auto_muck: bool = True
    wait_for_big_blind: bool = False

    async def give(self, seat: Seat) -> None:
        """Make them those of a seat that was just taken. Raises RelanceError."""
        if seat.preferences.auto_post != self.auto_post or seat.preferences.auto_muck != self.auto_muck:
            await seat.prefer(
                auto_post=self.auto_post, auto_muck=self.auto_muck, wait_for_big_blind=self.wait_for_big_blind
            )


async def ask_wishes(app: PlayApp, seat: Seat | None = None) -> str:
    """Ask for preferences and set them; what came of it, in a line. Raises RelanceError with the room's refusal."""
    here = seat is not None and seat.number > 0
    rows: list[Row] = _of_seat(seat) if seat is not None and here else _of_new_seats(app.wishes)
    rows += [
        switch("four_colours", "Suits in four colours", app.glyphs.four_colours),
        switch("light", "Light", app.light),
    ]
    heading = "This seat, and the screen" if here else "New seats, and the screen"
    answers = await app.push_screen_wait(Form(heading, rows, "keep them", app.glyphs))
    if answers is None:
        return ""
    app.show_as(four_colours=answers["four_colours"] is True, light=answers["light"] is True)
    app.wishes = Wishes(**{name: answers[name] is True for name in ("auto_post", "auto_muck", "wait_for_big_blind")})
    if seat is not None and here:
        wanted = _wanted(answers)
        if wanted != seat.preferences:
            await seat.prefer(**{field.name: getattr(wanted, field.name) for field in wanted.DESCRIPTOR.fields})
    return "Your preferences are kept."


def _of_new_seats(wishes: Wishes) -> list[Row]:
    return [
        switch("auto_post", "Post antes without asking", wishes.auto_post),
        switch("auto_muck", "Muck beaten hands without asking", wishes.auto_muck),
        switch("wait_for_big_blind", "Wait for the big blind", wishes.wait_for_big_blind),
    ]


def _of_seat(seat: Seat) -> list[Row]:
    now, config = seat.preferences, seat.view.config
    first = now.auto_top_up or None
    least = config.stakes.low_limit or 1
    fill = Amount(
        "auto_top_up",
        "Fill my stack up to",
        config.currency,
        least,
        config.max_buy_in,
        first,
        step=least,
        empty=0,
        nothing="no",
    )
    return [
        switch("auto_post", "Post antes without asking", now.auto_post),
        switch("auto_muck", "Muck beaten hands without asking", now.auto_muck),
        switch("wait_for_big_blind", "Wait for the big blind", now.wait_for_big_blind),
        switch("sit_out_next_big_blind", "Sit out at the next big blind", now.sit_out_next_big_blind),
        fill,
    ]


def _wanted(answers: Answers) -> pb.SeatPreferences:
    names = ("auto_post", "auto_muck", "wait_for_big_blind", "sit_out_next_big_blind")
    return pb.SeatPreferences(
        **{name: answers[name] is True for name in names}, auto_top_up=answers.amount("auto_top_up")
    )
