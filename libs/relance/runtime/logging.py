"""The log: one event a line, JSON or for eyes, with the ids of what it is about and without secrets.

Ids are bound once and stand in every line of the task: `structlog.contextvars.bind_contextvars(table=…, hand=…,
player=…)`. The id of the request is bound by the server and goes along with the calls that the handling makes, so that
the lines of all services about one request have the same; work that nobody asked for gives itself one (`request`).
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from relance.transport import tracing

HIDDEN = "(hidden)"

request_id: ContextVar[str] = ContextVar("relance_request", default="")
"""Id of the request that this task serves; set by the server: cheaper than binding."""

REQUEST_ID_KEY = "x-request-id"
"""The metadata by which a request's id goes along with a call."""

_LONGEST_ID = 64
_PROCESS = secrets.token_hex(4)
_numbers = count(1)

_SECRET_WORDS = frozenset(
    {"token", "tokens", "password", "passwords", "secret", "secrets", "authorization"}
    | {"card", "cards", "hole", "down", "deck", "salt", "salts"}
)
# Tokens (three base64url parts) and the credentials of URLs, wherever they stand in a text.
_SECRET_TEXT = re.compile(r"eyJ[\w-]{5,}\.[\w-]+\.[\w-]+|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")


def new_request_id() -> str:
    """An id that no other request of the room has."""
    return f"{_PROCESS}-{next(_numbers):x}"


def follow(given: str) -> None:
    """From here on this context is about the request of that id, where it is fit for one."""
    if 0 < len(given) <= _LONGEST_ID and given.isascii() and given.isprintable():
        request_id.set(given)


@contextmanager
def request(given: str = "") -> Iterator[str]:
    """What the context does is one request, with the given id or a new one: in the log, and in the calls it makes."""
    token = request_id.set(given or new_request_id())
    try:
        yield request_id.get()
    finally:
        request_id.reset(token)


_level = logging.INFO


def verbose() -> bool:
    """Whether lines for finding faults are kept: asked where even a line that is not costs too much."""
    return _level <= logging.DEBUG


def configure(*, style: Literal["json", "console"] = "json", level: str = "info", output: TextIO | None = None) -> None:
    """Set the log up for this process, the standard library's loggers (gRPC, NATS, asyncpg) too. Default: stdout."""
    stream = sys.stdout if output is None else output
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_request,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    after: list[Processor] = [structlog.processors.format_exc_info, hide_secrets, renderer]
    global _level  # noqa: PLW0603  one log a process
    _level = number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*before, *after],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.INFO), force=True)


def _add_request(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    current = request_id.get()
    if current:
        event.setdefault("request", current)
    if tracing.on() and (trace := tracing.trace_id()):
        event.setdefault("trace", trace)
    return event


def hide_secrets(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Processor: values under the name of a secret, and tokens and credentials inside texts, become `(hidden)`."""
    return {key: HIDDEN if _is_secret(key) else _hide(value) for key, value in event.items()}


def _is_secret(key: object) -> bool:
    return isinstance(key, str) and not _SECRET_WORDS.isdisjoint(re.split(r"[^a-z]+", key.lower()))


def _hide(value: object) -> object:
    if isinstance(value, str):
        return _SECRET_TEXT.sub(HIDDEN, value)
    if isinstance(value, bytes | bytearray):
        return HIDDEN  # never text: hashes, salts, messages
    if isinstance(value, dict):
        return {key: HIDDEN if _is_secret(key) else _hide(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hide(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _SECRET_TEXT.sub(HIDDEN, str(value)) if not hasattr(value, "DESCRIPTOR") else _message_name(value)


def _message_name(value: object) -> str:
    # A protobuf message would print every field that it has, cards and tokens too.
    return f"<{type(value).__name__}>"
