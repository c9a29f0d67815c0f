"""What the front page says is so."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from relance.cli.main import cli
from relance.room.drill import KILLS
from relance.room.room import RoomOptions

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def python_lines(text: str) -> str:
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_clients_lines_are_those_that_the_clients_tests_run() -> None:
    assert python_lines(README) == python_lines((ROOT / "libs/relance/client/README.md").read_text())


def test_every_path_that_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)h][^)]*)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_and_option_that_it_names_exists() -> None:
    for name in re.findall(r"bin/relance (\w+)", README):
        assert name in cli.commands, name
    shown = CliRunner().invoke(cli, ["up", "--help"]).output
    for option in re.search(r"# (--data.*)", README)[1].split(", "):  # type: ignore[index]
        assert option in shown
    for kill in KILLS:
        assert f"`{kill}`" in README


def test_the_drain_is_as_long_as_it_says() -> None:
    assert f"hands end within {RoomOptions(ROOT).drain_seconds:.0f} s" in README.replace("\n", " ")
