"""Passwords: argon2id, off the event loop, on two threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from relance.api.common.v1 import reason_pb2
from relance.runtime.errors import Refused

T = TypeVar("T")

# 19 MiB, two passes, one lane: some 20 ms; two at once is all that a lobby may take from its machine.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_THREADS = 2
_LONGEST_QUEUE = 2_000
_TURNS = 2 * _THREADS
_RETRY_SECONDS = 5


class Passwords:
    """Hashes and verifies. An async context manager: the threads end with it."""

    def __init__(self, hasher: PasswordHasher = _HASHER) -> None:
        self._hasher = hasher
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="argon2")
        self._queued = 0
        self._turns = asyncio.Semaphore(_TURNS)
        self._waiting = 0
        self._nobody = hasher.hash("nobody's password")

    async def hash(self, password: str) -> str:
        """The hash to store. Raises Refused TOO_MANY_REQUESTS where too many wait."""
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password is the one of the hash. None: there is no such account, which takes as long."""
        known = self._nobody if stored is None else stored
        return await self._run(lambda: _is(self._hasher, known, password)) and stored is not None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One of the few who have their password verified now; the others wait, first come first served.

        Raises Refused TOO_MANY_REQUESTS where too many wait.
        """
        if self._waiting >= _LONGEST_QUEUE:
            raise _crowded()
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    async def _run(self, work: Callable[[], T]) -> T:
        if self._queued >= _LONGEST_QUEUE:
            raise _crowded()
        self._queued += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._queued -= 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _is(hasher: PasswordHasher, stored: str, password: str) -> bool:
    try:
        return hasher.verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False


def _crowded() -> Refused:
    return Refused(
        reason_pb2.REASON_TOO_MANY_REQUESTS, "Too many people sign in at once; try again in a few seconds.",
        retry_after_seconds=_RETRY_SECONDS,
    )  # fmt: skip
