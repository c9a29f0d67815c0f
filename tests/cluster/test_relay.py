"""The relay that carries bytes between pods and can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from relance.cluster.addresses import Addresses
from relance.cluster.document import ManifestError
from relance.cluster.relay import Place, Relay
from relance.room.ports import free_port


class Echo:
    """A server that sends back what it gets, and remembers who came."""

    def __init__(self) -> None:
        self.place: Place = ("127.0.0.1", free_port())
        self.came_from: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.came_from.append(writer.get_extra_info("peername")[0])
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[Echo]:
    """An echo."""
    made = Echo()
    server = await asyncio.start_server(made.serve, *made.place)
    yield made
    server.close()


@pytest_asyncio.fixture
async def relay(echo: Echo) -> AsyncIterator[Relay]:
    """A relay to the echo, whose connections onward come from 127.0.0.3."""
    made = Relay(("127.0.0.1", free_port()), lambda: echo.place, source="127.0.0.3")
    await made.start()
    yield made
    await made.close()


async def test_a_relay_carries_everything_both_ways_from_its_own_address(relay: Relay, echo: Echo) -> None:
    reader, writer = await asyncio.open_connection(*relay.listen)
    sent = b"x" * 3_000_000
    writer.write(sent)
    assert await reader.readexactly(len(sent)) == sent
    assert echo.came_from == ["127.0.0.3"]
    writer.close()


async def test_a_relay_that_is_cut_carries_nothing_and_loses_nothing(relay: Relay, echo: Echo) -> None:
    reader, writer = await asyncio.open_connection(*relay.listen)
    writer.write(b"one")
    assert await reader.readexactly(3) == b"one"
    relay.cut()
    writer.write(b"two")
    late_reader, late_writer = await asyncio.open_connection(*relay.listen)
    late_writer.write(b"late")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await reader.read(1)
    assert len(echo.came_from) == 1
    relay.mend()
    assert await reader.readexactly(3) == b"two"
    assert await late_reader.readexactly(4) == b"late"
    writer.close()
    late_writer.close()


async def test_a_connection_to_nobody_is_reset() -> None:
    relay = Relay(("127.0.0.1", free_port()), lambda: None)
    await relay.start()
    reader, writer = await asyncio.open_connection(*relay.listen)
    with pytest.raises(ConnectionResetError):
        await reader.readexactly(1)
    writer.close()
    await relay.close()


async def test_addresses_are_of_loopback_each_once_and_on_free_ports() -> None:
    addresses = Addresses([free_port()])
    first, second, service = addresses.pod(), addresses.pod(), addresses.service()
    assert len({first, second, service}) == 3
    assert all(address.startswith(f"{addresses.block}.") and address.startswith("127.") for address in (first, service))


async def test_a_port_that_is_taken_everywhere_is_said() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "0.0.0.0", free_port())
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ManifestError, match=f"0.0.0.0:{port}"):
        Addresses([port])
    server.close()
