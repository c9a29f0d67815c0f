"""The wallet over gRPC: who may do what, the same answer to the same request, statements by pages, news on NATS."""

from __future__ import annotations

import asyncio

import grpc
import nats
import pytest
from tests.wallet.support import Wallet, move, refusal

from relance.api.common.v1.game_pb2 import CURRENCY_CREDIT, CURRENCY_EUR
from relance.api.wallet.v1 import wallet_pb2
from relance.room.embedded import Nats
from relance.runtime.auth import TokenSigner
from relance.wallet.announce import SUBJECT
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings


async def test_a_deposit_is_made_once_however_often_it_is_asked(wallet: Wallet) -> None:
    first = await wallet.deposit("ann", 1000)
    again = await wallet.deposit("ann", 1000)
    assert (first.order.to, first.balance_after, first.refusal) == ("players/ann/eur", 1000, "")
    assert again == first
    assert await wallet.balance("players/ann/eur") == 1000
    assert await refusal(wallet.deposit("ann", 1001)) == ("ALREADY_EXISTS KEY_REUSED", {"key": "d1"})


async def test_a_withdrawal_beyond_the_balance_says_what_is_there(wallet: Wallet) -> None:
    await wallet.deposit("ann", 1000)
    request = wallet_pb2.WithdrawRequest(request_id="w1", player="players/ann", currency=CURRENCY_EUR, amount=1001)
    metadata = wallet.token("cash", "cashier")
    expected = ("FAILED_PRECONDITION NO_MONEY", {"available": "1000"})
    assert await refusal(wallet.ledger.Withdraw(request, metadata=metadata)) == expected
    await wallet.deposit("ann", 5000, "d2")
    assert await refusal(wallet.ledger.Withdraw(request, metadata=metadata)) == expected
    request.request_id = "w2"
    assert (await wallet.ledger.Withdraw(request, metadata=metadata)).balance_after == 4999


async def test_tables_move_money_between_players_and_escrow_and_nothing_else(wallet: Wallet) -> None:
    await wallet.deposit("ann", 1000)
    answers = await wallet.batch(
        "table",
        move("t1-1", "players/ann/eur", "tables/t1", 600),
        move("t1-2", "players/ann/eur", "tables/t1", 600),
        move("t1-3", "tables/t1", "players/bob/eur", 100),
        move("t1-4", "tables/t1", "house/eur", 100),
        move("t1-5", "players/ann/eur", "players/bob/eur", 100),
        move("t1-6", "world/eur", "players/ann/eur", 100),
        move("t1-7", "tables/t1", "players/ann/credit", 100),
        move("t1-8", "tables/t1", "players/ann/eur", 0),
        move("t1-9", "tables/t1", "players/Ann/eur", 1),
        move("rake/t1/1", "tables/t1", "players/ann/eur", 1),
    )
    assert [(a.settled, a.recorded, a.refusal) for a in answers] == [
        (True, True, ""),
        (False, True, "NO_MONEY"),
        (True, True, ""),
        (False, False, "TRANSFER_NOT_ALLOWED"),
        (False, False, "TRANSFER_NOT_ALLOWED"),
        (False, False, "TRANSFER_NOT_ALLOWED"),
        (False, False, "CURRENCY_MISMATCH"),
        (False, False, "INVALID_AMOUNT"),
        (False, False, "INVALID_NAME"),
        (False, False, "FIELD_INVALID"),
    ]
    assert [a.key for a in answers][:3] == ["t1-1", "t1-2", "t1-3"]
    assert await wallet.balance("tables/t1") == 500


async def test_rake_moves_money_from_escrow_to_the_house_and_nothing_else(wallet: Wallet) -> None:
    await wallet.deposit("ann", 1000)
    await wallet.batch("table", move("t1-1", "players/ann/eur", "tables/t1", 600))
    answers = await wallet.batch(
        "rake", move("rake/t1/1", "tables/t1", "house/eur", 25), move("rake/t1/2", "tables/t1", "players/ann/eur", 25)
    )
    assert [(a.settled, a.refusal) for a in answers] == [(True, ""), (False, "TRANSFER_NOT_ALLOWED")]
    assert (await wallet.batch("lobby", move("t1-9", "tables/t1", "house/eur", 25)))[
        0
    ].refusal == "TRANSFER_NOT_ALLOWED"


async def test_only_the_right_roles_are_served(wallet: Wallet) -> None:
    ann = wallet.player("ann")
    batch = wallet.ledger.BatchTransfer(wallet_pb2.BatchTransferRequest(), metadata=ann)
    assert (await refusal(batch))[0] == "PERMISSION_DENIED ROLE_REQUIRED"
    deposit = wallet_pb2.DepositRequest(request_id="d", player="players/ann", currency=CURRENCY_EUR, amount=5)
    assert (await refusal(wallet.ledger.Deposit(deposit, metadata=ann)))[0] == "PERMISSION_DENIED ROLE_REQUIRED"
    for account in ("players/bob/eur", "tables/t1", "house/eur", "world/eur"):
        request = wallet_pb2.GetBalanceRequest(account=account)
        assert (await refusal(wallet.own.GetBalance(request, metadata=ann)))[0] == "PERMISSION_DENIED NOT_YOURS"
    own = wallet_pb2.GetBalanceRequest(currency=CURRENCY_EUR)
    assert (await wallet.own.GetBalance(own, metadata=ann)).balance == 0
    assert (await refusal(wallet.own.GetBalance(own)))[0] == "UNAUTHENTICATED TOKEN_MISSING"


async def test_bad_input_is_refused_with_what_is_allowed(wallet: Wallet) -> None:
    assert await refusal(wallet.deposit("ann", 0)) == (
        "INVALID_ARGUMENT INVALID_AMOUNT",
        {"field": "amount", "min": "1", "max": str(10**15)},
    )
    assert (await refusal(wallet.deposit("ann", 10**15 + 1)))[0] == "INVALID_ARGUMENT INVALID_AMOUNT"
    assert (await refusal(wallet.deposit("Ann", 5)))[0] == "INVALID_ARGUMENT INVALID_NAME"
    assert (await refusal(wallet.deposit("ann", 5, "")))[0] == "INVALID_ARGUMENT FIELD_MISSING"
    assert (await refusal(wallet.deposit("ann", 5, "x" * 65)))[0] == "INVALID_ARGUMENT FIELD_TOO_LONG"
    assert (await refusal(wallet.deposit("ann", 5, currency=9)))[0] == "INVALID_ARGUMENT FIELD_INVALID"
    assert (await refusal(wallet.balance("nowhere")))[0] == "INVALID_ARGUMENT INVALID_NAME"
    assert (await refusal(wallet.balance("tables/none")))[0] == "NOT_FOUND ACCOUNT_NOT_FOUND"


async def test_the_faucet_gives_what_it_may_once_a_request(wallet: Wallet) -> None:
    request = wallet_pb2.DrawFaucetRequest(request_id="f1", currency=CURRENCY_CREDIT, amount=500)
    for _ in range(2):
        drawn = await wallet.own.DrawFaucet(request, metadata=wallet.player("ann"))
        assert (drawn.order.to, drawn.balance_after) == ("players/ann/credit", 500)
    request.amount = 501
    refused = await refusal(wallet.own.DrawFaucet(request, metadata=wallet.player("ann")))
    assert refused[1]["max"] == "500"
    assert await wallet.balance("issuance/credit") == -500


async def test_a_room_without_a_faucet_says_so(settings: tuple[WalletSettings, TokenSigner]) -> None:
    dry = settings[0].model_copy(update={"faucet_limit": 0})
    async with started(dry) as server, grpc.aio.insecure_channel(server.address) as channel:
        wallet = Wallet(channel, settings[1])
        request = wallet_pb2.DrawFaucetRequest(request_id="f1", currency=CURRENCY_EUR, amount=5)
        call = wallet.own.DrawFaucet(request, metadata=wallet.player("ann"))
        assert (await refusal(call))[0] == "PERMISSION_DENIED FAUCET_OFF"


async def test_a_statement_is_paged_newest_first_with_the_balance_after_each(wallet: Wallet) -> None:
    for number in range(7):
        await wallet.deposit("ann", 10, f"d{number}")
        await wallet.deposit("bob", 10, f"e{number}")
    await wallet.batch(
        "table", move("t1-1", "players/ann/eur", "tables/t1", 45), move("t1-2", "players/ann/eur", "tables/t1", 99)
    )
    request = wallet_pb2.ListTransfersRequest(currency=CURRENCY_EUR, page_size=4)
    pages = []
    while True:
        page = await wallet.own.ListTransfers(request, metadata=wallet.player("ann"))
        pages.append(page.transfers)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
        await wallet.deposit("ann", 1000, f"late{len(pages)}")  # what comes meanwhile shifts nothing
    assert [len(page) for page in pages] == [4, 4, 1]
    lines = [transfer for page in pages for transfer in page]
    assert [(t.refusal, t.balance_after) for t in lines] == [
        ("NO_MONEY", 25), ("", 25), ("", 70), ("", 60), ("", 50), ("", 40), ("", 30), ("", 20), ("", 10),
    ]  # fmt: skip
    assert [t.id for t in lines] == sorted((t.id for t in lines), reverse=True)

    since, until = lines[4].time_us, lines[2].time_us
    between = wallet_pb2.ListTransfersRequest(account="players/ann/eur", since_us=since, until_us=until)
    found = await wallet.own.ListTransfers(between, metadata=wallet.token("audit", "auditor"))
    assert [t.balance_after for t in found.transfers] == [60, 50]


async def test_a_page_token_of_another_list_is_refused(wallet: Wallet) -> None:
    for number in range(3):
        await wallet.deposit("ann", 10, f"d{number}")
        await wallet.deposit("bob", 10, f"e{number}")
    request = wallet_pb2.ListTransfersRequest(currency=CURRENCY_EUR, page_size=1)
    page = await wallet.own.ListTransfers(request, metadata=wallet.player("ann"))
    request.page_token = page.next_page_token
    call = wallet.own.ListTransfers(request, metadata=wallet.player("bob"))
    assert (await refusal(call))[0] == "INVALID_ARGUMENT INVALID_PAGE_TOKEN"


async def test_settled_transfers_are_announced_once(wallet: Wallet, nats_server: Nats) -> None:
    listener = await nats.connect(nats_server.url)
    news = await listener.subscribe(SUBJECT)
    await listener.flush()
    transfer = None
    for number in range(100):  # the wallet's own connection may not be up yet: news is not kept
        await wallet.deposit("ann", 10, f"d{number}")
        await wallet.deposit("ann", 10, f"d{number}")
        try:
            transfer = wallet_pb2.Transfer.FromString((await news.next_msg(timeout=0.1)).data)
            break
        except TimeoutError:
            continue
    assert transfer is not None
    assert (transfer.order.to, transfer.order.amount) == ("players/ann/eur", 10)
    with pytest.raises(TimeoutError):
        await news.next_msg(timeout=0.1)
    await listener.close()


async def test_a_call_cut_off_by_its_deadline_is_finished_all_the_same(wallet: Wallet) -> None:
    request = wallet_pb2.DepositRequest(request_id="d1", player="players/ann", currency=CURRENCY_EUR, amount=7)
    calls = [wallet.ledger.Deposit(request, metadata=wallet.token("cash", "cashier")) for _ in range(20)]
    await asyncio.sleep(0)
    for call in calls[1:]:
        call.cancel()
    assert (await calls[0]).balance_after == 7
    assert await wallet.balance("players/ann/eur") == 7
