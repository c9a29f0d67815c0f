"""The log: ids in every line, secrets in none."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from relance.api.lobby.v1 import lobby_pb2
from relance.runtime import logging as runtime_logging
from relance.runtime.auth import TokenSigner


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    output = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    runtime_logging.configure(style="json", level="debug", output=output)
    yield output
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:], root.level = before


def test_ids_that_are_bound_stand_in_every_line(lines: io.StringIO) -> None:
    token = runtime_logging.request_id.set("r-1")
    with structlog.contextvars.bound_contextvars(table="t1", hand=7, player="alice"):
        structlog.get_logger().info("acted", kind="fold")
        logging.getLogger("some.library").warning("hm")
    runtime_logging.request_id.reset(token)
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert first.items() >= {"event": "acted", "table": "t1", "hand": 7, "player": "alice", "request": "r-1"}.items()
    assert first["level"] == "info"
    assert second.items() >= {"event": "hm", "logger": "some.library", "hand": 7, "request": "r-1"}.items()


def test_no_secret_is_in_any_line_however_it_came_there(lines: io.StringIO) -> None:
    token, _ = TokenSigner.generate("a").sign("alice", ("player",), seconds=60)
    log = structlog.get_logger()
    log.info(
        "one", token=token, password="hunter2", hole="AsKd", deck=[1, 2], authorization="Bearer x", player_cards="2c"
    )
    log.info(f"signed in with {token}", nested={"salt": "s4lt", "deep": [{"password": "hunter2"}]})
    log.info("database", url="postgresql://lobby:hunter2@127.0.0.1/relance", digest=b"hunter2")
    log.info("message", request=lobby_pb2.SignInRequest(display_name="a", password="hunter2"))
    try:
        raise ValueError(f"cannot read {token}")
    except ValueError as error:
        log.error("fault", exc_info=error)
    logging.getLogger("library").error("connect to nats://u:hunter2@host failed with %s", token)
    text = lines.getvalue()
    for secret in (token, "hunter2", "AsKd", "s4lt", "Bearer x", "2c"):
        assert secret not in text
    assert text.count(runtime_logging.HIDDEN) >= 10
    assert "127.0.0.1/relance" in text


def test_the_console_style_is_for_eyes(lines: io.StringIO) -> None:
    output = io.StringIO()
    runtime_logging.configure(style="console", output=output)
    structlog.get_logger().info("hello", table="t1")
    assert "hello" in output.getvalue()
    assert "table=t1" in output.getvalue()
