"""Who may move what: the orders that a service may give, checked before they reach the ledger."""

from __future__ import annotations

import re

from relance.api.common.v1 import reason_pb2
from relance.api.common.v1.reason_pb2 import Reason
from relance.api.wallet.v1 import wallet_pb2
from relance.runtime.validation import MAX_AMOUNT
from relance.wallet import accounts
from relance.wallet.accounts import Kind
from relance.wallet.ledger import Order

# Each service has its own kind of key, so none can use up the keys of another. The wallet's own begin with the name
# of the method and a slash.
_KEYS = {
    "table": re.compile(r"[a-z0-9-]{1,40}-[0-9]{1,19}"),
    "rake": re.compile(r"rake/[a-z0-9-]{1,40}/[0-9]{1,19}(/[0-9]{1,2})?"),
}
_MOVES = {
    "table": {(Kind.PLAYER, Kind.ESCROW), (Kind.ESCROW, Kind.PLAYER)},
    "rake": {(Kind.ESCROW, Kind.HOUSE)},
}
_MAX_PURPOSE = 64


def check(service: str, asked: wallet_pb2.TransferOrder) -> Order | Reason.ValueType:
    """The ledger's order for what `service` asks, or why it is not even asked: such an answer is not recorded."""
    payer, payee = accounts.parse(getattr(asked, "from")), accounts.parse(asked.to)
    currency = accounts.CURRENCY_NAMES.get(asked.currency)
    key = _KEYS.get(service)
    if key is None or key.fullmatch(asked.key) is None or len(asked.purpose) > _MAX_PURPOSE or currency is None:
        return reason_pb2.REASON_FIELD_INVALID if key is not None else reason_pb2.REASON_TRANSFER_NOT_ALLOWED
    if payer is None or payee is None:
        return reason_pb2.REASON_INVALID_NAME
    if (payer.kind, payee.kind) not in _MOVES[service]:
        return reason_pb2.REASON_TRANSFER_NOT_ALLOWED
    if not 1 <= asked.amount <= MAX_AMOUNT:
        return reason_pb2.REASON_INVALID_AMOUNT
    if any(side.currency not in {None, currency} for side in (payer, payee)):
        return reason_pb2.REASON_CURRENCY_MISMATCH
    return Order(asked.key, payer.name, payee.name, asked.amount, currency, asked.purpose, service)
