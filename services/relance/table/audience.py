"""The watchers of one table."""

from __future__ import annotations

from relance.api.table.v1 import table_pb2
from relance.runtime.errors import Refused
from relance.table import wire
from relance.table.streams import Stream


class Audience:
    """Everyone who watches a table; made when the first comes, gone with the last."""

    __slots__ = ("streams",)

    def __init__(self) -> None:
        self.streams: list[Stream] = []

    def has(self, player: str) -> bool:
        """Whether the player has a stream that keeps them connected."""
        return any(stream.seated and stream.player == player for stream in self.streams)

    def show(self, encoded: wire.Encoded, prompt: bytes) -> None:
        """Send an append and the prompt after it (empty: none, or as before): one message each, shared where public."""
        shared = wire.update(encoded.body, prompt)
        private = {player: wire.update(body, prompt) for player, body in encoded.private.items()}
        for stream in self.streams:
            stream.push(private.get(stream.player, shared) if stream.player else shared)

    def ask(self, prompt: bytes) -> None:
        """Send a prompt again."""
        message = wire.update(b"", prompt)
        for stream in self.streams:
            stream.push(message)

    def notice(self, notice: table_pb2.Notice) -> None:
        """Send a notice."""
        message = wire.notice(notice)
        for stream in self.streams:
            stream.push(message)

    def tell(self, player: str, notice: table_pb2.Notice) -> None:
        """Send a notice to one player."""
        message = wire.notice(notice)
        for stream in self.streams:
            if stream.player == player:
                stream.push(message)

    def say(self, message: bytes) -> None:
        """Send what somebody said, as a PlayResponse."""
        for stream in self.streams:
            stream.push(message)

    def end(self, why: Refused) -> None:
        """End every stream."""
        for stream in self.streams:
            stream.end(why)
