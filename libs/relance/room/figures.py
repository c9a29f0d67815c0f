"""What a running room does, in figures: read from its services as an operator would."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2, lobby_pb2_grpc
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.room.folder import OPERATOR_ROLES, DataFolder

WINDOW = 30.0
TOKEN_SECONDS = 900
CURRENCIES = {game_pb2.CURRENCY_EUR: "€", game_pb2.CURRENCY_CREDIT: "V$"}


@dataclass(slots=True)
class Figures:
    """One look at a room. `money`: minor units on the tables by currency, chips in pots included."""

    tables: Sequence[lobby_pb2.Table] = ()
    escrow: dict[str, int] = field(default_factory=dict)
    events: int = 0
    events_a_second: float = 0.0
    hands: int = 0
    hands_a_minute: float = 0.0

    @property
    def money(self) -> dict[game_pb2.Currency.ValueType, int]:
        """Sums of the escrow accounts by currency."""
        sums: dict[game_pb2.Currency.ValueType, int] = {}
        for table in self.tables:
            currency = table.config.currency
            sums[currency] = sums.get(currency, 0) + self.escrow.get(table.name, 0)
        return sums

    @property
    def players(self) -> int:
        """Players seated."""
        return sum(table.players for table in self.tables)


class Observer:
    """Reads the figures of a room. Rates are over the last half minute."""

    def __init__(self, folder: DataFolder, addresses: dict[str, str]) -> None:
        self._folder = folder
        self._channels = {name: grpc.aio.insecure_channel(address) for name, address in addresses.items()}
        self._lobby = lobby_pb2_grpc.LobbyServiceStub(self._channels["lobby"])
        self._tables = table_pb2_grpc.TableAdminServiceStub(self._channels["table"])
        self._wallet = wallet_pb2_grpc.WalletServiceStub(self._channels["wallet"])
        self._token, self._renew_at = "", 0.0
        self._samples: deque[tuple[float, int, int]] = deque()

    async def look(self) -> Figures:
        """The figures now. Raises grpc.aio.AioRpcError where a service does not answer."""
        metadata = self._metadata()
        heads = await self._tables.ListHeads(table_pb2.ListHeadsRequest(), metadata=metadata, timeout=5)
        request = lobby_pb2.ListTablesRequest(page_size=500)
        tables = (await self._lobby.ListTables(request, metadata=metadata, timeout=5)).tables
        figures = Figures(tables=tables, events=sum(head.version for head in heads.heads))
        figures.hands = sum(table.last_hand for table in tables)
        for table in tables:
            figures.escrow[table.name] = await self._balance(table.name)
        self._rates(figures)
        return figures

    async def _balance(self, account: str) -> int:
        request = wallet_pb2.GetBalanceRequest(account=account)
        try:
            return (await self._wallet.GetBalance(request, metadata=self._metadata(), timeout=5)).balance
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:  # nobody has bought in there yet
                raise
            return 0

    async def close(self) -> None:
        """Close the connections."""
        for channel in self._channels.values():
            await channel.close()

    def _rates(self, figures: Figures) -> None:
        now = time.monotonic()
        samples = self._samples
        samples.append((now, figures.events, figures.hands))
        while len(samples) > 2 and samples[0][0] < now - WINDOW:
            samples.popleft()
        then, events, hands = samples[0]
        if now > then:
            figures.events_a_second = (figures.events - events) / (now - then)
            figures.hands_a_minute = 60 * (figures.hands - hands) / (now - then)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if time.monotonic() > self._renew_at:
            self._token = self._folder.operator_token("room", OPERATOR_ROLES, TOKEN_SECONDS)
            self._renew_at = time.monotonic() + TOKEN_SECONDS / 2
        return (("authorization", f"Bearer {self._token}"),)


def money(amount: int, currency: game_pb2.Currency.ValueType) -> str:
    """An amount of minor units for people: 1,234.50 € or 1,234 V$."""
    symbol = CURRENCIES[currency]
    if currency == game_pb2.CURRENCY_CREDIT:
        return f"{amount:,} {symbol}"
    sign, cents = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{cents // 100:,}.{cents % 100:02d} {symbol}"
