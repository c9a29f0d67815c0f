"""Buying chips: to sit down, or more of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from relance.api.table.v1 import table_pb2 as pb
from relance.client import Seat
from relance.play.dialogs import AmountDialog, AnswerDialog
from relance.play.glyphs import currency_name, figure, money, parse_money

if TYPE_CHECKING:
    from relance.play.app import PlayApp


class BuyIn:
    """Sitting down (B1)."""

    what: ClassVar = "Sitting down"
    impossible: ClassVar = "You cannot sit down here with what is on your account."
    done: ClassVar = "You have a seat."

    def bounds(self, view: pb.TableView, balance: int) -> tuple[int, int]:
        """Least and largest amount; the largest may be below the least."""
        config = view.config
        return config.min_buy_in, min(config.max_buy_in or balance, balance)

    def usual(self, view: pb.TableView) -> int:
        """What most people would have."""
        return view.config.max_buy_in or 5 * view.config.min_buy_in

    async def buy(self, seat: Seat, amount: int) -> None:
        """Take any seat."""
        await seat.sit(amount)


class TopUp(BuyIn):
    """More chips, up to the table's maximum; they join the stack at the next hand."""

    what: ClassVar = "More chips"
    impossible: ClassVar = "Your stack is at the table's maximum."
    done: ClassVar = "The chips join your stack at the next hand."

    def bounds(self, view: pb.TableView, balance: int) -> tuple[int, int]:
        config, me = view.config, view.seats[view.your_seat - 1]
        most = config.max_buy_in - me.stack - me.chips_held if config.max_buy_in else balance
        return 1, min(max(most, 0), balance)

    async def buy(self, seat: Seat, amount: int) -> None:
        await seat.add_chips(amount)


def reader(least: int, most: int, currency: int) -> Callable[[str], int]:
    """Reads a typed amount within bounds; raises ValueError with what would be accepted."""

    def read(text: str) -> int:
        amount = parse_money(text, currency)
        if not least <= amount <= most:
            raise ValueError(f"{figure(least, currency)} to {figure(most, currency)} would be accepted")
        return amount

    return read


async def buy(app: PlayApp, seat: Seat, purchase: BuyIn, say: Callable[[str], None]) -> None:
    """Ask for the amount, buy, and say what came of it. Raises RelanceError with the room's refusal."""
    view, currency, glyphs = seat.view, seat.view.config.currency, app.glyphs
    balance = await app.room.balance(currency_name(currency))
    least, most = purchase.bounds(view, balance)
    if balance < least:
        lack = f"{purchase.what} takes {money(least, currency, glyphs)}; your account has {figure(balance, currency)}."
        draw = purchase.usual(view)
        answers = [("f", f"draw {money(draw, currency, glyphs)} from the faucet (play rooms only)")]
        if await app.push_screen_wait(AnswerDialog(lack, answers)) != "f":
            return
        say(await app.draw_faucet(draw, currency))
        least, most = purchase.bounds(view, await app.room.balance(currency_name(currency)))
    if most < least:
        say(purchase.impossible)
        return
    title = f"{purchase.what}: {figure(least, currency)} to {money(most, currency, glyphs)}"
    hint = "enter: do it   m: least   x: most   esc: back"
    first = min(max(purchase.usual(view) - view_stack(view), least), most)
    read = reader(least, most, currency)
    amount = await app.push_screen_wait(AmountDialog(title, hint, first, currency, read, {"m": least, "x": most}))
    if amount is not None:
        say("The money is on its way …")
        await purchase.buy(seat, amount)
        say(purchase.done)


def view_stack(view: pb.TableView) -> int:
    """Chips that the viewer has at the table."""
    return view.seats[view.your_seat - 1].stack if view.your_seat else 0
