"""The data folder: one room at a time, secrets that stay and stay private."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from relance.room.folder import DataFolder
from relance.room.processes import MAX_LOG_BYTES, Child, RoomError
from relance.room.services import BLOCK, Ports, with_login
from relance.runtime.auth import KeyRing


def test_a_second_room_on_the_folder_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.take()
    with pytest.raises(RoomError, match=r"already running .* \(process \d+\)"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_keys_and_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    folder.make_keys()
    before = {file.name: file.read_text() for file in folder.keys.iterdir()}
    secret = folder.secret("database-wallet")
    folder.make_keys()
    assert before == {file.name: file.read_text() for file in folder.keys.iterdir() if file.name in before}
    assert secret == DataFolder(tmp_path).secret("database-wallet")
    assert {file.stat().st_mode & 0o777 for file in folder.keys.iterdir()} == {0o600}
    folder.release()


def test_an_operators_token_is_believed_for_its_roles_only(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    folder.make_keys()
    identity = KeyRing(folder.keyring).verify(folder.operator_token("ann", ("floor",), 60))
    assert (identity.subject, identity.roles) == ("operators/ann", frozenset({"floor"}))
    assert json.loads(folder.keyring.read_text())["keys"]["lobby-1"]["roles"] == ["player"]
    folder.release()


def test_a_token_without_a_room_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RoomError, match="run relance up"):
        DataFolder(tmp_path).operator_token("ann", ("floor",), 60)


def test_addresses_of_a_room_that_was_killed_are_not_believed(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    folder.write_addresses({"lobby": "127.0.0.1:1"})
    left_behind = (folder.run / "room.json").read_text()
    assert DataFolder(tmp_path).addresses() == {"lobby": "127.0.0.1:1"}
    folder.release()
    (folder.run / "room.json").write_text(left_behind)
    with pytest.raises(RoomError, match="no room is running"):
        DataFolder(tmp_path).addresses()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    base = Ports.choose(folder, None).base
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", base + 3))
        taken.listen()
        with pytest.raises(RoomError, match=f"port {base + 3} is taken"):
            Ports.choose(folder, base)
        others = Ports.choose(folder, None)
        assert base + 3 not in range(others.base, others.base + BLOCK)
    folder.release()


def test_a_room_comes_back_on_its_ports(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take()
    assert Ports.choose(folder, None) == Ports.choose(folder, None)
    folder.release()


def test_a_login_replaces_the_one_in_the_url() -> None:
    url = "postgresql://owner:secret@[::1]:5432/room?sslmode=require"
    assert with_login(url, "relance_table", "a/b") == (
        "postgresql://relance_table:a%2Fb@[::1]:5432/room?sslmode=require"
    )


def test_a_log_that_grows_too_large_is_moved_aside(tmp_path: Path) -> None:
    child = Child("chatty", tmp_path / "pid", tmp_path / "log")
    child.log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    child.bound_log()
    assert child.log.stat().st_size == 0
    assert (tmp_path / "log.1").stat().st_size == MAX_LOG_BYTES + 1
