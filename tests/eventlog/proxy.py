"""A TCP proxy that loses answers: what a network does to a commit at the worst moment."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Stands before a server. While `swallow` is set, what the server answers is dropped and counted, not forwarded."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.swallow = False
        self.hold = asyncio.Event()
        self.hold.set()
        self.answered = asyncio.Event()
        self.asked = asyncio.Event()

    @property
    def url(self) -> str:
        """The server's URL by way of the proxy."""
        if self._server is None:
            raise RuntimeError("the proxy is not running")
        port = self._server.sockets[0].getsockname()[1]
        user, _, _ = self._target.netloc.rpartition("@")
        return urlunsplit(self._target._replace(netloc=f"{user}@127.0.0.1:{port}"))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)

    def cut(self) -> None:
        """Break every connection, both ways, at once."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._target.hostname is not None
        far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers |= {writer, far_writer}
        for pump in (self._ask(reader, far_writer), self._answer(far_reader, writer)):
            task = asyncio.create_task(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await self._read(reader):
            self.asked.set()
            await self.hold.wait()
            writer.write(data)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await self._read(reader):
            if self.swallow:
                self.answered.set()
            else:
                writer.write(data)
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(65_536)
        except OSError:
            return b""
