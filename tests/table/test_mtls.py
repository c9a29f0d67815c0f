"""Services among themselves with mTLS, as on a cluster: reached by addresses, known by the name that all have."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from tests.conftest import Migrated
from tests.runtime.certificates import Authority
from tests.table.support import PATIENCE, Keys, bearer, beside, open_request

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2
from relance.client import Channels, Tls
from relance.room.embedded import Nats
from relance.table.metrics import TableMetrics
from relance.table.process import running
from relance.table.settings import TableSettings
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

NAME = "relance.internal"


async def test_a_buy_in_goes_through_table_and_wallet_with_mtls_all_the_way(
    migrated: Migrated, nats_server: Nats, tmp_path: Path
) -> None:
    database = await migrated("relance.eventlog", "relance.table", "relance.wallet")
    keys, authority = Keys(tmp_path), Authority()
    ca = authority.write(tmp_path / "ca.crt")

    def settings(service: str) -> dict[str, object]:
        cert, key = authority.issue(tmp_path / service, service, (NAME,))
        return {
            "database_url": SecretStr(database), "nats_url": SecretStr(nats_server.url), "keyring": keys.ring,
            "signing_key": keys.service_key, "tls_ca": ca, "tls_cert": cert, "tls_key": key, "tls_server_name": NAME,
        }  # fmt: skip

    async with AsyncExitStack() as stack:
        wallet = await beside(stack, started(WalletSettings.model_validate(settings("wallet"))))
        of_table = TableSettings.model_validate({**settings("table"), "wallet_address": wallet})
        process = await stack.enter_async_context(running(of_table, metrics=TableMetrics(CollectorRegistry())))
        cert, key = authority.issue(tmp_path / "client", "client")
        channels = Channels(Tls(ca=ca, cert=cert, key=key, server_name=NAME))
        stack.push_async_callback(channels.close)

        deposit = wallet_pb2.DepositRequest(
            request_id="deposit", player="players/ann", currency=game_pb2.CURRENCY_EUR, amount=5000
        )
        await channels.peer(wallet).ledger.Deposit(deposit, metadata=bearer(keys.operator("cashier")))
        peer, ann = channels.peer(process.address), bearer(keys.player("ann"))
        opened = await peer.admin.OpenTable(open_request(), metadata=bearer(keys.operator("floor")))
        # Through another process, which passes calls on.
        in_front = of_table.model_copy(update={"routing": "forward"})
        front = await stack.enter_async_context(running(in_front, metrics=TableMetrics(CollectorRegistry())))
        peer = channels.peer(front.address)
        sit = table_pb2.TakeSeatRequest(table=opened.table, request_id="sit", seat=1, buy_in=5000)
        await peer.table.TakeSeat(sit, metadata=ann)
        stream = peer.table.Watch(table_pb2.WatchRequest(table=opened.table), metadata=ann)
        async with asyncio.timeout(PATIENCE):
            stacks: list[int] = []
            while 5000 not in stacks:
                message = await stream.read()
                assert isinstance(message, table_pb2.PlayResponse)
                stacks += [seat.stack for seat in message.welcome.view.seats]
                stacks += [event.player_sat.stack for event in message.update.events]
        stream.cancel()
        assert front.router.passed_on == 2
        plain = Channels()
        stack.push_async_callback(plain.close)
        with pytest.raises(grpc.aio.AioRpcError):
            await plain.peer(process.address).table.GetTable(table_pb2.GetTableRequest(table=opened.table))
