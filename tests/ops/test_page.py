"""A hand as a page: whole in itself, safe whatever a name holds, and it plays in a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.ops.logs import ListSource
from tests.ops.test_export import NAMES, full_table, hidden

from relance.ops.names import Names
from relance.ops.page import page, write_page
from relance.ops.steps import HandSteps, steps_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PNG = b"\x89PNG"


async def steps(who: str = "auditor", names: dict[str, str] | None = None) -> HandSteps:
    room = full_table()
    hand = await steps_of(ListSource(room.appends), None, "t", 1, who)
    hand.names.known.update(names or {})
    return hand


async def test_the_page_needs_nothing_from_elsewhere() -> None:
    text = page(await steps())
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://|fetch\(|XMLHttp|WebSocket""", text)
    assert "default-src 'none'" in text


async def test_a_name_cannot_break_out_of_the_page() -> None:
    names = Names({**NAMES, "p1": "</script><script>alert(1)</script>", "p2": "<!--<script>"})
    text = page(await steps(names=names.known))
    assert text.count("<script") == 2
    assert text.count("</script>") == 2


async def test_the_page_of_a_viewer_holds_no_card_that_they_did_not_see() -> None:
    text = page(await steps("p2"))
    secrets = hidden(full_table(), "p2")[1]
    assert secrets
    assert not [card for card in secrets if f'"{card}"' in text or re.search(rf"\b{card}\b", text)]


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed (apt-get install chromium)")
async def test_the_page_plays_in_a_browser(tmp_path: Path) -> None:
    hand = await steps(names=NAMES)
    file = tmp_path / "hand.html"
    write_page(hand, file)
    last = len(hand.steps)
    shot = tmp_path / "hand.png"
    browse(f"--screenshot={shot}", f"file://{file}#{last}")
    assert shot.read_bytes()[:4] == PNG
    document = browse("--dump-dom", f"file://{file}#{last}")
    assert f'data-step="{last - 1}"' in document
    assert "Ünïcødé" in document
    assert document.count('class="seat') == sum(bool(seat.player) for seat in hand.steps[-1].view.seats)


def browse(*arguments: str) -> str:
    """Run the browser once, with no network; what it prints."""
    assert CHROMIUM is not None
    quiet = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"),
        *("--no-first-run", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"),
    )
    command = [CHROMIUM, *quiet, "--window-size=1400,860", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout
