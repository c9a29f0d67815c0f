"""How a hand moves from the deal to the draw to the betting and on to the next street. Used by `apply` only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Final

from relance.poker.games import HIGH, Opener
from relance.poker.hand import (
    ACTIVE,
    BET,
    BETTING,
    DEALING,
    DRAW,
    DRAWING,
    FOLDED,
    FROZEN,
    NOBODY,
    POST,
    SHOW,
    SHOWDOWN,
    SPLIT,
    Hand,
)
from relance.poker.pots import pots_of
from relance.poker.showdown import winners_of


def street_dealt(hand: Hand, version: int) -> None:
    """The street's cards are out: its betting round begins."""
    if hand.street == 1:
        hand.players_flop = hand.live()
    open_betting(hand, version)


def is_away(hand: Hand, at: int) -> bool:
    """Whether the player is not asked any more: artificially all-in (C2) or gone (S6)."""
    return hand.status[at] == FROZEN or bool(hand.absent >> at & 1)


def next_post(hand: Hand, version: int) -> None:
    """S7: who switched automatic posting off is asked in turn; the flow posts for the others."""
    hand.asked = NOBODY
    for at, posted in enumerate(hand.posted):
        if not posted and hand.status[at] != FOLDED:
            hand.turn = version
            if hand.asks_to_post >> at & 1:
                hand.asks, hand.asked = POST, at
            return
    hand.phase = DEALING


def next_drawer(hand: Hand, version: int) -> None:
    """D8: the next live player clockwise draws; after the last one betting opens."""
    status = hand.status
    for at in range(hand.drawer + 1, len(status)):
        state = status[at]
        if state != FOLDED:
            hand.drawer = at
            hand.asks = DRAW
            # Who is not asked stands pat (C2, G14); the flow says so for them.
            away = state == FROZEN or hand.absent >> at & 1
            silent = away or (not hand.terms.choose_all_in and status.count(ACTIVE) < 2)
            hand.asked = NOBODY if silent else at
            hand.turn = version
            return
    hand.drawer = NOBODY
    open_betting(hand, version)


def open_betting(hand: Hand, version: int) -> None:
    """A betting round begins, unless nobody can bet any more."""
    street = hand.streets[hand.street]
    terms = hand.terms
    hand.phase, hand.asks, hand.turn = BETTING, BET, version
    hand.barred, hand.barred_next = hand.barred_next, 0
    high = street.size == HIGH and not (terms.low_low and hand.game.two_round_draw)
    hand.sizes = (terms.high,) if high else (terms.low,)
    if street.open_pair and (terms.open_pair == "always" or (terms.open_pair == "pair" and shows_pair(hand))):
        hand.sizes = (terms.low, terms.high)
    hand.asked = NOBODY if hand.silent else first_to_act(hand)
    if hand.asked == NOBODY and not any(hand.bet):
        close_street(hand, version)
    else:
        hand.round = hand.street + 1


def close_street(hand: Hand, version: int) -> None:
    """On to the next street, or to the showdown."""
    hand.street += 1
    hand.received = 0
    hand.silent = hand.bring_in = False
    hand.asked = NOBODY
    if hand.street == len(hand.streets):
        hand.phase = SHOWDOWN
        ask_to_show(hand, version)
        return
    hand.phase = DEALING
    if hand.streets[hand.street].draw >= 0:
        hand.phase = DRAWING
        hand.drawer = NOBODY
        if hand.street == 1:
            hand.players_flop = hand.live()
        next_drawer(hand, version)


def next_answer(hand: Hand, version: int) -> None:
    """P1-P3: the next live player answers the split offer; after the last one the pots are decided."""
    count = len(hand.seats)
    answered = hand.accepted | hand.refused
    pots = pots_of(hand)
    if not hand.accepted or any(hand.refused >> at & 1 for at in pots[-1].eligible):
        # Nothing that is still bet for can be split: the offer failed.
        end_offer(hand, hand.answerer, version)
        return
    for step in range(1, count):
        at = (hand.answerer + step) % count
        if hand.status[at] == FOLDED or answered >> at & 1:
            continue
        hand.answerer, hand.turn = at, version
        # Who has chips may also bet: that refuses. Disconnection refuses at once; the flow says so.
        hand.asks = BET if hand.status[at] == ACTIVE else SPLIT
        hand.asked = NOBODY if is_away(hand, at) else at
        return
    hand.offering, hand.offer_over, hand.asked = False, True, NOBODY
    hand.agreed = tuple(
        number for number, pot in enumerate(pots) if all(hand.accepted >> at & 1 for at in pot.eligible)
    )


def end_offer(hand: Hand, at: int, version: int) -> None:
    """P2: the offer failed; an offer or acceptance counts as a check, and play goes on from the refuser."""
    hand.offering, hand.offer_over = False, not hand.terms.offer_stays
    for other, status in enumerate(hand.status):
        if status == ACTIVE and hand.accepted >> other & 1:
            hand.faced[other] = hand.current
    hand.accepted = hand.refused = 0
    hand.asks, hand.asked, hand.turn = BET, hand.next_to_act(at - 1), version


def first_to_act(hand: Hand) -> int:
    """Position of the first to act in this street's round (G1-G10); NOBODY when no betting is possible."""
    opener = hand.streets[hand.street].opens
    choose = _BY_CARDS.get(opener)
    if choose is None:
        return hand.next_to_act(_AFTER[opener](hand))
    able = [at for at, status in enumerate(hand.status) if status == ACTIVE]
    if len(able) < 2:
        return NOBODY
    hand.bring_in = opener in _BRINGS_IN and hand.terms.bring_in > 0
    return choose(hand, able)


def shows_pair(hand: Hand) -> bool:
    """Whether a live player shows a pair (G11)."""
    return any(
        len({card >> 2 for card in cards}) < len(cards) for at, cards in enumerate(hand.up) if hand.status[at] != FOLDED
    )


def showing_order(hand: Hand) -> list[int]:
    """Positions of the live players in the order in which they show (G14)."""
    first = hand.last_aggressor
    if first == NOBODY or hand.status[first] == FOLDED:
        first = _AFTER[hand.game.shows_first](hand) + 1
    count = len(hand.seats)
    return [at % count for at in range(first, first + count) if hand.status[at % count] != FOLDED]


def ask_to_show(hand: Hand, version: int) -> None:
    """Ask the next player in order, if they want to be asked and have a choice (G14, F6)."""
    hand.asked = NOBODY
    if not hand.asks_to_muck or hand.turned_up:
        return
    hand.asks = SHOW
    claims = {at for number, pot in enumerate(pots_of(hand)) if number not in hand.agreed for at in pot.eligible}
    for turn, at in enumerate(at for at in showing_order(hand) if at in claims):
        if (hand.shown | hand.mucked) >> at & 1:
            continue
        choice = hand.terms.show_all or (turn > 0 and at not in winners_of(hand))
        if choice and hand.asks_to_muck >> at & 1:
            hand.asked, hand.turn = at, version
        return


def _big_blind(hand: Hand) -> int:
    return hand.index.get(hand.big_blind, NOBODY)


def _button(hand: Hand) -> int:
    return NOBODY


def _lowest_card(hand: Hand, able: list[int]) -> int:
    """G9: the lowest rank, ties by suit; that is the order of card numbers."""
    return min(able, key=lambda at: hand.up[at][0])


def _highest_card(hand: Hand, able: list[int]) -> int:
    return max(able, key=lambda at: (_low_rank(hand.up[at][0]), hand.up[at][0] & 3))


def _highest_showing(hand: Hand, able: list[int]) -> int:
    """G10: pairs and more, then high cards; equal showings: nearest the left of the button."""
    return _HIGH.best(hand.up, able)


def _lowest_showing(hand: Hand, able: list[int]) -> int:
    return _LOW.best(hand.up, able)


def _low_rank(card: int) -> int:
    """Rank with the ace low."""
    return ((card >> 2) + 1) % 13


class _Showing:
    """The order of showing hands of one to four cards, by their ranks: quads, trips, two pair, pair, high cards."""

    def __init__(self, rank: Callable[[int], int], *, highest: bool) -> None:
        # The sum of such weights tells how often each rank occurs.
        self._weights = [5 ** rank(card) for card in range(52)]
        hands = [ranks for count in range(1, 5) for ranks in combinations_with_replacement(range(13), count)]
        hands.sort(key=_strength)
        places = hands if highest else reversed(hands)
        self._order = {sum(5**rank for rank in ranks): place for place, ranks in enumerate(places)}

    def best(self, showing: Sequence[tuple[int, ...]], able: Sequence[int]) -> int:
        """Who of `able`, rising positions, shows the best hand, the first of equals; all show as many cards."""
        weight, order = self._weights.__getitem__, self._order
        first, best = NOBODY, -1
        for at in able:
            place = order[sum(map(weight, showing[at]))]
            if place > best:
                first, best = at, place
        return first


def _strength(ranks: tuple[int, ...]) -> tuple[int, list[int]]:
    """First what the ranks make, then the ranks, the most frequent first."""
    grouped = sorted(ranks, key=lambda rank: (ranks.count(rank), rank), reverse=True)
    return sum(ranks.count(rank) for rank in ranks), grouped


_HIGH: Final = _Showing(lambda card: card >> 2, highest=True)
_LOW: Final = _Showing(_low_rank, highest=False)
_AFTER: Final[dict[Opener, Callable[[Hand], int]]] = {
    Opener.LEFT_OF_BIG_BLIND: _big_blind,
    Opener.LEFT_OF_BUTTON: _button,
}
_BY_CARDS: Final[dict[Opener, Callable[[Hand, list[int]], int]]] = {
    Opener.BRING_IN: _lowest_card,
    Opener.HIGH_CARD_BRINGS_IN: _highest_card,
    Opener.HIGHEST_SHOWING: _highest_showing,
    Opener.LOWEST_SHOWING: _lowest_showing,
}
_BRINGS_IN: Final = frozenset({Opener.BRING_IN, Opener.HIGH_CARD_BRINGS_IN})
