"""What follows when nobody is asked: deal, draw, end the round, show down, until somebody must act."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import FULL_DECK, NAMES, render
from relance.poker.departures import between_hands
from relance.poker.draft import Draft
from relance.poker.evolve_cards import keep_salts, received
from relance.poker.evolve_hand import ante_posted, round_ended
from relance.poker.games import Street
from relance.poker.hand import BETTING, DEALING, DRAWING, FOLDED, NOBODY, POSTING, SHOWDOWN, Hand
from relance.poker.pots import uncalled
from relance.poker.settle import show_down, show_hand, uncontested, void_hand
from relance.poker.terms import deck_size


def run(draft: Draft) -> None:
    """Decide everything up to the next question or the end of the hand."""
    while True:
        hand = draft.table.hand
        if hand is None:
            return
        if hand.phase in _BETWEEN_ROUNDS:
            turn_up(draft)
        if hand.asked != NOBODY:
            return
        if hand.live() < 2:
            _too_few(draft)
        else:
            _STEPS[hand.phase](draft)


def _too_few(draft: Draft) -> None:
    """The last player takes the pots; a hand that too few posted for is void, unless somebody forfeits an ante (S6)."""
    hand = draft.hand
    forfeited = any(hand.put[at] for at, status in enumerate(hand.status) if status == FOLDED)
    if hand.phase == POSTING and not forfeited:
        void_hand(draft, pb.VOID_REASON_NOT_ENOUGH_PLAYERS)
        between_hands(draft)
    else:
        uncontested(draft)


def _post(draft: Draft) -> None:
    """The ante of the next player who is not asked (S7)."""
    hand = draft.hand
    at = next(at for at, posted in enumerate(hand.posted) if not posted and hand.status[at] != FOLDED)
    post_antes(draft, (at,))


def post_antes(draft: Draft, positions: Sequence[int]) -> None:
    """B9: what the stacks cover. When all have posted, the deck is that for the players who did (D2)."""
    hand = draft.hand
    full, stacks, seats = hand.terms.ante, hand.stack, hand.seats
    for event, at in zip(draft.blanks(hand, len(positions)), positions, strict=True):
        stack = stacks[at]
        amount = full if full < stack else stack
        ante = event.ante_posted
        ante.seat, ante.amount = seats[at], amount
        if amount == stack:
            ante.all_in = True
        ante_posted(hand, at, amount, event.version)


def _fit_deck(draft: Draft) -> bool:
    """D2: the deck is counted after antes."""
    hand = draft.hand
    if hand.street:
        return False
    size = deck_size(hand.terms, hand.live())
    if size == hand.deck:
        return False
    hashes = draft.cards.restock(hand.deck_end, FULL_DECK[52 - size :], ())
    draft.emit("deck_reshuffled", count=size, deck_commitments=hashes, reason="PLAYERS")
    return True


def _restock(draft: Draft) -> None:
    """F3, F4: set-aside cards go back, the stub is shuffled and cut."""
    hand = draft.hand
    reason = "FLOP" if hand.street == 1 else "TURN" if hand.set_aside else "RIVER"
    hashes = draft.cards.restock(hand.deck_end, hand.set_aside, hand.stub)
    count = len(hand.set_aside) + len(hand.stub)
    draft.emit("deck_reshuffled", count=count, deck_commitments=hashes, reason=reason)


def _deal(draft: Draft) -> None:
    """The cards of the street (D4, D5, D7)."""
    hand = draft.hand
    street = hand.streets[hand.street]
    if _fit_deck(draft):
        return
    if street.board:
        if hand.restock_at == hand.street:
            _restock(draft)
        if hand.terms.burn and not hand.burnt:
            draft.emit("card_burnt", position=hand.stub[0])
        _deal_board(draft, street.board)
        return
    each = street.down + street.up
    live = [at for at, status in enumerate(hand.status) if status != FOLDED]
    if len(hand.stub) < each * len(live):
        _deal_board(draft, each)
    else:
        _deal_round(draft, street, live)


def _deal_round(draft: Draft, street: Street, live: list[int]) -> None:
    """D4: one card at a time, clockwise; each player's cards are one event."""
    hand, cards = draft.hand, draft.cards
    seats, commit = hand.seats, hand.terms.commitments
    down, up, count = street.down, street.up, len(live)
    stub = hand.stub[: (down + up) * count]
    drawn = tuple([cards.card(place) for place in stub])
    names = [NAMES[card] for card in drawn]
    if not commit:
        del hand.stub[: len(stub)]
        if down + up == 1:
            _deal_one_each(draft, live, drawn, names, face_down=down == 1)
            return
    for number, (at, event) in enumerate(zip(live, draft.blanks(hand, count), strict=True)):
        dealt = event.cards_dealt
        dealt.seat = seats[at]
        text = names[number::count]
        if down:
            dealt.down, dealt.down_count = "".join(text[:down]), down
        if up:
            dealt.up = "".join(text[down:])
        if commit:
            places = stub[number::count]
            dealt.positions.extend(places)
            dealt.down_salts = b"".join([cards.salt(place) for place in places[:down]])
            dealt.up_salts = b"".join([cards.salt(place) for place in places[down:]])
            keep_salts(hand, at, dealt)
        taken = drawn[number::count]
        if down:
            hand.down[at] += taken[:down]
        if up:
            hand.up[at] += taken[down:]
    received(hand, count, draft.table.version)


def _deal_one_each(
    draft: Draft, live: list[int], drawn: Sequence[int], names: Sequence[str], *, face_down: bool
) -> None:
    """What `_deal_round` does where nothing is committed to and everybody gets one card."""
    hand = draft.hand
    seats, hands = hand.seats, hand.down if face_down else hand.up
    for event, at, card, name in zip(draft.blanks(hand, len(live)), live, drawn, names, strict=True):
        dealt = event.cards_dealt
        dealt.seat = seats[at]
        if face_down:
            dealt.down, dealt.down_count = name, 1
        else:
            dealt.up = name
        hands[at] += (card,)
    received(hand, len(live), draft.table.version)


def _deal_board(draft: Draft, count: int) -> None:
    hand, cards = draft.hand, draft.cards
    places = hand.stub[:count]
    board = render([cards.card(place) for place in places])
    if hand.terms.commitments:
        salts = b"".join(cards.salt(place) for place in places)
        draft.emit("board_dealt", cards=board, positions=places, salts=salts)
    else:
        draft.emit("board_dealt", cards=board)


def _draw(draft: Draft) -> None:
    """D6: replacement cards; the stub to its last card, then everybody else's discards. Nobody gets their own back."""
    hand, cards = draft.hand, draft.cards
    at = hand.drawer
    if not hand.owed:
        draft.emit("cards_discarded", seat=hand.seats[at])
        return
    own = hand.gone[at]
    places = [place for place in hand.stub if cards.card(place) not in own][: hand.owed]
    if not places:
        back = [card for card in hand.muck if card not in own]
        assert back, f"{draft.table.id}: no card is left for seat {hand.seats[at]}"
        hashes = cards.restock(hand.deck_end, back, ())
        draft.emit("deck_reshuffled", count=len(back), deck_commitments=hashes, reason="DISCARDS")
        return
    draft.emit(
        "cards_drawn",
        seat=hand.seats[at],
        count=len(places),
        cards=render([cards.card(place) for place in places]),
        positions=places,
        salts=b"".join(cards.salt(place) for place in places),
    )


def _end_round(draft: Draft) -> None:
    """Uncalled chips go back (B11), the bets are the pot's; hands are turned up when no more betting can come (G14)."""
    hand = draft.hand
    if hand.offering:
        draft.emit("split_answered", seat=hand.seats[hand.answerer], accepted=False)
        return
    return_uncalled(draft)
    ended = draft.blank(hand).round_ended
    ended.round, ended.pot = hand.round, hand.pot
    round_ended(hand, draft.table.version)


def turn_up(draft: Draft) -> None:
    """Show live hands at once when no more betting is possible and cards are still to come (G14)."""
    hand = draft.hand
    if hand.turned_up or not hand.street or not hand.game.turn_up or hand.able() > 1 or hand.live() < 2:
        return
    for at in range(len(hand.seats)):
        if hand.is_live(at):
            show_hand(draft, at, describe=False)


def return_uncalled(draft: Draft) -> None:
    """B11: what nobody matched in this round goes back."""
    hand: Hand = draft.hand
    at, amount = uncalled(hand)
    if amount:
        draft.emit("uncalled_returned", seat=hand.seats[at], amount=amount)


_BETWEEN_ROUNDS: Final = frozenset({DEALING, DRAWING})
_STEPS: Final[dict[int, Callable[[Draft], None]]] = {
    DEALING: _deal,
    DRAWING: _draw,
    BETTING: _end_round,
    SHOWDOWN: show_down,
    POSTING: _post,
}
