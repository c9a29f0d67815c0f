"""Tokens: who signed them, for whom, until when."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from relance.api.common.v1 import reason_pb2
from relance.runtime import auth
from relance.runtime.auth import KeyRing, KeyRingError, ServiceToken, TokenSigner
from relance.runtime.errors import Refused

NOW = 1_700_000_000_000_000


def ring(folder: Path, **keys: tuple[TokenSigner, tuple[str, ...]]) -> KeyRing:
    path = folder / "keyring.json"
    write(path, **keys)
    return KeyRing(path)


def write(path: Path, **keys: tuple[TokenSigner, tuple[str, ...]]) -> None:
    text = json.dumps({"keys": {kid: signer.entry(*roles) for kid, (signer, roles) in keys.items()}})
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def reason(keyring: KeyRing, token: str, now_us: int = NOW) -> str:
    with pytest.raises(Refused) as caught:
        keyring.verify(token, now_us)
    return errors_name(caught.value)


def errors_name(refused: Refused) -> str:
    return reason_pb2.Reason.Name(refused.reason).removeprefix("REASON_")


def test_a_token_names_its_caller_until_it_expires(tmp_path: Path) -> None:
    signer = TokenSigner.generate("a")
    keyring = ring(tmp_path, a=(signer, ("player",)))
    token, expires = signer.sign("alice", ("player",), seconds=900, now_us=NOW)
    identity = keyring.verify(token, NOW)
    assert (identity.subject, identity.player, set(identity.roles)) == ("alice", "alice", {"player"})
    assert expires == identity.expires_at == NOW + 900_000_000
    assert keyring.verify(token, expires - 1) is identity
    assert reason(keyring, token, expires) == "TOKEN_EXPIRED"
    assert reason(keyring, token, expires) == "TOKEN_EXPIRED"


def test_forged_tokens_are_refused(tmp_path: Path) -> None:
    signer, stranger = TokenSigner.generate("a"), TokenSigner.generate("a")
    keyring = ring(tmp_path, a=(signer, ("player",)))
    token, _ = signer.sign("alice", ("player",), seconds=900, now_us=NOW)
    header, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    other = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "bob"}).encode()).decode().rstrip("=")
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": "a"})
    symmetric = jwt.encode(claims, "x" * 64, algorithm="HS256", headers={"kid": "a"})
    for forged in (
        f"{header}.{other}.{signature}",
        f"{header}.{body}.{signature[:-4]}AAAA",
        stranger.sign("alice", ("player",), seconds=900, now_us=NOW)[0],
        TokenSigner.generate("b").sign("alice", ("player",), seconds=900, now_us=NOW)[0],
        unsigned,
        symmetric,
        "",
        "no.token.atall",
        "ü" * 50,
    ):
        assert reason(keyring, forged) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "alice", "roles": "player"},
        {"sub": "alice", "roles": ["player"], "exp": "soon"},
        {"sub": 7, "roles": ["player"]},
        {"sub": "alice"},
        {"roles": ["player"]},
        {"sub": "alice", "roles": ["player"], "svc": 3},
        {"sub": "alice", "roles": [3]},
    ],
)
def test_malformed_claims_are_refused_though_the_signature_is_right(tmp_path: Path, claims: dict[str, object]) -> None:
    private = Ed25519PrivateKey.generate()
    keyring = ring(tmp_path, a=(TokenSigner(private, "a"), ("player",)))
    now = NOW // 1_000_000
    token = jwt.encode({"iat": now, "exp": now + 60, **claims}, private, algorithm="EdDSA", headers={"kid": "a"})
    assert reason(keyring, token) == "TOKEN_INVALID"


def test_a_key_grants_only_its_own_roles(tmp_path: Path) -> None:
    signer = TokenSigner.generate("a")
    keyring = ring(tmp_path, a=(signer, ("player",)))
    token, _ = signer.sign("alice", ("player", "cashier"), seconds=900, now_us=NOW)
    assert reason(keyring, token) == "TOKEN_INVALID"


def test_keys_overlap_and_a_removed_key_takes_its_tokens_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_CHECK_FILE_SECONDS", 0.0)
    old, new = TokenSigner.generate("old"), TokenSigner.generate("new")
    keyring = ring(tmp_path, old=(old, ("player",)))
    first, _ = old.sign("alice", ("player",), seconds=900, now_us=NOW)
    second, _ = new.sign("alice", ("player",), seconds=900, now_us=NOW)
    keyring.verify(first, NOW)
    assert reason(keyring, second) == "TOKEN_INVALID"
    write(tmp_path / "keyring.json", old=(old, ("player",)), new=(new, ("player",)))
    assert keyring.verify(first, NOW).player == keyring.verify(second, NOW).player == "alice"
    write(tmp_path / "keyring.json", new=(new, ("player",)))
    assert reason(keyring, first) == "TOKEN_INVALID"
    keyring.verify(second, NOW)


def test_a_broken_key_ring_file_changes_nothing_until_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_CHECK_FILE_SECONDS", 0.0)
    signer = TokenSigner.generate("a")
    keyring = ring(tmp_path, a=(signer, ("player",)))
    token, _ = signer.sign("alice", ("player",), seconds=900, now_us=NOW)
    (tmp_path / "keyring.json").write_text('{"keys": {"a"')
    assert keyring.verify(token, NOW).player == "alice"
    os.remove(tmp_path / "keyring.json")
    assert keyring.verify(token, NOW).player == "alice"


@pytest.mark.parametrize("text", ["", "[]", '{"keys": 3}', '{"keys": {"a": {"public": "AA", "roles": ["player"]}}}'])
def test_a_key_ring_that_is_none_says_so_at_the_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keyring.json"
    path.write_text(text)
    with pytest.raises(KeyRingError, match="key ring"):
        KeyRing(path)


def test_a_key_that_grants_a_role_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyRingError, match="emperor"):
        ring(tmp_path, a=(TokenSigner.generate("a"), ("emperor",)))


def test_a_signer_comes_back_from_its_file(tmp_path: Path) -> None:
    signer = TokenSigner.generate("a")
    (tmp_path / "key.pem").write_bytes(signer.pem())
    again = TokenSigner.from_file(tmp_path / "key.pem", "a")
    assert again.entry("player") == signer.entry("player")
    assert again.secret("pages") == signer.secret("pages") != signer.secret("other")
    with pytest.raises(KeyRingError):
        TokenSigner.from_file(tmp_path / "nothing.pem", "a")


def test_a_service_has_a_token_of_its_own(tmp_path: Path) -> None:
    signer = TokenSigner.generate("a")
    keyring = ring(tmp_path, a=(signer, ("service",)))
    token = ServiceToken(signer, "lobby")
    ((key, value),) = token.metadata()
    identity = keyring.verify(value.removeprefix("Bearer "))
    assert (key, identity.service, identity.has("service")) == ("authorization", "lobby", True)
    assert token.metadata() == ((key, value),)
    with pytest.raises(Refused):
        _ = identity.player
