"""Names of players and tables, and chat (N1). Text is for people: never parsed, never cut."""

from __future__ import annotations

import unicodedata

from relance.api.common.v1 import reason_pb2
from relance.poker.rejected import Rejected

LONGEST_NAME = 32
"""Code points of a name."""

LONGEST_CHAT = 128
"""Code points of a chat message after NFC."""

_LONGEST_DECOMPOSITION = 4
"""Code points that NFC can make one of (U+1F82)."""
_JOINER = "\u200d"
_VARIATION = "\ufe0f"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_PICTOGRAPHS = (range(0x2190, 0x2200), range(0x2600, 0x27C0), range(0x2B00, 0x2C00), range(0x1F000, 0x1FB00))


def check_name(text: str, field: str = "display_name", *, longest: int = LONGEST_NAME) -> str:
    """The name in NFC, as it is to be stored and shown (N1).

    Raises Rejected: FIELD_MISSING (empty or blank), FIELD_TOO_LONG (metadata field, max), FIELD_INVALID (metadata
    field, allowed) for control and format characters; U+200D may stand between the parts of an emoji.
    """
    name = _normalised(text, field, longest)
    if not name.strip():
        raise Rejected(reason_pb2.REASON_FIELD_MISSING, f"{field} is empty", {"field": field})
    _check_characters(name, field)
    return name


def key_of_name(name: str) -> str:
    """What must be unique of a name: NFC, case-folded (N1). ``Été`` and ``été`` are one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def check_chat(text: str, field: str = "text") -> str:
    """A chat message in NFC, otherwise verbatim (N1).

    Raises Rejected: FIELD_MISSING (empty), FIELD_TOO_LONG (metadata field, max): longer is refused, never cut;
    FIELD_INVALID (metadata field, allowed) for control and format characters, as in names.
    """
    message = _normalised(text, field, LONGEST_CHAT)
    if not message:
        raise Rejected(reason_pb2.REASON_FIELD_MISSING, f"{field} is empty", {"field": field})
    _check_characters(message, field)
    return message


def _normalised(text: str, field: str, longest: int) -> str:
    """The text in NFC. Raises Rejected FIELD_TOO_LONG.

    Thousands of combining marks take seconds to put in order: a text that cannot become short enough is left alone.
    """
    normalised = unicodedata.normalize("NFC", text) if len(text) <= _LONGEST_DECOMPOSITION * longest else text
    if len(normalised) > longest:
        raise Rejected(
            reason_pb2.REASON_FIELD_TOO_LONG,
            f"{field} has {len(normalised)} code points; {longest} would be accepted",
            {"field": field, "max": str(longest)},
        )
    return normalised


def _check_characters(text: str, field: str) -> None:
    for at, character in enumerate(text):
        category = unicodedata.category(character)
        if category in {"Cc", "Cs"} or (category == "Cf" and not _joins_emoji(text, at)):
            raise Rejected(
                reason_pb2.REASON_FIELD_INVALID,
                f"{field} contains U+{ord(character):04X} at position {at + 1}; control and format characters are "
                "not accepted (U+200D only inside an emoji)",
                {"field": field, "allowed": "no control or format characters"},
            )


def _joins_emoji(name: str, at: int) -> bool:
    """Whether a U+200D stands between two parts of an emoji sequence."""
    if name[at] != _JOINER or not 0 < at < len(name) - 1:
        return False
    before = at - 1
    while before > 0 and (name[before] == _VARIATION or ord(name[before]) in _SKIN_TONES):
        before -= 1
    return _is_emoji(name[before]) and _is_emoji(name[at + 1])


def _is_emoji(character: str) -> bool:
    """Whether a character is in one of the blocks whose pictographs form joined emoji."""
    return any(ord(character) in block for block in _PICTOGRAPHS)
