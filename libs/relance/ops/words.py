"""Events in words: one sentence each, for people."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.ops.names import Names, printable


def amount(value: int, currency: int) -> str:
    """Minor units for people: ``12.50 €``, ``V$ 300``."""
    if currency == game_pb2.CURRENCY_CREDIT:
        return f"V$ {value}"
    sign = "-" if value < 0 else ""
    return f"{sign}{abs(value) // 100}.{abs(value) % 100:02} €"


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 hand``, ``2 hands``: a number of things, for people. `plural`: where an s does not make it."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def cards(text: str) -> str:
    """``AsTd`` as ``As Td``."""
    return " ".join(text[at : at + 2] for at in range(0, len(text), 2))


def when(time_us: int) -> str:
    """A time for people, UTC."""
    return moment(time_us).strftime("%Y-%m-%d %H:%M:%S")


def moment(time_us: int) -> datetime.datetime:
    """Microseconds since 1970 as a time, UTC."""
    return datetime.datetime.fromtimestamp(time_us // 1_000_000, datetime.UTC).replace(microsecond=time_us % 1_000_000)


def iso(time_us: int) -> str:
    """A time for programs, UTC, to the microsecond."""
    return moment(time_us).isoformat(timespec="microseconds").replace("+00:00", "Z")


def word(value: int, enum: Any) -> str:
    """The value of an enum in words: ``server crash`` for VOID_REASON_CRASH reads ``crash``."""
    return _word(value, enum.DESCRIPTOR)


@cache
def _word(value: int, enum: EnumDescriptor) -> str:
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    found = enum.values_by_number.get(value)
    return found.name.removeprefix(prefix).lower().replace("_", " ") if found is not None else str(value)


class Words:
    """Sentences about the events of one table. `names` must know the players; `currency` gives the unit."""

    def __init__(self, names: Names, currency: int, seats: dict[int, str] | None = None) -> None:
        self.names, self.currency = names, currency
        self.seats: dict[int, str] = seats if seats is not None else {}
        """Who sits where, followed event by event."""

    def say(self, event: pb.TableEvent) -> str:
        """The event in one line."""
        kind = event.WhichOneof("payload")
        if kind is None:
            return "an event that this version does not know"
        payload = getattr(event, kind)
        self._follow(kind, payload)
        sentence = _SENTENCES.get(kind)
        return printable(sentence(self, payload) if sentence is not None else _plain(kind, payload))

    def who(self, seat: int) -> str:
        """The player of a seat."""
        player = self.seats.get(seat, "")
        return f"{self.names[player]} (seat {seat})" if player else f"seat {seat}"

    def money(self, value: int) -> str:
        """An amount of this table."""
        return amount(value, self.currency)

    def _follow(self, kind: str, payload: Any) -> None:
        if kind == "hand_started":
            self.seats.update({each.seat: each.player for each in payload.players})
        elif kind in {"hand_ended", "hand_voided"}:
            rows = payload.results if kind == "hand_ended" else payload.refunds
            self.seats.update({each.seat: each.player for each in rows})
        elif {"seat", "player"} <= set(type(payload).DESCRIPTOR.fields_by_name):
            self.seats[payload.seat] = payload.player


def _plain(kind: str, payload: Any) -> str:
    fields = ", ".join(f"{each.name} {value}" for each, value in payload.ListFields())
    return f"{kind.replace('_', ' ')}{': ' + fields if fields else ''}"


def _all_in(payload: Any) -> str:
    return ", all-in" if payload.all_in else ""


def _blind(payload: Any) -> str:
    return "" if payload.kind == pb.BLIND_KIND_POST else f"{word(payload.kind, pb.BlindKind)} blind "


def _opened(w: Words, e: pb.TableOpened) -> str:
    w.currency = e.config.currency
    limit = word(e.config.limit, game_pb2.Limit)
    return f"table opened by {e.opened_by or 'nobody'}: {e.config.house or 'no house'}, {e.config.game}, {limit}"


def _started(w: Words, e: pb.HandStarted) -> str:
    players = ", ".join(f"{w.who(each.seat)} {w.money(each.stack)}" for each in e.players)
    proof = ", deck committed to" if e.deck_commitments else ""
    rake = f", rake {e.rake_schedule}" if e.rake_schedule else ", no rake"
    return f"hand starts: {players}; button at seat {e.button}{rake}{proof}"


def _dealt(w: Words, e: pb.CardsDealt) -> str:
    down = cards(e.down) or " ".join(["??"] * e.down_count)
    parts = [f"{down} down" if down else "", f"{cards(e.up)} up" if e.up else ""]
    return f"{w.who(e.seat)} is dealt {', '.join(part for part in parts if part)}"


def _discarded(w: Words, e: pb.CardsDiscarded) -> str:
    if not e.count:
        return f"{w.who(e.seat)} stands pat{' (time)' if e.timed_out else ''}"
    return f"{w.who(e.seat)} discards {e.count}{': ' + cards(e.cards) if e.cards else ''}"


def _shown(w: Words, e: pb.HandShown) -> str:
    said = "; ".join(part for part in (e.high, e.low and f"low {e.low}") if part)
    return f"{w.who(e.seat)} shows {cards(e.cards)}{': ' + said if said else ''}"


def _awarded(w: Words, e: pb.PotAwarded) -> str:
    name = "the main pot" if e.pot == 0 else f"side pot {e.pot}"
    rake = f", {w.money(e.rake)} rake" if e.rake else ""
    shares = ", ".join(
        f"{w.who(each.seat)} {w.money(each.amount)}"
        + ("" if each.part == pb.POT_PART_WHOLE else f" ({word(each.part, pb.PotPart)})")
        for each in e.shares
    )
    return f"{name} of {w.money(e.amount)}{rake} to {shares or 'nobody'}"


def _ended(w: Words, e: pb.HandEnded) -> str:
    results = ", ".join(
        f"{w.who(each.seat)} {'+' if each.net > 0 else ''}{w.money(each.net)}" for each in e.results if each.net
    )
    return f"hand over: pot {w.money(e.pot)}, rake {w.money(e.rake)}; {results or 'nobody won or lost'}"


def _voided(w: Words, e: pb.HandVoided) -> str:
    refunds = ", ".join(f"{w.who(each.seat)} {w.money(each.amount)}" for each in e.refunds if each.amount)
    by = f" by {e.operator}" if e.operator else ""
    note = f" ({e.note})" if e.note else ""
    return f"hand void{by}: {word(e.reason, pb.VoidReason)}{note}; back to {refunds or 'nobody'}"


def _transfer(done: str) -> Callable[[Words, Any], str]:
    def sentence(w: Words, e: Any) -> str:
        reason = f": {e.reason}" if done == "refused" else ""
        purpose = word(e.purpose, pb.TransferPurpose)
        return f"{purpose} of {w.money(e.amount)} for {w.who(e.seat)} {done}{reason}, transfer {e.transfer}"

    return sentence


_SENTENCES: Final[dict[str, Callable[[Words, Any], str]]] = {
    "table_opened": _opened,
    "settings_changed": lambda w, e: f"settings changed by {e.operator}{': ' + e.reason if e.reason else ''}",
    "owner_started": lambda w, e: (
        f"process {e.process} owns the table, fence {e.fence}: {word(e.reason, pb.OwnerReason)}"
    ),
    "table_drained": lambda w, e: "the owner gives the table up in order",
    "table_closed": lambda w, e: f"table closed by {e.operator}{': ' + e.reason if e.reason else ''}",
    "ruling_recorded": lambda w, e: (
        f"ruling by {e.operator}{f' about hand {e.about_hand}' if e.about_hand else ''}: {e.text}"
    ),
    "player_warned": lambda w, e: f"{w.names[e.player]} is warned by {e.operator or 'the room'}: {e.reason}",
    "player_banned": lambda w, e: f"{w.names[e.player]} is banned by {e.operator or 'the room'}: {e.reason}",
    "player_muted": lambda w, e: f"{w.names[e.player]} is muted by {e.operator}: {e.reason}",
    "player_unmuted": lambda w, e: f"{w.names[e.player]} may chat again: {e.operator}",
    "seat_held": lambda w, e: f"seat {e.seat} is held for {w.names[e.player]}",
    "notice_seen": lambda w, e: f"{w.names[e.player]} has seen what became of their chips",
    "time_bank_used": lambda w, e: f"{w.who(e.seat)} uses {e.used_ms / 1000:g} s of the time bank",
    "seat_reserved": lambda w, e: f"{w.who(e.seat)} asks for the seat with {w.money(e.amount)}",
    "seat_released": lambda w, e: f"{w.who(e.seat)} gives the seat up: {e.reason.lower()}",
    "player_sat": lambda w, e: f"{w.who(e.seat)} sits down with {w.money(e.stack)}",
    "chips_added": lambda w, e: f"{w.who(e.seat)} has {w.money(e.amount)} more",
    "player_sat_out": lambda w, e: f"{w.who(e.seat)} sits out: {word(e.reason, pb.SitOutReason)}",
    "player_sat_in": lambda w, e: f"{w.who(e.seat)} sits in again",
    "blind_missed": lambda w, e: f"{w.who(e.seat)} misses the {'big' if e.big else 'small'} blind",
    "player_left": lambda w, e: f"{w.who(e.seat)} leaves with {w.money(e.amount)}: {word(e.reason, pb.LeaveReason)}",
    "connection_lost": lambda w, e: f"{w.who(e.seat)} is disconnected",
    "connection_restored": lambda w, e: f"{w.who(e.seat)} is connected again",
    "transfer_requested": _transfer("requested"),
    "transfer_settled": _transfer("settled"),
    "transfer_refused": _transfer("refused"),
    "leave_requested": lambda w, e: f"{w.who(e.seat)} asks to leave: {word(e.reason, pb.LeaveReason)}",
    "leave_withdrawn": lambda w, e: f"{w.who(e.seat)} stays after all",
    "hand_started": _started,
    "ante_posted": lambda w, e: f"{w.who(e.seat)} posts ante {w.money(e.amount)}{_all_in(e)}",
    "blind_posted": lambda w, e: f"{w.who(e.seat)} posts {_blind(e)}{w.money(e.amount)}{_all_in(e)}",
    "bring_in_posted": lambda w, e: f"{w.who(e.seat)} brings in {w.money(e.amount)}{_all_in(e)}",
    "cards_dealt": _dealt,
    "board_dealt": lambda w, e: f"board: {cards(e.cards)}",
    "checked": lambda w, e: f"{w.who(e.seat)} checks",
    "called": lambda w, e: f"{w.who(e.seat)} calls {w.money(e.amount)}{_all_in(e)}",
    "bet_made": lambda w, e: f"{w.who(e.seat)} bets {w.money(e.to)}{_all_in(e)}",
    "raised": lambda w, e: f"{w.who(e.seat)} {'completes' if e.completes else 'raises'} to {w.money(e.to)}{_all_in(e)}",
    "folded": lambda w, e: (
        f"{w.who(e.seat)} folds{'' if e.reason == pb.FOLD_REASON_ACTION else ': ' + word(e.reason, pb.FoldReason)}"
    ),
    "timed_out": lambda w, e: f"the clock of {w.who(e.seat)} runs out",
    "protection_used": lambda w, e: f"{w.who(e.seat)} is disconnected and protected: all-in for what is in the pot",
    "cards_discarded": _discarded,
    "cards_drawn": lambda w, e: f"{w.who(e.seat)} draws {e.count}{': ' + cards(e.cards) if e.cards else ''}",
    "deck_reshuffled": lambda w, e: f"{e.count} cards are shuffled into a new stub: {e.reason.lower()}",
    "dealing_fault_ruled": lambda w, e: (
        f"dealing fault reported by {e.operator or 'the dealer'}: {word(e.fault, pb.DealingFault)}; "
        f"{e.procedure.lower()}"
    ),
    "split_offered": lambda w, e: f"{w.who(e.seat)} offers a split",
    "split_answered": lambda w, e: f"{w.who(e.seat)} {'accepts' if e.accepted else 'refuses'} the split",
    "uncalled_returned": lambda w, e: f"{w.money(e.amount)} uncalled go back to {w.who(e.seat)}",
    "hand_shown": _shown,
    "hand_mucked": lambda w, e: f"{w.who(e.seat)} mucks",
    "rake_taken": lambda w, e: f"rake of {w.money(e.amount)} is taken",
    "pot_awarded": _awarded,
    "hand_ended": _ended,
    "hand_voided": _voided,
    "card_burnt": lambda w, e: "a card is burnt",
    "round_ended": lambda w, e: f"betting round {e.round} is over, {w.money(e.pot)} in the pot",
}  # fmt: skip
