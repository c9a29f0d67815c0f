"""Checks of requests, filters, orders and page tokens."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.runtime import filters, validation
from relance.runtime.errors import Refused, reason_name
from relance.runtime.filters import Field
from relance.runtime.paging import PageTokens, order_of

FIELDS = {
    "game": Field("game", "text"),
    "big_blind": Field("bb", "number"),
    "turbo": Field("turbo", "bool"),
    "limit": Field("betting", "word", {"FIXED": 1, "NO_LIMIT": 5}),
}


def refusal(call: Callable[[], object]) -> tuple[str, dict[str, str]]:
    with pytest.raises(Refused) as caught:
        call()
    return reason_name(caught.value.reason), caught.value.metadata


def test_names_give_their_ids_and_say_how_they_must_look() -> None:
    assert validation.table_id("tables/t-1") == "t-1"
    assert validation.player_id("players/a1") == "a1"
    assert refusal(lambda: validation.table_id("")) == ("FIELD_MISSING", {"field": "table"})
    for name in ("t1", "tables/", "tables/T1", "tables/a/b", "players/t1", "tables/" + "a" * 41, "tables/a\n"):
        reason, metadata = refusal(lambda name=name: validation.table_id(name))  # type: ignore[misc]
        assert (reason, metadata["pattern"]) == ("INVALID_NAME", "tables/[a-z0-9-]{1,40}")


def test_request_ids_texts_amounts_and_sizes_have_limits() -> None:
    assert refusal(lambda: validation.request_id("")) == ("FIELD_MISSING", {"field": "request_id"})
    assert refusal(lambda: validation.request_id("x" * 65))[0] == "FIELD_TOO_LONG"
    assert refusal(lambda: validation.request_id("a b"))[0] == "FIELD_INVALID"
    assert refusal(lambda: validation.text("ä" * 6, "note", longest=5)) == (
        "FIELD_TOO_LONG",
        {"field": "note", "max": "5"},
    )
    for amount in (0, -1, 10**15 + 1):
        reason, metadata = refusal(lambda amount=amount: validation.amount(amount))  # type: ignore[misc]
        assert (reason, metadata["min"], metadata["max"]) == ("INVALID_AMOUNT", "1", "1000000000000000")
    assert validation.amount(10**15) == 10**15
    assert [validation.page_size(size, usual=50, most=500) for size in (0, 7, 501)] == [50, 7, 500]
    assert refusal(lambda: validation.page_size(-1, usual=50, most=500))[0] == "FIELD_INVALID"


def test_an_enum_that_is_missing_or_unknown_is_refused_with_what_there_is() -> None:
    assert validation.enum(5, game_pb2.Limit, "limit") == game_pb2.LIMIT_NO_LIMIT
    assert refusal(lambda: validation.enum(0, game_pb2.Limit, "limit"))[0] == "FIELD_MISSING"
    reason, metadata = refusal(lambda: validation.enum(99, game_pb2.Limit, "limit"))
    assert reason == "FIELD_INVALID"
    assert metadata["allowed"].startswith("LIMIT_FIXED, LIMIT_SPREAD")


def test_a_message_field_that_is_missing_is_refused() -> None:
    validation.present(lobby_pb2.Table(config=game_pb2.TableConfig()), "config")
    assert refusal(lambda: validation.present(lobby_pb2.Table(), "config")) == ("FIELD_MISSING", {"field": "config"})


@pytest.mark.parametrize(
    ("text", "sql", "values"),
    [
        ("", "TRUE", []),
        ('game = "holdem"', "game = $1", ["holdem"]),
        ("game = holdem AND big_blind >= 200", "(game = $1 AND bb >= $2::numeric)", ["holdem", 200]),
        ("game = a AND game = b OR game = c", "(game = $1 AND (game = $2 OR game = $3))", ["a", "b", "c"]),
        ("NOT turbo = true", "NOT turbo = $1", [True]),
        ("-(turbo = false  big_blind != -1.5)", "NOT ((turbo = $1 AND bb <> $2::numeric))", [False, -1.5]),
        ("limit = no_limit", "betting = $1", [5]),
        (r"game = 'it\'s'", "game = $1", ["it's"]),
    ],
)
def test_a_filter_becomes_a_condition(text: str, sql: str, values: list[object]) -> None:
    assert filters.to_sql(text, FIELDS) == (sql, values)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("colour = red", 0),
        ("game =", 6),
        ("game", 4),
        ("game = holdem AND", 17),
        ("(game = holdem", 14),
        ("game = holdem)", 13),
        ("big_blind = many", 12),
        ("turbo > true", 8),
        ("limit = weird", 8),
        ("game = holdem; DROP TABLE x", 13),
        ('game = "open', 7),
        ("big_blind = 99999999999999999999", 12),
        ('game = "a\0b"', 9),
        ("(" * 30, 20),
        ("game = " + "x" * 1000, 1000),
    ],
)
def test_a_filter_that_cannot_be_read_says_where_and_what_there_is(text: str, position: int) -> None:
    reason, metadata = refusal(lambda: filters.to_sql(text, FIELDS))
    assert (reason, metadata) == (
        "INVALID_FILTER",
        {"position": str(position), "fields": "big_blind,game,limit,turbo"},
    )


@given(st.text(alphabet="game bigtur_lndAOR NT()=<>!\"'-0123.\\é", max_size=40))
def test_whatever_stands_in_a_filter_it_is_read_or_refused(text: str) -> None:
    try:
        sql, values = filters.to_sql(text, FIELDS)
    except Refused as refused:
        assert 0 <= int(refused.metadata["position"]) <= len(text)  # noqa: PT017
    else:
        assert sql.count("$") == len(values)


def test_a_page_token_is_good_for_its_own_query_only() -> None:
    tokens = PageTokens(b"secret")
    token = tokens.make([7, "t1"], "tables", "turbo = true")
    assert tokens.read(token, "tables", "turbo = true") == [7, "t1"]
    assert tokens.read("", "tables", "turbo = true") is None
    flipped = token[:-1] + ("A" if token[-1] != "A" else "B")
    for given_token, query in (
        (token, ("tables", "")),
        (token, ("tablesturbo = true",)),
        (flipped, ("tables", "turbo = true")),
        ("AAAA", ("tables", "turbo = true")),
        ("ü", ("tables", "turbo = true")),
        ("x" * 5000, ("tables", "turbo = true")),
        (PageTokens(b"other").make([7], "tables", "turbo = true"), ("tables", "turbo = true")),
    ):
        assert refusal(lambda t=given_token, q=query: tokens.read(t, *q))[0] == "INVALID_PAGE_TOKEN"  # type: ignore[misc]


@pytest.mark.parametrize("order_by", ["colour", "a down", "a,a", "a,,b", "a desc desc", "x" * 201])
def test_an_order_that_there_is_not_is_refused(order_by: str) -> None:
    reason, _ = refusal(lambda: order_of(order_by, {"a": "x", "b": "y"}, usual="a", unique="id"))
    assert reason in {"FIELD_INVALID", "FIELD_TOO_LONG"}


async def test_pages_follow_on_each_other_in_every_order(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("CREATE TABLE t AS SELECT i AS id, i % 3 AS x, i % 5 AS y FROM generate_series(1, 30) i")
    for order_by in ("", "b desc", "a desc, b", "a asc,b desc"):
        order = order_of(order_by, {"a": "x", "b": "y"}, usual="a", unique="id")
        whole = await connection.fetch(f"SELECT * FROM t ORDER BY {order.by()}")
        seen: list[asyncpg.Record] = []
        position: list[int] = []
        while True:
            where = f"WHERE {order.after(1)}" if position else ""
            rows = await connection.fetch(f"SELECT * FROM t {where} ORDER BY {order.by()} LIMIT 4", *position)
            seen += rows
            if len(rows) < 4:
                break
            position = [rows[-1][column] for column, _ in order.columns]
        assert seen == whole
    await connection.close()
