"""The RPCs of templates and houses, for operators."""

from __future__ import annotations

from relance.api.lobby.v1 import houses_pb2, houses_pb2_grpc, templates_pb2, templates_pb2_grpc
from relance.lobby.maintenance import Maintenance
from relance.lobby.templates import USUAL_MOST_OPEN, Templates
from relance.poker.houses import HOUSES
from relance.runtime import validation
from relance.runtime.auth import FLOOR, VIEWER, Context, identity, require

_LONGEST_REASON = 200


class TemplateService(templates_pb2_grpc.TemplateServiceServicer):
    """Kinds of tables that are kept open."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    async def ListTemplates(
        self, request: templates_pb2.ListTemplatesRequest, context: Context
    ) -> templates_pb2.ListTemplatesResponse:
        """All, or a house's."""
        require(context, VIEWER, FLOOR)
        house = _house(request.house) if request.house else ""
        return templates_pb2.ListTemplatesResponse(templates=await self._templates.of_house(house))

    async def CreateTemplate(
        self, request: templates_pb2.CreateTemplateRequest, context: Context
    ) -> templates_pb2.Template:
        """Make one."""
        caller = require(context, FLOOR)
        validation.present(request, "table")
        return await self._templates.create(
            request.table, request.min_open, request.max_open or USUAL_MOST_OPEN, caller.subject
        )

    async def UpdateTemplate(
        self, request: templates_pb2.UpdateTemplateRequest, context: Context
    ) -> templates_pb2.Template:
        """Change one."""
        require(context, FLOOR)
        return await self._templates.update(
            _template(request.template),
            min_open=request.min_open if request.HasField("min_open") else None,
            max_open=request.max_open if request.HasField("max_open") else None,
            stopped=request.stopped if request.HasField("stopped") else None,
        )

    async def DeleteTemplate(
        self, request: templates_pb2.DeleteTemplateRequest, context: Context
    ) -> templates_pb2.DeleteTemplateResponse:
        """Delete one; its tables close when they are empty."""
        require(context, FLOOR)
        await self._templates.delete(_template(request.template))
        return templates_pb2.DeleteTemplateResponse()

    async def SeedTemplates(
        self, request: templates_pb2.SeedTemplatesRequest, context: Context
    ) -> templates_pb2.SeedTemplatesResponse:
        """Those of a house's preset."""
        caller = require(context, FLOOR)
        return templates_pb2.SeedTemplatesResponse(
            templates=await self._templates.seed(_house(request.house), caller.subject)
        )


class HouseService(houses_pb2_grpc.HouseServiceServicer):
    """Houses in and out of maintenance."""

    def __init__(self, maintenance: Maintenance) -> None:
        self._maintenance = maintenance

    async def ListHouses(
        self, request: houses_pb2.ListHousesRequest, context: Context
    ) -> houses_pb2.ListHousesResponse:
        """All."""
        identity(context)
        return houses_pb2.ListHousesResponse(houses=await self._maintenance.houses())

    async def BeginMaintenance(self, request: houses_pb2.BeginMaintenanceRequest, context: Context) -> houses_pb2.House:
        """No new hands at the house's tables."""
        caller = require(context, FLOOR)
        reason = validation.text(request.reason, "reason", longest=_LONGEST_REASON)
        return await self._maintenance.set(_house_name(request.house), True, caller.subject, reason)

    async def EndMaintenance(self, request: houses_pb2.EndMaintenanceRequest, context: Context) -> houses_pb2.House:
        """Hands again."""
        caller = require(context, FLOOR)
        reason = validation.text(request.reason, "reason", longest=_LONGEST_REASON, required=False)
        return await self._maintenance.set(_house_name(request.house), False, caller.subject, reason)


def _house(house: str) -> str:
    if not house:
        raise validation.missing("house")
    if house not in HOUSES:
        raise validation.invalid("house", ", ".join(HOUSES))
    return house


def _house_name(name: str) -> str:
    return _house(validation.resource(name, "houses/", r"[a-z0-9-]{1,40}", "house"))


def _template(name: str) -> str:
    return validation.resource(name, "templates/", r"[0-9a-f]{1,40}", "template")
