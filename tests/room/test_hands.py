"""The drill's bookkeeping: a cent that is off is found, wherever it is."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest
from tests.conftest import Migrated

from relance.api.events.v1 import events_pb2 as e
from relance.eventlog import PostgresLog
from relance.room.accounts import Discrepancy, Mark, Movement
from relance.room.drill import check, compare
from relance.room.folder import DataFolder
from relance.room.hands import Follower, TableHands, VoidedHand

MARK = Mark(transfer=1, balance=7_000)
PAID = Movement("t-8", before=7_000, after=17_000)


def play(*payloads: dict[str, object]) -> TableHands:
    table = TableHands("t")
    for version, payload in enumerate(payloads, start=1):
        table.apply(e.TableEvent(table="t", version=version, hand=1, **payload))  # type: ignore[arg-type]
    return table


def hand_in_progress() -> list[dict[str, object]]:
    return [
        {"owner_started": e.OwnerStarted(fence=1)},
        {
            "hand_started": e.HandStarted(
                players=[e.HandPlayer(seat=1, player="a", stack=10_000), e.HandPlayer(seat=2, player="b", stack=5_000)]
            )
        },
        {"blind_posted": e.BlindPosted(seat=1, amount=50)},
        {"blind_posted": e.BlindPosted(seat=2, amount=100)},
        {"raised": e.Raised(seat=1, amount=250, to=300)},
    ]


def crash(refund: int = 300, stack: int = 10_000, cash_out: int = 10_000) -> list[dict[str, object]]:
    return [
        {
            "hand_voided": e.HandVoided(
                reason=e.VOID_REASON_CRASH,
                refunds=[
                    e.Refund(seat=1, player="a", amount=refund, stack=stack),
                    e.Refund(seat=2, player="b", amount=100, stack=5_000),
                ],
            )
        },
        {"player_left": e.PlayerLeft(seat=1, player="a", amount=cash_out, reason=e.LEAVE_REASON_CRASH)},
        {
            "transfer_requested": e.TransferRequested(
                transfer="t-8", seat=1, player="a", purpose=e.TRANSFER_PURPOSE_CASH_OUT, amount=cash_out
            )
        },
    ]


def settled() -> dict[str, object]:
    return {"transfer_settled": e.TransferSettled(transfer="t-8", player="a", amount=10_000)}


def voided(*, answered: bool = True, **wrong: int) -> VoidedHand:
    return play(*hand_in_progress(), *crash(**wrong), *([settled()] if answered else [])).voided[0]


def test_chips_in_the_pot_are_those_put_in_less_those_returned() -> None:
    table = play(*hand_in_progress(), {"uncalled_returned": e.UncalledReturned(seat=1, amount=200)})
    assert (table.hand, table.pot) == (1, 200)


def test_a_voided_hand_keeps_what_each_had_put_in() -> None:
    table = play(*hand_in_progress(), *crash())
    assert table.pot == 0
    assert table.open_cash_outs
    assert {stake.player: stake.put for stake in table.voided[0].stakes.values()} == {"a": 300, "b": 100}


def test_a_hand_that_was_paid_back_passes_with_its_account_before_and_after() -> None:
    hand = voided()
    assert check(hand, hand.stakes[1], [PAID], MARK) == (7_000, 17_000)
    assert check(hand, hand.stakes[2], [], MARK) == (7_000, 7_000)


@pytest.mark.parametrize(
    ("hand", "movements", "what"),
    [
        (voided(refund=299), [PAID], "300 in the pot, 299 refunded"),
        (voided(stack=9_999), [PAID], "9999 after the refund"),
        (voided(cash_out=9_999), [PAID], "9999 cashed out"),
        (voided(), [], "is not on the account"),
        (voided(answered=False), [PAID], "is not on the account"),
        (voided(), [Movement("t-8", 7_000, 17_001)], "10001 on the account"),
    ],
)
def test_a_cent_that_is_off_is_found(hand: VoidedHand, movements: list[Movement], what: str) -> None:
    with pytest.raises(Discrepancy, match=what):
        check(hand, hand.stakes[1], movements, MARK)


def test_a_gap_in_the_log_is_an_error() -> None:
    table = play(*hand_in_progress())
    with pytest.raises(ValueError, match="version 9 follows 5"):
        table.apply(e.TableEvent(table="t", version=9))


def test_the_hands_that_ran_are_the_hands_that_were_voided() -> None:
    compare({("t-1", 3), ("t-2", 4)}, {("t-2", 4), ("t-1", 3)})
    with pytest.raises(Discrepancy, match="1 of 2 hands in progress ran and were not voided: t-1 hand 3"):
        compare({("t-1", 3), ("t-2", 4)}, {("t-2", 4)})
    with pytest.raises(Discrepancy, match="1 of 0 hands in progress were voided and did not run: t-1 hand 3"):
        compare(set(), {("t-1", 3)})


async def test_the_log_of_a_table_process_that_stands_still_is_read_to_its_end(
    migrated: Migrated, tmp_path: Path
) -> None:
    url = await migrated("relance.eventlog")
    owner = await asyncpg.connect(url)
    follower = Follower(DataFolder(tmp_path), "127.0.0.1:1", ["tables/t-1", "tables/t-2"])
    try:
        async with PostgresLog(url, "ada") as log:
            for table in ("t-1", "t-2"):
                events = [e.TableEvent(table=table, version=at, hand=1, **payload) for at, payload in _numbered()]  # type: ignore[arg-type]
                await log.create(table, events[:2])
                await log.append(table, 2, 1, events[2:])
        await follower.settle(owner)
        assert [(table.version, table.pot) for table in follower.tables.values()] == [(5, 400), (5, 400)]
    finally:
        await follower.close()
        await owner.close()


def _numbered() -> list[tuple[int, dict[str, object]]]:
    return list(enumerate(hand_in_progress(), start=1))
