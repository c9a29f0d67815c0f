"""Tables and a wallet for audits: real log, real ledger, play by the rules, and the steps between them one by one."""

from __future__ import annotations

import random

from tests.poker import playing
from tests.poker.playing import CALL, FOLD, RAISE, Room

from relance.api.common.v1 import game_pb2
from relance.eventlog import PostgresLog
from relance.poker import Transfer, initial
from relance.poker import commands as cmd
from relance.poker.deck import ScriptedDeck, VirtualDeck
from relance.poker.houses import load
from relance.poker.rake import schedule_for
from relance.wallet.ledger import Answer, Ledger, Order

INBOUND = (1, 2)
BOULEVARD = schedule_for(load("boulevard"), game_pb2.LIMIT_NO_LIMIT, 100, game_pb2.CURRENCY_EUR)


def order_of(table: str, transfer: Transfer) -> Order:
    """The wallet's order for a table's transfer."""
    sides = f"players/{transfer.player}/eur", f"tables/{table}"
    payer, payee = sides if transfer.purpose in INBOUND else sides[::-1]
    return Order(transfer.id, payer, payee, transfer.amount, "eur", "X", "table")


def deposit(player: str, amount: int) -> Order:
    """Money from outside."""
    return Order(f"deposit/cash/{player}", "world/eur", f"players/{player}/eur", amount, "eur", "DEPOSIT", "cash")


def rake_of(table: str, hand: int, amount: int) -> Order:
    """The collection of a hand's rake."""
    return Order(f"rake/{table}/{hand}", f"tables/{table}", "house/eur", amount, "eur", "RAKE", "rake")


class NamedRoom(Room):
    """A raked table with a name, whose transfers are made by a real wallet."""

    def __init__(self, name: str) -> None:
        self.table = initial(name)
        self.log = []
        self.cards = ScriptedDeck([])
        self.at = 1_000_000
        self.adopt = False
        self.do(cmd.OpenTable(playing.config(), BOULEVARD, "test"))

    async def ask(self, ledger: Ledger) -> list[tuple[Transfer, Answer]]:
        """Ask the wallet for everything open; the table does not hear of it yet."""
        return [(each, await ledger.transfer(order_of(self.table.id, each))) for each in self.table.transfers.values()]

    async def settled(self, ledger: Ledger) -> None:
        """Ask the wallet and tell the table."""
        for transfer, answer in await self.ask(ledger):
            self.do(cmd.TransferAnswered(transfer.id, answer.settled, answer.refusal))

    def hand(self) -> None:
        """A hand that is raked 30."""
        rnd = random.Random(self.table.last_hand)
        self.start(VirtualDeck(rnd.shuffle, rnd.randbytes))
        for kind, amount in ((RAISE, 250), (CALL, 0), (FOLD, 0)):
            self.act(self.asked().seat, kind, amount)
        self.passive()

    async def write(self, log: PostgresLog) -> None:
        """Put the whole table into the log."""
        owned = await log.create(self.table.id, self.log[:1])
        head = owned.head
        for begin in range(1, len(self.log), 50):
            head = await log.append(self.table.id, head, owned.fence, self.log[begin : begin + 50])


async def busy_room(log: PostgresLog, ledger: Ledger) -> None:
    """Three tables caught in the middle of everything.

    `calm`: two hands, one raked hand collected, one player gone and paid. `busy`: a hand is running, a buy-in was
    refused, one is unknown to the wallet, one unknown to the table, a cash-out waits. `empty`: just opened.
    """
    await ledger.transfer_many([deposit(f"p{n}", 1_000_000) for n in range(1, 8)])

    calm = NamedRoom("calm")
    for seat in (1, 2, 3):
        calm.do(cmd.TakeSeat(f"p{seat}", seat, 50_000))
    await calm.settled(ledger)
    calm.hand()
    calm.hand()
    await ledger.transfer(rake_of("calm", 1, 30))
    calm.do(cmd.AddChips("p2", 1_000))
    await calm.settled(ledger)
    calm.do(cmd.LeaveSeat("p1"))
    await calm.settled(ledger)
    await calm.write(log)

    busy = NamedRoom("busy")
    for seat in (1, 2, 3, 4):
        busy.do(cmd.TakeSeat(f"p{seat}", seat, 40_000))
    await busy.settled(ledger)
    busy.hand()
    busy.do(cmd.TakeSeat("poor", 6, 40_000))
    await busy.settled(ledger)
    busy.do(cmd.LeaveSeat("p4"))
    busy.do(cmd.TakeSeat("p5", 5, 30_000))
    await ledger.transfer(next(order_of("busy", each) for each in busy.table.transfers.values() if each.player == "p5"))
    busy.do(cmd.TakeSeat("p7", 7, 20_000))
    rnd = random.Random(9)
    busy.start(VirtualDeck(rnd.shuffle, rnd.randbytes))
    busy.act(busy.asked().seat, RAISE, 300)
    await busy.write(log)

    await NamedRoom("empty").write(log)


async def play_live(log: PostgresLog, ledger: Ledger, name: str, *, hands: int) -> None:
    """A table whose every step is durable before the next one: append, wallet, append, hand, rake."""
    room = NamedRoom(name)
    owned = await log.create(name, room.log)
    head = owned.head

    async def append() -> None:
        nonlocal head
        if len(room.log) > head:
            head = await log.append(name, head, owned.fence, room.log[head:])

    for seat in (1, 2, 3):
        room.do(cmd.TakeSeat(f"p{seat}", seat, 100_000))
    await append()
    await room.settled(ledger)
    await append()
    for number in range(1, hands + 1):
        room.hand()
        await append()
        await ledger.transfer(rake_of(name, number, 30))
        room.do(cmd.AddChips(f"p{1 + number % 3}", 10))
        await append()
        await room.settled(ledger)
        await append()
    for seat in (1, 2, 3):
        room.do(cmd.LeaveSeat(f"p{seat}"))
        await append()
        await room.settled(ledger)
    await append()
