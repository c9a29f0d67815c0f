"""Refusals of the room as one line for players."""

from __future__ import annotations

import time

from relance.client import OutcomeUnknown, RelanceError, StaleAction, Unavailable
from relance.play.glyphs import SYMBOLS, Glyphs, clean, money

_AMOUNTS = frozenset({"BUY_IN_OUT_OF_RANGE", "BUY_IN_BELOW_PREVIOUS_STACK", "AMOUNT_OUT_OF_RANGE", "INVALID_AMOUNT"})
_LINES = {
    "SIGN_IN_REFUSED": "Name or password is wrong. New here? Register.",
    "NAME_TAKEN": "That name is taken.",
    "TABLE_CLOSED": "The table is closed.",
    "TABLE_PAUSED": "The table is paused by the floor.",
    "SEAT_TAKEN": "That seat is taken.",
    "NOT_SEATED": "You have no seat here.",
    "NOT_INVITED": "The table is private and you are not invited.",
    "TRANSFER_PENDING": "Your money is still on its way; try again.",
    "CASH_OUT_PENDING": "Your money is still on its way from a table; try again.",
    "NOTHING_TO_CHANGE": "That is so already.",
    "ALREADY_SEATED": "You have a seat here already.",
    "TABLE_PASSWORD_WRONG": "That is not the password of this table.",
    "OFFER_OVER": "Too late: the seat went to the next.",
    "WAIT_NOT_FOUND": "You do not wait there any more.",
    "MAINTENANCE": "The house is in maintenance: no new tables, no new hands.",
    "NOT_YOURS": "Only the host of the table may do that.",
    "FAUCET_OFF": "There is no faucet in this room: the cashier takes deposits.",
}
# With the time until which it is so.
_UNTIL = {
    "MUTED": "An operator muted you at this table",
    "PLAYER_BANNED": "You are banned from this table",
    "SELF_EXCLUDED": "You excluded yourself from playing",
}


def line(refusal: RelanceError, currency: int, glyphs: Glyphs = SYMBOLS) -> str:
    """What was refused and what would be accepted, in one line."""
    if isinstance(refusal, StaleAction):
        return "Too late: the turn is over."
    if isinstance(refusal, OutcomeUnknown):
        return "No answer: it may have been done. Look before you try again."
    if isinstance(refusal, Unavailable):
        return "The room does not answer; try again."
    if refusal.reason == "NO_MONEY":
        available = refusal.metadata.get("available", "")
        have = f": {money(int(available), currency, glyphs)} on your account" if available.isdigit() else ""
        return f"Not enough money{have}."
    if refusal.reason in _AMOUNTS:
        return _bounds(refusal, currency, glyphs)
    if refusal.reason == "TOO_MANY_REQUESTS":
        return f"Too much at once; wait {refusal.metadata.get('retry_after_seconds', 'some')} s."
    if refusal.reason in _UNTIL:
        return f"{_UNTIL[refusal.reason]}{_until(refusal.metadata.get('until', ''))}."
    if refusal.reason == "LIMIT_REACHED":
        return f"You have {refusal.metadata.get('limit', 'enough')} of these, as many as one may have."
    if refusal.reason == "FIELD_TOO_LONG":
        return f"Too long: at most {refusal.metadata.get('max', '')} characters."
    return _LINES.get(refusal.reason) or clean(refusal.message or refusal.reason)


def _until(micros: str) -> str:
    """When something ends, by this machine's clock; empty: nobody knows, or never."""
    if not micros.isdigit() or not int(micros):
        return ""
    return f" until {time.strftime('%d %b %H:%M', time.localtime(int(micros) / 1e6))}"


def _bounds(refusal: RelanceError, currency: int, glyphs: Glyphs) -> str:
    least, most = refusal.metadata.get("min", ""), refusal.metadata.get("max", "")
    said = [f"at least {money(int(least), currency, glyphs)}"] if least.isdigit() else []
    said += [f"at most {money(int(most), currency, glyphs)}"] if most.isdigit() and int(most) else []
    return f"Not accepted: {', '.join(said) or clean(refusal.message)}."
