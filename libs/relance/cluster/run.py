"""`relance cluster`: manifests are run, bots play on them, things happen to pods, and every hand is accounted for."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from relance.cluster.clients import Clients, Complaints
from relance.cluster.cluster import Cluster
from relance.cluster.document import ManifestError
from relance.cluster.manifests import read
from relance.cluster.record import Hand, Record, not_refunded
from relance.cluster.render import SECRETS, prepared, render
from relance.cluster.scenarios import PATIENCE, SCENARIOS, Scenario, Stage
from relance.ops.audit import audit
from relance.room.credentials import Servers, make
from relance.room.demo import open_tables
from relance.room.drill import busy_tables
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.room.hands import VoidedHand
from relance.room.services import AUDIT_ROLE

Say = Callable[[str], None]

LEAST_TABLES = 3
HANDS_BEFORE, HANDS_AFTER = 30, 20
SERVERS = Servers("postgresql://relance@relance-postgres:5432/relance", "nats://relance-nats:4222")


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What is run. `scenarios`: names; none: all, in their order. `keep`: the folder stays."""

    overlay: Path
    pods: int = 3
    bots: int = 60
    seed: int = 1
    pace: str = "fast"
    scenarios: Sequence[str] = ()
    keep: bool = False


@dataclass(slots=True)
class Row:
    """What came of a scenario. Hands (table, number): voided, and expected to be."""

    scenario: Scenario
    seconds: float
    hands: int
    voided: set[Hand]
    expected: set[Hand]
    complaints: Complaints
    audit: str
    taken_after: float | None = None
    faults: list[str] = field(default_factory=list)


def cluster(options: ClusterOptions, console: Console) -> bool:
    """Run everything and print what was found; False: something is not as it should be. Raises RoomError."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_cluster(options, console))


async def _cluster(options: ClusterOptions, console: Console) -> bool:
    began = time.monotonic()

    def say(sentence: str) -> None:
        console.print(f"{time.monotonic() - began:6.1f}  {sentence}", markup=False)

    folder = Path(tempfile.mkdtemp(prefix="relance-cluster-"))
    try:
        overlay = prepared(options.overlay, folder)
        make(overlay / SECRETS, SERVERS)
        room = Cluster(read(render(overlay)), folder, say, {"relance-table": options.pods})
    except BaseException:
        shutil.rmtree(folder)
        raise
    say(f"{options.overlay} is rendered; data and logs are in {folder}")
    ok = False
    try:
        await room.start()
        ok = await _Run(room, options, DataFolder(overlay / SECRETS), console, say).run()
    finally:
        await room.stop()
        if ok and not options.keep:
            shutil.rmtree(folder)
    return ok


class _Run:
    def __init__(self, room: Cluster, options: ClusterOptions, secrets: DataFolder, console: Console, say: Say) -> None:
        self._room, self._options, self._secrets, self._console, self._say = room, options, secrets, console, say
        self._record = Record(room.database.url)
        self._stage = Stage(
            room, self._record, options.pods, lambda: secrets.operator_token("cluster", OPERATOR_ROLES, 600), say
        )  # fmt: skip
        self._clients = Clients(room.folder, room.client_address("lobby"), options.bots, options.pace, options.seed)
        password = (secrets.path / "logins" / AUDIT_ROLE).read_text().strip()
        self._audit_url = room.database.url_for(AUDIT_ROLE, password)

    async def run(self) -> bool:
        for line in self._room.ledger.lines():
            self._say(f"said differently here: {line}")
        chosen = [each for each in SCENARIOS if not self._options.scenarios or each.name in self._options.scenarios]
        await self._open_tables()
        self._clients.start()
        rows: list[Row] = []
        stopped = ""
        try:
            await self._stage.until(lambda: self._record.ended >= HANDS_BEFORE, f"{HANDS_BEFORE} hands", PATIENCE)
            self._say(f"{self._record.ended} hands are played; {self._spread()}")
            self._clients.complaints()  # what it took to begin is no part of this
            for scenario in chosen:
                stopped = scenario.name
                rows.append(await self._play(scenario))
            stopped = ""
        except ManifestError as error:
            return await self._verdict(rows, [f"stopped at {stopped or 'the beginning'}: {error}"])
        finally:
            self._clients.stop()
        return await self._verdict(rows, [])

    async def _play(self, scenario: Scenario) -> Row:
        """One scenario, from a room that plays to a room that plays again."""
        self._say(f"{scenario.name}: {scenario.title}")
        await self._record.follow()
        began, hands, voided = time.monotonic(), self._record.ended, _hands(self._record.voided)
        self._stage.taken_after = None
        expected = await scenario.run(self._stage)
        await self._stage.plays_on()
        again = self._record.ended + HANDS_AFTER
        await self._stage.until(lambda: self._record.ended >= again, f"{HANDS_AFTER} hands more are played", PATIENCE)
        new = [hand for hand in self._record.voided if (hand.table, hand.hand) not in voided]
        report = await audit(self._audit_url)
        row = Row(
            scenario, time.monotonic() - began, self._record.ended - hands, _hands(new), expected,
            self._clients.complaints(), "ok" if report.ok else f"findings: {len(report.findings)}",
            self._stage.taken_after,
        )  # fmt: skip
        row.faults = [fault for hand in new for fault in not_refunded(hand)]
        row.faults += [f"audit: {finding}" for finding in report.findings]
        row.faults += [f"{_name(hand)} was voided and should not have been" for hand in sorted(row.voided - expected)]
        row.faults += [f"{_name(hand)} should have been voided and was not" for hand in sorted(expected - row.voided)]
        row.faults += [f"bots are connected to {who}, which is no Service" for who in sorted(self._strangers())]
        if row.complaints.count:
            row.faults.append(f"bots met what the client library should absorb: {row.complaints}")
        for fault in row.faults:
            self._say(f"FAULT {fault}")
        self._say(f"{scenario.name}: {row.hands} hands, {len(row.voided)} voided; {self._spread()}")
        return row

    async def _verdict(self, rows: Sequence[Row], faults: Sequence[str]) -> bool:
        """Audits once more, the overlay's own way too; prints everything."""
        await self._record.follow()
        await self._record.close()
        report = await audit(self._audit_url)
        faults = [*(fault for row in rows for fault in row.faults), *faults]
        for job in self._room.manifests.cron_jobs.values():
            try:
                await self._room.run_job(job)
            except ManifestError as error:
                faults.append(str(error))
        self._console.print(_table(rows))
        faults += [f"audit: {finding}" for finding in report.findings]
        for fault in faults:
            self._console.print(f"fault: {fault}", markup=False)
        hands, voided = self._record.ended, len(self._record.voided)
        pods = sum(len(each.pods) for each in self._room.deployments.values())
        self._console.print(
            f"cluster: pods={pods} hands={hands} voided={voided} audit={'ok' if report.ok else 'FAILED'}"
            + ("" if not faults else f" faults={len(faults)}")
        )
        return not faults

    async def _open_tables(self) -> None:
        """Open tables at the clients' address, each by a call of its own: a Service spreads connections."""
        address = self._room.client_address("table")
        for request in busy_tables("cluster", self._options.bots, least=LEAST_TABLES, bring_in=False):
            await open_tables(self._secrets, address, [request])
        await self._record.follow()

    def _spread(self) -> str:
        """How many tables each table pod runs."""
        pods = [
            f"{pod.name.rpartition('-')[2]} {len(self._record.run_by(pod.address))}" for pod in self._stage.tables.pods
        ]
        return f"tables by pod: {', '.join(pods)}"

    def _strangers(self) -> set[str]:
        services = set(self._room.service_addresses.values())
        return self._clients.strangers(lambda address: address in services)


def _hands(voided: Sequence[VoidedHand]) -> set[Hand]:
    return {(hand.table, hand.hand) for hand in voided}


def _name(hand: Hand) -> str:
    """A hand in words."""
    return f"hand {hand[1]} of table {hand[0]}"


def _table(rows: Sequence[Row]) -> Table:
    table = Table("scenario", box=None)
    for heading in ("seconds", "hands", "voided", "expected", "new owners after", "client errors"):
        table.add_column(heading, justify="right")
    table.add_column("audit")
    for row in rows:
        taken = "" if row.taken_after is None else f"{row.taken_after:.1f} s"
        figures = (f"{row.seconds:.0f}", row.hands, len(row.voided), len(row.expected), taken, row.complaints.count)
        table.add_row(row.scenario.title, *map(str, figures), row.audit)
    return table
