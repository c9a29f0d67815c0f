"""`relance history`: a player's hands and results, and what the management or the room had to do with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.errors import NoAnswer
from relance.ops.events import config_of
from relance.ops.names import Names, player_id
from relance.ops.output import Out
from relance.ops.source import PostgresSource
from relance.ops.words import amount, counted, iso, when, word

# The player's id stands in the body as it is; what is found is read and held to be of the player.
_EVENTS = """
SELECT stream, version, body FROM log.event
WHERE type = ANY($1::text[]) AND time_us >= $2 AND position(convert_to($3, 'UTF8') IN body) > 0
ORDER BY time_us, stream, version
"""
_RULINGS = """
SELECT stream, version, body FROM log.event WHERE type = 'ruling_recorded' AND stream = ANY($1::text[])
ORDER BY time_us, stream, version
"""


@dataclass(slots=True)
class Entry:
    """Something that happened. `net`: chips won or lost, minor units; `kind`: hand, void, ruling, protection …"""

    table: str
    hand: int
    version: int
    time_us: int
    kind: str
    currency: int
    text: str
    net: int = 0


@dataclass(slots=True)
class History:
    """A player's entries, oldest first."""

    player: str
    name: str
    entries: list[Entry] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Entries of a kind."""
        return sum(entry.kind == kind for entry in self.entries)

    def net(self) -> dict[str, int]:
        """Chips won and lost in hands that were paid, by currency."""
        sums: dict[str, int] = {}
        for entry in self.entries:
            if entry.kind == "hand":
                currency = word(entry.currency, game_pb2.Currency)
                sums[currency] = sums.get(currency, 0) + entry.net
        return sums


async def history(source: PostgresSource, player: str, since_us: int = 0) -> History:
    """What the log tells of a player, given by id or by name. Raises NoAnswer for one it has never heard of."""
    connection = source.connection
    identity = await player_id(connection, player)
    names = Names()
    await names.look_up(connection, [identity])
    found = History(identity, names[identity])
    currencies: dict[str, int] = {}
    rows = await connection.fetch(_EVENTS, list(_READERS), since_us, identity)
    for stream, version, body in rows:
        event = pb.TableEvent.FromString(body)
        kind = event.WhichOneof("payload") or ""
        if stream not in currencies:
            currencies[stream] = (await config_of(source, stream)).currency
        entry = Entry(stream, event.hand, version, event.time_us, "", currencies[stream], "")
        if _READERS[kind](entry, getattr(event, kind), identity):
            found.entries.append(entry)
    if not found.entries and identity not in {name for name in names.known if names.known[name]}:
        raise NoAnswer(f"no table and no lobby has heard of a player {player!r}")
    await _rulings(source, found, currencies)
    found.entries.sort(key=lambda entry: (entry.time_us, entry.table, entry.version))
    return found


async def _rulings(source: PostgresSource, found: History, currencies: dict[str, int]) -> None:
    """Rulings about hands that the player was in."""
    played = {(entry.table, entry.hand) for entry in found.entries if entry.kind in {"hand", "void"}}
    for stream, version, body in await source.connection.fetch(_RULINGS, sorted({table for table, _ in played})):
        event = pb.TableEvent.FromString(body)
        ruling = event.ruling_recorded
        if (stream, ruling.about_hand) in played:
            text = f"ruling by {ruling.operator}: {ruling.text}"
            found.entries.append(
                Entry(stream, ruling.about_hand, version, event.time_us, "ruling", currencies[stream], text)
            )


def _ended(entry: Entry, e: pb.HandEnded, player: str) -> bool:
    for result in e.results:
        if result.player == player:
            entry.kind, entry.net = "hand", result.net
            entry.text = f"seat {result.seat}, put in {amount(result.contributed, entry.currency)}"
            return True
    return False


def _voided(entry: Entry, e: pb.HandVoided, player: str) -> bool:
    for refund in e.refunds:
        if refund.player == player:
            entry.kind = "void"
            entry.text = f"hand void: {word(e.reason, pb.VoidReason)}, {amount(refund.amount, entry.currency)} back"
            return True
    return False


def _of(kind: str, text: Callable[[Entry, Any], str]) -> Callable[[Entry, Any, str], bool]:
    def read(entry: Entry, payload: Any, player: str) -> bool:
        entry.kind, entry.text = kind, text(entry, payload)
        return bool(payload.player == player)

    return read


_READERS: Final[dict[str, Callable[[Entry, Any, str], bool]]] = {
    "hand_ended": _ended,
    "hand_voided": _voided,
    "player_sat": _of("seat", lambda n, e: f"sits down at seat {e.seat} with {amount(e.stack, n.currency)}"),
    "player_left": _of(
        "seat", lambda n, e: f"leaves with {amount(e.amount, n.currency)}: {word(e.reason, pb.LeaveReason)}"
    ),
    "protection_used": _of("protection", lambda n, e: f"protected at seat {e.seat}: all-in for what was in the pot"),
    "timed_out": _of("clock", lambda n, e: f"the clock of seat {e.seat} ran out"),
    "player_warned": _of("warning", lambda n, e: f"warned by {e.operator or 'the room'}: {e.reason}"),
    "player_banned": _of("ban", lambda n, e: f"banned by {e.operator or 'the room'}: {e.reason}"),
    "player_muted": _of("mute", lambda n, e: f"muted by {e.operator}: {e.reason}"),
    "player_unmuted": _of("mute", lambda n, e: f"may chat again: {e.operator}"),
    "transfer_refused": _of("money", lambda n, e: f"{amount(e.amount, n.currency)} refused by the wallet: {e.reason}"),
}


def show(found: History, out: Out) -> None:
    """Print the history."""
    if out.json:
        out.document(
            {
                "player": found.player,
                "name": found.name,
                "hands": found.count("hand"),
                "net": found.net(),
                "entries": [{**asdict(entry), "time": iso(entry.time_us)} for entry in found.entries],
            }
        )
        return
    out.line(f"{found.name} (players/{found.player})", "bold")
    out.table(
        ["time (UTC)", "table", "hand>", "what", "net>", "details"],
        [
            [when(entry.time_us), entry.table, entry.hand or "", entry.kind,
             f"{'+' if entry.net > 0 else ''}{amount(entry.net, entry.currency)}" if entry.kind == "hand" else "",
             entry.text]
            for entry in found.entries
        ],
    )  # fmt: skip
    numbers = ", ".join(
        counted(found.count(kind), kind, "void" if kind == "void" else "")
        for kind in ("hand", "void", "ruling", "protection")
    )
    currencies = {"eur": game_pb2.CURRENCY_EUR, "credit": game_pb2.CURRENCY_CREDIT}
    net = ", ".join(amount(total, currencies.get(name, 0)) for name, total in found.net().items())
    out.line(f"{numbers}; net {net or 'nothing'}")
