"""Credits of the club: passes and refills, granted later and once, on a clock that the tests move (V1-V3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from tests.wallet.conftest import buy_in, cash_out, deposit

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.wallet.v1 import wallet_pb2
from relance.eventlog import MemoryLog, MemoryStore
from relance.runtime import database
from relance.runtime.clock import SimulatedClock
from relance.runtime.errors import Refused
from relance.wallet.credits import DAY_US, Credits
from relance.wallet.ledger import Answer, Ledger, Order
from relance.wallet.winnings import Winnings

NOON = 20_000 * DAY_US + DAY_US // 2
HOUR = 3600.0


class Club:
    """Credits on a simulated clock, and tables whose hands are told by the test."""

    def __init__(self, pool: database.Pool, ledger: Ledger) -> None:
        self.pool, self.ledger, self.clock = pool, ledger, SimulatedClock(NOON)
        self.credits = Credits(pool, ledger, self.clock, 1.5 * HOUR)
        self.winnings = Winnings(MemoryLog("test", MemoryStore()))  # nothing is read there
        self.versions: dict[str, int] = {}

    async def refused(self, player: str, request_id: str) -> str:
        with pytest.raises(Refused) as caught:
            await self.credits.request_refill(player, request_id)
        return caught.value.metadata.get("condition", str(caught.value))

    async def balance(self, player: str) -> int:
        return (await self.credits.standing(player)).balance

    async def total(self, player: str) -> int:
        return (await self.credits.standing(player)).total

    async def told(self, table: str, *events: TableEvent) -> None:
        """Take in a table's next events, as the follower does."""
        if table not in self.versions:
            await self.pool.execute("INSERT INTO wallet.followed (stream, version) VALUES ($1, 0)", table)
        for event in events:
            self.versions[table] = event.version = self.versions.get(table, 0) + 1
            event.table = table
        async with self.pool.acquire() as connection, connection.transaction():
            await self.winnings.take_in(connection, events)

    async def opened(self, table: str, currency: Any = game_pb2.CURRENCY_CREDIT) -> None:
        config = game_pb2.TableConfig(currency=currency)
        await self.told(table, TableEvent(table_opened=events_pb2.TableOpened(config=config)))


def ended(**net: int) -> TableEvent:
    """A hand that ended so for its players."""
    results = [events_pb2.SeatResult(player=player, net=amount) for player, amount in net.items()]
    return TableEvent(hand_ended=events_pb2.HandEnded(results=results))


@pytest_asyncio.fixture
async def club(wallet_url: str, ledger: Ledger) -> AsyncIterator[Club]:
    """A club on the role of the wallet."""
    owner = await asyncpg.connect(wallet_url)
    await owner.execute("ALTER ROLE relance_wallet LOGIN PASSWORD 'wallet'")
    await owner.close()
    host = wallet_url.rpartition("@")[2]
    async with database.pool(f"postgresql://relance_wallet:wallet@{host}", name="test") as pool:
        yield Club(pool, ledger)


async def test_V2_a_pass_adds_a_thousand_credits_once_and_its_days_add_up(club: Club) -> None:
    for _ in range(2):
        order, answer = await club.credits.buy_pass("ann", 30, "cash", "p1")
        assert (order.amount, order.currency, answer.payee_balance) == (1000, "credit", 1000)
    assert (await club.credits.standing("ann")).pass_until == NOON + 30 * DAY_US
    await club.credits.buy_pass("ann", 10, "cash", "p2")
    standing = await club.credits.standing("ann")
    assert (standing.balance, standing.pass_until) == (2000, NOON + 40 * DAY_US)
    with pytest.raises(Refused, match="KEY_REUSED"):
        await club.credits.buy_pass("ann", 31, "cash", "p1")


async def test_V2_a_pass_whose_seller_died_before_the_credits_came_is_made_good(club: Club, ledger: Ledger) -> None:
    dying = Credits(club.pool, Deaf(ledger, asks=False), club.clock, 0)
    with pytest.raises(Dies):
        await dying.buy_pass("ann", 30, "cash", "p1")
    assert await club.balance("ann") == 0
    assert await club.credits.grant() == 1
    assert await club.balance("ann") == 1000


async def test_V3_a_refill_is_granted_when_it_is_due_and_not_before(club: Club) -> None:
    asked = await club.credits.request_refill("ann", "r1")
    assert (asked.amount, asked.due_us - asked.asked_us) == (150, 5_400_000_000)
    assert asked.state == wallet_pb2.REFILL_STATE_PENDING
    await club.clock.advance(1.5 * HOUR - 1)
    assert await club.credits.grant() == 0
    await club.clock.advance(1)
    assert await club.credits.grant() == 1
    assert await club.credits.grant() == 0
    assert await club.balance("ann") == 150
    assert (await club.credits.request_refill("ann", "r1")).state == wallet_pb2.REFILL_STATE_GRANTED


async def test_V3_who_has_a_pass_gets_300(club: Club) -> None:
    await club.credits.buy_pass("ann", 1, "cash", "p1")
    await club.opened("t1")
    await club.told("t1", ended(ann=-960))
    assert (await club.credits.request_refill("ann", "r1")).amount == 300
    await club.clock.advance(24 * HOUR)
    await club.credits.grant()
    await club.told("t1", ended(ann=-340))
    assert (await club.credits.request_refill("ann", "r2")).amount == 150  # the pass has run out


async def test_V3_one_refill_is_pending_at_a_time_and_two_a_day_are_all(club: Club) -> None:
    await club.opened("t1")
    await club.credits.request_refill("ann", "r1")
    assert await club.refused("ann", "r2") == "PENDING"
    for number in (2, 3):
        await club.clock.advance(2 * HOUR)
        await club.credits.grant()
        await club.told("t1", ended(ann=-150))
        if number == 2:
            await club.credits.request_refill("ann", "r3")
    assert await club.refused("ann", "r4") == "DAY"
    await club.clock.advance(8 * HOUR)  # the next UTC day
    await club.credits.request_refill("ann", "r5")


async def test_V3_a_refill_of_yesterday_that_is_still_pending_is_the_one_pending(club: Club) -> None:
    await club.clock.advance(11 * HOUR)
    await club.credits.request_refill("ann", "r1")
    await club.clock.advance(1.25 * HOUR)
    assert await club.refused("ann", "r2") == "PENDING"
    await club.clock.advance(1 * HOUR)
    await club.credits.grant()
    await club.opened("t1")
    await club.told("t1", ended(ann=-150))
    await club.credits.request_refill("ann", "r3")
    await club.clock.advance(2 * HOUR)
    await club.credits.grant()
    await club.told("t1", ended(ann=-150))
    await club.credits.request_refill("ann", "r4")  # the second of this day: yesterday's counts for yesterday


async def test_V3_the_balance_counts_chips_at_tables_and_what_is_under_way(club: Club, ledger: Ledger) -> None:
    await club.opened("t1")
    await ledger.transfer(deposit("d1", "ann", 200, "credit"))
    assert await club.refused("ann", "r1") == "BALANCE"
    await ledger.transfer(buy_in("t1-5", "ann", "t1", 200, "credit"))  # the table does not even know yet
    assert (await club.balance("ann"), await club.total("ann")) == (0, 200)
    assert await club.refused("ann", "r1") == "BALANCE"
    await club.told("t1", ended(ann=-100, bob=100))
    assert await club.refused("ann", "r1") == "BALANCE"
    await ledger.transfer(cash_out("t1-9", "ann", "t1", 100, "credit"))
    assert (await club.balance("ann"), await club.total("ann")) == (100, 100)
    await ledger.transfer(buy_in("t1-12", "ann", "t1", 100, "credit"))
    await club.told("t1", ended(ann=-51, bob=51))
    assert (await club.balance("ann"), await club.total("ann")) == (0, 49)
    assert (await club.credits.request_refill("ann", "r1")).amount == 150
    assert await club.total("bob") == 151


async def test_V1_hands_for_money_are_no_credits(club: Club) -> None:
    await club.opened("t1", game_pb2.CURRENCY_EUR)
    await club.told("t1", ended(ann=500, bob=-500))
    await club.told("t1", ended(ann=500, bob=-500))
    assert await club.total("ann") == 0
    assert list(await club.winnings.read("t1", 3, 10)) == []  # and are not even read any more


async def test_two_requests_at_once_are_one_refill(club: Club) -> None:
    answers = await asyncio.gather(
        *(club.credits.request_refill("ann", "same") for _ in range(4)),
        *(club.credits.request_refill("ann", f"r{n}") for n in range(4)),
        return_exceptions=True,
    )
    same = {answer.asked_us for answer in answers if isinstance(answer, wallet_pb2.Refill)}
    assert len(same) == 1
    assert await club.pool.fetchval("SELECT count(*) FROM wallet.credit_grant") == 1


async def test_grants_are_made_once_by_several_replicas_at_once(club: Club) -> None:
    for number in range(30):
        await club.credits.request_refill(f"p{number}", "r1")
    await club.clock.advance(2 * HOUR)
    replicas = [Credits(club.pool, club.ledger, club.clock, 0) for _ in range(3)]
    granted = await asyncio.gather(*(replica.grant() for replica in replicas))
    assert sum(granted) + await club.credits.grant() == 30
    assert [await club.balance(f"p{number}") for number in range(30)] == [150] * 30


class Dies(Exception):
    """The process ends here."""


class Deaf(Ledger):
    """A ledger whose answer never reaches the one who asked: the process has died, before or after the commit."""

    def __init__(self, real: Ledger, *, asks: bool = True) -> None:
        self._real, self._asks = real, asks

    async def transfer_many(self, orders: Sequence[Order]) -> list[Answer]:
        if self._asks:
            await self._real.transfer_many(orders)
        raise Dies


@pytest.mark.parametrize("asks", [False, True])
async def test_a_scheduled_grant_survives_a_death_and_is_granted_once(club: Club, ledger: Ledger, asks: bool) -> None:
    await club.credits.request_refill("ann", "r1")
    await club.clock.advance(2 * HOUR)
    with pytest.raises(Dies):
        await Credits(club.pool, Deaf(ledger, asks=asks), club.clock, 0).grant()
    assert await club.balance("ann") == (150 if asks else 0)
    reborn = Credits(club.pool, ledger, club.clock, 0)
    assert await reborn.grant() == 1
    assert await club.balance("ann") == 150
    assert await reborn.grant() == 0


async def test_a_clock_that_jumps_back_grants_late_but_once(club: Club) -> None:
    await club.credits.request_refill("ann", "r1")
    await club.clock.advance(2 * HOUR)
    earlier = Credits(club.pool, club.ledger, SimulatedClock(NOON - DAY_US), 0)
    assert await earlier.grant() == 0
    assert await club.credits.grant() == 1
    assert await earlier.grant() == 0
    assert await club.balance("ann") == 150


async def test_a_grant_that_is_settled_is_settled_for_good(club: Club, wallet_url: str) -> None:
    await club.credits.request_refill("ann", "r1")
    await club.clock.advance(2 * HOUR)
    await club.credits.grant()
    with pytest.raises(asyncpg.RestrictViolationError):
        await club.pool.execute("UPDATE wallet.credit_grant SET state = 'refused'")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await club.pool.execute("UPDATE wallet.credit_grant SET amount = 1000000")
