"""`relance rake report`: what was raked and collected, as the rake service reports it."""

from __future__ import annotations

from typing import Final

import grpc

from relance.api.common.v1 import game_pb2
from relance.api.rake.v1 import rake_pb2, rake_pb2_grpc
from relance.ops.errors import NoAnswer
from relance.ops.output import Out
from relance.ops.words import amount
from relance.transport import Tls, open_channel

GROUPS: Final = {
    "day": rake_pb2.REPORT_GROUP_DAY,
    "table": rake_pb2.REPORT_GROUP_TABLE,
    "house": rake_pb2.REPORT_GROUP_HOUSE,
    "limit": rake_pb2.REPORT_GROUP_LIMIT,
    "player": rake_pb2.REPORT_GROUP_PLAYER,
}
_SECONDS = 30.0
_FIELDS = ("key", "currency", "hands", "pots", "rake", "collected", "mismatches")


async def report(
    address: str, token: str, group: str, since: int, until: int, tls: Tls | None = None
) -> list[rake_pb2.ReportRow]:
    """The rows of a report. Raises NoAnswer."""
    request = rake_pb2.ReportRequest(group=GROUPS[group], since_us=since, until_us=until)
    async with open_channel(address, tls) as channel:
        stub = rake_pb2_grpc.RakeServiceStub(channel)
        try:
            answer = await stub.Report(request, timeout=_SECONDS, metadata=(("authorization", f"Bearer {token}"),))
        except grpc.aio.AioRpcError as error:
            raise NoAnswer(f"the rake service gives no report: {error.details() or error.code().name}") from error
    return list(answer.rows)


def rows_of(rows: list[rake_pb2.ReportRow]) -> list[dict[str, object]]:
    """The rows by name, amounts in minor units."""
    return [
        {
            field: game_pb2.Currency.Name(row.currency).removeprefix("CURRENCY_").lower()
            if field == "currency"
            else getattr(row, field)
            for field in _FIELDS
        }
        for row in rows
    ]


def csv_rows(rows: list[rake_pb2.ReportRow]) -> list[tuple[object, ...]]:
    """The report as rows of a CSV file."""
    return [_FIELDS, *(tuple(row.values()) for row in rows_of(rows))]


def show(rows: list[rake_pb2.ReportRow], group: str, out: Out) -> None:
    """Print it, with a line of sums for each currency."""
    if out.json:
        out.document(rows_of(rows))
        return
    lines: list[tuple[object, ...]] = [_line(row) for row in rows]
    for currency in sorted({row.currency for row in rows}):
        # Of a report by player the hands count several times: their sum says nothing.
        of_currency = [row for row in rows if row.currency == currency]
        total = rake_pb2.ReportRow(key="total", currency=currency)
        for row in of_currency:
            total.pots += row.pots
            total.rake += row.rake
            total.collected += row.collected
            if group != "player":
                total.hands += row.hands
                total.mismatches += row.mismatches
        lines.append(_line(total))
    out.table((group, "hands>", "pots>", "rake>", "collected>", "mismatches>"), lines)


def _line(row: rake_pb2.ReportRow) -> tuple[object, ...]:
    money = [amount(value, row.currency) for value in (row.pots, row.rake, row.collected)]
    return (row.key, row.hands or "", *money, row.mismatches or "")
