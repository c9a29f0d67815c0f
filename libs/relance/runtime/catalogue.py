"""The error catalogue, made from the comments of the reason enum: `python -m relance.runtime.catalogue`.

Writes protos/ERRORS.md below the current folder. The comment of each reason begins with its gRPC code.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc  # type: ignore[import-untyped]

_SOURCE = "relance/api/common/v1/reason.proto"
_COMMENT = re.compile(r"(?P<code>[A-Z_]+)\. (?P<text>.+?)(?: Metadata: (?P<metadata>[^.]+)\.)?", re.DOTALL)
# Path of a value in SourceCodeInfo: enum_type (5) number 0, value (2) number k.
_VALUE_PATH = (5, 0, 2)


@dataclass(frozen=True, slots=True)
class Entry:
    """One reason as its comment tells it."""

    name: str
    number: int
    code: str
    text: str
    metadata: str


class CatalogueError(Exception):
    """A comment is not of the form `CODE. Sentence. Metadata: names.`"""


def entries(protos: Path) -> list[Entry]:
    """The reasons in the order of the file. Raises CatalogueError."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "set.binpb"
        well_known = files("grpc_tools") / "_proto"
        arguments = ["protoc", f"-I{protos}", f"-I{well_known}", "--include_source_info", f"-o{output}", _SOURCE]
        if protoc.main(arguments) != 0:
            raise CatalogueError(f"{protos / _SOURCE} cannot be compiled")
        read = descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file[0]
    comments = {tuple(place.path): place.leading_comments for place in read.source_code_info.location}
    return [
        _entry(value, comments.get((*_VALUE_PATH, index), ""))
        for index, value in enumerate(read.enum_type[0].value)
        if value.number != 0
    ]


def _entry(value: descriptor_pb2.EnumValueDescriptorProto, comment: str) -> Entry:
    match = _COMMENT.fullmatch(" ".join(comment.split()))
    if match is None:
        raise CatalogueError(f"{value.name}: the comment must read `CODE. Sentence. Metadata: names.`")
    return Entry(
        value.name.removeprefix("REASON_"), value.number, match["code"], match["text"], match["metadata"] or ""
    )


def page(found: list[Entry]) -> str:
    """The catalogue as Markdown."""
    lines = [
        "# Refusals",
        "",
        "Every refusal is a google.rpc.Status with one google.rpc.ErrorInfo: domain `relance`, the reason, and",
        "metadata that say what would be accepted. A refused request changed nothing. This page is made from",
        "reason.proto by `python -m relance.runtime.catalogue`.",
        "",
        "| reason | gRPC code | what it means | metadata |",
        "|---|---|---|---|",
    ]
    lines += [f"| {entry.name} | {entry.code} | {entry.text} | {entry.metadata} |" for entry in found]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the catalogue."""
    protos = Path("protos")
    try:
        (protos / "ERRORS.md").write_text(page(entries(protos)), encoding="utf-8")
    except CatalogueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
