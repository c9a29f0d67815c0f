"""A room on cue: a gRPC server whose Play streams follow a script, for what a real room does only by accident."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc_status import rpc_status

from relance.api.events.v1 import events_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.api.table.v1 import table_pb2
from relance.client import Room, connect

PLAYER = "p1"
TABLE = "tables/t1"

Context = grpc.aio.ServicerContext[table_pb2.PlayRequest, table_pb2.PlayResponse]
Script = Callable[["Line"], Awaitable[None]]


def token(seconds: float, number: int = 1) -> str:
    """A token that is made like a real one and lives for some seconds."""
    now = time.time()
    claims = json.dumps({"sub": PLAYER, "iat": now, "exp": now + seconds, "jti": number}).encode()
    return f"x.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x"


def view(version: int, *, seat: int = 0, prompt: table_pb2.Prompt | None = None) -> table_pb2.TableView:
    """A table of two seats; the player in one of them, or in none."""
    seats = [table_pb2.SeatView(seat=number, player=PLAYER if number == seat else "") for number in (1, 2)]
    return table_pb2.TableView(name=TABLE, version=version, seats=seats, your_seat=seat, prompt=prompt)


def prompt(turn: int, *kinds: table_pb2.ActionKind.ValueType, seat: int = 1) -> table_pb2.Prompt:
    """A prompt to a seat."""
    return table_pb2.Prompt(turn=turn, seat=seat, hand=1, remaining_ms=20_000, actions=kinds)


def checked(version: int, seat: int = 2) -> events_pb2.TableEvent:
    """An event that changes nothing but the version."""
    return events_pb2.TableEvent(table="t1", version=version, hand=1, checked=events_pb2.Checked(seat=seat))


class Line:
    """The server's end of one Play stream."""

    def __init__(self, context: Context, join: table_pb2.Join) -> None:
        self.context = context
        self.join = join

    async def welcome(self, shown: table_pb2.TableView) -> None:
        await self.context.write(table_pb2.PlayResponse(welcome=table_pb2.Welcome(server_version="1", view=shown)))

    async def update(self, *events: events_pb2.TableEvent, prompt: table_pb2.Prompt | None = None) -> None:
        await self.context.write(table_pb2.PlayResponse(update=table_pb2.TableUpdate(events=events, prompt=prompt)))

    async def notice(self, kind: str, address: str) -> None:
        await self.context.write(table_pb2.PlayResponse(notice=table_pb2.Notice(kind=kind, address=address)))

    async def result(self, request_id: str, version: int) -> None:
        answer = table_pb2.CommandResponse(request_id=request_id, version=version)
        await self.context.write(table_pb2.PlayResponse(result=answer))

    async def refuse(self, request_id: str, reason: str, **metadata: str) -> None:
        refusal = table_pb2.Refusal(request_id=request_id, code=9, reason=reason, message="no", metadata=metadata)
        await self.context.write(table_pb2.PlayResponse(refusal=refusal))

    async def read(self) -> table_pb2.PlayRequest:
        message = await self.context.read()
        assert isinstance(message, table_pb2.PlayRequest)
        return message

    async def act(self) -> table_pb2.ActRequest:
        """The next message, which must be an action."""
        message = await self.read()
        assert message.WhichOneof("message") == "act"
        return message.act

    async def hang_up(self, reason: str, code: grpc.StatusCode, **metadata: str) -> None:
        """End the stream with a refusal."""
        await abort(self.context, reason, code, **metadata)

    async def wait(self) -> None:
        """Keep the stream until the client goes."""
        while isinstance(await self.context.read(), table_pb2.PlayRequest):
            pass


async def abort(context: Context, reason: str, code: grpc.StatusCode, **metadata: str) -> None:
    """Refuse a call as the room does."""
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="relance", metadata=metadata))
    status = status_pb2.Status(code=code.value[0], message=reason, details=[detail])
    await context.abort_with_status(rpc_status.to_status(status))


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


class ScriptedRoom:
    """Lobby and table process in one. Each Play stream takes the next script; the last one is kept for all others."""

    def __init__(self) -> None:
        self.address = ""
        self.home = ""
        self.forwards = False
        self.scripts: list[Script] = []
        self.joins: list[int] = []
        self.tokens: list[str] = []
        self.sign_ins = 0
        self.token_seconds = 3600.0
        self.refusals: list[tuple[str, grpc.StatusCode]] = []

    async def get_room(self, request: lobby_pb2.GetRoomRequest, context: Context) -> lobby_pb2.Room:
        return lobby_pb2.Room(wallet_address=self.address, table_addresses=[self.address])

    async def sign_in(self, request: lobby_pb2.SignInRequest, context: Context) -> lobby_pb2.SignInResponse:
        return self._token()

    async def renew(self, request: lobby_pb2.RefreshTokenRequest, context: Context) -> lobby_pb2.SignInResponse:
        return self._token()

    async def list_tables(self, request: lobby_pb2.ListTablesRequest, context: Context) -> lobby_pb2.ListTablesResponse:
        self.tokens.append(dict(context.invocation_metadata() or ()).get("authorization", ""))  # type: ignore[arg-type]
        if self.refusals:
            await abort(context, *self.refusals.pop(0))
        page = int(request.page_token or 1)
        return lobby_pb2.ListTablesResponse(
            tables=[lobby_pb2.Table(name=f"tables/t{page}")], next_page_token=str(page + 1) if page < 3 else ""
        )

    async def locate(self, request: table_pb2.LocateRequest, context: Context) -> table_pb2.LocateResponse:
        return table_pb2.LocateResponse(address=self.home or self.address, forwards=self.forwards)

    async def play(self, _requests: object, context: Context) -> None:
        join = await context.read()
        assert isinstance(join, table_pb2.PlayRequest)
        self.joins.append(join.join.resume_version)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        await script(Line(context, join.join))

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """The methods that a client of a scripted room calls."""
        unary = grpc.unary_unary_rpc_method_handler
        return [
            grpc.method_handlers_generic_handler(
                "relance.api.lobby.v1.LobbyService",
                {
                    "GetRoom": unary(self.get_room, lobby_pb2.GetRoomRequest.FromString, _serialize),
                    "SignIn": unary(self.sign_in, lobby_pb2.SignInRequest.FromString, _serialize),
                    "RefreshToken": unary(self.renew, lobby_pb2.RefreshTokenRequest.FromString, _serialize),
                    "ListTables": unary(self.list_tables, lobby_pb2.ListTablesRequest.FromString, _serialize),
                },
            ),
            grpc.method_handlers_generic_handler(
                "relance.api.table.v1.TableService",
                {
                    "Locate": unary(self.locate, table_pb2.LocateRequest.FromString, _serialize),
                    "Play": grpc.stream_stream_rpc_method_handler(
                        self.play, table_pb2.PlayRequest.FromString, _serialize
                    ),
                },
            ),
        ]

    def _token(self) -> lobby_pb2.SignInResponse:
        self.sign_ins += 1
        fresh = token(self.token_seconds, self.sign_ins)
        return lobby_pb2.SignInResponse(token=fresh, player=f"players/{PLAYER}")


@asynccontextmanager
async def scripted_room() -> AsyncIterator[ScriptedRoom]:
    """A scripted room that serves."""
    server, room = grpc.aio.server(), ScriptedRoom()
    server.add_generic_rpc_handlers(room.handlers())
    room.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield room
    finally:
        await server.stop(None)


@asynccontextmanager
async def signed_in(scripted: ScriptedRoom, patience: float = 20.0) -> AsyncIterator[Room]:
    """A client of a scripted room."""
    async with connect(scripted.address, patience=patience) as room:
        await room.sign_in("Ada", "password")
        yield room
