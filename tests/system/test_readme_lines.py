"""The lines of the front page, run exactly as they stand there against a running room."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.system.conftest import RunningRoom

import relance.client

ROOT = Path(__file__).parents[2]


def lines_of(page: Path) -> str:
    """The first Python block of a page."""
    block = re.search(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None, f"{page} shows no Python"
    return block[1]


async def until_there_is_a_game(lobby: str) -> None:
    """Wait until the catalogue shows a table at which a guest finds company."""
    async with relance.client.connect(lobby) as room, asyncio.timeout(60):
        await room.register("watcher", "a long password")
        await room.sign_in("watcher", "a long password")
        while True:
            tables = await room.list_tables('game = "holdem" AND currency = "eur" AND seats_free > 0', "players desc")
            if tables and tables[0].players >= 2:
                return
            await asyncio.sleep(0.1)


def test_both_pages_show_the_same_lines_and_they_are_at_most_twenty() -> None:
    lines = lines_of(ROOT / "README.md")
    assert lines == lines_of(ROOT / "libs/relance/client/README.md")
    assert len([line for line in lines.splitlines() if line.strip()]) <= 20


def test_the_lines_register_sign_in_sit_down_and_play_a_hand(start: Callable[..., RunningRoom], tmp_path: Path) -> None:
    room = start("--house", "riviera", "--bots", "18", "--pace", "fast").wait_ready()
    asyncio.run(until_there_is_a_game(room.address("lobby")))
    script = tmp_path / "lines.py"
    script.write_text(lines_of(ROOT / "README.md"))
    ran = subprocess.run(
        [sys.executable, script, room.address("lobby")], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(r"took along \d+\n", ran.stdout)
