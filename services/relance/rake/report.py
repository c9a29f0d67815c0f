"""What was raked and collected, by table, day, house or limit."""

from __future__ import annotations

from relance.api.common.v1 import game_pb2
from relance.api.common.v1.game_pb2 import Currency, Limit
from relance.api.rake.v1 import rake_pb2
from relance.api.rake.v1.rake_pb2 import ReportGroup
from relance.runtime import validation
from relance.runtime.database import Pool

_KEYS: dict[int, str] = {
    rake_pb2.REPORT_GROUP_UNSPECIFIED: "'tables/' || table_id",
    rake_pb2.REPORT_GROUP_TABLE: "'tables/' || table_id",
    rake_pb2.REPORT_GROUP_DAY: "to_char(to_timestamp(ended_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    rake_pb2.REPORT_GROUP_HOUSE: "house",
    rake_pb2.REPORT_GROUP_LIMIT: "betting::text",
    rake_pb2.REPORT_GROUP_PLAYER: "'players/' || player",
}
_SELECT = """
SELECT {key} AS key, currency, count(*) AS hands, sum({pot})::bigint AS pots, sum({rake})::bigint AS rake,
    coalesce(sum({rake}) FILTER (WHERE state = 'collected'), 0)::bigint AS collected,
    count(*) FILTER (WHERE mismatch <> '') AS mismatches
FROM {rows} WHERE ended_at >= $1 AND ended_at < $2
GROUP BY 1, 2 ORDER BY 1, 2
"""
_LAST = 2**63 - 1


async def report(pool: Pool, request: rake_pb2.ReportRequest) -> rake_pb2.ReportResponse:
    """The report. Raises Refused FIELD_INVALID."""
    if request.group not in _KEYS:
        raise validation.invalid("group", ", ".join(ReportGroup.keys()[1:]))
    columns = {"pot": "pot", "rake": "rake", "rows": "rake.hand"}
    if request.group == rake_pb2.REPORT_GROUP_PLAYER:
        columns = {
            "pot": "contributed",
            "rake": "share.rake",
            "rows": "rake.hand JOIN rake.share USING (table_id, hand)",
        }
    rows = await pool.fetch(
        _SELECT.format(key=_KEYS[request.group], **columns), request.since_us, request.until_us or _LAST
    )
    response = rake_pb2.ReportResponse()
    for row in rows:
        key = row["key"]
        if request.group == rake_pb2.REPORT_GROUP_LIMIT:
            limit: Limit.ValueType = Limit.ValueType(int(key))
            key = game_pb2.Limit.Name(limit).removeprefix("LIMIT_").lower()
        response.rows.add(
            key=key,
            currency=Currency.ValueType(row["currency"]),
            hands=row["hands"],
            pots=row["pots"],
            rake=row["rake"],
            collected=row["collected"],
            mismatches=row["mismatches"],
        )
    return response
