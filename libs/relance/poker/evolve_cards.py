"""What the events that move cards do to a hand: deal, draw, burn, reshuffle, dealing faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import NAMES, parse
from relance.poker.hand import DEALING, FOLDED, NOBODY, Hand
from relance.poker.rounds import next_drawer, street_dealt
from relance.poker.table import Table

CARDS: Final[dict[str, tuple[int, ...]]] = {
    **{name: (card,) for card, name in enumerate(NAMES)},
    **{a + b: (n, m) for n, a in enumerate(NAMES) for m, b in enumerate(NAMES) if a != b},
}
"""One and two cards by their text: most of what is dealt."""


def running(table: Table) -> Hand:
    """The running hand, which the log says there is."""
    hand = table.hand
    assert hand is not None, f"{table.id}@{table.version}: an event of a hand outside hands"
    return hand


def _cards_dealt(table: Table, dealt: pb.CardsDealt, event: pb.TableEvent) -> None:
    hand = table.hand
    assert hand is not None
    at = hand.index[dealt.seat]
    down, up = dealt.down, dealt.up
    if hand.terms.commitments:
        keep_salts(hand, at, dealt)
    else:
        # Two letters a card.
        del hand.stub[: len(down + up) // 2]
    if down:
        hand.down[at] += CARDS.get(down) or tuple(parse(down))
    if up:
        hand.up[at] += CARDS.get(up) or tuple(parse(up))
    received(hand, 1, table.version)


def keep_salts(hand: Hand, at: int, dealt: pb.CardsDealt) -> None:
    """Take dealt cards out of a stub that is committed to; what opens the down cards is kept until they are shown."""
    positions, salts = list(dealt.positions), dealt.down_salts
    for position in positions:
        hand.stub.remove(position)
    hand.places[at] += tuple(positions[: len(dealt.down) // 2])
    hand.salts[at] += tuple(salts[n : n + 16] for n in range(0, len(salts), 16))


def received(hand: Hand, players: int, version: int) -> None:
    """So many more players have the street's cards; when all have them its betting begins."""
    if hand.phase == DEALING:
        hand.received += players
        if hand.received == len(hand.status) - hand.status.count(FOLDED):
            street_dealt(hand, version)


def _board_dealt(table: Table, dealt: pb.BoardDealt, event: pb.TableEvent) -> None:
    hand = running(table)
    cards = parse(dealt.cards)
    del hand.stub[: len(cards)]
    hand.board += tuple(cards)
    hand.burnt = False
    # A card for the middle where the street gives one to each player: the community card of D7.
    hand.silent = not hand.streets[hand.street].board
    street_dealt(hand, table.version)


def _card_burnt(table: Table, burnt: pb.CardBurnt, event: pb.TableEvent) -> None:
    hand = running(table)
    hand.stub.remove(burnt.position)
    hand.burnt = True


def _cards_discarded(table: Table, discarded: pb.CardsDiscarded, event: pb.TableEvent) -> None:
    hand = table.hand
    assert hand is not None
    at = hand.index[discarded.seat]
    count = discarded.count
    if count:
        cards = parse(discarded.cards)
        kept = [n for n, card in enumerate(hand.down[at]) if card not in cards]
        if hand.places[at]:
            hand.places[at] = tuple(hand.places[at][n] for n in kept)
            hand.salts[at] = tuple(hand.salts[at][n] for n in kept)
        hand.down[at] = tuple(hand.down[at][n] for n in kept)
        hand.gone[at] += tuple(cards)
        hand.muck += cards
    if hand.terms.stand_pat_penalty and discarded.timed_out:
        hand.barred_next |= 1 << at
    if count:
        hand.owed, hand.asked = count, NOBODY
    else:
        stood_pat(hand, at, table.version)


def stood_pat(hand: Hand, at: int, version: int) -> None:
    """D8: the player keeps all cards; the next one draws."""
    hand.owed = 0
    next_drawer(hand, version)


def _cards_drawn(table: Table, drawn: pb.CardsDrawn, event: pb.TableEvent) -> None:
    """D6: cards that were passed over go to the bottom of the stub."""
    hand = running(table)
    at = hand.index[drawn.seat]
    for position in drawn.positions:
        while hand.stub[0] != position:
            hand.stub.append(hand.stub.pop(0))
        del hand.stub[0]
    hand.down[at] += tuple(parse(drawn.cards))
    if drawn.salts:
        hand.places[at] += tuple(drawn.positions)
        hand.salts[at] += tuple(drawn.salts[n : n + 16] for n in range(0, len(drawn.salts), 16))
    hand.owed -= drawn.count
    if hand.owed <= 0:
        next_drawer(hand, table.version)


def _deck_reshuffled(table: Table, shuffled: pb.DeckReshuffled, event: pb.TableEvent) -> None:
    """D2, D6, F3, F4: cards came back; the new stub lies at new positions."""
    hand = running(table)
    new = list(range(hand.deck_end, hand.deck_end + shuffled.count))
    hand.deck_end += shuffled.count
    if shuffled.reason == "DISCARDS":
        own = hand.gone[hand.drawer]
        hand.muck = [card for card in hand.muck if card in own]
        hand.stub = new + hand.stub
    elif shuffled.reason == "PLAYERS":
        hand.stub, hand.deck = new, shuffled.count
    else:
        # The burn card stays down, the next card comes without another (F3, F4).
        hand.stub, hand.burnt = new, True
        hand.restock_at, hand.set_aside = NOBODY, ()


def _dealing_fault_ruled(table: Table, ruled: pb.DealingFaultRuled, event: pb.TableEvent) -> None:
    """F1-F5. What follows (burn, replacement, reshuffle, void) stands in events of its own."""
    hand = running(table)
    if ruled.procedure == "REPLACE":
        at = hand.index[ruled.seat]
        hand.down[at] = hand.down[at][:-1]
        hand.places[at], hand.salts[at] = hand.places[at][:-1], hand.salts[at][:-1]
        hand.burnt = True
    elif ruled.procedure == "REDEAL_FLOP":
        hand.restock_at = 1
        if hand.board:
            hand.set_aside, hand.board = hand.board, ()
            hand.phase, hand.asked, hand.received = DEALING, NOBODY, 0
    elif ruled.procedure == "SET_ASIDE_TURN":
        hand.set_aside = tuple(parse(ruled.exposed))
        del hand.stub[0]
        hand.restock_at, hand.burnt = 3, False
        if hand.terms.early_turn_stops:
            hand.asked = NOBODY
    elif ruled.procedure == "REDEAL_RIVER":
        hand.restock_at = 3


CARD_APPLIERS: Final[dict[str, Callable[[Table, Any, pb.TableEvent], None]]] = {
    "cards_dealt": _cards_dealt,
    "board_dealt": _board_dealt,
    "card_burnt": _card_burnt,
    "cards_discarded": _cards_discarded,
    "cards_drawn": _cards_drawn,
    "deck_reshuffled": _deck_reshuffled,
    "dealing_fault_ruled": _dealing_fault_ruled,
}
"""What each event of the cards does, by the name of its payload."""
