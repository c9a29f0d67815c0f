"""What the database itself refuses, whoever asks."""

from __future__ import annotations

import asyncpg
import pytest

from relance.wallet.ledger import Ledger

from .conftest import Connect, buy_in, deposit


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO wallet.account (name, kind, currency) VALUES ('players/eve/eur', 'player', 'eur')",
        "UPDATE wallet.account SET balance = balance + 1",
        "DELETE FROM wallet.account",
        "TRUNCATE wallet.account CASCADE",
        "INSERT INTO wallet.transfer SELECT * FROM wallet.transfer",
        "UPDATE wallet.transfer SET amount = 1",
        "DELETE FROM wallet.transfer",
        "TRUNCATE wallet.transfer",
        "ALTER TABLE wallet.transfer DISABLE TRIGGER ALL",
        "SELECT nextval('wallet.transfer_id')",
        "SET ROLE relance_audit; SELECT wallet.transfer_batch('{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    ],
)
async def test_the_service_role_may_only_call_the_function(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record], statement: str
) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    # A login of the role itself, as the room makes it: a superuser's SET ROLE could be taken back.
    await owner.execute("SET SESSION AUTHORIZATION relance_wallet")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await owner.execute(statement)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE wallet.transfer SET purpose = 'X'", "DELETE FROM wallet.transfer", "TRUNCATE wallet.transfer",
     "DELETE FROM wallet.account", "TRUNCATE wallet.account CASCADE",
     "UPDATE wallet.account SET name = 'players/eve/eur' WHERE kind = 'player'"],
)  # fmt: skip
async def test_nobody_changes_what_is_written(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record], statement: str
) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    with pytest.raises(asyncpg.RestrictViolationError, match="the ledger only grows"):
        await owner.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE wallet.account SET balance = balance + 1 WHERE kind = 'player'",
        "INSERT INTO wallet.account (name, kind, currency, balance) VALUES ('house/eur', 'house', 'eur', 5)",
    ],
)
async def test_no_statement_makes_money(
    ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record], statement: str
) -> None:
    await ledger.transfer(deposit("d1", "ann", 5000))
    with pytest.raises(asyncpg.CheckViolationError, match="sum to zero"):
        await owner.execute(statement)


async def test_no_statement_makes_a_balance_negative(ledger: Ledger, owner: asyncpg.Connection[asyncpg.Record]) -> None:
    await ledger.transfer_many([deposit("d1", "ann", 5000), buy_in("t1-1", "ann", "t1", 5000)])
    with pytest.raises(asyncpg.CheckViolationError, match="balance_not_negative"):
        await owner.execute(
            "UPDATE wallet.account SET balance = balance + CASE kind WHEN 'escrow' THEN -5001 ELSE 5001 END"
            " WHERE kind <> 'world'"
        )


async def test_a_batch_has_at_most_256_orders(as_wallet: Connect, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="at most 256"):
        await ledger.transfer_many([deposit(f"d{i}", "ann", 1) for i in range(257)])
    assert len(await ledger.transfer_many([deposit(f"d{i}", "ann", 1) for i in range(256)])) == 256
    connection = await as_wallet()
    with pytest.raises(asyncpg.InvalidParameterValueError, match="1 to 256 orders"):
        await connection.execute("SELECT wallet.transfer_batch('{}', '{}', '{}', '{}', '{}', '{}', '{}')")
    await connection.close()
