"""`relance tables`: what runs where, how far everybody has followed it, and what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import grpc

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.eventlog import StreamInfo
from relance.ops.errors import NoAnswer
from relance.ops.lag import FOLLOWERS, Positions, positions
from relance.ops.output import Out
from relance.ops.source import PostgresSource
from relance.ops.states import state_at
from relance.ops.words import amount, counted, word
from relance.poker import Table
from relance.runtime.errors import from_call
from relance.transport import Tls, open_channel

PROBE_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table. `status`: playing, idle, paused, drained, closed or quarantined; `why` says more."""

    table: str
    name: str
    house: str
    game: str
    limit: str
    stakes: str
    players: int
    hand: int
    running: bool
    version: int
    fence: int
    owner: str
    address: str
    status: str
    why: str = ""
    lag: dict[str, int] = field(default_factory=dict)
    """Events that each follower has not taken in yet."""


async def table_lines(
    source: PostgresSource, names: Sequence[str] = (), token: str = "", tls: Tls | None = None
) -> list[TableLine]:
    """All tables, or those named. With a token their owners are asked, by `tls`, whether they stopped one."""
    streams = await source.streams(names)
    followed = await positions(source.connection)
    stopped = await _stopped(streams, token, tls) if token else {}
    return [await _line(source, stream, followed, stopped.get(stream.stream, "")) for stream in streams]


async def _line(source: PostgresSource, stream: StreamInfo, followed: Positions, stopped: str) -> TableLine:
    lag = {name: followed.lag(name, stream.stream, stream.head) for name in followed.known}
    try:
        table = await state_at(source, stream.stream, stream.head)
    except NoAnswer as error:
        why = stopped or error.format_message()
        return TableLine(
            stream.stream, "", "", "", "", "", 0, 0, False, stream.head, stream.fence, stream.writer, stream.address,
            "quarantined", why, lag,
        )  # fmt: skip
    config = table.config or game_pb2.TableConfig()
    return TableLine(
        table=stream.stream,
        name=config.display_name,
        house=config.house,
        game=config.game,
        limit=word(config.limit, game_pb2.Limit),
        stakes=stakes(config),
        players=sum(not seat.reserved for seat in table.seats.values()),
        hand=table.last_hand,
        running=table.hand is not None,
        version=table.version,
        fence=stream.fence,
        owner=stream.writer,
        address=stream.address,
        status="quarantined" if stopped else _status(table),
        why=stopped or _why(table),
        lag=lag,
    )


def stakes(config: game_pb2.TableConfig) -> str:
    """The stakes in short: blinds, or limits, or the ante."""
    figures = list(config.stakes.blinds)
    if config.limit == game_pb2.LIMIT_FIXED or not figures:
        figures = [each for each in (config.stakes.low_limit, config.stakes.high_limit) if each] or figures
    shown = "/".join(amount(each, config.currency) for each in figures)
    ante = f"ante {amount(config.stakes.ante, config.currency)}" if config.stakes.ante else ""
    return " ".join(part for part in (shown, ante) if part)


def _status(table: Table) -> str:
    if table.closed:
        return "closed"
    if table.drained:
        return "drained"
    if table.paused:
        return "paused"
    return "playing" if table.hand is not None else "idle"


def _why(table: Table) -> str:
    waits = len(table.transfers)
    parked = f"{counted(len(table.parked), 'payment')} refused by the wallet" if table.parked else ""
    pending = f"{counted(waits, 'transfer')} wait{'s' if waits == 1 else ''} for the wallet" if waits else ""
    return "; ".join(part for part in (parked, pending) if part)


async def _stopped(streams: Sequence[StreamInfo], token: str, tls: Tls | None) -> dict[str, str]:
    """Tables that their owner stopped after a fault, and what it says of it."""
    by_address: dict[str, list[str]] = {}
    for stream in streams:
        if stream.address:
            by_address.setdefault(stream.address, []).append(stream.stream)
    found: dict[str, str] = {}
    for answers in await asyncio.gather(*(_ask(address, names, token, tls) for address, names in by_address.items())):
        found.update(answers)
    return found


async def _ask(address: str, names: Sequence[str], token: str, tls: Tls | None) -> Mapping[str, str]:
    found: dict[str, str] = {}
    metadata = (("authorization", f"Bearer {token}"),)
    async with open_channel(address, tls) as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        for name in names:
            request = table_pb2.GetTableRequest(table=f"tables/{name}")
            try:
                await stub.GetTable(request, metadata=metadata, timeout=PROBE_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    return found  # its lease will tell; the log says what it last did
                refused = from_call(error)
                if refused is not None and refused.reason == reason_pb2.REASON_TABLE_QUARANTINED:
                    found[name] = refused.message
    return found


def show(lines: Sequence[TableLine], out: Out) -> None:
    """Print the tables."""
    if out.json:
        out.document([asdict(line) for line in lines])
        return
    followers = [name for name in FOLLOWERS if any(name in line.lag for line in lines)]
    out.table(
        ["table", "name", "game", "limit", "stakes", "players>", "hand>", "version>", "fence>", "owner", "address",
         "status", *(f"{name} lag>" for name in followers)],
        [
            [line.table, line.name, line.game, line.limit, line.stakes, line.players, line.hand, line.version,
             line.fence, line.owner or "nobody", line.address or "-", line.status,
             *(line.lag.get(name, "-") for name in followers)]
            for line in lines
        ],
    )  # fmt: skip
    for line in lines:
        if line.why:
            out.line(f"{line.table}: {line.why}", "red" if line.status == "quarantined" else "yellow")
    playing = sum(line.running for line in lines)
    seated = counted(sum(line.players for line in lines), "player")
    out.line(f"{counted(len(lines), 'table')}, {counted(playing, 'hand')} running, {seated} seated")
