"""Players' accounts, read transfer by transfer: each balance must be the one before it and the transfer between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import grpc

from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.room.folder import OPERATOR_ROLES, DataFolder

CALL_TIMEOUT = 10.0
PAGE = 200


class Discrepancy(Exception):
    """Money is not where it should be; the text says what, where and how much."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An account at a moment: its last transfer's number in the ledger, its balance."""

    transfer: int
    balance: int


@dataclass(frozen=True, slots=True)
class Movement:
    """A transfer as it changed one account. Minor units."""

    key: str
    before: int
    after: int


class Statements:
    """Reads accounts at the wallet, as an auditor."""

    def __init__(self, folder: DataFolder, address: str, currency: str = "eur") -> None:
        self._folder = folder
        self._currency = currency
        self._channel = grpc.aio.insecure_channel(address)
        self._wallet = wallet_pb2_grpc.WalletServiceStub(self._channel)

    async def mark(self, player: str) -> Mark:
        """The account now."""
        account = self._account(player)
        newest = await self._list(account, size=1)
        if not newest.transfers:
            request = wallet_pb2.GetBalanceRequest(account=account)
            answer = await self._wallet.GetBalance(request, metadata=self._metadata(), timeout=CALL_TIMEOUT)
            return Mark(0, answer.balance)
        return Mark(newest.transfers[0].id, newest.transfers[0].balance_after)

    async def since(self, player: str, mark: Mark) -> list[Movement]:
        """What happened on the account after `mark`, oldest first. Raises Discrepancy where balances do not follow."""
        account = self._account(player)
        movements: list[Movement] = []
        balance = mark.balance
        for transfer in await self._after(account, mark.transfer):
            if transfer.refusal:
                continue
            signed = transfer.order.amount if transfer.order.to == account else -transfer.order.amount
            off = transfer.balance_after - balance - signed
            if off:
                raise Discrepancy(
                    f"account {account}: transfer {transfer.order.key} of {signed} follows a balance of {balance}, "
                    f"and the balance after it is {transfer.balance_after}: {off} off"
                )
            movements.append(Movement(transfer.order.key, balance, transfer.balance_after))
            balance = transfer.balance_after
        return movements

    async def marks(self, players: Iterable[str]) -> dict[str, Mark]:
        """The accounts of several players now."""
        return {player: await self.mark(player) for player in players}

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def _after(self, account: str, transfer: int) -> list[wallet_pb2.Transfer]:
        found: list[wallet_pb2.Transfer] = []
        page_token = ""
        while True:
            page = await self._list(account, PAGE, page_token)
            found += [row for row in page.transfers if row.id > transfer]
            page_token = page.next_page_token
            if not page_token or any(row.id <= transfer for row in page.transfers):
                return found[::-1]

    async def _list(self, account: str, size: int, page_token: str = "") -> wallet_pb2.ListTransfersResponse:
        request = wallet_pb2.ListTransfersRequest(account=account, page_size=size, page_token=page_token)
        return await self._wallet.ListTransfers(request, metadata=self._metadata(), timeout=CALL_TIMEOUT)

    def _account(self, player: str) -> str:
        return f"players/{player}/{self._currency}"

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self._folder.operator_token('drill', OPERATOR_ROLES, seconds=60)}"),)
