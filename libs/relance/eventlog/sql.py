"""The statements of the log. Each is one statement and one transaction of its own."""

from __future__ import annotations

CONNECTION_SETTINGS = {
    "application_name": "relance-log",
    "default_transaction_isolation": "read committed",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    # Every statement here goes to its rows by primary key; plans made while the tables are empty say otherwise.
    "enable_seqscan": "off",
    "enable_mergejoin": "off",
}

SAFETY = """
SELECT current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       pg_is_in_recovery() AS standby,
       to_regclass('log.event') IS NOT NULL AS migrated
"""

# `held` never waits: a row that somebody else holds, or that has another head or fence, is left out, and with it
# its append alone. `won` looks at the row again as it is now. `put` writes the events of what was won: all or none.
APPEND = """
WITH want AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::uuid[], $5::int[])
        WITH ORDINALITY AS w (stream, expected, fence, append_id, n, i)
), held AS MATERIALIZED (
    SELECT w.* FROM want w CROSS JOIN LATERAL (
        SELECT FROM log.stream s WHERE s.stream = w.stream AND s.head = w.expected AND s.fence = w.fence
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS row
), won AS (
    UPDATE log.stream s SET head = w.expected + w.n
    FROM held w
    WHERE s.stream = w.stream AND s.head = w.expected AND s.fence = w.fence
    RETURNING w.i, w.stream, w.expected, w.fence, w.append_id
), put AS (
    INSERT INTO log.event (stream, version, fence, append_id, hand, type, time_us, body)
    SELECT won.stream, won.expected + e.k, won.fence, won.append_id, e.hand, e.type, e.time_us, e.body
    FROM unnest($6::int[], $7::int[], $8::bigint[], $9::text[], $10::bigint[], $11::bytea[])
        AS e (i, k, hand, type, time_us, body)
    JOIN won ON won.i = e.i
)
SELECT i FROM won
"""

# What became of appends that were not won: one snapshot of the owner's row and of the event in their place.
OUTCOME = """
SELECT w.i, s.head, s.fence, e.append_id
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w (stream, expected, i)
LEFT JOIN log.stream s ON s.stream = w.stream
LEFT JOIN log.event e ON e.stream = w.stream AND e.version = w.expected + 1
"""

CREATE = """
WITH made AS (
    INSERT INTO log.stream (stream, head, fence, writer, claim)
    VALUES ($1, cardinality($4::bigint[]), 1, $2, $3) ON CONFLICT DO NOTHING RETURNING stream
), put AS (
    INSERT INTO log.event (stream, version, fence, append_id, hand, type, time_us, body)
    SELECT made.stream, e.version, 1, $3, e.hand, e.type, e.time_us, e.body
    FROM made, unnest($4::bigint[], $5::text[], $6::bigint[], $7::bytea[])
        WITH ORDINALITY AS e (hand, type, time_us, body, version)
)
SELECT 1 FROM made
"""

CREATED = "SELECT 1 FROM log.event WHERE stream = $1 AND version = 1 AND append_id = $2"

# Waits for appends in flight; rows are locked in the order of their names, so takers never lock each other out.
TAKE_OVER = """
WITH want AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::bigint[]) AS w (stream, seen)
), held AS MATERIALIZED (
    SELECT s.stream FROM want w JOIN log.stream s ON s.stream = w.stream WHERE s.fence = w.seen
    ORDER BY s.stream FOR NO KEY UPDATE OF s
)
UPDATE log.stream s SET fence = w.seen + 1, writer = $3, claim = $4
FROM held h JOIN want w ON w.stream = h.stream
WHERE s.stream = h.stream AND s.fence = w.seen
RETURNING s.stream, s.fence, s.head
"""

CLAIMED = "SELECT stream, fence, head FROM log.stream WHERE stream = ANY($1::text[]) AND claim = $2"

RELEASE = "UPDATE log.stream SET writer = '' WHERE stream = $1 AND fence = $2 RETURNING stream"

READ = "SELECT body FROM log.event WHERE stream = $1 AND version > $2 AND version <= $3 ORDER BY version LIMIT $4"

READ_ALL = """
SELECT w.stream, e.body
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w (stream, after, i)
CROSS JOIN LATERAL (
    SELECT body FROM log.event WHERE stream = w.stream AND version > w.after ORDER BY version
) AS e
"""

READ_APPENDS = """
SELECT version, append_id, body FROM log.event WHERE stream = $1 AND version > $2
    AND version <= coalesce((
        SELECT e.version FROM log.event e
        WHERE e.stream = $1 AND e.append_id = (
            SELECT append_id FROM log.event WHERE stream = $1 AND version = $2 + $3
        ) AND e.version BETWEEN $2 + $3 AND $2 + $3 + 1000
        ORDER BY e.version DESC LIMIT 1
    ), $2 + $3)
ORDER BY version
"""

HEADS = "SELECT stream, head FROM log.stream"

STREAMS = """
SELECT s.stream, s.head, s.fence, s.writer, coalesce(p.address, '') AS address
FROM log.stream s LEFT JOIN log.process p ON p.id = s.writer
"""
