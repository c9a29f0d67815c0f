"""The choices of the house rules: what the sources leave open is a named setting with its other readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.rejected import Rejected

Value = bool | int | str


@dataclass(frozen=True, slots=True)
class Choice:
    """A named setting.

    name and rule: as in the house rules; field: of TableRules; default: the reading that stands unless somebody says
    otherwise;
    words, or least and most: what is allowed, a switch has neither; games: where it matters, empty = everywhere.
    """

    name: str
    rule: str
    default: Value
    about: str
    words: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    field: str = ""
    games: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What may be set, for people."""
        if isinstance(self.default, bool):
            return "on, off"
        return ", ".join(self.words) if self.words else f"{self.least} to {self.most}"

    def accepts(self, value: object) -> bool:
        """Whether a value of the right type is allowed."""
        if isinstance(self.default, bool) or isinstance(value, bool):
            return isinstance(self.default, bool) and isinstance(value, bool)
        if isinstance(self.default, int):
            return isinstance(value, int) and self.least <= value <= self.most
        return isinstance(value, str) and value in self.words

    def parse(self, text: str) -> Value:
        """The value of a text. Raises Rejected FIELD_INVALID (metadata field, allowed)."""
        value: Value = text
        if isinstance(self.default, bool):
            value = {"on": True, "true": True, "off": False, "false": False}.get(text.casefold(), text)
        elif isinstance(self.default, int) and text.removeprefix("-").isdecimal() and len(text) <= 16:
            value = int(text)
        if self.accepts(value):
            return value
        raise Rejected(
            reason_pb2.REASON_FIELD_INVALID,
            f"choices[{self.name}]: {text!r} is not allowed ({self.rule}); allowed: {self.allowed}",
            {"field": f"choices.{self.name}", "allowed": self.allowed},
        )


CHOICES: Mapping[str, Choice] = {
    choice.name: choice
    for choice in (
        Choice("odd_chip_unit", "B13", 1, "unit of an odd chip, minor units", least=1, most=10_000),
        Choice("two_round_draw", "B3", "low_high", "bet sizes of two-round draw games", ("low_high", "low_low")),
        Choice("spread_raise", "B4", "at_least", "size of a raise in spread limit", ("at_least", "equal")),
        Choice("opening", "B14", "from_min", "opening bet of closed poker", ("from_min", "exact_min")),
        Choice("button_rule", "S2", "moving", "how the button moves", ("moving", "dead")),
        Choice("missed_big_blind", "S5", "live", "what a missed big blind is posted as", ("live", "dead")),
        Choice("rathole_minutes", "S8", 30, "minutes for which a leaver's stack counts, 0 = off", most=1440),
        Choice(
            "protections_per_24h",
            "C2",
            2,
            "artificial all-ins of a player in 24 hours, -1 = none, disconnection is leaving",
            least=-1,
            most=100,
        ),
        Choice("after_crash", "C3", "cash_out", "what becomes of the seats", ("cash_out", "keep_seats")),
        Choice(
            "fourth_street_high",
            "G11",
            "never",
            "when stud offers the high bet early",
            ("pair", "always", "never"),
            games=("stud7", "stud5"),
        ),
        Choice("stand_pat_penalty", "G12", True, "who misses the draw clock may not bet or raise in the next round"),
        Choice("check_after_exchange", "G13", False, "closed poker allows checks after the exchange"),
        Choice("all_in_exchange", "G14", "choose", "exchange when all are all-in", ("choose", "stand_pat")),
        Choice("ace_low_straight", "H8", True, "the ace also plays low under a stripped deck's lowest rank"),
        Choice("four_card_hands", "H9", False, "Soko counts four-card straights and flushes"),
        Choice("deck_policy", "D2", "table", "deck of closed poker by players dealt in", ("table", "talon")),
        Choice("burn_cards", "D5", False, "a card is burnt before flop, turn and river"),
        Choice("exposed_card", "F1", "replaced", "a hole card exposed by the dealer", ("replaced", "owner_chooses")),
        Choice("early_turn_betting", "F4", "finish", "betting when the turn came early", ("finish", "stop")),
        Choice("split_after_action", "P1", "ends", "a split offer after a refusal", ("ends", "stays")),
        Choice(
            "disconnect_grace",
            "S6",
            0,
            "seconds of disconnection that count as leaving, 0 = off",
            most=3600,
            field="disconnect_grace_seconds",
        ),
        Choice("showdown", "G14", "order", "who shows: by order, or every live hand", ("order", "all")),
        Choice("away_hands", "", 0, "hands a player may be away before losing the seat, 0 = no limit", most=10_000),
        Choice("deck_commitments", "", True, "each hand commits to its deck by salted hashes"),
    )
}
"""Every choice by its name."""


def table_rules(values: Mapping[str, Value]) -> game_pb2.TableRules:
    """The choices as a table's configuration carries them."""
    rules = game_pb2.TableRules()
    for name, value in values.items():
        setattr(rules, CHOICES[name].field or name, value)
    return rules
