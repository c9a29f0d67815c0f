"""Transfers as messages."""

from __future__ import annotations

from relance.api.wallet.v1 import wallet_pb2
from relance.wallet.accounts import CURRENCIES
from relance.wallet.ledger import Order


def transfer_message(
    order: Order, number: int, at: int, *, balance_after: int = 0, refusal: str = ""
) -> wallet_pb2.Transfer:
    """The transfer `number`, made or refused at `at`."""
    asked = wallet_pb2.TransferOrder(
        key=order.key,
        to=order.payee,
        amount=order.amount,
        currency=CURRENCIES[order.currency],
        purpose=order.purpose,
        **{"from": order.payer},
    )
    return wallet_pb2.Transfer(
        name=f"transfers/{order.key}",
        order=asked,
        id=number,
        time_us=at,
        refusal=refusal,
        balance_after=balance_after,
    )
