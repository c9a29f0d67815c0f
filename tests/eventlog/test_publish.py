"""Publishing to a real NATS server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import nats.errors
import nats.js.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from relance.api.events.v1.events_pb2 import TableEvent
from relance.api.table.v1.table_pb2 import TableUpdate
from relance.eventlog import EventLog, MemoryLog, Publisher
from relance.eventlog.publish import MAX_WAITING, STREAM
from relance.room.embedded import Nats

from .conftest import Events


async def until(question: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the answer is yes."""
    while not await question():  # noqa: ASYNC110 - what is waited for lies in another process
        await asyncio.sleep(0.005)


async def connect(url: str) -> Client:
    """A client that comes back for ever."""
    return await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)


@pytest_asyncio.fixture
async def client(nats_server: Nats) -> AsyncIterator[Client]:
    """A connection to a server without the stream."""
    client = await connect(nats_server.url)
    with contextlib.suppress(nats.js.errors.NotFoundError):
        await client.jetstream().delete_stream(STREAM)
    yield client
    await client.close()


@pytest.fixture
def log() -> MemoryLog:
    """The log published from: its contract is PostgreSQL's."""
    return MemoryLog("ada")


def body_of(events: Sequence[TableEvent]) -> bytes:
    """The body of a message, nothing hidden."""
    return TableUpdate(events=events).SerializeToString()


@asynccontextmanager
async def publishing(log: EventLog, client: Client) -> AsyncIterator[Publisher]:
    """A publisher at work."""
    publisher = Publisher(log, client, body_of)
    task = asyncio.create_task(publisher.run())
    yield publisher
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def play(log: EventLog, publisher: Publisher, events: Events, stream: str, after: int, turns: int) -> int:
    """Appends of two events, each published once it is durable."""
    head = after
    for _ in range(turns):
        head = await log.append(stream, head, 1, events(stream, head, 2))
        publisher.publish(stream, events(stream, head - 2, 2))
    return head


async def kept(client: Client, stream: str) -> list[Msg]:
    """What JetStream holds of a table."""
    subscription = await client.jetstream().subscribe(f"relance.table.{stream}", ordered_consumer=True)
    messages = []
    with contextlib.suppress(nats.errors.TimeoutError):
        while True:
            messages.append(await subscription.next_msg(0.2))
            if messages[-1].metadata.num_pending == 0:
                break
    await subscription.unsubscribe()
    return messages


async def marked(log: EventLog, stream: str, version: int) -> None:
    """Wait until NATS has acknowledged everything up to a version."""

    async def reached() -> bool:
        return (await log.marks.read([stream]))[stream] == version

    await until(reached)


def spans(messages: list[Msg]) -> list[tuple[int, int]]:
    """First and last version of each message's body, which its headers must match."""
    found = []
    for message in messages:
        events = TableUpdate.FromString(message.data).events
        table = message.subject.removeprefix("relance.table.")
        assert message.headers is not None
        assert message.headers["Nats-Msg-Id"] == f"{table}/{events[0].version}"
        assert message.headers["Relance-Version"] == str(events[-1].version)
        assert message.headers["Relance-Types"] == "ruling_recorded"
        found.append((events[0].version, events[-1].version))
    return found


async def test_one_message_an_append_in_order(log: MemoryLog, client: Client, events: Events) -> None:
    async with publishing(log, client) as publisher:
        for stream in ("t-1", "t-2"):
            await log.create(stream, events(stream, 0))
            await publisher.adopt(stream, 1)
        await asyncio.gather(*(play(log, publisher, events, stream, 1, 100) for stream in ("t-1", "t-2")))
        for stream in ("t-1", "t-2"):
            await marked(log, stream, 201)
            assert spans(await kept(client, stream)) == [(1, 1)] + [(v, v + 1) for v in range(2, 201, 2)]


async def test_a_stream_that_is_over_is_published_to_its_end(log: MemoryLog, client: Client, events: Events) -> None:
    async with publishing(log, client) as publisher:
        await log.create("t-1", events("t-1", 0))
        await publisher.adopt("t-1", 1)
        head = await play(log, publisher, events, "t-1", 1, 20)
        publisher.finish("t-1")
        await marked(log, "t-1", head)
        with pytest.raises(KeyError):  # nothing is kept of it
            publisher.publish("t-1", events("t-1", head))


async def test_what_the_last_owner_did_not_publish_is_sent_first(
    log: MemoryLog, client: Client, events: Events
) -> None:
    await log.create("t-1", events("t-1", 0, 3))
    await log.append("t-1", 3, 1, events("t-1", 3, 2))
    await log.append("t-1", 5, 1, events("t-1", 5, 1))
    await log.marks.write({"t-1": 3})
    async with publishing(log, client) as publisher:
        await publisher.adopt("t-1", 6)
        await log.append("t-1", 6, 1, events("t-1", 6))
        publisher.publish("t-1", events("t-1", 6))
        await marked(log, "t-1", 7)
        assert spans(await kept(client, "t-1")) == [(4, 5), (6, 6), (7, 7)]


async def test_a_burst_that_does_not_fit_comes_from_the_log(log: MemoryLog, client: Client, events: Events) -> None:
    turns = MAX_WAITING * 3
    await log.create("t-1", events("t-1", 0))
    async with publishing(log, client) as publisher:
        await publisher.adopt("t-1", 0)
        publisher.publish("t-1", events("t-1", 0))
        await marked(log, "t-1", 1)
        heads = await asyncio.gather(*(log.append("t-1", v, 1, events("t-1", v)) for v in range(1, turns)))
        for head in heads:  # without giving the publisher a turn
            publisher.publish("t-1", events("t-1", head - 1))
        assert publisher.behind == 1
        await marked(log, "t-1", turns)
        assert spans(await kept(client, "t-1")) == [(v, v) for v in range(1, turns + 1)]


async def test_nats_being_away_holds_nothing_up_and_is_made_good(
    log: MemoryLog, tmp_path: Path, events: Events
) -> None:
    server = Nats(tmp_path)
    await asyncio.to_thread(server.start)
    client = await connect(server.url)
    await log.create("t-1", events("t-1", 0))
    try:
        async with publishing(log, client) as publisher:
            await publisher.adopt("t-1", 1)
            await marked(log, "t-1", 1)
            await asyncio.to_thread(server.stop)
            assert await play(log, publisher, events, "t-1", 1, 500) == 1001
            assert publisher.behind == 1
            await asyncio.to_thread(server.start)
            await marked(log, "t-1", 1001)
            assert spans(await kept(client, "t-1")) == [(1, 1)] + [(v, v + 1) for v in range(2, 1001, 2)]
    finally:
        await client.close()
        await asyncio.to_thread(server.stop)


async def test_a_wiped_jetstream_is_made_again(log: MemoryLog, client: Client, events: Events) -> None:
    await log.create("t-1", events("t-1", 0))
    async with publishing(log, client) as publisher:
        await publisher.adopt("t-1", 1)
        await marked(log, "t-1", 1)
        await client.jetstream().delete_stream(STREAM)
        await play(log, publisher, events, "t-1", 1, 3)
        await marked(log, "t-1", 7)
        assert spans(await kept(client, "t-1")) == [(2, 3), (4, 5), (6, 7)]


async def test_a_wiped_jetstream_is_made_again_though_somebody_listens(
    log: MemoryLog, client: Client, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that a subscriber takes is not refused for want of a stream; only the acknowledgement is missing."""
    monkeypatch.setattr("relance.eventlog.publish.ACK_TIMEOUT", 0.2)
    await client.subscribe("relance.table.*")
    await log.create("t-1", events("t-1", 0))
    async with publishing(log, client) as publisher:
        await publisher.adopt("t-1", 1)
        await marked(log, "t-1", 1)
        await client.jetstream().delete_stream(STREAM)
        await play(log, publisher, events, "t-1", 1, 3)
        await marked(log, "t-1", 7)
        assert spans(await kept(client, "t-1"))[-1] == (6, 7)


async def test_publishing_out_of_order_is_a_bug(log: MemoryLog, client: Client, events: Events) -> None:
    publisher = Publisher(log, client, body_of)
    publisher.adopt_at("t-1", 4, 4)
    with pytest.raises(ValueError, match="version 6 published after 4"):
        publisher.publish("t-1", events("t-1", 5))


async def test_a_stream_that_cannot_be_redacted_stops_alone(log: MemoryLog, client: Client, events: Events) -> None:
    def chokes_on_t_1(events: Sequence[TableEvent]) -> bytes:
        if events[0].table == "t-1":
            raise ValueError("an event of tomorrow")
        return body_of(events)

    for stream in ("t-1", "t-2"):
        await log.create(stream, events(stream, 0))
    publisher = Publisher(log, client, chokes_on_t_1)
    await publisher.adopt("t-1", 1)
    await publisher.adopt("t-2", 1)
    task = asyncio.create_task(publisher.run())
    await marked(log, "t-2", 1)
    publisher.publish("t-1", events("t-1", 1))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await log.marks.read(["t-1"]) == {"t-1": 0}
