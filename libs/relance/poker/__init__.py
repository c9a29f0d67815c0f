"""The rules of the room. Pure: no I/O, no clock, no randomness.

A table is a stream of events: `decide` says what a command causes, `apply` is the only way that a table changes.
"""

from relance.poker.draft import Context, advance
from relance.poker.evolve import UnknownEvent, apply
from relance.poker.prompts import Prompt, prompt
from relance.poker.redaction import has_secret, public_bytes, redact
from relance.poker.rejected import Rejected
from relance.poker.rulebook import decide
from relance.poker.starting import ready_to_start
from relance.poker.table import Request, Seat, Table, Transfer, initial, known_request, pending_transfers
from relance.poker.view import view

__all__ = [
    "Context",
    "Prompt",
    "Rejected",
    "Request",
    "Seat",
    "Table",
    "Transfer",
    "UnknownEvent",
    "advance",
    "apply",
    "decide",
    "has_secret",
    "initial",
    "known_request",
    "pending_transfers",
    "prompt",
    "public_bytes",
    "ready_to_start",
    "redact",
    "view",
]
