"""The tables that a room on one machine opens, from the data of its houses."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from relance.api.common.v1 import reason_pb2
from relance.api.table.v1 import table_pb2, table_pb2_grpc
from relance.poker.houses import HOUSES, load
from relance.room.folder import OPERATOR_ROLES, DataFolder
from relance.room.processes import RoomError
from relance.runtime.errors import from_call
from relance.transport import Tls, open_channel

OPEN_TIMEOUT = 20.0


def demo_tables(house: str | None) -> list[table_pb2.OpenTableRequest]:
    """Requests for the tables of `house`; None: one of every house and one of every game. Raises RoomError.

    The ids of the requests are the same each time, so a room that is started again opens nothing twice.
    """
    if house is not None and house not in HOUSES:
        raise RoomError(f"there is no house {house!r}; houses are {', '.join(HOUSES)}")
    requests: list[table_pb2.OpenTableRequest] = []
    games: set[str] = set()
    for name in HOUSES if house is None else (house,):
        for number, table in enumerate(load(name).tables, start=1):
            if house is not None or number == 1 or table.game not in games:
                games.add(table.game)
                request = table_pb2.OpenTableRequest()
                request.CopyFrom(table)
                request.request_id = f"demo-{name}-{number}"
                requests.append(request)
    return requests


async def open_tables(folder: DataFolder, address: str, requests: Sequence[table_pb2.OpenTableRequest]) -> list[str]:
    """Open tables at the table process at `address`; their resource names. Raises RoomError with the refusal."""
    return await open_at(address, folder.operator_token("room", OPERATOR_ROLES, seconds=60), requests)


async def open_at(
    address: str, token: str, requests: Sequence[table_pb2.OpenTableRequest], tls: Tls | None = None
) -> list[str]:
    """The same with a token of the floor's, over TLS where there is any."""
    metadata = (("authorization", f"Bearer {token}"),)
    names: list[str] = []
    async with open_channel(address, tls) as channel:
        admin = table_pb2_grpc.TableAdminServiceStub(channel)
        for request in requests:
            try:
                answer = await admin.OpenTable(request, metadata=metadata, timeout=OPEN_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                refused = from_call(error)
                if refused is not None and refused.reason == reason_pb2.REASON_TABLE_CLOSED:
                    continue  # it was opened before, and its log is archived by now
                raise RoomError(f"table {request.request_id} was not opened: {error.details()}") from error
            names.append(answer.table)
    return names
