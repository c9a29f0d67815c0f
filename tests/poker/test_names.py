"""Names and chat (N1)."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest

from relance.api.common.v1 import reason_pb2
from relance.poker.names import LONGEST_CHAT, LONGEST_NAME, check_chat, check_name, key_of_name
from relance.poker.rejected import Rejected

ACCEPTED = [
    "Top C (host)",
    "a: folds",
    "A.B. Test",
    "raises 5 to 10",
    "[Ah Kd]",
    "Été",
    "名前",
    "x collected 100 from pot",
    "ﷺ",
    "x" * LONGEST_NAME,
    "👨‍👩‍👧",
    "❤️‍🔥",
    "👩🏽‍💻",
    "🙂‍↔️",
]
REFUSED = [
    "tab\tname",
    "a\u200db",
    "\u200d",
    "👩\u200d",
    "a\u200b",
    "a\u202eb",
    "a\x00",
    "a\n",
    "\ufeffa",
    "a\u00adb",
    "👩\u200d\u200d💻",
]


@pytest.mark.parametrize("name", ACCEPTED)
def test_N1_names_with_any_letters_and_joined_emoji_are_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", REFUSED)
def test_N1_control_and_format_characters_are_refused(name: str) -> None:
    with pytest.raises(Rejected) as refusal:
        check_name(name)
    assert refusal.value.reason == reason_pb2.REASON_FIELD_INVALID
    assert refusal.value.metadata["field"] == "display_name"


@pytest.mark.parametrize("name", ["", "   ", "\u3000"])
def test_N1_a_name_has_at_least_one_code_point_that_is_not_blank(name: str) -> None:
    with pytest.raises(Rejected) as refusal:
        check_name(name)
    assert refusal.value.reason == reason_pb2.REASON_FIELD_MISSING


def test_N1_a_name_is_measured_and_stored_in_nfc() -> None:
    assert check_name("e\u0301" * LONGEST_NAME) == "é" * LONGEST_NAME
    with pytest.raises(Rejected) as refusal:
        check_name("é" * (LONGEST_NAME + 1))
    assert refusal.value.reason == reason_pb2.REASON_FIELD_TOO_LONG
    assert refusal.value.metadata == {"field": "display_name", "max": "32"}


def test_N1_a_text_that_cannot_be_short_enough_is_not_put_in_order_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting 30,000 combining marks takes seconds, in which nobody else is served."""
    assert check_name("\u03b1\u0313\u0300\u0345" * LONGEST_NAME) == "\u1f82" * LONGEST_NAME
    looked_at: list[int] = []
    normalize = unicodedata.normalize

    def noted(form: Literal["NFC"], text: str) -> str:
        looked_at.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr(unicodedata, "normalize", noted)
    for check, longest in ((check_name, LONGEST_NAME), (check_chat, LONGEST_CHAT)):
        with pytest.raises(Rejected) as refusal:
            check("a" + "\u0301\u0316" * 16_000)
        assert refusal.value.reason == reason_pb2.REASON_FIELD_TOO_LONG
        assert refusal.value.metadata["max"] == str(longest)
    assert looked_at == []


@pytest.mark.parametrize(
    ("one", "other"), [("Été", "été"), ("Straße", "STRASSE"), ("E\u0301TE", "éte"), ("ΣΑΣ", "σας")]
)
def test_N1_names_are_unique_case_folded(one: str, other: str) -> None:
    assert key_of_name(one) == key_of_name(other)


def test_N1_different_names_have_different_keys() -> None:
    assert key_of_name("ana") != key_of_name("ána")


def test_N1_chat_is_refused_above_128_code_points_after_nfc_and_never_cut() -> None:
    """PROTO-16."""
    assert check_chat("x" * LONGEST_CHAT) == "x" * LONGEST_CHAT
    assert check_chat("e\u0301" * LONGEST_CHAT) == "é" * LONGEST_CHAT
    assert check_chat("<script>") == "<script>"
    with pytest.raises(Rejected, match="U\\+202E"):
        check_chat("abc\u202edef")
    for text in ("x" * (LONGEST_CHAT + 1), "x" * 2**20):
        with pytest.raises(Rejected) as refusal:
            check_chat(text)
        assert refusal.value.reason == reason_pb2.REASON_FIELD_TOO_LONG
    with pytest.raises(Rejected):
        check_chat("")
