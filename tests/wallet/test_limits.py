"""Deposit limits and self-exclusion: what the ledger refuses, for good, and what always goes through."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg
import grpc
import pytest
from pydantic import SecretStr
from tests.wallet.conftest import Connect, buy_in, cash_out, deposit
from tests.wallet.support import Wallet, move, refusal

from relance.api.common.v1.game_pb2 import CURRENCY_CREDIT, CURRENCY_EUR
from relance.api.wallet.v1 import wallet_pb2
from relance.runtime import database
from relance.runtime.auth import TokenSigner
from relance.runtime.clock import SimulatedClock
from relance.wallet.ledger import Ledger
from relance.wallet.limits import FOR_GOOD, PlayerLimits
from relance.wallet.serve import started
from relance.wallet.settings import WalletSettings

DAY, WEEK = wallet_pb2.LIMIT_PERIOD_DAY, wallet_pb2.LIMIT_PERIOD_WEEK
HOUR_US = 3_600_000_000


async def limit(wallet: Wallet, player: str, amount: int, period: Any = DAY) -> wallet_pb2.Limits:
    request = wallet_pb2.SetDepositLimitRequest(period=period, amount=amount)
    return await wallet.own.SetDepositLimit(request, metadata=wallet.player(player))


async def exclude(wallet: Wallet, player: str, hours: int = 0) -> wallet_pb2.Limits:
    until = 0 if not hours else time.time_ns() // 1000 + hours * HOUR_US
    request = wallet_pb2.ExcludePlayerRequest(until_us=until, for_good=not hours)
    return await wallet.own.ExcludePlayer(request, metadata=wallet.player(player))


async def test_an_excluded_player_cannot_sit_top_up_or_deposit_and_can_always_cash_out(wallet: Wallet) -> None:
    await wallet.deposit("ann", 5000)
    await wallet.batch("table", move("t1-1", "players/ann/eur", "tables/t1", 1000))
    limits = await exclude(wallet, "ann", hours=1)
    assert limits.excluded_until_us > time.time_ns() // 1000
    answers = await wallet.batch(
        "table",
        move("t1-2", "players/ann/eur", "tables/t1", 100),
        move("t1-3", "tables/t1", "players/ann/eur", 1000),
        move("t2-1", "players/ann/credit", "tables/t2", 100, CURRENCY_CREDIT),
    )
    assert [(a.settled, a.recorded, a.refusal) for a in answers] == [
        (False, True, "SELF_EXCLUDED"),
        (True, True, ""),
        (False, True, "SELF_EXCLUDED"),
    ]
    code, metadata = await refusal(wallet.deposit("ann", 100, "d2"))
    assert code == "FAILED_PRECONDITION SELF_EXCLUDED"
    assert metadata == {"until": str(limits.excluded_until_us)}
    withdraw = wallet_pb2.WithdrawRequest(request_id="w1", player="players/ann", currency=CURRENCY_EUR, amount=5000)
    paid = await wallet.ledger.Withdraw(withdraw, metadata=wallet.token("cash", "cashier"))
    assert paid.balance_after == 0


async def test_a_refusal_stays_one_when_the_exclusion_is_over(ledger: Ledger, as_wallet: Connect) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    connection = await as_wallet()
    soon = await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 150000")
    await connection.fetchval("SELECT wallet.exclude('ann', $1, 1, 'ann')", soon)
    refused = await ledger.transfer(buy_in("t1-1", "ann", "t1", 100))
    assert (refused.refusal, refused.recorded) == ("SELF_EXCLUDED", True)
    number = 2
    while not (await ledger.transfer(buy_in(f"t1-{number}", "ann", "t1", 100))).settled:
        number += 1
    again = await ledger.transfer(buy_in("t1-1", "ann", "t1", 100))
    assert (again.refusal, again.id) == ("SELF_EXCLUDED", refused.id)
    await connection.close()


async def test_an_exclusion_is_never_shortened_and_for_good_is_for_good(wallet: Wallet) -> None:
    first = await exclude(wallet, "ann", hours=5)
    assert (await exclude(wallet, "ann", hours=1)).excluded_until_us == first.excluded_until_us
    ever = await exclude(wallet, "ann")
    assert (ever.excluded_for_good, ever.excluded_until_us) == (True, 0)
    assert (await exclude(wallet, "ann", hours=9)).excluded_for_good
    code, metadata = await refusal(wallet.deposit("ann", 100))
    assert (code, metadata) == ("FAILED_PRECONDITION SELF_EXCLUDED", {"until": str(FOR_GOOD)})


async def test_only_the_player_and_the_cashier_exclude(wallet: Wallet) -> None:
    request = wallet_pb2.ExcludePlayerRequest(player="players/ann", for_good=True)
    for who in (wallet.player("bob"), wallet.token("audit", "auditor"), wallet.token("floor", "floor")):
        call = wallet.own.ExcludePlayer(request, metadata=who)
        assert (await refusal(call))[0] == "PERMISSION_DENIED NOT_YOURS"
    assert (await wallet.own.ExcludePlayer(request, metadata=wallet.token("cash", "cashier"))).excluded_for_good
    look = wallet_pb2.GetLimitsRequest(player="players/ann")
    assert (await wallet.own.GetLimits(look, metadata=wallet.token("audit", "auditor"))).excluded_for_good
    assert (await refusal(wallet.own.GetLimits(look, metadata=wallet.player("bob"))))[
        0
    ] == "PERMISSION_DENIED NOT_YOURS"


async def test_a_deposit_above_the_limit_is_refused_with_what_is_left(wallet: Wallet) -> None:
    await wallet.deposit("ann", 400, "d1")
    assert (await limit(wallet, "ann", 1000)).deposits[0].remaining == 600
    assert await refusal(wallet.deposit("ann", 601, "d2")) == (
        "FAILED_PRECONDITION DEPOSIT_LIMIT", {"remaining": "600"},
    )  # fmt: skip
    await wallet.deposit("ann", 600, "d3")
    assert (await refusal(wallet.deposit("ann", 1, "d4")))[1] == {"remaining": "0"}
    assert (await refusal(wallet.deposit("ann", 601, "d2")))[0] == "FAILED_PRECONDITION DEPOSIT_LIMIT"
    await wallet.deposit("bob", 5000, "d5")
    assert await wallet.balance("players/ann/eur") == 1000


async def test_the_lowest_of_several_limits_decides(wallet: Wallet) -> None:
    await limit(wallet, "ann", 1000)
    await limit(wallet, "ann", 300, WEEK)
    assert (await refusal(wallet.deposit("ann", 301)))[1] == {"remaining": "300"}


async def test_deposits_at_once_do_not_pass_the_limit_together(ledger: Ledger, as_wallet: Connect) -> None:
    connection = await as_wallet()
    await connection.execute(
        "INSERT INTO wallet.deposit_limit (player, days, amount, set_at, holds_from) VALUES ('ann', 1, 1000, 1, 1)"
    )
    async with Ledger(as_wallet) as other:
        one = [ledger.transfer_many([deposit(f"a{n}{m}", "ann", 100) for m in range(3)]) for n in range(10)]
        two = [other.transfer_many([deposit(f"b{n}{m}", "ann", 100) for m in range(3)]) for n in range(10)]
        answers = [answer for batch in await asyncio.gather(*one, *two) for answer in batch]
    assert sum(answer.settled for answer in answers) == 10
    assert {answer.refusal for answer in answers} == {"", "DEPOSIT_LIMIT"}
    assert (await ledger.transfer(cash_out("t1-1", "ann", "t1", 100))).refusal == "NO_MONEY"
    await connection.close()


async def test_a_lower_limit_holds_at_once_and_a_higher_one_after_the_cooling_off(
    settings: tuple[WalletSettings, TokenSigner],
) -> None:
    clock = SimulatedClock()
    async with database.pool(settings[0].database_url.get_secret_value(), name="test") as pool:
        limits = PlayerLimits(pool, clock, 24 * 3600)
        assert (await limits.set_deposit_limit("ann", 1, 1000)).deposits[0].amount == 1000
        raised = (await limits.set_deposit_limit("ann", 1, 5000)).deposits[0]
        assert (raised.amount, raised.pending_amount) == (1000, 5000)
        assert raised.pending_from_us == clock.now_us() + 24 * HOUR_US
        await clock.advance(23 * 3600)
        assert (await limits.get("ann")).deposits[0].amount == 1000
        await clock.advance(3600)
        held = (await limits.get("ann")).deposits[0]
        assert (held.amount, held.pending_from_us) == (5000, 0)
        off = (await limits.set_deposit_limit("ann", 1, 0)).deposits[0]
        assert (off.amount, off.pending_amount, off.pending_from_us > 0) == (5000, 0, True)
        lowered = (await limits.set_deposit_limit("ann", 1, 200)).deposits[0]  # and the end of all limits is forgotten
        assert (lowered.amount, lowered.pending_from_us) == (200, 0)
        await clock.advance(30 * 3600)
        assert (await limits.get("ann")).deposits[0].amount == 200


async def test_nothing_that_was_decided_is_changed(
    settings: tuple[WalletSettings, TokenSigner], owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    async with database.pool(settings[0].database_url.get_secret_value(), name="test") as pool:
        limits = PlayerLimits(pool, SimulatedClock(), 0)
        await limits.set_deposit_limit("ann", 1, 1000)
        await limits.exclude("ann", FOR_GOOD, "ann")
        for statement in ("UPDATE wallet.account SET excluded_until = 0", "DELETE FROM wallet.exclusion"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await pool.execute(statement)
    for statement in ("UPDATE wallet.deposit_limit SET amount = 5", "DELETE FROM wallet.exclusion"):
        with pytest.raises(asyncpg.RestrictViolationError):
            await owner.execute(statement)


async def test_bad_limits_are_refused(wallet: Wallet) -> None:
    assert (await refusal(limit(wallet, "ann", -1)))[0] == "INVALID_ARGUMENT INVALID_AMOUNT"
    assert (await refusal(limit(wallet, "ann", 1, 9)))[0] == "INVALID_ARGUMENT FIELD_INVALID"
    call = wallet.own.ExcludePlayer(wallet_pb2.ExcludePlayerRequest(), metadata=wallet.player("ann"))
    assert (await refusal(call))[0] == "INVALID_ARGUMENT FIELD_MISSING"


async def test_V2_V3_the_club_over_the_wire(settings: tuple[WalletSettings, TokenSigner]) -> None:
    # A table process that is not there: nobody has won or lost anything yet.
    knowing = settings[0].model_copy(update={"table_addresses": ("127.0.0.1:1",), "nats_url": SecretStr("nats://x:1")})
    async with started(knowing) as server, grpc.aio.insecure_channel(server.address) as channel:
        wallet = Wallet(channel, settings[1])
        ann = wallet.player("ann")
        refill = await wallet.own.RequestRefill(wallet_pb2.RequestRefillRequest(request_id="r1"), metadata=ann)
        assert refill.amount == 150
        async with asyncio.timeout(20):
            while await wallet.balance("players/ann/credit") != 150:  # noqa: ASYNC110 - another process grants it
                await asyncio.sleep(0.02)
        call = wallet.own.RequestRefill(wallet_pb2.RequestRefillRequest(request_id="r2"), metadata=ann)
        assert await refusal(call) == ("FAILED_PRECONDITION REFILL_NOT_DUE", {"condition": "BALANCE", "total": "150"})
        buy = wallet_pb2.BuyPassRequest(request_id="p1", player="players/ann", days=30)
        assert (await refusal(wallet.ledger.BuyPass(buy, metadata=ann)))[0] == "PERMISSION_DENIED ROLE_REQUIRED"
        sold = await wallet.ledger.BuyPass(buy, metadata=wallet.token("cash", "cashier"))
        assert (sold.order.purpose, sold.balance_after) == ("PASS", 1150)
        standing = await wallet.own.GetCredits(wallet_pb2.GetCreditsRequest(), metadata=ann)
        assert (standing.total, standing.balance, len(standing.refills), standing.not_due) == (1150, 1150, 1, "BALANCE")
        await exclude(wallet, "ann", hours=1)
        call = wallet.own.RequestRefill(wallet_pb2.RequestRefillRequest(request_id="r3"), metadata=ann)
        assert (await refusal(call))[0] == "FAILED_PRECONDITION SELF_EXCLUDED"


async def test_a_wallet_that_knows_no_tables_gives_no_refills(wallet: Wallet) -> None:
    call = wallet.own.RequestRefill(wallet_pb2.RequestRefillRequest(request_id="r1"), metadata=wallet.player("ann"))
    assert (await refusal(call))[0] == "UNAVAILABLE UNAVAILABLE"
