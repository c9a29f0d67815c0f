"""The live panel: what matters most stays on the screen of a terminal that is too small."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import lobby_pb2
from relance.room.figures import Figures
from relance.room.panel import LivePanel


@dataclass
class Process:
    """A process as the panel shows it."""

    name: str
    address: str = "127.0.0.1:31764"
    state: str = "up"
    pid: int = 4711
    restarts: int = 0
    megabytes: float = 85.0


def drawn(width: int, height: int) -> list[str]:
    """The lines of a panel of a room with seven processes and fourteen tables, after it said that it drains."""
    config = game_pb2.TableConfig(
        display_name="Hold'em no limit €0.50/€1.00", house="boulevard", game="holdem", limit=game_pb2.LIMIT_NO_LIMIT,
        seats=6, currency=game_pb2.CURRENCY_EUR, stakes=game_pb2.Stakes(blinds=[50, 100]),
    )  # fmt: skip
    names = [f"tables/t-{number}" for number in range(14)]
    figures = Figures(
        tables=[lobby_pb2.Table(name=name, config=config, players=3, last_hand=1_234) for name in names],
        escrow=dict.fromkeys(names, 12_345),
    )
    screen = StringIO()
    panel = LivePanel(Console(file=screen, force_terminal=True, width=width, height=height, color_system=None))
    panel.say("draining: hands end within 14 s or are voided in order")
    panel.show(figures, [Process(f"process-{number}") for number in range(7)], "none yet")
    shown = screen.getvalue()
    panel.close()
    return shown[shown.rindex("╭") :].splitlines()


def test_a_small_terminal_shows_totals_news_and_every_process() -> None:
    lines = drawn(80, 24)
    assert len(lines) <= 24
    text = "\n".join(lines)
    for part in ("last audit: none yet", "draining: hands end", *(f"process-{number}" for number in range(7))):
        assert part in text


@pytest.mark.parametrize(("width", "stakes"), [(80, False), (100, False), (140, True)])
def test_a_table_is_one_line_at_any_width(width: int, stakes: bool) -> None:
    lines = drawn(width, 60)
    assert sum("boulevard" in line for line in lines) == 14
    assert all("123.45 €" in line for line in lines if "boulevard" in line)
    assert any("0.50/1.00" in line and "holdem no limit" in line for line in lines) is stakes


def test_what_is_to_be_read_at_the_end_stands_below_the_panel() -> None:
    screen = StringIO()
    panel = LivePanel(Console(file=screen, force_terminal=True, width=80, height=24, color_system=None))
    lines = [f"behaviour {number}" for number in range(30)]
    panel.tell(lines)
    assert "behaviour" not in screen.getvalue()
    panel.close()
    assert "\n".join(lines) in screen.getvalue()
