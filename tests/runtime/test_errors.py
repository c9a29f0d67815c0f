"""Refusals on the wire, and the catalogue of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]

from relance.api.common.v1 import reason_pb2
from relance.poker.rejected import Rejected
from relance.runtime import catalogue, errors
from relance.runtime.errors import Refused

PROTOS = Path(__file__).parents[2] / "protos"


@pytest.fixture(scope="module")
def entries() -> list[catalogue.Entry]:
    return catalogue.entries(PROTOS)


def test_each_reason_has_the_code_that_its_comment_names(entries: list[catalogue.Entry]) -> None:
    assert {entry.number: entry.code for entry in entries} == {
        number: code.name for number, code in errors.CODES.items()
    }


def test_the_catalogue_is_the_one_that_the_comments_make(entries: list[catalogue.Entry]) -> None:
    assert (PROTOS / "ERRORS.md").read_text(encoding="utf-8") == catalogue.page(entries)


def test_a_comment_without_a_code_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "relance/api/common/v1"
    folder.mkdir(parents=True)
    (folder / "reason.proto").write_text('syntax = "proto3"; enum R { A = 0; // what\n B = 1; }')
    with pytest.raises(catalogue.CatalogueError, match="B"):
        catalogue.entries(tmp_path)


def test_a_refusal_survives_the_way_to_the_client_and_back() -> None:
    sent = Refused(reason_pb2.REASON_BUY_IN_OUT_OF_RANGE, "From 40 to 200.", min=40, max=200)
    status = status_pb2.Status.FromString(errors.to_status(sent).SerializeToString())
    got = errors.from_status(status)
    assert got is not None
    assert (got.reason, got.message, got.metadata) == (sent.reason, sent.message, {"min": "40", "max": "200"})
    assert status.code == 3


def test_a_rejection_of_the_rules_has_the_shape_of_a_refusal() -> None:
    rejected = Rejected(reason_pb2.REASON_STALE_TURN, "An earlier prompt.", {"turn": "7"})
    assert isinstance(rejected, errors.Refusal)
    assert errors.from_status(errors.to_status(rejected)).metadata == {"turn": "7"}  # type: ignore[union-attr]


def test_a_status_of_somebody_else_is_no_refusal_of_ours() -> None:
    assert errors.from_status(status_pb2.Status(code=5, message="nothing here")) is None
