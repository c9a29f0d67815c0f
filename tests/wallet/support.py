"""A running wallet, and how tests speak to it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from relance.api.common.v1.game_pb2 import CURRENCY_EUR
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.runtime.auth import TokenSigner
from relance.runtime.errors import from_call

Metadata = tuple[tuple[str, str], ...]


class Wallet:
    """A running wallet, stubs for it, and tokens."""

    def __init__(self, channel: grpc.aio.Channel, signer: TokenSigner) -> None:
        self.own = wallet_pb2_grpc.WalletServiceStub(channel)
        self.ledger = wallet_pb2_grpc.LedgerServiceStub(channel)
        self._signer = signer

    def token(self, subject: str, *roles: str, service: str = "") -> Metadata:
        token, _ = self._signer.sign(subject, roles, seconds=60, service=service)
        return (("authorization", f"Bearer {token}"),)

    def player(self, player: str) -> Metadata:
        return self.token(player, "player")

    def service(self, name: str) -> Metadata:
        return self.token(f"services/{name}", "service", service=name)

    async def deposit(self, player: str, amount: int, request_id: str = "d1", currency: Any = CURRENCY_EUR) -> Any:
        request = wallet_pb2.DepositRequest(
            request_id=request_id, player=f"players/{player}", currency=currency, amount=amount
        )
        return await self.ledger.Deposit(request, metadata=self.token("cash", "cashier"))

    async def batch(self, service: str, *orders: wallet_pb2.TransferOrder) -> list[wallet_pb2.TransferAnswer]:
        request = wallet_pb2.BatchTransferRequest(orders=orders)
        return list((await self.ledger.BatchTransfer(request, metadata=self.service(service))).answers)

    async def balance(self, account: str) -> int:
        request = wallet_pb2.GetBalanceRequest(account=account)
        return (await self.own.GetBalance(request, metadata=self.token("audit", "auditor"))).balance


def move(key: str, source: str, target: str, amount: int, currency: Any = CURRENCY_EUR) -> wallet_pb2.TransferOrder:
    """An order."""
    return wallet_pb2.TransferOrder(
        key=key, to=target, amount=amount, currency=currency, purpose="X", **{"from": source}
    )


async def refusal(call: Awaitable[Any]) -> tuple[str, dict[str, str]]:
    """gRPC code and reason of a call that must fail, and the metadata."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = from_call(caught.value)
    assert refused is not None
    return f"{caught.value.code().name} {str(refused).split(':', maxsplit=1)[0]}", refused.metadata
