"""What holds in every hand of every game: hypothesis plays at random and looks for the hand in which it does not."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.poker import playing
from tests.poker.playing import Room, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import (
    Prompt,
    Rejected,
    Table,
    apply,
    initial,
    prompt,
    public_bytes,
    ready_to_start,
    redact,
    snapshot,
    view,
)
from relance.poker import commands as cmd
from relance.poker.cards import NAMES, parse
from relance.poker.deck import VirtualDeck, commitment
from relance.poker.games import GAMES, Forced
from relance.poker.ranking import RANKINGS

KNOWN = [name for name in GAMES if GAMES[name].high.ranking.format(deck=32) in RANKINGS]
LIMITS = [playing.FIXED, playing.SPREAD, playing.POT, playing.HALF_POT, playing.NO_LIMIT]
RAISES = (playing.BET, playing.RAISE, playing.COMPLETE)


def stakes_of(game: str) -> game_pb2.Stakes:
    """Stakes that fit a game's forced bets."""
    forced = GAMES[game].forced
    if forced is Forced.BLINDS:
        return game_pb2.Stakes(blinds=[50, 100], low_limit=100, high_limit=200, spread_max=[100, 100, 200, 300])
    if forced is Forced.BRING_IN:
        return game_pb2.Stakes(ante=20, bring_in=40, low_limit=100, high_limit=200, spread_max=[100, 100, 200, 300])
    return game_pb2.Stakes(ante=20, min_bet=100)


class Player:
    """Plays a room at random: legal actions mostly, leaving, timing out and losing connections now and then."""

    def __init__(self, seed: int, game: str, limit: game_pb2.Limit.ValueType, *, commitments: bool = False) -> None:
        self.random = rnd = random.Random(seed)
        rules = game_pb2.TableRules(
            protections_per_24h=rnd.choice([-1, 2]),
            stand_pat_penalty=rnd.random() < 0.5,
            fourth_street_high=rnd.choice(["pair", "always", "never"]),
            split_after_action=rnd.choice(["ends", "stays"]),
            burn_cards=rnd.random() < 0.2,
            showdown=rnd.choice(["", "all"]),
            button_rule=rnd.choice(["moving", "dead"]),
            odd_chip_unit=rnd.choice([1, 1, 25]),
            deck_commitments=commitments,
            ace_low_straight=True,
        )
        count = rnd.randint(2, min(GAMES[game].seats, 8))
        stacks = [rnd.choice([15, 60, 130, 999, 5000, 20000]) for _ in range(count)]
        self.room: Room = room(stacks, game, limit, stakes=stakes_of(game), rules=rules, button=None)
        for seat in list(self.room.table.seats.values()):
            if rnd.random() < 0.3:
                post, muck = rnd.random() < 0.5, rnd.random() < 0.5
                self.room.do(cmd.SetPreferences(seat.player, auto_post=post, auto_muck=muck))

    def hand(self) -> None:
        """Start a hand and play it to its end."""
        made, rnd = self.room, self.random
        made.cards = VirtualDeck(rnd.shuffle, rnd.randbytes)
        made.do(cmd.StartHand())
        for _ in range(1000):
            asked = prompt(made.table)
            if asked is None:
                break
            self.step(asked)
        assert made.table.hand is None, "a hand always ends"

    def step(self, asked: Prompt) -> None:
        """One thing that happens."""
        made, rnd = self.room, self.random
        chance = rnd.random()
        if chance < 0.03:
            seat = rnd.choice(list(made.table.seats.values()))
            if not seat.leaving:
                made.do(cmd.LeaveSeat(seat.player))
            return
        if chance < 0.08:
            made.do(cmd.Timeout(asked.turn, rnd.random() < 0.5, rnd.random() < 0.7))
            return
        if chance < 0.1:
            self.beyond(asked)
        kind = rnd.choice(asked.offer.actions)
        if kind == playing.FOLD and rnd.random() < 0.7:
            kind = rnd.choice(asked.offer.actions)
        amount = 0
        if kind in RAISES:
            offer = asked.offer
            amount = rnd.choice(
                offer.raise_sizes
                or (offer.min_raise_to, offer.max_raise_to, rnd.randint(offer.min_raise_to, offer.max_raise_to))
            )
        cards = ""
        if kind == playing.DISCARD:
            hand = made.table.hand
            assert hand is not None
            down = hand.down[hand.asked]
            cards = "".join(NAMES[card] for card in rnd.sample(down, rnd.randint(0, asked.offer.max_discards)))
        made.act(asked.seat, kind, amount, cards, asked.turn)

    def beyond(self, asked: Prompt) -> None:
        """One unit beyond the bounds is refused."""
        offer = asked.offer
        if not offer.max_raise_to:
            return
        kind = next(kind for kind in offer.actions if kind in RAISES)
        for amount in (offer.min_raise_to - 1, offer.max_raise_to + 1):
            if amount not in offer.raise_sizes:
                with pytest.raises(Rejected):
                    self.room.act(asked.seat, kind, amount)


def played(
    seed: int, game: str, limit: game_pb2.Limit.ValueType, hands: int = 4, *, commitments: bool = False
) -> Player:
    """A room after some hands at random."""
    player = Player(seed, game, limit, commitments=commitments)
    for _ in range(hands):
        if not ready_to_start(player.room.table):
            break
        player.hand()
    return player


def replayed(log: list[pb.TableEvent]) -> Table:
    """The state that a log leads to."""
    table = initial("t")
    for event in log:
        apply(table, pb.TableEvent.FromString(event.SerializeToString()))
    return table


EXAMPLES = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 10**6)


@pytest.mark.parametrize("game", KNOWN)
@EXAMPLES
@given(seed=SEEDS, limit=st.sampled_from(LIMITS))
def test_a_hand_always_ends_and_no_chip_is_made_or_lost(game: str, seed: int, limit: game_pb2.Limit.ValueType) -> None:
    """B10, B11: chips are conserved after every event (the room asserts it), stacks are never negative."""
    made = played(seed, game, limit).room
    for event in made.log:
        if event.HasField("pot_awarded"):
            pot = event.pot_awarded
            assert sum(share.amount for share in pot.shares) == pot.amount - pot.rake
            assert {share.seat for share in pot.shares} <= set(pot.eligible)
    assert [event.version for event in made.log] == list(range(1, len(made.log) + 1))


@pytest.mark.parametrize("game", KNOWN)
@EXAMPLES
@given(seed=SEEDS, limit=st.sampled_from(LIMITS))
def test_replay_of_any_prefix_is_the_live_state(game: str, seed: int, limit: game_pb2.Limit.ValueType) -> None:
    """The log is the truth: from disk and back it leads to the state that deciding led to, and through a snapshot."""
    player = Player(seed, game, limit)
    player.room.adopt = True
    if ready_to_start(player.room.table):
        player.room.cards = VirtualDeck(player.random.shuffle, player.random.randbytes)
        player.room.do(cmd.StartHand())
    for _ in range(player.random.randint(0, 60)):
        asked = prompt(player.room.table)
        if asked is None:
            break
        player.step(asked)
        if not player.room.table.hand and ready_to_start(player.room.table):
            player.room.do(cmd.StartHand())
    again = replayed(player.room.log)
    assert again == player.room.table
    if again.hand is None:
        assert snapshot.load(snapshot.dump(again)) == again


@pytest.mark.parametrize("game", KNOWN)
@EXAMPLES
@given(seed=SEEDS)
def test_cards_are_dealt_once_and_nobody_gets_a_discard_back(game: str, seed: int) -> None:
    """D6: what somebody discarded may come to another player, never to the same one."""
    made = played(seed, game, playing.NO_LIMIT, 2).room
    for log in hands_of(made.log):
        gone: dict[int, set[int]] = {}
        out: Counter[int] = Counter()
        for event in log:
            kind = event.WhichOneof("payload")
            if kind == "cards_dealt":
                out.update(parse(event.cards_dealt.down + event.cards_dealt.up))
            elif kind == "board_dealt":
                out.update(parse(event.board_dealt.cards))
            elif kind == "cards_discarded":
                cards = parse(event.cards_discarded.cards)
                gone.setdefault(event.cards_discarded.seat, set()).update(cards)
            elif kind == "deck_reshuffled":
                out.clear()
            elif kind == "cards_drawn":
                cards = parse(event.cards_drawn.cards)
                assert not gone[event.cards_drawn.seat] & set(cards)
                out.update(cards)
            assert max(out.values(), default=0) <= 1


def hands_of(log: list[pb.TableEvent]) -> list[list[pb.TableEvent]]:
    """The events of each hand."""
    numbers = sorted({event.hand for event in log} - {0})
    return [[event for event in log if event.hand == number] for number in numbers]


@pytest.mark.parametrize("game", KNOWN)
@EXAMPLES
@given(seed=SEEDS)
def test_G14_redaction_leaks_no_card_that_was_not_shown(game: str, seed: int) -> None:
    """The public bytes hold no down card that was not shown, a player's bytes nobody else's, with commitments too."""
    made = played(seed, game, playing.POT, 1, commitments=True).room
    events = [event for event in made.log if event.hand]
    shown = {card for event in events for card in parse(event.hand_shown.cards)}
    shown |= {card for event in events for card in parse(event.board_dealt.cards) + parse(event.cards_dealt.up)}
    private: dict[int, set[int]] = {}
    for event in events:
        kind = event.WhichOneof("payload")
        payload = getattr(event, str(kind))
        if kind in {"cards_dealt", "cards_drawn"}:
            text = payload.down if kind == "cards_dealt" else payload.cards
            private.setdefault(payload.seat, set()).update(parse(text))
    public = b"\0".join(public_bytes(pb.TableEvent.FromString(strip(event))) for event in events)
    for seat, cards in private.items():
        theirs = b"\0".join(
            redact(pb.TableEvent.FromString(strip(event)), seat).SerializeToString() for event in events
        )
        assert all(NAMES[card].encode() in theirs for card in cards)
        assert not any(NAMES[card].encode() in public for card in cards - shown)
        for other, others in private.items():
            if other != seat:
                assert not any(NAMES[card].encode() in theirs for card in others - shown - cards)


def strip(event: pb.TableEvent) -> bytes:
    """The event without hashes, salts and positions, whose bytes could look like a card."""
    copy = pb.TableEvent.FromString(event.SerializeToString())
    payload = getattr(copy, str(copy.WhichOneof("payload")))
    for name in ("deck_commitments", "up_salts", "down_salts", "salts", "positions"):
        if name in payload.DESCRIPTOR.fields_by_name:
            payload.ClearField(name)
    return copy.SerializeToString()


@pytest.mark.parametrize("game", KNOWN)
@EXAMPLES
@given(seed=SEEDS)
def test_every_card_seen_matches_its_commitment(game: str, seed: int) -> None:
    """A card that was dealt, drawn or shown was fixed before the deal."""
    made = played(seed, game, playing.NO_LIMIT, 1, commitments=True).room
    hashes = b""
    for event in made.log:
        payload = getattr(event, str(event.WhichOneof("payload")))
        if event.HasField("hand_started"):
            hashes = payload.deck_commitments
            assert len(hashes) == 32 * payload.deck_size
        elif event.HasField("deck_reshuffled"):
            hashes += payload.deck_commitments
        elif event.HasField("cards_dealt"):
            verify(hashes, payload.positions, payload.down + payload.up, payload.down_salts + payload.up_salts)
        elif event.HasField("board_dealt") or event.HasField("cards_drawn") or event.HasField("hand_shown"):
            verify(hashes, payload.positions, payload.cards, payload.salts)


def verify(hashes: bytes, positions: list[int], cards: str, salts: bytes) -> None:
    """Check cards against the commitments."""
    for at, position in enumerate(positions):
        card = parse(cards[2 * at : 2 * at + 2])[0]
        assert commitment(position, card, salts[16 * at : 16 * at + 16]) == hashes[32 * position : 32 * position + 32]


@EXAMPLES
@given(seed=SEEDS, game=st.sampled_from(KNOWN))
def test_C3_a_crash_in_any_state_pays_everyone_back_once(seed: int, game: str) -> None:
    """C3: the pot goes back, everyone is cashed out, a second recovery changes nothing but the owner."""
    player = Player(seed, game, playing.NO_LIMIT)
    made = player.room
    before = made.stacks()
    if ready_to_start(made.table):
        made.cards = VirtualDeck(player.random.shuffle, player.random.randbytes)
        made.do(cmd.StartHand())
        for _ in range(player.random.randint(0, 25)):
            asked = prompt(made.table)
            if asked is None or made.table.last_over:
                break
            kind = next(
                kind for kind in (playing.CHECK, playing.CALL, *asked.offer.actions) if kind in asked.offer.actions
            )
            amount = asked.offer.min_raise_to if kind in RAISES else 0
            made.act(asked.seat, kind, amount)
    void = made.table.hand is not None
    if not void:
        before = made.stacks()
    made.do(cmd.TakeOver(2, "b", pb.OWNER_REASON_CRASH))
    paid = {transfer.seat: transfer.amount for transfer in made.table.transfers.values()}
    assert paid == {seat: stack for seat, stack in before.items() if stack}
    assert not made.table.seats
    events = made.do(cmd.TakeOver(3, "c", pb.OWNER_REASON_CRASH))
    assert [event.WhichOneof("payload") for event in events] == ["owner_started"]


@EXAMPLES
@given(seed=SEEDS, game=st.sampled_from(KNOWN))
def test_turns_rise_from_prompt_to_prompt_and_views_agree(seed: int, game: str) -> None:
    """A view shows the prompt, the pot and the viewer's own cards only."""
    player = Player(seed, game, playing.NO_LIMIT)
    made = player.room
    turns: list[int] = []
    if ready_to_start(made.table):
        made.cards = VirtualDeck(player.random.shuffle, player.random.randbytes)
        made.do(cmd.StartHand())
    for _ in range(30):
        asked = prompt(made.table)
        hand = made.table.hand
        if asked is None or hand is None:
            break
        turns.append(asked.turn)
        shown = view(made.table, asked.player)
        assert shown.prompt == asked.to_proto()
        assert shown.pot == hand.pot
        assert sum(pot.amount for pot in shown.pots) + sum(seat.bet for seat in shown.seats) == shown.pot
        for seat in shown.seats:
            if seat.down:
                assert seat.player == asked.player or hand.shown >> hand.index[seat.seat] & 1
        player.step(asked)
    assert all(a <= b for a, b in pairwise(turns))
