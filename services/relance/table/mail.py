"""What waits in a table's mailbox."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

import structlog

from relance.poker import Rejected, Request
from relance.poker.commands import Command
from relance.runtime.errors import Refused

log = structlog.get_logger(__name__)

MAILBOX = 128
"""Commands that may wait for one table."""

Outcome = int | Rejected | Refused
"""Version of the first event (0: nothing changed), or why not."""

Answer = Callable[[Outcome], None]


class Mail:
    """A command on its way to the table: who asked, when it came in (monotonic seconds), where the answer goes.

    What is done about it is done in the context that it came from: its lines in the log and its spans are the
    request's.
    """

    __slots__ = ("answer", "command", "context", "received", "request")

    def __init__(self, command: Command, request: Request | None, received: float, answer: Answer) -> None:
        self.command = command
        self.request = request
        self.received = received
        self.answer = answer
        self.context = copy_context()


class Mailbox:
    """Commands of others in the order in which they came, at most `MAILBOX`; the table's own go first and are few.

    An empty mailbox holds nothing.
    """

    __slots__ = ("_letters", "_own")

    def __init__(self) -> None:
        self._letters: deque[Mail] | None = None
        self._own: deque[tuple[Command, Context]] | None = None

    def __len__(self) -> int:
        return len(self._letters) if self._letters is not None else 0

    def put(self, mail: Mail) -> bool:
        """Take a letter in; False: the mailbox is full."""
        if self._letters is None:
            self._letters = deque()
        if len(self._letters) >= MAILBOX:
            return False
        self._letters.append(mail)
        return True

    def put_own(self, command: Command) -> None:
        """Take in a command of the room's own."""
        if self._own is None:
            self._own = deque()
        self._own.append((command, copy_context()))

    def next_received(self) -> float | None:
        """When the next letter came in; None: there is none."""
        return self._letters[0].received if self._letters else None

    def take(self) -> Mail | None:
        """The next letter."""
        if not self._letters:
            self._letters = None
            return None
        return self._letters.popleft()

    def take_own(self) -> tuple[Command, Context] | None:
        """The next command of the room's own, and the context that it came from."""
        if not self._own:
            self._own = None
            return None
        return self._own.popleft()

    def refuse(self, why: Refused) -> None:
        """Answer every letter with a refusal."""
        letters, self._letters = self._letters, None
        for letter in letters or ():
            letter.answer(why)

    def close(self, why: Refused) -> None:
        """The same, and drop the room's own commands."""
        self._own = None
        self.refuse(why)


class Reply:
    """An answer that one coroutine waits for. A caller that is cancelled does not take the command back."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def __call__(self, outcome: Outcome) -> None:
        if not self._future.done():
            self._future.set_result(outcome)

    async def version(self) -> int:
        """Version of the first event. Raises the refusal."""
        outcome = await asyncio.shield(self._future)
        if isinstance(outcome, int):
            return outcome
        raise outcome


def nobody(outcome: Outcome) -> None:
    """The answer of a command of the room's own: nobody waits for it, but a refusal may be a fault."""
    if not isinstance(outcome, int):
        log.info("command of the room's own refused", why=str(outcome))
