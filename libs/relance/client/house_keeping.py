"""Templates and maintenance of houses, for operators (role floor; reading: viewer)."""

from __future__ import annotations

from relance.api.lobby.v1 import houses_pb2, templates_pb2
from relance.api.table.v1 import table_pb2
from relance.client.connection import Connection, Method, Request, Response
from relance.client.credentials import Credentials


class HouseKeeping:
    """Which tables are kept open, and which houses rest. Methods raise RelanceError."""

    def __init__(self, connection: Connection, credentials: Credentials) -> None:
        self._connection, self._credentials = connection, credentials

    async def templates(self, house: str = "") -> list[templates_pb2.Template]:
        """Templates of a house; of all, where none is named."""
        request = templates_pb2.ListTemplatesRequest(house=house)
        return list((await self._call(lambda peer: peer.templates.ListTemplates, request)).templates)

    async def create_template(
        self, table: table_pb2.OpenTableRequest, *, min_open: int = 1, max_open: int = 0
    ) -> templates_pb2.Template:
        """Keep such tables open, one of them with a free seat. Raises TEMPLATE_EXISTS, NOT_SPREAD …"""
        request = templates_pb2.CreateTemplateRequest(table=table, min_open=min_open, max_open=max_open)
        return await self._call(lambda peer: peer.templates.CreateTemplate, request)

    async def update_template(
        self, template: str, *, min_open: int | None = None, max_open: int | None = None, stopped: bool | None = None
    ) -> templates_pb2.Template:
        """Change what is given. Raises TEMPLATE_NOT_FOUND."""
        request = templates_pb2.UpdateTemplateRequest(
            template=template, min_open=min_open, max_open=max_open, stopped=stopped
        )
        return await self._call(lambda peer: peer.templates.UpdateTemplate, request)

    async def delete_template(self, template: str) -> None:
        """Keep no such tables any more; those that are open close once they are empty. Raises TEMPLATE_NOT_FOUND."""
        request = templates_pb2.DeleteTemplateRequest(template=template)
        await self._call(lambda peer: peer.templates.DeleteTemplate, request)

    async def seed_templates(self, house: str) -> list[templates_pb2.Template]:
        """Make those of the house's preset that are not there; all of them."""
        request = templates_pb2.SeedTemplatesRequest(house=house)
        return list((await self._call(lambda peer: peer.templates.SeedTemplates, request)).templates)

    async def houses(self) -> list[houses_pb2.House]:
        """All houses."""
        return list((await self._call(lambda peer: peer.houses.ListHouses, houses_pb2.ListHousesRequest())).houses)

    async def begin_maintenance(self, house: str, reason: str) -> houses_pb2.House:
        """No new hands at the house's tables, no new tables."""
        request = houses_pb2.BeginMaintenanceRequest(house=f"houses/{house}", reason=reason)
        return await self._call(lambda peer: peer.houses.BeginMaintenance, request)

    async def end_maintenance(self, house: str, reason: str = "") -> houses_pb2.House:
        """Hands again, at the tables that maintenance had paused."""
        request = houses_pb2.EndMaintenanceRequest(house=f"houses/{house}", reason=reason)
        return await self._call(lambda peer: peer.houses.EndMaintenance, request)

    async def _call(self, method: Method[Request, Response], request: Request) -> Response:
        return await self._connection.call(self._connection.lobby, method, request, self._credentials)
