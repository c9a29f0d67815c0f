"""What players hold themselves back with: limits on deposits, self-exclusion."""

from __future__ import annotations

from typing import Final, Literal

from relance.api.wallet.v1 import wallet_pb2
from relance.client.connection import Connection
from relance.client.credentials import Credentials
from relance.client.names import player_name

PeriodName = Literal["day", "week", "month"]
_PERIODS: Final = {
    "day": wallet_pb2.LIMIT_PERIOD_DAY,
    "week": wallet_pb2.LIMIT_PERIOD_WEEK,
    "month": wallet_pb2.LIMIT_PERIOD_MONTH,
}


class PlayerLimits:
    """A player's own limits; for operators those of any player. Methods raise RelanceError."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def read(self, player: str = "") -> wallet_pb2.Limits:
        """Deposit limits with what remains of each, and the exclusion. `player`: for operators."""
        request = wallet_pb2.GetLimitsRequest(player=player_name(player) if player else "")
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.wallet.GetLimits, request, self._credentials
        )

    async def deposits(self, period: PeriodName, cents: int) -> wallet_pb2.Limits:
        """Deposit no more than this in any such time; 0: no limit. A lower limit holds at once, a higher one later."""
        request = wallet_pb2.SetDepositLimitRequest(period=_PERIODS[period], amount=cents)
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.wallet.SetDepositLimit, request, self._credentials
        )

    async def exclude(self, *, until_us: int = 0, for_good: bool = False, player: str = "") -> wallet_pb2.Limits:
        """No sitting down and no deposits until a time (microseconds since 1970 UTC), or for good; never shortened.

        `player`: for cashiers, who may exclude anybody.
        """
        request = wallet_pb2.ExcludePlayerRequest(
            player=player_name(player) if player else "", until_us=until_us, for_good=for_good
        )
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.wallet.ExcludePlayer, request, self._credentials
        )
