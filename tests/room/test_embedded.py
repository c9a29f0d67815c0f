"""The embedded servers on real processes: start, stop, come back, leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from relance.room import embedded
from relance.room.embedded import Nats, Postgres, postgres_bin
from relance.room.processes import Child, RoomError, RunAs, launched, leftover

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it is about what root must not do to PostgreSQL")


async def query(server: Postgres, text: str) -> object:
    connection = await asyncpg.connect(server.url)
    try:
        return await connection.fetchval(text)
    finally:
        await connection.close()


async def test_postgres_keeps_its_data_over_a_restart_and_over_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Postgres(tmp_path / "pg")
    server.start()
    try:
        await query(server, "CREATE TABLE kept AS SELECT 1 AS n")
        server.stop()
        server.start()
        await query(server, "INSERT INTO kept VALUES (2)")
        server.kill()
        server.start()
        assert await query(server, "SELECT sum(n) FROM kept") == 3
        assert await query(server, "SHOW fsync") == "on"
        monkeypatch.setattr(embedded, "START_TIMEOUT", 0.0)
        assert server.ready(), "however long ago it was started"
    finally:
        server.stop(fast=False)
    assert leftover(tmp_path / "pg" / "pid") is None


async def test_postgres_wants_a_password(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "pg")
    server.start()
    try:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(f"postgresql://relance:wrong@127.0.0.1:{server.port}/postgres")
    finally:
        server.stop(fast=False)


@as_root
@pytest.mark.parametrize("method", ["reach", "inside"])
async def test_root_runs_postgres_below_a_private_folder_and_changes_no_permission(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = [(path, path.stat().st_mode, path.stat().st_uid) for path in (private, *private.parents, postgres_bin())]
    server = Postgres(private / "pg")
    if method == "inside":
        monkeypatch.setattr(embedded, "METHODS_OF_ROOT", ("inside",))
    server.start()
    try:
        assert await query(server, "SELECT 1") == 1
        pid = server.child.pid
        assert pid is not None
        assert (psutil.Process(pid).uids().real == 0) == (method == "inside")
    finally:
        server.stop(fast=False)
    assert before == [(path, path.stat().st_mode, path.stat().st_uid) for path, _, _ in before]


@as_root
async def test_data_may_pass_from_one_way_of_running_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Postgres(tmp_path / "pg")
    for methods in (("inside",), ("reach",), ("inside",)):
        monkeypatch.setattr(embedded, "METHODS_OF_ROOT", methods)
        server.start()
        server.stop()
    assert (tmp_path / "pg" / "data").stat().st_uid == 0


@as_root
def test_without_any_way_to_another_user_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "METHODS_OF_ROOT", ())
    with pytest.raises(RoomError, match="RELANCE_DATABASE_URL"):
        Postgres(tmp_path / "pg").start()


@as_root
def test_an_ordinary_user_runs_both_servers(tmp_path: Path) -> None:
    home = Path("/tmp") / f"relance-ordinary-{os.getpid()}"
    home.mkdir(mode=0o700)
    nobody = embedded.account_without_rights()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    script = (
        "import sys; from pathlib import Path; from relance.room.embedded import Nats, Postgres\n"
        "for server in (Postgres(Path(sys.argv[1]) / 'pg'), Nats(Path(sys.argv[1]) / 'nats')):\n"
        "    server.start(); server.stop()\n"
        "print('both', flush=True)"
    )
    # The interpreter and the project may lie below a folder of root's: reading past permissions is all it is given.
    run_as = RunAs("reach", nobody.pw_uid, nobody.pw_gid)
    try:
        ran = subprocess.run(
            launched([sys.executable, "-c", script, home], run_as), capture_output=True, text=True, check=False, cwd="/"
        )
        assert ran.stdout == "both\n", ran.stderr
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def test_nats_comes_back_on_its_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Nats(tmp_path)
    server.start()
    server.kill()
    server.start()
    monkeypatch.setattr(embedded, "START_TIMEOUT", 0.0)
    assert server.ready(), "however long ago it was started"
    server.stop()
    assert leftover(tmp_path / "pid") is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_end_with_their_supervisor(tmp_path: Path, number: int) -> None:
    parent = _supervisor(tmp_path)
    servers = [leftover(tmp_path / name / "pid") for name in ("pg", "nats")]
    found = [process for process in servers if process is not None]
    assert len(found) == 2
    everything = [process for server in found for process in (server, *server.children(recursive=True))]
    parent.send_signal(number)
    parent.wait(10)
    assert psutil.wait_procs(everything, timeout=20)[1] == []


def test_a_start_stops_what_an_earlier_supervisor_left(tmp_path: Path) -> None:
    # A death signal of 0 is none: as if the kernel had not delivered it.
    left = Child("sleeper", tmp_path / "pid", tmp_path / "log", death_signal=0)
    left.start(["/bin/sleep", "1000"])
    found = leftover(tmp_path / "pid")
    assert found is not None
    again = Child("sleeper", tmp_path / "pid", tmp_path / "log")
    again.start(["/bin/sleep", "1000"])
    assert not left.running
    assert again.running
    assert again.stop()


def test_a_pid_of_another_process_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f'{{"pid": {os.getpid()}, "started": 1.0, "name": "postgres"}}')
    assert leftover(tmp_path / "pid") is None


def _supervisor(folder: Path) -> subprocess.Popen[str]:
    script = (
        "import sys, time; from pathlib import Path; from relance.room.embedded import Nats, Postgres\n"
        "for server in (Postgres(Path(sys.argv[1]) / 'pg'), Nats(Path(sys.argv[1]) / 'nats')):\n"
        "    server.start()\n"
        "print('up', flush=True); time.sleep(1000)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    return parent
