"""The limit of `durable`: a bare grpc.aio server that sends messages of the same number and size, nothing else.

    python -m tests.bench.bare ANSWER_BYTES UPDATE_BYTES UPDATES

Streams join a group by their first message (its first byte) and are told their place in it. Every further message is
answered with ANSWER_BYTES, the first byte 255, and
UPDATES messages (a fraction is carried on) of UPDATE_BYTES go to every stream of the group; the first byte of an
update is the place of the stream that is next, 255 where nobody is. Prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc
import uvloop

METHOD = "/bare.Bare/Play"
NOBODY = 255


class Group:
    """Streams that see the same messages."""

    def __init__(self) -> None:
        self.streams: list[grpc.aio.ServicerContext[bytes, bytes]] = []
        self.turn = 0
        self.carried = 0.0
        self.writing = asyncio.Lock()


class Bare:
    """One method that writes."""

    def __init__(self, answer: int, update: int, updates: float) -> None:
        self._answer = bytes((NOBODY,)) + b"\0" * (answer - 1)
        self._rest = b"\0" * (update - 1)
        self._updates = updates
        self._groups: dict[int, Group] = {}

    async def play(self, _requests: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        """A stream of bytes both ways."""
        join = await context.read()
        assert isinstance(join, bytes)
        group = self._groups.setdefault(join[0], Group())
        group.streams.append(context)
        await context.write(bytes((len(group.streams) - 1,)))
        while isinstance(await context.read(), bytes):
            async with group.writing:
                group.turn = (group.turn + 1) % len(group.streams)
                group.carried += self._updates
                await context.write(self._answer)
                first = bytes((group.turn,)) + self._rest
                while group.carried >= 1:
                    group.carried -= 1
                    for stream in group.streams:
                        await stream.write(first)
                    first = bytes((NOBODY,)) + self._rest


async def serve(answer: int, update: int, updates: float) -> None:
    """Serve until killed."""
    server = grpc.aio.server()
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Play": grpc.stream_stream_rpc_method_handler(Bare(answer, update, updates).play, None, None)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare.Bare", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
