"""Rooms as processes, started by the command that people use, and what is left of them afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import psutil
import pytest

from relance.room.folder import DataFolder
from relance.room.processes import RoomError

UP = [sys.executable, "-m", "relance.cli", "up"]
READY_SECONDS = 60.0


class RunningRoom:
    """A `relance up` on a data folder."""

    def __init__(self, data: Path, *options: str) -> None:
        self.folder = DataFolder(data)
        self.output = data.with_name(data.name + ".out")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*UP, "--data", str(data), *options], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait_ready(self) -> RunningRoom:
        """Wait until the services answer and the bots are at work."""
        wait_for(lambda: "an operator's token:" in self.said(), READY_SECONDS, self)
        return self

    def said(self) -> str:
        """All that it printed so far."""
        return self.output.read_text()

    def address(self, service: str) -> str:
        """gRPC address of a service."""
        return self.folder.addresses()[service]

    def pid(self, name: str) -> int:
        """Process id of a child."""
        place = {"postgres": self.folder.postgres / "pid", "nats": self.folder.nats / "pid"}
        entry = (place.get(name) or self.folder.run / f"{name}.pid").read_text()
        return int(entry.split('"pid": ')[1].split(",")[0])

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


def processes_of(data: Path) -> list[psutil.Process]:
    """All processes that have to do with a data folder: by working folder, command line or settings."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [process.cwd(), *process.cmdline(), process.environ().get("RELANCE_KEYRING", "")]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if process.pid != os.getpid() and any(word.startswith(str(data)) for word in words):
            found.append(process)
    return found


def wait_for(condition: Callable[[], bool], timeout: float, room: RunningRoom | None = None) -> None:
    """Wait until a condition holds. Fails with what the room said."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if condition():
                return
        except (RoomError, OSError, grpc.aio.AioRpcError):
            pass  # not there yet
        said = room.said() if room is not None else ""
        if time.monotonic() > deadline or (room is not None and room.process.poll() is not None):
            pytest.fail(f"waited in vain; the room said:\n{said[-3000:]}")
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningRoom]]:
    """Starts rooms; whatever still runs after the test is killed."""
    rooms: list[RunningRoom] = []

    def start_one(*options: str, data: Path | None = None) -> RunningRoom:
        rooms.append(RunningRoom(data or tmp_path / "room", *options))
        return rooms[-1]

    yield start_one
    for room in rooms:
        if room.process.poll() is None:
            room.process.kill()
            room.process.wait()
        for process in processes_of(room.folder.path):
            with suppress(psutil.NoSuchProcess):
                process.kill()
