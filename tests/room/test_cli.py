"""The command: what goes wrong is one line and an exit code that is not 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from relance.cli import main as command
from relance.room.folder import DataFolder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code: object = 0
    try:
        command.main(arguments)
    except SystemExit as end:
        code = end.code
    output = capsys.readouterr()
    assert isinstance(code, int)
    return code, output.out, output.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("up", "--bots", "many"), 2, "'many' is not a valid integer range"),
        (("up", "--house", "casino"), 1, "there is no house 'casino'"),
        (("up", "--port", "80"), 2, "80 is not in the range"),
        (("down",), 2, "No such command 'down'"),
        (("token", "--role", "floor", "--name", "ann", "--data", "/nowhere"), 1, "no room was started on /nowhere"),
        (("token", "--role", "player", "--name", "ann"), 2, "'player' is not one of"),
        (("audit", "--data", "/nowhere"), 1, "no room is running on /nowhere"),
        (("houses", "casino"), 1, "there is no house 'casino'"),
        (("drill", "--kill", "bots"), 2, "'bots' is not one of"),
        (("token", "--name", "ann"), 2, "Missing option '--role'. Choose from: viewer, "),
        (("audit", "--url", "nonsense"), 1, "the database's URL is no URL such as"),
        (("audit", "--database-url", "nonsense"), 1, "the database's URL is no URL such as"),
        (("audit", "--url", "postgresql://a:b@127.0.0.1/x?sslmode=some"), 1, "`sslmode` parameter must be one of"),
    ],
)
def test_what_goes_wrong_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    exit_code, _, errors = run(capsys, *arguments)
    assert exit_code == code
    assert sentence in errors
    assert errors.startswith("relance: ")
    assert errors.count("\n") == 1


def test_a_mistake_of_ours_is_one_line_and_a_file_with_the_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(command, "describe", broken)
    code, _, errors = run(capsys, "houses")
    assert code == 70
    assert errors.count("\n") == 1
    assert "ZeroDivisionError: of all things" in errors
    trace = Path(errors.split("the trace is in ")[1].split(" ")[0])
    assert "Traceback" in trace.read_text()
    trace.unlink()
    with pytest.raises(ZeroDivisionError):
        command.main(["--debug", "houses"])


def test_a_service_that_cannot_start_is_named_with_its_last_words_and_nothing_is_left(tmp_path: Path) -> None:
    away = ["--database-url", "postgresql://a:b@127.0.0.1:1/x", "--nats-url", "nats://127.0.0.1:1"]
    up = [sys.executable, "-m", "relance.cli", "up", "--data", str(tmp_path), *away]
    ran = subprocess.run(up, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("relance: migrating wallet failed: ")
    assert str(tmp_path / "logs" / "migrate-wallet.log") in ran.stderr
    assert ran.stderr.count("\n") == 1
    DataFolder(tmp_path).take()


def test_houses_are_listed_and_one_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert "boulevard" in run(capsys, "houses")[1]
    described = run(capsys, "houses", "salon")[1]
    assert "burn_cards" in described
    assert "\x1b" not in described
