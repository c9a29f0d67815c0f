"""The terms of a table: its configuration as plain values, ready for play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.poker.games import GAMES, Game
from relance.poker.limits import LIMITS, Limit
from relance.poker.rejected import Rejected

RULES_VERSION: Final = 1
"""Version of the rules that HandStarted records. Raised when the same log would play differently."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a hand is played by. Amounts in minor units; RULES ids at the fields of TableRules."""

    game: Game
    limit: Limit
    blinds: tuple[int, ...]
    ante: int
    bring_in: int
    low: int
    high: int
    min_bet: int
    max_bet: int
    spread_max: tuple[int, ...]
    bets_cap: int
    unit: int
    decision_ms: int
    draw_ms: int
    answer_ms: int
    time_bank_ms: int
    reservation_us: int
    grace_us: int
    private: bool
    low_low: bool
    raise_equal: bool
    opening_exact: bool
    dead_button: bool
    missed_dead: bool
    rathole_us: int
    protections: bool
    keep_seats: bool
    open_pair: str
    stand_pat_penalty: bool
    check_after_exchange: bool
    choose_all_in: bool
    ace_low: bool
    four_card: bool
    talon: bool
    burn: bool
    owner_chooses: bool
    early_turn_stops: bool
    offer_stays: bool
    show_all: bool
    away_hands: int
    commitments: bool
    raked: bool

    @property
    def big_blind(self) -> int:
        """The big blind, or what stands for it where there is none (B15)."""
        return self.blinds[-1] if self.blinds else self.min_bet


TABLE_DECKS: Final = {2: 32, 3: 32, 4: 32, 5: 36, 6: 40, 7: 44, 8: 48}
TALON_DECKS: Final = {2: 32, 3: 32, 4: 32, 5: 40, 6: 44, 7: 48, 8: 52}


def deck_size(terms: Terms, players: int) -> int:
    """Cards in the deck: the game's, or by the number of players dealt in (D1, D2)."""
    return terms.game.deck or (TALON_DECKS if terms.talon else TABLE_DECKS)[players]


def terms_of(config: game_pb2.TableConfig) -> Terms:
    """Read a configuration. Raises Rejected FIELD_INVALID (metadata field, allowed) where it makes no game."""
    game = GAMES.get(config.game)
    if game is None:
        raise _invalid("game", f"no game {config.game!r}", ", ".join(GAMES))
    limit = LIMITS.get(config.limit)
    if limit is None:
        raise _invalid("limit", "no limit given", ", ".join(sorted(row.id for row in LIMITS.values())))
    if not 2 <= config.seats <= game.seats:
        raise _invalid("seats", f"{game.name} has 2 to {game.seats} seats, not {config.seats}", f"2..{game.seats}")
    stakes, rules, timers = config.stakes, config.rules, config.timers
    blinds = tuple(stakes.blinds)
    low = stakes.low_limit or (blinds[-1] if blinds else 0) or stakes.min_bet or stakes.ante
    if low <= 0:
        raise _invalid("stakes", "no blinds, no ante, no low limit", "a positive big blind, low limit or ante")
    if any(blind <= 0 for blind in blinds) or list(blinds) != sorted(blinds):
        raise _invalid("stakes.blinds", "blinds are positive and rise", "from the smallest to the big blind")
    if stakes.bring_in and stakes.bring_in >= low:
        raise _invalid("stakes.bring_in", "the bring-in is below the low limit (G9)", f"1..{low - 1}")
    return Terms(
        game=game,
        limit=limit,
        blinds=blinds,
        ante=stakes.ante,
        bring_in=stakes.bring_in,
        low=low,
        high=stakes.high_limit or 2 * low,
        min_bet=blinds[-1] if blinds else stakes.min_bet or low,
        max_bet=stakes.max_bet,
        spread_max=tuple(stakes.spread_max),
        bets_cap=stakes.bets_cap,
        unit=rules.odd_chip_unit or 1,
        decision_ms=timers.decision_ms or 20_000,
        draw_ms=timers.draw_ms or 30_000,
        answer_ms=timers.answer_ms or 5_000,
        time_bank_ms=timers.time_bank_ms,
        reservation_us=timers.reservation_ms * 1000,
        grace_us=rules.disconnect_grace_seconds * 1_000_000,
        private=config.private,
        low_low=rules.two_round_draw == "low_low",
        raise_equal=rules.spread_raise == "equal",
        opening_exact=rules.opening == "exact_min",
        dead_button=rules.button_rule == "dead",
        missed_dead=rules.missed_big_blind == "dead",
        rathole_us=rules.rathole_minutes * 60_000_000,
        protections=rules.protections_per_24h > 0,
        keep_seats=rules.after_crash == "keep_seats",
        open_pair=rules.fourth_street_high or "never",
        stand_pat_penalty=rules.stand_pat_penalty,
        check_after_exchange=rules.check_after_exchange,
        choose_all_in=rules.all_in_exchange != "stand_pat",
        ace_low=rules.ace_low_straight,
        four_card=rules.four_card_hands,
        talon=rules.deck_policy == "talon",
        burn=rules.burn_cards,
        owner_chooses=rules.exposed_card == "owner_chooses",
        early_turn_stops=rules.early_turn_betting == "stop",
        offer_stays=rules.split_after_action == "stays",
        show_all=rules.showdown == "all",
        away_hands=rules.away_hands,
        commitments=rules.deck_commitments,
        raked=config.currency == game_pb2.CURRENCY_EUR,
    )


def _invalid(field: str, message: str, allowed: str) -> Rejected:
    return Rejected(reason_pb2.REASON_FIELD_INVALID, message, {"field": field, "allowed": allowed})
