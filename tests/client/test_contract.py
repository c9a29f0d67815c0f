"""Every call of the contract has a method of the client, with types and a docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor

import relance.client
from relance.api.lobby.v1 import houses_pb2, lobby_pb2, private_pb2, templates_pb2, waiting_pb2
from relance.api.rake.v1 import rake_pb2
from relance.api.table.v1 import table_pb2
from relance.api.wallet.v1 import wallet_pb2

# The stubs of relance.client.channels.Peer and the services behind them.
STUBS = {
    "lobby": lobby_pb2.DESCRIPTOR.services_by_name["LobbyService"],
    "waiting": waiting_pb2.DESCRIPTOR.services_by_name["WaitingService"],
    "private": private_pb2.DESCRIPTOR.services_by_name["PrivateTableService"],
    "templates": templates_pb2.DESCRIPTOR.services_by_name["TemplateService"],
    "houses": houses_pb2.DESCRIPTOR.services_by_name["HouseService"],
    "table": table_pb2.DESCRIPTOR.services_by_name["TableService"],
    "admin": table_pb2.DESCRIPTOR.services_by_name["TableAdminService"],
    "wallet": wallet_pb2.DESCRIPTOR.services_by_name["WalletService"],
    "ledger": wallet_pb2.DESCRIPTOR.services_by_name["LedgerService"],
    "rake": rake_pb2.DESCRIPTOR.services_by_name["RakeService"],
}
CONTRACT: tuple[FileDescriptor, ...] = (
    houses_pb2.DESCRIPTOR, lobby_pb2.DESCRIPTOR, private_pb2.DESCRIPTOR, rake_pb2.DESCRIPTOR, table_pb2.DESCRIPTOR,
    templates_pb2.DESCRIPTOR, waiting_pb2.DESCRIPTOR, wallet_pb2.DESCRIPTOR,
)  # fmt: skip
TWIN = "goes up the Play stream of Seat, which is one call a seat instead of one an action"
SERVICES_ONLY = "for the room's own services"
# Calls that the client does not make, and why.
EXCEPTIONS = {
    "TableService.Act": TWIN,
    "TableService.TakeSeat": TWIN,
    "TableService.AddChips": TWIN,
    "TableService.SitOut": TWIN,
    "TableService.SitIn": TWIN,
    "TableService.LeaveSeat": TWIN,
    "TableService.SetSeatPreferences": TWIN,
    "TableService.SendChat": TWIN,
    "TableAdminService.HoldSeat": SERVICES_ONLY,
    "TableAdminService.ReleaseSeat": SERVICES_ONLY,
    "LedgerService.BatchTransfer": SERVICES_ONLY,
    "ProtectionService.UseProtection": SERVICES_ONLY,
}


def sources() -> Iterator[ast.Module]:
    """The modules of the client."""
    assert relance.client.__file__
    for path in Path(relance.client.__file__).parent.glob("*.py"):
        yield ast.parse(path.read_text())


def called() -> set[str]:
    """Calls that the client makes: `peer.<stub>.<Method>` in its source, or `<stub>.<Method>`."""
    found = set()
    for node in (node for module in sources() for node in ast.walk(module)):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=stub) | ast.Name(id=stub), attr=method) if stub in STUBS:
                if method in STUBS[stub].methods_by_name:
                    found.add(f"{STUBS[stub].name}.{method}")
    return found


def test_every_call_that_a_player_or_an_operator_may_make_is_a_method_of_the_client() -> None:
    offered = {
        f"{service.name}.{method.name}"
        for file in CONTRACT
        for service in file.services_by_name.values()
        for method in service.methods
    }
    assert offered - called() == set(EXCEPTIONS), "a call without a method, or an exception that is none"


def test_every_public_method_of_the_client_says_what_it_does_and_with_which_types() -> None:
    untold = []
    for module in sources():
        for owner in (node for node in module.body if isinstance(node, ast.ClassDef)):
            for method in owner.body:
                if not isinstance(method, ast.AsyncFunctionDef) or method.name.startswith("_"):
                    continue
                arguments = (*method.args.args[1:], *method.args.kwonlyargs)
                typed = method.returns is not None and all(each.annotation is not None for each in arguments)
                if not typed or (ast.get_docstring(method) is None and _calls_a_network(owner)):
                    untold.append(f"{owner.name}.{method.name}")
    assert untold == []


def _calls_a_network(owner: ast.ClassDef) -> bool:
    """Whether a class is one of those that users hold, not a part of the machinery."""
    return owner.name in relance.client.__all__ or owner.name == "TableStream"
