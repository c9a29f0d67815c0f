"""The cards of a hand as its log tells them: the deck that `decide` is given when a hand is decided a second time.

What was dealt is known, with its place in the deck; what was not dealt was never written anywhere. Where no places are
written (decks without commitments) they follow from the order of dealing, which is followed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.poker.cards import NAMES, parse
from relance.poker.deck import SALT_BYTES, commitment

UNKNOWN = -1
"""A card that was never dealt: equal to none."""
DIGEST_BYTES = 32


class DeckFault(Exception):
    """The cards of a hand contradict each other, or what the hand committed to. `version`: of the event."""

    def __init__(self, version: int, text: str) -> None:
        super().__init__(text)
        self.version = version


@dataclass(slots=True)
class LoggedCards:
    """A CardSource. `proven`: cards that were checked against the commitments.

    Made of all events of a hand, or of those there are so far. Raises DeckFault for a card whose salt does not prove
    it, for a place with two cards.
    """

    deck_size: int = 0
    proven: int = 0
    _known: dict[int, int] = field(default_factory=dict)
    _salts: dict[int, bytes] = field(default_factory=dict)
    _passed: dict[int, set[int]] = field(default_factory=dict)
    """Places that were passed over in a draw, and which cards may lie there: discarded by whoever drew (D6)."""
    _commitments: bytes = b""
    _began: bytes = b""
    _restocks: dict[int, bytes] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)
    """Where a restock begins -> version of its event."""
    _stub: list[int] = field(default_factory=list)
    _end: int = 0
    _owed: int = 0
    _gone: dict[int, list[int]] = field(default_factory=dict)
    _drawer: int = 0

    @staticmethod
    def of(events: Iterable[pb.TableEvent]) -> LoggedCards:
        """The cards that these events of one hand tell."""
        cards = LoggedCards()
        run: list[pb.TableEvent] = []
        for event in events:
            kind = event.WhichOneof("payload")
            if kind == "cards_dealt" and all(event.cards_dealt.seat != other.cards_dealt.seat for other in run):
                run.append(event)
                continue
            if run:  # a street is over: the next event is another, or deals a second time to somebody
                cards._deal(run)
                run = [event] if kind == "cards_dealt" else []
            step = _STEPS.get(kind or "")
            if step is not None:
                step(cards, event, getattr(event, str(kind)))
        if run:
            cards._deal(run)
        return cards

    # ---- CardSource

    def begin(self, deck: Sequence[int], *, commit: bool) -> bytes:
        """The commitments that were published. Raises DeckFault where a card was dealt that the deck does not have."""
        self._hold(range(len(deck)), set(deck), 0)
        return self._began if commit else b""

    def card(self, position: int) -> int:
        """The card at a place; one of those that it may be where it was passed over; else UNKNOWN."""
        found = self._known.get(position)
        if found is not None:
            return found
        return min(self._passed.get(position, ()), default=UNKNOWN)

    def salt(self, position: int) -> bytes:
        """The salt that was published with the card."""
        return self._salts.get(position, b"")

    def restock(self, first: int, cards: Sequence[int], undealt: Sequence[int]) -> bytes:
        """The commitments that were published. Raises DeckFault where a card came that had not come back."""
        count = len(cards) + len(undealt)
        allowed = set(cards) | {self._known[place] for place in undealt if place in self._known}
        unknown = len([place for place in undealt if place not in self._known])
        self._hold(range(first, first + count), allowed, unknown)
        return self._restocks.get(first, b"")

    def _hold(self, places: Sequence[int], allowed: set[int], unknown: int) -> None:
        seen: set[int] = set()
        for place in places:
            card = self._known.get(place)
            if card is None:
                continue
            if card in seen:
                raise DeckFault(0, f"{NAMES[card]} lies in the deck twice")
            seen.add(card)
            if card not in allowed:
                unknown -= 1
                if unknown < 0:
                    raise DeckFault(0, f"{NAMES[card]} was dealt; it was not in the stub")

    # ---- from the events

    def _started(self, event: pb.TableEvent, started: pb.HandStarted) -> None:
        self.deck_size = self._end = started.deck_size
        self._stub = list(range(started.deck_size))
        self._began = self._commitments = started.deck_commitments

    def _deal(self, run: Sequence[pb.TableEvent]) -> None:
        """Cards to several players, dealt one at a time round the table (D4)."""
        first = run[0].cards_dealt
        each = (len(first.down) + len(first.up)) // 2
        places = self._stub[: each * len(run)]
        for number, event in enumerate(run):
            dealt = event.cards_dealt
            own = list(dealt.positions) or places[number :: len(run)]
            self._learn(event, own, parse(dealt.down + dealt.up), dealt.down_salts + dealt.up_salts)
        del self._stub[: each * len(run)]

    def _board(self, event: pb.TableEvent, dealt: pb.BoardDealt) -> None:
        cards = parse(dealt.cards)
        self._learn(event, list(dealt.positions) or self._stub[: len(cards)], cards, dealt.salts)
        del self._stub[: len(cards)]

    def _burnt(self, event: pb.TableEvent, burnt: pb.CardBurnt) -> None:
        if burnt.position in self._stub:
            self._stub.remove(burnt.position)

    def _discarded(self, event: pb.TableEvent, discarded: pb.CardsDiscarded) -> None:
        self._drawer, self._owed = discarded.seat, discarded.count
        self._gone.setdefault(discarded.seat, []).extend(parse(discarded.cards))

    def _drawn(self, event: pb.TableEvent, drawn: pb.CardsDrawn) -> None:
        """What lies before a card that was drawn, or anywhere when there was not enough, are the drawer's own."""
        places = list(drawn.positions)
        self._learn(event, places, parse(drawn.cards), drawn.salts)
        self._owed -= drawn.count
        reached = max((self._stub.index(place) for place in places if place in self._stub), default=-1)
        passed = [place for place in (self._stub if self._owed > 0 else self._stub[:reached]) if place not in places]
        self._pass_over(passed, drawn.seat)
        for place in places:
            while place in self._stub and self._stub[0] != place:
                self._stub.append(self._stub.pop(0))
            del self._stub[:1]

    def _reshuffled(self, event: pb.TableEvent, shuffled: pb.DeckReshuffled) -> None:
        new = list(range(self._end, self._end + shuffled.count))
        self._restocks[self._end] = shuffled.deck_commitments
        self._places[self._end] = event.version
        self._end += shuffled.count
        self._commitments += shuffled.deck_commitments
        if shuffled.reason == "DISCARDS":
            self._pass_over(self._stub, self._drawer)
            self._stub = new + self._stub
        else:
            self._stub = new

    def _ruled(self, event: pb.TableEvent, ruled: pb.DealingFaultRuled) -> None:
        """F3, F4: cards that everyone saw before their time."""
        early = ruled.procedure in {"REDEAL_FLOP", "SET_ASIDE_TURN", "REDEAL_RIVER"}
        if not early or ruled.fault == pb.DEALING_FAULT_FLOP_TOO_MANY:
            return
        for place, card in zip(self._stub, parse(ruled.exposed), strict=False):
            self._put(event, place, card)
        if ruled.procedure == "SET_ASIDE_TURN":
            del self._stub[:1]

    def _shown(self, event: pb.TableEvent, shown: pb.HandShown) -> None:
        """The cards that were face down come with their places and salts a second time."""
        places = list(shown.positions)
        self._learn(event, places, parse(shown.cards)[: len(places)], shown.salts)

    def _pass_over(self, places: Iterable[int], seat: int) -> None:
        own = set(self._gone.get(seat, ()))
        for place in places:
            if place not in self._known:
                self._passed[place] = self._passed[place] & own if place in self._passed else own

    def _learn(self, event: pb.TableEvent, places: Sequence[int], cards: Sequence[int], salts: bytes) -> None:
        if len(places) < len(cards):
            raise DeckFault(event.version, f"{len(cards)} cards from {len(places)} places of the deck")
        for number, (place, card) in enumerate(zip(places, cards, strict=False)):
            self._put(event, place, card)
            salt = salts[number * SALT_BYTES : (number + 1) * SALT_BYTES]
            if not salt or not self._commitments:
                continue
            self._salts[place] = salt
            promised = self._commitments[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]
            if commitment(place, card, salt) != promised:
                raise DeckFault(event.version, f"{NAMES[card]} is not the card that place {place} was committed to")
            self.proven += 1

    def _put(self, event: pb.TableEvent, place: int, card: int) -> None:
        known = self._known.setdefault(place, card)
        if known != card:
            text = f"place {place} of the deck held {NAMES[known]} and then {NAMES[card]}"
            raise DeckFault(event.version, text)


# Each step takes its own payload message; the dispatch by name is what makes that type-safe.
_STEPS: Final[dict[str, Callable[[LoggedCards, pb.TableEvent, Any], None]]] = {
    "hand_started": LoggedCards._started,
    "board_dealt": LoggedCards._board,
    "card_burnt": LoggedCards._burnt,
    "cards_discarded": LoggedCards._discarded,
    "cards_drawn": LoggedCards._drawn,
    "deck_reshuffled": LoggedCards._reshuffled,
    "dealing_fault_ruled": LoggedCards._ruled,
    "hand_shown": LoggedCards._shown,
}
