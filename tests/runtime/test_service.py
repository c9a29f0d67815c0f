"""The process around a service: it ends in time, whatever its service does."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PROGRAM = """
import asyncio, sys
from relance.runtime import logging, service

service._LAST_SECONDS = 0.3
logging.configure(style="console")

async def obedient(stop):
    print("ready", flush=True)
    await stop.wait()

async def slow(stop):
    await obedient(stop)
    await asyncio.sleep(3600)

async def deaf(stop):
    await obedient(stop)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def broken(stop):
    print("ready", flush=True)
    raise ValueError("a screw is loose")

sys.exit(service.run(globals()[sys.argv[1]], drain_timeout=float(sys.argv[2])))
"""


@contextmanager
def program(main: str, drain_timeout: float) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, main, str(drain_timeout)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("main", "drain_timeout", "signals", "code", "text"),
    [
        ("obedient", 60, 1, 0, "ended"),
        ("slow", 0.1, 1, 1, "the drain took too long"),
        ("slow", 60, 2, 1, "stopped before the drain was over"),
        ("deaf", 0.1, 1, 1, "the drain took too long"),
        ("broken", 60, 0, 1, "a screw is loose"),
    ],
)
def test_a_process_ends_when_it_is_told_to(main: str, drain_timeout: float, signals: int, code: int, text: str) -> None:
    with program(main, drain_timeout) as process:
        assert process.stdout is not None
        seen = ""
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            seen += process.stdout.readline()  # its line in the log: two signals at once are one
        seen += process.stdout.read()
        assert process.wait(20) == code
        assert text in seen
