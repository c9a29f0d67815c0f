"""Accounts and sign-in."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Awaitable, Iterator

import asyncpg
import grpc
import pytest
import structlog
from argon2 import PasswordHasher

from relance.api.lobby.v1 import lobby_pb2
from relance.runtime import errors
from relance.runtime import logging as runtime_logging
from relance.runtime.auth import KeyRing

from .conftest import PASSWORD, Keys, Lobby, LobbyFactory


async def refusal(call: Awaitable[object]) -> tuple[str, dict[str, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    refused = errors.from_call(caught.value)
    assert refused is not None, caught.value
    return errors.reason_name(refused.reason), refused.metadata


async def test_who_registers_can_sign_in_and_their_token_is_believed(lobby: Lobby, keys: Keys) -> None:
    player = await lobby.register("Zoé")
    answer = await lobby.sign_in("zoé")
    identity = KeyRing(keys.ring).verify(answer.token)
    assert answer.player == player.name == f"players/{identity.player}"
    assert identity.roles == frozenset({"player"})
    assert answer.expire_time_us == identity.expires_at
    assert 0 < player.create_time_us < answer.expire_time_us


async def test_fifty_parallel_repeats_over_two_replicas_make_one_account(
    start: LobbyFactory, database_url: str
) -> None:
    replicas = [await start(), await start()]
    made = await asyncio.gather(*(replicas[i % 2].register("Ann", "r-1") for i in range(50)))
    assert len({player.name for player in made}) == 1
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT count(*) FROM lobby.player") == 1
    await connection.close()


async def test_a_request_id_with_other_content_is_refused(lobby: Lobby) -> None:
    await lobby.register("Ann", "r-1")
    assert await refusal(lobby.register("Bob", "r-1")) == ("REQUEST_ID_REUSED", {"request_id": "r-1"})
    assert await refusal(lobby.register("Ann", "r-1", "another password")) == (
        "REQUEST_ID_REUSED",
        {"request_id": "r-1"},
    )


async def test_N1_of_names_that_differ_in_case_alone_one_is_made(start: LobbyFactory) -> None:
    replicas = [await start(), await start()]
    names = ["Straße", "STRASSE", "strasse", "StraSSe"]
    results = await asyncio.gather(
        *(replicas[i % 2].register(name, f"r-{i}") for i, name in enumerate(names)), return_exceptions=True
    )
    refused = [errors.from_call(result) for result in results if isinstance(result, grpc.aio.AioRpcError)]
    assert [errors.reason_name(r.reason) for r in refused if r is not None] == ["NAME_TAKEN"] * 3


@pytest.mark.parametrize(
    ("request_id", "name", "password", "reason", "field"),
    [
        ("", "Ann", PASSWORD, "FIELD_MISSING", "request_id"),
        ("r" * 65, "Ann", PASSWORD, "FIELD_TOO_LONG", "request_id"),
        ("r", "", PASSWORD, "FIELD_MISSING", "display_name"),
        ("r", "x" * 33, PASSWORD, "FIELD_TOO_LONG", "display_name"),
        ("r", "a\x00b", PASSWORD, "FIELD_INVALID", "display_name"),
        ("r", "a\u202eb", PASSWORD, "FIELD_INVALID", "display_name"),
        ("r", "Ann", "", "FIELD_MISSING", "password"),
        ("r", "Ann", "short", "FIELD_INVALID", "password"),
        ("r", "Ann", "x" * 129, "FIELD_TOO_LONG", "password"),
    ],
)
async def test_N1_what_is_no_account_is_refused_with_the_field(
    lobby: Lobby, request_id: str, name: str, password: str, reason: str, field: str
) -> None:
    got, metadata = await refusal(lobby.register(name, request_id, password))
    assert (got, metadata["field"]) == (reason, field)


async def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(lobby: Lobby) -> None:
    await lobby.register("Ann")
    answers = []
    for name in ("Ann", "Nobody"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await lobby.sign_in(name, "wrong password")
        answers.append((caught.value.code(), caught.value.details()))
    assert answers == [(grpc.StatusCode.UNAUTHENTICATED, "Name or password is wrong.")] * 2


async def test_guessing_is_stopped_on_every_replica_and_right_tries_cost_nothing(start: LobbyFactory) -> None:
    replicas = [await start(), await start()]
    await replicas[0].register("Ann")
    for i in range(8):
        await replicas[i % 2].sign_in("Ann")
    guesses = await asyncio.gather(
        *(refusal(replicas[i % 2].sign_in("ANN", f"guess {i}")) for i in range(12)),
    )
    reasons = sorted(reason for reason, _ in guesses)
    assert reasons == ["SIGN_IN_REFUSED"] * 5 + ["TOO_MANY_REQUESTS"] * 7
    reason, metadata = await refusal(replicas[0].sign_in("Ann"))
    assert reason == "TOO_MANY_REQUESTS"
    assert 0 < int(metadata["retry_after_seconds"]) <= 30


async def test_a_password_is_changed_by_who_knows_it(lobby: Lobby, keys: Keys) -> None:
    player = (await lobby.register("Ann")).name.removeprefix("players/")

    async def change(old: str, new: str, who: str = player) -> None:
        request = lobby_pb2.ChangePasswordRequest(old_password=old, new_password=new)
        await lobby.stub.ChangePassword(request, metadata=keys.player(who))

    await change(PASSWORD, "battery staple")
    assert (await refusal(lobby.sign_in("Ann")))[0] == "SIGN_IN_REFUSED"
    await lobby.sign_in("Ann", "battery staple")
    assert (await refusal(change(PASSWORD, "another one")))[0] == "SIGN_IN_REFUSED"
    assert (await refusal(change("battery staple", "short")))[0] == "FIELD_INVALID"
    assert (await refusal(change("battery staple", "long enough", "nobody")))[0] == "SIGN_IN_REFUSED"
    both = await asyncio.gather(
        change("battery staple", "first of two"), change("battery staple", "second of two"), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in both) == ["AioRpcError", "NoneType"]
    tries = [await refusal(change("guess", "long enough")) for _ in range(6)]
    assert tries[-1][0] == "TOO_MANY_REQUESTS"


async def test_a_changed_password_ends_the_sessions_that_the_old_one_began(lobby: Lobby, keys: Keys) -> None:
    await lobby.register("Ann")

    async def refreshed(token: str) -> str:
        request = lobby_pb2.RefreshTokenRequest()
        return (await lobby.stub.RefreshToken(request, metadata=(("authorization", f"Bearer {token}"),))).token

    stolen, own = (await lobby.sign_in("Ann")).token, (await lobby.sign_in("Ann")).token
    stolen = await refreshed(stolen)
    change = lobby_pb2.ChangePasswordRequest(old_password=PASSWORD, new_password="battery staple")
    await lobby.stub.ChangePassword(change, metadata=(("authorization", f"Bearer {own}"),))
    for token in (stolen, own):
        assert (await refusal(refreshed(token)))[0] == "TOKEN_EXPIRED"
    again = (await lobby.sign_in("Ann", "battery staple")).token
    assert await refreshed(await refreshed(again))
    assert (await refusal(refreshed(stolen)))[0] == "TOKEN_EXPIRED"


async def test_a_thousand_who_register_and_sign_in_at_once_are_all_served(
    start: LobbyFactory, database_url: str
) -> None:
    """With a hash that costs little: what is tried is the crowd, not the machine."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    replicas = [await start(hasher=cheap), await start(hasher=cheap)]
    await asyncio.gather(*(replicas[0].register(f"Old {i}", f"old-{i}") for i in range(100)))
    made, tokens = await asyncio.gather(
        asyncio.gather(*(replicas[i % 2].register(f"New {i}", f"new-{i}") for i in range(500))),
        asyncio.gather(*(replicas[i % 2].sign_in(f"Old {i % 100}") for i in range(500))),
    )
    assert len({player.name for player in made}) == 500
    assert len({answer.player for answer in tokens}) == 100
    owner = await asyncpg.connect(database_url)
    assert await owner.fetchval("SELECT count(*) FROM lobby.player") == 600
    await owner.close()


async def test_a_token_is_refreshed_while_it_is_good_and_not_after(lobby: Lobby, keys: Keys) -> None:
    answer = await lobby.stub.RefreshToken(lobby_pb2.RefreshTokenRequest(), metadata=keys.player("ann"))
    assert answer.player == "players/ann"
    old, _ = keys.lobby.sign("ann", ("player",), seconds=-1)
    expired = (("authorization", f"Bearer {old}"),)
    reason, _ = await refusal(lobby.stub.RefreshToken(lobby_pb2.RefreshTokenRequest(), metadata=expired))
    assert reason == "TOKEN_EXPIRED"
    reason, _ = await refusal(lobby.stub.RefreshToken(lobby_pb2.RefreshTokenRequest(), metadata=keys.table()))
    assert reason == "ROLE_REQUIRED"


async def test_names_of_players_come_in_the_order_asked(lobby: Lobby, keys: Keys) -> None:
    ann, bob = await lobby.register("Ann"), await lobby.register("Bob")
    request = lobby_pb2.BatchGetPlayersRequest(players=[bob.name, "players/nobody", ann.name])
    answer = await lobby.stub.BatchGetPlayers(request, metadata=keys.player())
    assert [player.display_name for player in answer.players] == ["Bob", "Ann"]
    for names, reason in (([], "FIELD_MISSING"), (["tables/t"], "INVALID_NAME"), ([ann.name] * 101, "FIELD_INVALID")):
        request = lobby_pb2.BatchGetPlayersRequest(players=names)
        assert (await refusal(lobby.stub.BatchGetPlayers(request, metadata=keys.player())))[0] == reason


async def test_auditors_read_everything_but_passwords(lobby: Lobby, database_url: str) -> None:
    await lobby.register("Ann")
    connection = await asyncpg.connect(database_url)
    await connection.execute("SET ROLE relance_audit")
    assert await connection.fetchval("SELECT display_name FROM lobby.player") == "Ann"
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetchval("SELECT password FROM lobby.player")
    await connection.close()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    output = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    runtime_logging.configure(style="json", level="debug", output=output)
    yield output
    structlog.reset_defaults()
    root.handlers[:], root.level = before


async def test_no_password_and_no_token_is_in_any_log_line(
    lines: io.StringIO, lobby: Lobby, keys: Keys, database_url: str
) -> None:
    await lobby.register("Ann", "r-1")
    answer = await lobby.sign_in("Ann")
    await refusal(lobby.sign_in("Ann", "wrong password"))
    await refusal(lobby.register("Ann", "r-1", "other password"))
    # A fault in the middle of it: the table is gone.
    owner = await asyncpg.connect(database_url)
    await owner.execute("ALTER TABLE lobby.player RENAME TO elsewhere")
    await refusal(lobby.register("Bob", "r-2"))
    await refusal(lobby.sign_in("Bob"))
    await owner.execute("ALTER TABLE lobby.elsewhere RENAME TO player")
    await owner.close()
    text = lines.getvalue()
    assert "request failed" in text
    for secret in (PASSWORD, "wrong password", "other password", answer.token, keys.player()[0][1], "argon2id$"):
        assert secret not in text
