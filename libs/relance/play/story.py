"""Events as a player reads them: short sentences, "you" for oneself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.text import Text

from relance.api.events.v1 import events_pb2 as pb
from relance.client import Event
from relance.play.glyphs import Glyphs, cards_text, clean, figure, money

#: Events whose sentence is worth more than the line in the story.
SAID_TOO: Final = frozenset(
    {
        "hand_voided", "ruling_recorded", "table_closed", "table_paused", "table_resumed", "transfer_refused",
        "player_warned", "player_banned", "player_muted", "player_unmuted", "settings_changed",
    }
)  # fmt: skip


class Teller:
    """Tells the events of one table. `names`: of players, by id; may grow later."""

    def __init__(self, player: str, names: Mapping[str, str], currency: int, glyphs: Glyphs) -> None:
        self.player, self.names, self.currency, self.glyphs = player, names, currency, glyphs
        self.seats: dict[int, str] = {}

    def tell(self, event: Event) -> Text | None:
        """The event in a line; None: nothing that a player needs to read."""
        data: Any = event.data
        self._follow(event.kind, data)
        sentence = _SENTENCES.get(event.kind)
        if event.kind == "hand_started":
            return Text(f"{self.glyphs.across * 2} Hand {event.hand} {self.glyphs.across * 2}", "bold")
        return sentence(self, data) if sentence is not None else None

    def who(self, seat: int) -> str:
        """The player of a seat, to begin a sentence with."""
        return self.named(self.seats.get(seat, "")) or f"Seat {seat}"

    def named(self, player: str) -> str:
        """A player's name; "You"."""
        return "You" if player and player == self.player else clean(self.names.get(player, player))

    def does(self, seat: int, verb: str) -> str:
        """ "Ann calls", "You call"."""
        who = self.who(seat)
        return f"{who} {_you(verb) if who == 'You' else verb}"

    def figure(self, amount: int) -> str:
        """An amount without its unit."""
        return figure(amount, self.currency)

    def cards(self, cards: str) -> Text:
        """Cards in a sentence."""
        return cards_text(cards, self.glyphs)

    def _follow(self, kind: str, data: Any) -> None:
        if kind == "hand_started":
            self.seats.update({each.seat: each.player for each in data.players})
        elif {"seat", "player"} <= set(type(data).DESCRIPTOR.fields_by_name):
            self.seats[data.seat] = data.player


def _you(verb: str) -> str:
    """The verb for "you": "calls" -> "call", "passes" -> "pass", "is" -> "are"."""
    first, _, rest = verb.partition(" ")
    you = {"is": "are", "has": "have", "misses": "miss"}.get(first, first.removesuffix("s"))
    return f"{you} {rest}".rstrip()


def _does(verb: str) -> Callable[[Teller, Any], Text]:
    return lambda teller, e: Text(teller.does(e.seat, verb))


def _all_in(e: Any) -> str:
    return ", all-in" if e.all_in else ""


def _dealt(teller: Teller, e: pb.CardsDealt) -> Text | None:
    seen = e.down + e.up
    return Text.assemble(teller.does(e.seat, "gets"), " ", teller.cards(seen)) if seen else None


def _folded(teller: Teller, e: pb.Folded) -> Text:
    why = {pb.FOLD_REASON_TIMED_OUT: " (time)", pb.FOLD_REASON_LEFT: " (left)", pb.FOLD_REASON_DISCONNECTED: " (gone)"}
    return Text(teller.does(e.seat, "folds") + why.get(e.reason, ""))


def _posted(teller: Teller, e: pb.BlindPosted) -> Text:
    what = {pb.BLIND_KIND_SMALL: "the small blind", pb.BLIND_KIND_BIG: "the big blind", pb.BLIND_KIND_DEAD: "dead"}
    return Text(
        teller.does(e.seat, f"posts {what.get(e.kind, '')}").rstrip() + f" {teller.figure(e.amount)}{_all_in(e)}"
    )


def _discarded(teller: Teller, e: pb.CardsDiscarded) -> Text:
    if not e.count:
        return Text(teller.does(e.seat, "stands pat") + (" (time)" if e.timed_out else ""))
    return Text.assemble(teller.does(e.seat, f"discards {e.count}"), ": " if e.cards else "", teller.cards(e.cards))


def _drawn(teller: Teller, e: pb.CardsDrawn) -> Text | None:
    return Text.assemble(teller.does(e.seat, "draws"), " ", teller.cards(e.cards)) if e.cards else None


def _shown(teller: Teller, e: pb.HandShown) -> Text:
    made = "; ".join(part for part in (e.high, e.low) if part)
    return Text.assemble(teller.does(e.seat, "shows"), " ", teller.cards(e.cards), f" {made}" if made else "")


def _awarded(teller: Teller, e: pb.PotAwarded) -> Text:
    parts = {pb.POT_PART_HIGH: " (high)", pb.POT_PART_LOW: " (low)", pb.POT_PART_AGREED: " (split agreed)"}
    pot = f" of side pot {e.pot}" if e.pot else ""
    shares = [
        f"{teller.does(share.seat, 'wins')} {teller.figure(share.amount)}{parts.get(share.part, '')}"
        for share in e.shares
    ]
    return Text(f"{', '.join(shares)}{pot}", "bold")


def _voided(teller: Teller, e: pb.HandVoided) -> Text:
    why = {
        pb.VOID_REASON_CRASH: "the server crashed",
        pb.VOID_REASON_DRAIN: "the server was shut down",
        pb.VOID_REASON_OPERATOR: "by the floor",
        pb.VOID_REASON_MISDEAL: "misdeal",
        pb.VOID_REASON_NOT_ENOUGH_PLAYERS: "too few posted",
    }.get(e.reason, "")
    mine = next((refund.amount for refund in e.refunds if refund.player == teller.player), 0)
    back = f"; {money(mine, teller.currency, teller.glyphs)} back to you" if mine else ""
    note = f": {clean(e.note)}" if e.note else ""
    return Text(f"Hand void ({why}{note}){back}", "bold")


def _left(teller: Teller, e: pb.PlayerLeft) -> Text:
    why = {
        pb.LEAVE_REASON_CRASH: " (server crash)",
        pb.LEAVE_REASON_AWAY: " (away too long)",
        pb.LEAVE_REASON_BANNED: " (banned)",
        pb.LEAVE_REASON_TABLE_CLOSED: " (table closed)",
        pb.LEAVE_REASON_DISCONNECTED: " (disconnected)",
        pb.LEAVE_REASON_BUSTED: " (no chips)",
    }
    return Text(f"{teller.does(e.seat, 'leaves')} with {teller.figure(e.amount)}{why.get(e.reason, '')}")


def _sat_out(teller: Teller, e: pb.PlayerSatOut) -> Text:
    why = {
        pb.SIT_OUT_REASON_TIMED_OUT: " (time)",
        pb.SIT_OUT_REASON_DISCONNECTED: " (gone)",
        pb.SIT_OUT_REASON_NO_CHIPS: " (no chips)",
        pb.SIT_OUT_REASON_NOT_POSTED: " (not posted)",
    }
    return Text(teller.does(e.seat, "sits out") + why.get(e.reason, ""))


def _floor(verb: str) -> Callable[[Teller, Any], Text]:
    """A sentence about the management and its reason."""

    def sentence(teller: Teller, e: Any) -> Text:
        player = f"{teller.named(e.player)}: " if "player" in type(e).DESCRIPTOR.fields_by_name else ""
        reason = e.text if isinstance(e, pb.RulingRecorded) else getattr(e, "reason", "")
        return Text(f"{player}{verb}{': ' + clean(reason) if reason else ''}", "bold")

    return sentence


def _refused(teller: Teller, e: pb.TransferRefused) -> Text | None:
    return Text(f"Your transfer was refused: {e.reason}", "bold") if e.player == teller.player else None


_SENTENCES: Final[dict[str, Callable[[Teller, Any], Text | None]]] = {
    "player_sat": lambda t, e: Text(f"{t.does(e.seat, 'sits')} down with {t.figure(e.stack)}"),
    "chips_added": lambda t, e: Text(f"{t.does(e.seat, 'adds')} {t.figure(e.amount)}"),
    "player_sat_out": _sat_out,
    "player_sat_in": _does("sits in"),
    "player_left": _left,
    "connection_lost": _does("is disconnected"),
    "connection_restored": _does("is back"),
    "transfer_refused": _refused,
    "ante_posted": lambda t, e: Text(f"{t.does(e.seat, 'antes')} {t.figure(e.amount)}{_all_in(e)}"),
    "blind_posted": _posted,
    "bring_in_posted": lambda t, e: Text(f"{t.does(e.seat, 'brings in')} {t.figure(e.amount)}{_all_in(e)}"),
    "cards_dealt": _dealt,
    "board_dealt": lambda t, e: Text.assemble("Board ", t.cards(e.cards)),
    "checked": _does("checks"),
    "called": lambda t, e: Text(f"{t.does(e.seat, 'calls')} {t.figure(e.amount)}{_all_in(e)}"),
    "bet_made": lambda t, e: Text(f"{t.does(e.seat, 'bets')} {t.figure(e.to)}{_all_in(e)}"),
    "raised": lambda t, e: Text(
        f"{t.does(e.seat, 'completes to' if e.completes else 'raises to')} {t.figure(e.to)}{_all_in(e)}"
    ),
    "folded": _folded,
    "protection_used": lambda t, e: Text(f"{t.does(e.seat, 'is')} away: all-in for what is in"),
    "cards_discarded": _discarded,
    "cards_drawn": _drawn,
    "deck_reshuffled": lambda t, e: Text("The discards are shuffled back"),
    "dealing_fault_ruled": lambda t, e: Text(f"Dealing fault: {e.procedure.lower().replace('_', ' ')}", "bold"),
    "split_offered": _does("offers a split"),
    "split_answered": lambda t, e: Text(t.does(e.seat, "accepts the split" if e.accepted else "refuses the split")),
    "uncalled_returned": lambda t, e: Text(f"{t.figure(e.amount)} uncalled back to {t.who(e.seat)}"),
    "hand_shown": _shown,
    "hand_mucked": _does("mucks"),
    "pot_awarded": _awarded,
    "rake_taken": lambda t, e: Text(f"Rake {t.figure(e.amount)}") if e.amount else None,
    "hand_voided": _voided,
    "table_paused": _floor("The floor pauses the table"),
    "table_resumed": _floor("The table goes on"),
    "table_closed": _floor("The table is closed"),
    "ruling_recorded": _floor("Ruling of the floor"),
    "player_warned": _floor("warned"),
    "player_banned": _floor("banned"),
    "player_muted": _floor("muted in the talk"),
    "player_unmuted": _floor("may talk again"),
    "settings_changed": _floor("The floor changes the table's settings"),
    "owner_started": lambda t, e: (
        Text("The server crashed; another one runs the table now", "bold")
        if e.reason == pb.OWNER_REASON_CRASH
        else None
    ),
    "time_bank_used": lambda t, e: Text(f"{t.does(e.seat, 'uses')} {e.used_ms / 1000:.0f} s of the time bank"),
}
