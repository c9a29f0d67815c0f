"""V$ credits of the club (V1-V3): how a player stands, refills, passes."""

from __future__ import annotations

import uuid

from relance.api.wallet.v1 import wallet_pb2
from relance.client.connection import Connection
from relance.client.credentials import Credentials
from relance.client.names import player_name


class Club:
    """Credits and passes. Amounts are whole credits. Methods raise RelanceError."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def credits(self, player: str = "") -> wallet_pb2.Credits:
        """What the player has in all, the pass, and whether a refill is due; of any player for operators."""
        request = wallet_pb2.GetCreditsRequest(player=player_name(player) if player else "")
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.wallet.GetCredits, request, self._credentials
        )

    async def refill(self, *, request_id: str = "") -> wallet_pb2.Refill:
        """Ask for a free refill (V3); it comes later, once. Raises REFILL_NOT_DUE with the condition."""
        request = wallet_pb2.RequestRefillRequest(request_id=request_id or uuid.uuid4().hex)
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.wallet.RequestRefill, request, self._credentials
        )

    async def sell_pass(self, player: str, days: int, *, request_id: str = "") -> wallet_pb2.Transfer:
        """Record a pass of `days` (1 to 366) that was bought or renewed: V$ 1,000 (V2). Role cashier."""
        request = wallet_pb2.BuyPassRequest(
            request_id=request_id or uuid.uuid4().hex, player=player_name(player), days=days
        )
        return await self._connection.call(
            self._connection.wallet, lambda peer: peer.ledger.BuyPass, request, self._credentials
        )
