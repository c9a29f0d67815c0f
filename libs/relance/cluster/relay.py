"""A small TCP relay: what a Service is on this machine, and the wire between a pod and a server outside.

Like the network of a cluster it carries bytes and knows nothing of them. A relay can be cut: then nothing goes through
in either direction and nobody is told, as when a switch dies; mended, it goes on with what was under way.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from socket import SO_LINGER, SOL_SOCKET, socket
from typing import cast

Place = tuple[str, int]
_RESET = struct.pack("ii", 1, 0)


class Relay:
    """Listens on an address and carries each connection to where `pick` says; None: nobody, it is refused.

    `source`: the local address of the connections onward; empty: any.
    """

    def __init__(self, listen: Place, pick: Callable[[], Place | None], source: str = "") -> None:
        self.listen, self.pick, self.source = listen, pick, source
        self.is_cut = False
        self.halves: set[_Half] = set()
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Half(self, None), *self.listen, backlog=512)

    def cut(self) -> None:
        """Carry nothing from now on."""
        self.is_cut = True
        for half in self.halves:
            half.hold()

    def mend(self) -> None:
        """Carry again."""
        self.is_cut = False
        for half in tuple(self.halves):
            half.go_on()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._under_way):
            task.cancel()
        for half in tuple(self.halves):
            half.drop()
        await asyncio.sleep(0)

    def connect(self, half: _Half) -> None:
        """Find the other end of a connection that came in."""
        task = asyncio.ensure_future(self._connect(half))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _connect(self, half: _Half) -> None:
        place = self.pick()
        if place is None:
            half.drop()
            return
        local = (self.source, 0) if self.source else None
        try:
            await asyncio.get_running_loop().create_connection(lambda: _Half(self, half), *place, local_addr=local)
        except OSError:
            half.drop()


class _Half(asyncio.Protocol):
    """One side of a connection; `other` is the side that came first, None where this one is it."""

    def __init__(self, relay: Relay, other: _Half | None) -> None:
        self._relay, self._other = relay, other
        self._transport: asyncio.Transport | None = None
        self._full = False  # the other side takes no more for now
        self._sent_on = False
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._relay.halves.add(self)
        if self._other is None:
            self._transport.pause_reading()
            self.go_on()
            return
        if self._other._transport is None:
            self._transport.abort()
            return
        self._other._other = self
        if self._other._early:
            self._transport.write(self._other._early)
        self._other.go_on()
        if self._relay.is_cut:
            self.hold()

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early += data  # a loop may read once more after it was told not to
        elif self._other._transport is not None:
            self._other._transport.write(data)

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other._full = True
            self._other.hold()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other._full = False
            self._other.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.halves.discard(self)
        self._transport = None
        if self._other is not None and self._other._transport is not None:
            if error is None:
                self._other._transport.close()
            else:
                self._other.drop()

    def hold(self) -> None:
        """Read no more for now."""
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again, unless something else is against it."""
        if self._transport is None or self._relay.is_cut or self._full:
            return
        if self._other is None:
            if not self._sent_on:
                self._sent_on = True
                self._relay.connect(self)
        elif not self._transport.is_reading():
            self._transport.resume_reading()

    def drop(self) -> None:
        """Reset the connection."""
        if self._transport is not None:
            wire = cast(socket | None, self._transport.get_extra_info("socket"))
            if wire is not None:
                wire.setsockopt(SOL_SOCKET, SO_LINGER, _RESET)
            self._transport.abort()
