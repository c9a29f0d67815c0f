"""The page of metrics says what the code tells, no more and no less; figures of money are sums."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import asyncpg
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from tests.conftest import Migrated

import relance.lobby.serve
import relance.rake.serve  # noqa: F401  for what they count
from relance.runtime import database, metrics
from relance.table.metrics import TableMetrics
from relance.wallet import figures

PAGE = Path(metrics.__file__).with_name("METRICS.md")
BOUNDED = {"method", "code", "use", "end", "purpose", "kind", "currency"}


def page() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Kind and labels of each metric of the page."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*)\| \S", PAGE.read_text(), re.MULTILINE)
    return {name: (kind, tuple(filter(None, labels.strip().split(", ")))) for name, kind, labels in rows}


def code() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Kind and labels of each metric of the room, as the code has them."""
    of_tables = CollectorRegistry()
    TableMetrics(of_tables)
    found = {}
    for registry in (REGISTRY, of_tables):
        for collector in list(registry._collector_to_names):
            describe = getattr(collector, "describe", list)  # Python's own have none
            for metric in describe():
                source = collector if isinstance(collector, MetricWrapperBase) else metric
                labels = getattr(source, "_labelnames", ())
                name = metric.name + ("_total" if metric.type == "counter" else "")
                if name.startswith("relance_"):
                    found[name] = (metric.type, tuple(labels))
    return found


def test_every_metric_is_on_the_page_and_nothing_else() -> None:
    assert page() == code()


def test_no_label_grows_with_the_room() -> None:
    assert {label for _, labels in code().values() for label in labels} <= BOUNDED


async def test_the_balances_of_all_accounts_are_told_by_kind_and_currency(migrated: Migrated) -> None:
    url = await migrated("relance.wallet")
    owner = await asyncpg.connect(url)
    columns = (
        ["deposit", "buy-in"], ["world/eur", "players/ann/eur"], ["players/ann/eur", "tables/t1"], [500, 200],
        ["eur", "eur"], ["DEPOSIT", "BUY_IN"], ["cashier", "table"],
    )  # fmt: skip
    await owner.fetch("SELECT * FROM wallet.transfer_batch($1, $2, $3, $4, $5, $6, $7)", *columns)
    await owner.close()
    async with database.pool(url, name="test") as pool:
        await figures.add_up(pool)
    for kind, expected in (("player", 300), ("escrow", 200), ("world", -500)):
        assert REGISTRY.get_sample_value("relance_wallet_balance", {"kind": kind, "currency": "eur"}) == expected


def test_metrics_are_read_by_plain_http_from_another_thread() -> None:
    with metrics.exposed("127.0.0.1:0") as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    assert "relance_grpc_handled_total" in text
    with metrics.exposed("") as port:
        assert port == 0
