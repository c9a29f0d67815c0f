"""Money: whole minor units (euro cents, whole V$ credits), never a float."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.rejected import Rejected

if TYPE_CHECKING:
    from relance.api.common.v1.game_pb2 import Currency

MAX_AMOUNT = 10**15
"""The largest amount that anything may be."""

SYMBOLS = {game_pb2.CURRENCY_EUR: "€", game_pb2.CURRENCY_CREDIT: "V$ "}


def check_amount(amount: int, field: str = "amount", *, least: int = 1, most: int = MAX_AMOUNT) -> int:
    """The amount itself. Raises Rejected INVALID_AMOUNT (metadata field, min, max) below `least` or above `most`."""
    if least <= amount <= most:
        return amount
    raise Rejected(
        reason_pb2.REASON_INVALID_AMOUNT,
        f"{field} is {amount}; from {least} to {most} minor units would be accepted",
        {"field": field, "min": str(least), "max": str(most)},
    )


def show(amount: int, currency: Currency.ValueType = game_pb2.CURRENCY_EUR) -> str:
    """An amount for people: ``€12.30``, ``V$ 300``, ``-€0.05``."""
    sign, size = ("-" if amount < 0 else ""), abs(amount)
    if currency == game_pb2.CURRENCY_CREDIT:
        return f"{sign}V$ {size:,}"
    return f"{sign}€{size // 100:,}.{size % 100:02}"
