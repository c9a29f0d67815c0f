"""Which methods a table process serves, and by which way: called here, or passed on by another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import grpc

from relance.api.table.v1 import link_pb2_grpc, table_pb2_grpc
from relance.runtime.server import Server
from relance.table.admin import TableAdminService
from relance.table.landing import Handler, Landing
from relance.table.linking import LinkService
from relance.table.routing import Router
from relance.table.service import SERVICE, TableService
from relance.table.tables import Tables

ADMIN = "relance.api.table.v1.TableAdminService"
LINK = "relance.api.table.v1.TableLinkService"


def serve(
    server: Server, tables: Tables, router: Router | None, service: TableService, admin: TableAdminService
) -> Landing:
    """Have everything served, also over links. `router`: passes calls on; None: callers are told where to go."""
    handlers: dict[str, dict[str, Handler]] = {
        SERVICE: {
            **_handlers(table_pb2_grpc.add_TableServiceServicer_to_server, service),
            **service.raw_handlers(),
        },
        ADMIN: _handlers(table_pb2_grpc.add_TableAdminServiceServicer_to_server, admin),
    }
    landed: dict[str, Handler] = {}
    landing = Landing(landed)
    link = LinkService(tables, landing)
    handlers[LINK] = _handlers(link_pb2_grpc.add_TableLinkServiceServicer_to_server, link)
    for name, methods in handlers.items():
        for method, handler in methods.items():
            if (name, method) != (LINK, "Link"):
                landed[f"/{name}/{method}"] = server.wrap(f"/{name}/{method}", handler)
    handlers[LINK]["Link"] = grpc.stream_stream_rpc_method_handler(link.Link, None, None)
    for name, methods in handlers.items():
        routed = methods if router is None or name == LINK else router.routed(name, methods)
        server.add_handlers(name, routed)
    return landing


def _handlers(register: Callable[[Any, Any], None], servicer: object) -> dict[str, Handler]:
    """The handlers of a servicer, by method, as generated code makes them."""
    found: dict[str, Handler] = {}
    register(servicer, cast(Any, _Collector(found)))
    return found


class _Collector:
    """What generated code takes for the server."""

    def __init__(self, found: dict[str, Handler]) -> None:
        self._found = found

    def add_registered_method_handlers(self, _service: str, handlers: Mapping[str, Handler]) -> None:
        self._found.update(handlers)

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """The same handlers in their older form."""
