"""Buying chips: to sit down, or more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.client import RelanceError, Seat
from relance.play.catalogue import title
from relance.play.choices import step
from relance.play.dialogs import AnswerDialog
from relance.play.form import Form
from relance.play.glyphs import currency_name, money
from relance.play.private import invitation_for
from relance.play.rows import Amount, Choice, Row, switch

if TYPE_CHECKING:
    from relance.play.app import PlayApp

Say = Callable[[str], None]


async def sit_down(app: PlayApp, seat: Seat, say: Say, wanted: int = 0) -> None:
    """Ask for chips and seat (`wanted`: chosen already; 0: not), sit down, and say what came of it.

    Raises RelanceError with the room's refusal.
    """
    config = seat.view.config
    held = next((each.seat for each in seat.view.seats if each.reserved and each.player == app.room.player), 0)
    balance = await _enough(app, seat, config.min_buy_in, config.max_buy_in or 5 * config.min_buy_in, say)
    if balance is None:
        return
    invitation = "" if held or not config.private else await invitation_for(app, seat)
    if invitation is None:
        return
    least, most = config.min_buy_in, min(config.max_buy_in or balance, balance)
    usual = config.max_buy_in or 5 * config.min_buy_in
    heading = f"Sit down at {title(config, app.glyphs)}"
    while True:
        first = min(max(usual, least), most)
        amount = Amount("buy_in", "Chips", config.currency, least, most, first, step=step(seat.view))
        rows: list[Row] = [amount, _seat_row(seat.view, held or wanted, held), *_entry_rows(app, config)]
        answers = await app.push_screen_wait(Form(heading, rows, "sit down", app.glyphs))
        if answers is None:
            return
        say("The money is on its way …")
        try:
            number = await seat.sit(
                answers.amount("buy_in"),
                answers.amount("seat"),
                wait_for_big_blind=answers.get("wait") is True,
                invitation=invitation,
                ask_to_post=answers.get("ask") is True,
            )
        except RelanceError as refusal:
            took = refusal.metadata.get("min", "")
            if refusal.reason != "BUY_IN_BELOW_PREVIOUS_STACK" or not took.isdigit() or int(took) > balance:
                raise
            # S8: even above the table's maximum.
            least, most = int(took), max(most, int(took))
            heading = f"You left with {money(least, config.currency, app.glyphs)} a short while ago: bring it back"
        else:
            break
    await app.wishes.give(seat)
    say(f"You have seat {number}.")


def _entry_rows(app: PlayApp, config: game_pb2.TableConfig) -> list[Row]:
    """How a new seat begins, where the stakes leave a choice (S4, S7)."""
    rows: list[Row] = []
    if config.stakes.blinds:
        rows.append(switch("wait", "Wait for the big blind", app.wishes.wait_for_big_blind))
    if config.stakes.ante:
        rows.append(switch("ask", "Ask before antes", not app.wishes.auto_post))
    return rows


async def top_up(app: PlayApp, seat: Seat, say: Say) -> None:
    """Ask for more chips, up to the table's maximum (B1), buy them and say what came of it. Raises RelanceError."""
    config, me = seat.view.config, seat.me
    balance = await app.room.balance(currency_name(config.currency))
    room = max(config.max_buy_in - me.stack - me.chips_held, 0) if config.max_buy_in else 0
    if config.max_buy_in and not room:
        say(f"Your stack is at the table's maximum of {money(config.max_buy_in, config.currency, app.glyphs)}.")
        return
    found = balance or await _enough(app, seat, 1, room or 5 * config.min_buy_in, say)
    if found is None:
        return
    most = min(room or found, found)
    row = Amount("chips", "More chips", config.currency, 1, most, most, step=step(seat.view))
    answers = await app.push_screen_wait(
        Form("Buy chips; they join your stack at the next hand", [row], "buy", app.glyphs)
    )
    if answers is not None:
        await seat.add_chips(answers.amount("chips"))
        say("The chips join your stack at the next hand.")


async def _enough(app: PlayApp, seat: Seat, least: int, usual: int, say: Say) -> int | None:
    """What is on the account, drawn from the faucet where it is too little; None: it stays too little."""
    currency, glyphs = seat.view.config.currency, app.glyphs
    name = currency_name(currency)
    balance = await app.room.balance(name)
    if balance >= least:
        return balance
    lack = f"It takes {money(least, currency, glyphs)}; your account has {money(balance, currency, glyphs)}."
    answers = [("f", f"draw {money(usual, currency, glyphs)} from the faucet (play rooms only)")]
    if await app.push_screen_wait(AnswerDialog(lack, answers)) != "f":
        return None
    say(await app.draw_faucet(usual, currency))
    balance = await app.room.balance(name)
    return balance if balance >= least else None


def _seat_row(view: pb.TableView, wanted: int, held: int) -> Choice:
    """Which seat: any, or one of those that are free; the one that is held for the player alone."""
    if held:
        return Choice("seat", "Seat", [(f"{held}, held for you", held)])
    free = [seat.seat for seat in view.seats if not seat.player]
    options: list[tuple[str, object]] = [("any", 0), *((str(number), number) for number in free)]
    return Choice("seat", "Seat", options, free.index(wanted) + 1 if wanted in free else 0)
