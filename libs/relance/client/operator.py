"""A room as its operators see it: tables, rulings, the log, the cashier."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import grpc

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.client.backoff import Backoff
from relance.client.club import Club
from relance.client.connection import Connection, Method, Request, Response, TableProcess
from relance.client.credentials import Credentials, bearer
from relance.client.errors import RETRIABLE, RelanceError, from_rpc
from relance.client.house_keeping import HouseKeeping
from relance.client.limits import PlayerLimits
from relance.client.names import (
    CURRENCIES,
    LIMITS,
    CurrencyName,
    LimitName,
    plain_id,
    player_name,
    table_name,
)
from relance.client.private import PrivateTables
from relance.client.rake import Rake
from relance.client.waitlist import Waitlist

# A read of the log that gets nowhere this often in a row gives up.
_TRIES = 8


class Operator:
    """What tokens with operator roles may do. Methods raise RelanceError; ROLE_REQUIRED names the roles."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection = connection
        self._credentials = credentials

    @property
    def house_keeping(self) -> HouseKeeping:
        """Templates, and houses in maintenance."""
        return HouseKeeping(self._connection, self._credentials)

    @property
    def private(self) -> PrivateTables:
        """Who may sit at private tables."""
        return PrivateTables(self._connection, self._credentials)

    @property
    def club(self) -> Club:
        """Credits and passes of players."""
        return Club(self._connection, self._credentials)

    @property
    def limits(self) -> PlayerLimits:
        """Limits and exclusions of players."""
        return PlayerLimits(self._connection, self._credentials)

    @property
    def rake(self) -> Rake:
        """Schedules, reports, and collections that people have looked at."""
        return Rake(self._connection, self._credentials)

    @property
    def waitlist(self) -> Waitlist:
        """Who waits for a seat: `waits(table)`. Roles viewer, floor."""
        return Waitlist(self._connection, self._credentials)

    async def open_table(
        self,
        house: str = "boulevard",
        game: str = "holdem",
        limit: LimitName = "no_limit",
        *,
        blinds: Sequence[int] = (),
        stakes: game_pb2.Stakes | None = None,
        seats: int = 0,
        currency: CurrencyName = "eur",
        min_buy_in: int = 0,
        max_buy_in: int = 0,
        display_name: str = "",
        timers: game_pb2.Timers | None = None,
        turbo: bool = False,
        private: bool = False,
        choices: Mapping[str, str] | None = None,
        request_id: str = "",
    ) -> str:
        """Open a table at any table process; its resource name. Role floor.

        `blinds` is short for stakes with only blinds; `choices` are house choices by their names in the rules. A
        repeat with the same `request_id` opens one table.
        """
        request = table_pb2.OpenTableRequest(
            request_id=request_id or uuid.uuid4().hex,
            house=house,
            game=game,
            limit=LIMITS[limit],
            stakes=stakes or game_pb2.Stakes(blinds=blinds),
            seats=seats,
            currency=CURRENCIES[currency],
            min_buy_in=min_buy_in,
            max_buy_in=max_buy_in,
            display_name=display_name,
            timers=timers,
            turbo=turbo,
            private=private,
            choices=choices,
        )
        return (
            await self._connection.call(
                self._connection.tables, lambda peer: peer.admin.OpenTable, request, self._credentials
            )
        ).table

    async def table_processes(self, *, tables: bool = False) -> list[table_pb2.TableProcess]:
        """The table processes that live; with what each runs. Roles viewer, floor, auditor."""
        request = table_pb2.ListProcessesRequest(tables=tables)
        answer = await self._connection.call(
            self._connection.tables, lambda peer: peer.admin.ListProcesses, request, self._credentials
        )
        return list(answer.processes)

    async def hand_over(self, table: str | lobby_pb2.Table, process: str) -> table_pb2.HandOverTableResponse:
        """Have another process (its id or address) run a table, once its hand is over. Role floor.

        Raises Unavailable where a hand takes longer than `patience`; the table is handed over all the same.
        """
        name = table_name(table)
        request = table_pb2.HandOverTableRequest(table=name, process=process)
        return await self._at(name, lambda peer: peer.admin.HandOverTable, request)

    async def close_table(self, table: str | lobby_pb2.Table, reason: str = "") -> int:
        """Close a table after its hand; everyone is cashed out. Role floor."""
        name = table_name(table)
        request = table_pb2.CloseTableRequest(table=name, request_id=uuid.uuid4().hex, reason=reason)
        return (await self._at(name, lambda peer: peer.admin.CloseTable, request)).version

    async def pause_table(self, table: str | lobby_pb2.Table, reason: str = "") -> int:
        """No new hands until the table is resumed. Role floor."""
        name = table_name(table)
        request = table_pb2.PauseTableRequest(table=name, request_id=uuid.uuid4().hex, reason=reason)
        return (await self._at(name, lambda peer: peer.admin.PauseTable, request)).version

    async def resume_table(self, table: str | lobby_pb2.Table) -> int:
        """Hands may start again. Role floor."""
        name = table_name(table)
        request = table_pb2.ResumeTableRequest(table=name, request_id=uuid.uuid4().hex)
        return (await self._at(name, lambda peer: peer.admin.ResumeTable, request)).version

    async def warn(self, table: str | lobby_pb2.Table, player: str, reason: str) -> int:
        """Warn a player, on record (C2, C4). Role floor."""
        name = table_name(table)
        request = table_pb2.WarnPlayerRequest(
            table=name, request_id=uuid.uuid4().hex, player=player_name(player), reason=reason
        )
        return (await self._at(name, lambda peer: peer.admin.WarnPlayer, request)).version

    async def ban(self, table: str | lobby_pb2.Table, player: str, reason: str, seconds: float = 0) -> int:
        """Ban a player from a table, for good or for a time; a seated one leaves. Role floor."""
        name = table_name(table)
        request = table_pb2.BanPlayerRequest(
            table=name,
            request_id=uuid.uuid4().hex,
            player=player_name(player),
            reason=reason,
            duration_ms=round(seconds * 1e3),
        )
        return (await self._at(name, lambda peer: peer.admin.BanPlayer, request)).version

    async def mute(self, table: str | lobby_pb2.Table, player: str, reason: str, seconds: float = 0) -> int:
        """Take a player's voice in a table's chat, for good or for a time. Role floor."""
        name = table_name(table)
        request = table_pb2.MutePlayerRequest(
            table=name,
            request_id=uuid.uuid4().hex,
            player=player_name(player),
            reason=reason,
            duration_ms=round(seconds * 1e3),
        )
        return (await self._at(name, lambda peer: peer.admin.MutePlayer, request)).version

    async def unmute(self, table: str | lobby_pb2.Table, player: str) -> int:
        """Give the voice back. Role floor."""
        name = table_name(table)
        request = table_pb2.MutePlayerRequest(
            table=name, request_id=uuid.uuid4().hex, player=player_name(player), lift=True
        )
        return (await self._at(name, lambda peer: peer.admin.MutePlayer, request)).version

    async def change_settings(
        self,
        table: str | lobby_pb2.Table,
        reason: str,
        *,
        display_name: str = "",
        timers: game_pb2.Timers | None = None,
        min_buy_in: int = 0,
        max_buy_in: int = 0,
        rake_basis_points: int | None = None,
        rake_cap: int | None = None,
    ) -> int:
        """Another name, other clocks or buy-ins from the next hand on; what is not given stays. Role floor.

        `rake_basis_points`, `rake_cap`: of a table in a house that takes a percentage, while no hand is running.
        """
        name = table_name(table)
        request = table_pb2.ChangeSettingsRequest(
            table=name,
            request_id=uuid.uuid4().hex,
            reason=reason,
            display_name=display_name,
            timers=timers,
            min_buy_in=min_buy_in,
            max_buy_in=max_buy_in,
            rake_basis_points=rake_basis_points,
            rake_cap=rake_cap,
        )
        return (await self._at(name, lambda peer: peer.admin.ChangeSettings, request)).version

    async def void_hand(self, table: str | lobby_pb2.Table, hand: int, reason: str) -> int:
        """Void the running hand (C4). Role floor. Raises HAND_ALREADY_OVER, NO_ACTIVE_HAND."""
        name = table_name(table)
        request = table_pb2.VoidHandRequest(table=name, request_id=uuid.uuid4().hex, hand=hand, reason=reason)
        return (await self._at(name, lambda peer: peer.admin.VoidHand, request)).version

    async def record_ruling(self, table: str | lobby_pb2.Table, text: str, hand: int = 0) -> int:
        """Record a ruling (C4). Role floor."""
        name = table_name(table)
        request = table_pb2.RecordRulingRequest(table=name, request_id=uuid.uuid4().hex, hand=hand, text=text)
        return (await self._at(name, lambda peer: peer.admin.RecordRuling, request)).version

    async def report_dealing_fault(
        self,
        table: str | lobby_pb2.Table,
        fault: events_pb2.DealingFault.ValueType,
        seat: int = 0,
        *,
        keep: bool = False,
    ) -> int:
        """Report a dealing fault (F1-F6). `keep`: the owner keeps the exposed card, where they may (F1). Role floor."""
        name = table_name(table)
        request = table_pb2.ReportDealingFaultRequest(
            table=name, request_id=uuid.uuid4().hex, fault=fault, seat=seat, keep=keep
        )
        return (await self._at(name, lambda peer: peer.admin.ReportDealingFault, request)).version

    async def table(self, table: str | lobby_pb2.Table) -> table_pb2.TableView:
        """A table as the operator may see it."""
        name = table_name(table)
        return await self._at(name, lambda peer: peer.table.GetTable, table_pb2.GetTableRequest(table=name))

    async def list_heads(self, tables: Iterable[str] = ()) -> dict[str, int]:
        """Versions of the last events, by table id; of all tables, closed ones too, unless some are named."""
        request = table_pb2.ListHeadsRequest(tables=[table_name(table) for table in tables])
        answer = await self._connection.call(
            self._connection.tables, lambda peer: peer.admin.ListHeads, request, self._credentials
        )
        return {plain_id(head.table): head.version for head in answer.heads}

    async def read_stream(
        self, table: str | lobby_pb2.Table, after: int = 0, limit: int = 0
    ) -> AsyncIterator[events_pb2.TableEvent]:
        """Events of a table's log after a version, up to the head (or `limit` of them), over lost connections."""
        name, backoff, read, tries = table_name(table), Backoff(), 0, 0
        while True:
            try:
                peer = self._connection.channels.peer(await self._connection.tables.address())
                request = table_pb2.ReadStreamRequest(table=name, after=after, limit=limit - read if limit else 0)
                metadata = bearer(await self._credentials.token())
                async for answer in peer.admin.ReadStream(request, metadata=metadata):
                    for event in answer.events:
                        after, read, tries = event.version, read + 1, 0
                        yield event
                return
            except grpc.aio.AioRpcError as failure:
                refusal: RelanceError = from_rpc(failure)
            except RelanceError as failure:
                refusal = failure
            tries += 1
            if refusal.reason not in RETRIABLE or tries >= _TRIES:
                raise refusal
            self._connection.tables.moved()
            await backoff.wait()

    async def deposit(
        self, player: str, amount: int, currency: CurrencyName = "eur", *, request_id: str = ""
    ) -> wallet_pb2.Transfer:
        """Money from outside to a player. Role cashier."""
        request = wallet_pb2.DepositRequest(
            request_id=request_id or uuid.uuid4().hex,
            player=player_name(player),
            currency=CURRENCIES[currency],
            amount=amount,
        )
        return await self._wallet(lambda peer: peer.ledger.Deposit, request)

    async def withdraw(
        self, player: str, amount: int, currency: CurrencyName = "eur", *, request_id: str = ""
    ) -> wallet_pb2.Transfer:
        """Money from a player to outside. Role cashier. Raises NoMoney."""
        request = wallet_pb2.WithdrawRequest(
            request_id=request_id or uuid.uuid4().hex,
            player=player_name(player),
            currency=CURRENCIES[currency],
            amount=amount,
        )
        return await self._wallet(lambda peer: peer.ledger.Withdraw, request)

    async def balance(self, account: str) -> int:
        """Balance of any account, for example players/p1/eur, tables/t1, house/eur."""
        request = wallet_pb2.GetBalanceRequest(account=account)
        return (await self._wallet(lambda peer: peer.wallet.GetBalance, request)).balance

    async def transfers(self, account: str) -> AsyncIterator[wallet_pb2.Transfer]:
        """Transfers of any account, newest first, page after page."""
        page_token = ""
        while True:
            request = wallet_pb2.ListTransfersRequest(account=account, page_token=page_token)
            page = await self._wallet(lambda peer: peer.wallet.ListTransfers, request)
            for transfer in page.transfers:
                yield transfer
            page_token = page.next_page_token
            if not page_token:
                return

    async def _at(self, table: str, method: Method[Request, Response], request: Request) -> Response:
        place = TableProcess(self._connection, table, self._credentials)
        return await self._connection.call(place, method, request, self._credentials)

    async def _wallet(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.wallet, method, request, self._credentials)
