"""Whether a player's money is on its way from a table that another process runs.

A refusal for want of money is final under its key; who only waits for a cash-out is told so instead, before a transfer
is requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from relance.api.table.v1 import link_pb2
from relance.eventlog import ProcessInfo
from relance.poker import Rejected, Request, Table, known_request
from relance.poker.commands import AddChips, Command, TakeSeat
from relance.table.transfers import account, on_its_way

FIND = "/relance.api.table.v1.TableLinkService/FindCashOut"
FIND_SECONDS = 0.5
"""Who has not answered by then is passed over: a table does not wait for a process that is gone."""

Ask = Callable[[str, str, float, bytes], Awaitable[bytes | None]]
"""Address, method, seconds, request: the answer of another process; None: there was none."""


class CashOuts:
    """Asks the other processes. What is on its way from tables of this one, the actors know themselves."""

    def __init__(self, ask: Ask, living: Callable[[], Sequence[ProcessInfo]]) -> None:
        self._ask, self._living = ask, living

    def asked_for(self, table: Table, command: Command, request: Request) -> bool:
        """Whether the others are to be asked before a table decides a command that is new to it."""
        if not isinstance(command, TakeSeat | AddChips) or not self._living():
            return False
        try:
            return known_request(table, request) is None
        except Rejected:
            return False  # the table says why

    async def confirm_none(self, table: Table, command: Command) -> None:
        """Ask them all at once. Raises Refused CASH_OUT_PENDING where one knows of a cash-out of the player's."""
        if isinstance(command, TakeSeat | AddChips) and table.config is not None:
            wanted = link_pb2.FindCashOutRequest(account=account(command.player, table.config.currency))
            body = wanted.SerializeToString()
            for found in await asyncio.gather(*(self._one(process, body) for process in self._living())):
                if found:
                    raise on_its_way(found)

    async def _one(self, process: ProcessInfo, body: bytes) -> str:
        answer = await self._ask(process.address, FIND, FIND_SECONDS, body)
        return "" if answer is None else link_pb2.FindCashOutResponse.FromString(answer).transfer
