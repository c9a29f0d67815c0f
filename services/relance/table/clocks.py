"""The times that a table waits for, in seconds of the clock's `monotonic`."""

from __future__ import annotations

from relance.table.timers import NEVER


class Clocks:
    """turn: of the prompt whose clock runs, 0 = none. starts: when the next hand may start. reconnect: when players who
    have not come back to a new owner count as gone. seats: when what is held or reserved expires. While the clocks
    stand still the prompt keeps what is left.
    """

    __slots__ = ("_bank", "_deadline", "_ended", "_left", "_still", "reconnect", "seats", "starts", "turn")

    def __init__(self) -> None:
        self.turn = 0
        self.starts = NEVER
        self.reconnect = NEVER
        self.seats = NEVER
        self._bank = 0.0
        self._ended = -NEVER
        self._deadline = 0.0
        self._left = 0.0
        self._still = False

    def ask(self, turn: int, seconds: float, now: float, bank: float = 0.0) -> None:
        """The clock of a new prompt begins; the last `bank` of its seconds are the player's time bank."""
        self.turn, self.starts = turn, NEVER
        self._deadline, self._left, self._bank = now + seconds, seconds, bank

    def bank_used(self, at: float) -> int:
        """Milliseconds of the time bank that an answer which came in at a time has used."""
        if not self._bank or not self.turn:
            return 0
        return max(0, round((self._bank - self.left(at)) * 1e3))

    def hand_ended(self, now: float) -> None:
        """The pause between two hands begins."""
        self._ended = now

    def may_start(self, pause: float, now: float) -> None:
        """A hand can be started: at once, or when the pause after the hand before is over."""
        if self.starts == NEVER:
            self.starts = max(now, self._ended + pause)

    def stop(self) -> None:
        """Nothing is waited for any more."""
        self.turn, self.starts, self.reconnect, self.seats = 0, NEVER, NEVER, NEVER

    def stand_still(self, now: float) -> None:
        """Keep what is left of the prompt's time."""
        self._left = self.left(now)
        self._still = True

    def go_on(self, now: float) -> None:
        """The prompt has the time that was left."""
        self._still = False
        self._deadline = now + self._left

    def left(self, now: float) -> float:
        """Seconds left for the prompt."""
        if not self.turn:
            return 0.0
        return self._left if self._still else max(0.0, self._deadline - now)

    def run_out(self, now: float, received: float | None) -> bool:
        """Whether the prompt's time is over and the next command (None: there is none) did not come in before that."""
        return bool(self.turn) and now >= self._deadline and (received is None or received >= self._deadline)

    def next(self) -> float:
        """The next time that matters."""
        return min(self._deadline if self.turn else self.starts, self.reconnect, self.seats)
