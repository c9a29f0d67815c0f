"""The operators' page shows what the commands print."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.conftest import Migrated
from tests.ops.story import write

from relance.cli.main import cli

PAGE = (Path(__file__).parents[2] / "libs/relance/ops/README.md").read_text()
BLOCKS = re.findall(r"```console\n\$ relance ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
SECONDS = re.compile(r"\d+\.\d s\)")


def printed(url: str, line: str) -> str:
    """What a command prints, its last lines where it says `| tail -n`."""
    command, _, cut = line.partition(" | tail -")
    name, *arguments = shlex.split(command)
    result = CliRunner().invoke(cli, [name, "--database-url", url, *arguments])
    assert result.exit_code == 0, result.output
    lines = result.stdout.rstrip().splitlines()
    return "".join(f"{text.rstrip()}\n" for text in (lines[-int(cut) :] if cut else lines))


def stable(text: str) -> str:
    """Without how long something took."""
    return SECONDS.sub("0.0 s)", text)


async def test_the_page_shows_what_the_commands_print(migrated: Migrated) -> None:
    assert len(BLOCKS) >= 6
    url = await migrated("relance.eventlog", "relance.wallet", "relance.lobby", "relance.rake")
    await write(url)
    for line, shown in BLOCKS:
        assert stable(shown) == stable(await asyncio.to_thread(printed, url, line)), line


@pytest.mark.parametrize("name", re.findall(r"^\| `relance ([a-z-]+)", PAGE, re.MULTILINE))
def test_every_command_of_the_page_exists(name: str) -> None:
    assert name in cli.commands
