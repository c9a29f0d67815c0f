"""Child processes of the room: each in a session of its own, known by a pid file, its output in a bounded log file.

A child gets a signal when its parent dies, and a pid file with its start time says whose it was: so nothing is left
behind by a supervisor that was killed, and what is left all the same is found and stopped at the next start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

LAUNCHER = Path(__file__).with_name("launch.py")
COMPLAINTS = ("FATAL", "PANIC", "[FTL]", "rror")
LONGEST_WORDS = 400
MAX_LOG_BYTES = 16 * 1024 * 1024


class RoomError(Exception):
    """Something that the person who started the room can act on; the text says what."""


@dataclass(frozen=True, slots=True)
class RunAs:
    """Another user for a child, and the way there (see launch.py)."""

    method: str
    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.method}:{self.uid}:{self.gid}"


def launched(
    program: Sequence[str | Path], run_as: RunAs | None = None, death_signal: int = signal.SIGKILL
) -> list[str]:
    """The command line that runs `program` (absolute path, arguments) tied to this process."""
    command = [sys.executable, "-I", "-S", str(LAUNCHER), "--parent", str(os.getpid()), "--signal", str(death_signal)]
    if run_as is not None:
        command += ["--as", str(run_as)]
    return command + [str(part) for part in program]


class Child:
    """One child process. Must be started from the main thread: its life is tied to that of the thread.

    `pid_file` and `log` are paths; `death_signal` is what it gets when this process dies.
    """

    def __init__(self, name: str, pid_file: Path, log: Path, death_signal: int = signal.SIGKILL) -> None:
        self.name = name
        self.log = log
        self._pid_file = pid_file
        self._death_signal = death_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while started."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None: it runs, or was never started."""
        return None if self._process is None else self._process.poll()

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(
        self, program: Sequence[str | Path], env: Mapping[str, str] | None = None, run_as: RunAs | None = None
    ) -> None:
        """Start `program`. A process left over from an earlier start is stopped first."""
        stop_leftover(self._pid_file)
        self.bound_log()
        command = launched(program, run_as, self._death_signal)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        started = psutil.Process(self._process.pid).create_time()
        text = json.dumps({"pid": self._process.pid, "started": started, "name": self.name})
        _write_whole(self._pid_file, text)

    def send(self, number: int) -> None:
        """Send a signal; nothing happens where the process has ended."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, timeout: float) -> bool:
        """Whether it has ended within `timeout` seconds."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        self._pid_file.unlink(missing_ok=True)
        return True

    def stop(self, number: int = signal.SIGTERM, timeout: float = 20) -> bool:
        """Ask it to end with signal `number`, kill it after `timeout` seconds. False: it had to be killed."""
        self.send(number)
        if self.wait(timeout):
            return True
        self.send(signal.SIGKILL)
        self.wait(timeout)
        return False

    def bound_log(self) -> None:
        """Keep the log file below its limit: what is over goes to `<log>.1`, in place of what was there.

        The child writes with O_APPEND, so the file is emptied under it; lines of that very moment may be lost.
        """
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            shutil.copyfile(self.log, self.log.with_name(self.log.name + ".1"))
            os.truncate(self.log, 0)

    def log_tail(self, size: int = 1500) -> str:
        """The end of the log."""
        return tail(self.log, size)

    def last_words(self) -> str:
        """Why it failed, in one line: the last complaint in the log, and where the log is."""
        lines = self.log_tail(8000).splitlines()
        complaints = [line for line in lines if any(word in line for word in COMPLAINTS)]
        said = (complaints or lines or ["it wrote nothing"])[-1]
        return f"{said.strip()[:LONGEST_WORDS]} (log: {self.log})"


def tail(path: Path, size: int) -> str:
    """The last `size` bytes of a text file; empty where there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read().decode(errors="replace").strip()


def leftover(pid_file: Path) -> psutil.Process | None:
    """The process that a pid file names, where it still runs: pid and start time must both fit."""
    try:
        entry = json.loads(pid_file.read_text())
        process = psutil.Process(int(entry["pid"]))
        if abs(process.create_time() - float(entry["started"])) > 0.05 or process.status() == psutil.STATUS_ZOMBIE:
            return None
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return process


def stop_leftover(pid_file: Path, timeout: float = 20) -> str | None:
    """Stop what an earlier supervisor left: SIGINT, then SIGQUIT, then SIGKILL. Its name, where there was one."""
    process = leftover(pid_file)
    if process is None:
        pid_file.unlink(missing_ok=True)
        return None
    children = process.children(recursive=True)
    process.send_signal(signal.SIGINT)
    for number in (signal.SIGQUIT, signal.SIGKILL):
        if not psutil.wait_procs([process], timeout=timeout / 2)[1]:
            break
        process.send_signal(number)
    # PostgreSQL's workers end by themselves once their server is gone; a new one must not start before.
    psutil.wait_procs([process, *children], timeout=timeout / 2)
    pid_file.unlink(missing_ok=True)
    return pid_file.stem


def write_private(path: Path, text: str) -> None:
    """Write a secret: readable for its owner only, never half written."""
    _write_whole(path, text, mode=0o600)


def _write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
