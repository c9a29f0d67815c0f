"""Random hands against PokerKit: the same cards and actions, the same turns, bounds, pots and final stacks.

Our table leads: every prompt is compared with PokerKit's, one legal action is drawn, and the events that it causes are
played there too. `python -m tests.poker.oracle --hands N [--seed S] [--game NAME]`; exit status 1 when a difference is
not in DIFFERENCES.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pokerkit import Hand as PokerKitHand
from pokerkit import State
from tests.poker import playing
from tests.poker.oracle_games import BRING_IN, GAMES, LOW, OracleGame

from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Prompt, prompt
from relance.poker.cards import FULL_DECK, render
from relance.poker.deck import ScriptedDeck
from relance.poker.hand import ACTIVE, ALL_IN, Hand

DIFFERENCES = {
    "B8": "an all-in below a full raise does not reopen (fixed limit: half a bet does); PokerKit does not measure it "
    "by the big blind, and in fixed limit wants a full bet and counts any for the cap",
    "B9": "others face the full blind when its poster is short; PokerKit lets them match what was posted",
    "B13": "odd units go one each to the winners left of the button, pot by pot; PokerKit gives all of them to the "
    "first winner or half, after joining pots that only beaten hands kept apart",
    "B16": "betting is over when one player can act and owes nothing; PokerKit asks. A raise is offered while another "
    "player can act; PokerKit wants one who can match more than the bet",
    "D7": "a stub too short for the seventh street gives one community card and no betting; PokerKit shuffles folded "
    "cards in first, and bets (there everyone checks)",
    "G9": "who is all-in for the ante cannot bring in, who has no more than the bring-in cannot complete; PokerKit "
    "lets them; others face the full bring-in when it is short",
    "G10": "the highest showing hand among those who can act opens; PokerKit counts all-in players too",
    "H5": "a side pot without a qualifying low goes to its high hand whole; PokerKit splits it among all in it",
}
"""Rule id -> where PokerKit plays otherwise and the house rules decide. Anything else that differs is a fault."""


class Unlisted(AssertionError):
    """A difference that no rule explains."""


class Diverged(Exception):
    """A listed difference after which the two hands cannot be compared any more."""


@dataclass
class Report:
    """What a run has seen."""

    hands: int = 0
    prompts: int = 0
    finished: int = 0
    differences: Counter[str] = field(default_factory=Counter)


class Follower:
    """A hand at our table, followed by PokerKit. Positions are the same in both: 0 is left of the button."""

    def __init__(self, game: OracleGame, seed: int, report: Report) -> None:
        self.random = random.Random(seed)
        self.game = game
        self.report = report
        players = self.random.randint(2, game.players)
        self.ante = self.random.choice(game.antes)
        self.stacks = [self._stack() for _ in range(players)]
        self.room = playing.room(self.stacks, game.id, game.limit, button=players, stakes=game.stakes(self.ante))
        deck = list(FULL_DECK)
        self.random.shuffle(deck)
        self.seen = len(self.room.log)
        self.state: State = game.state(self.ante, self.stacks)
        self.drawn: dict[int, str] = {}
        self.odd_all_in = self.full_bet = False
        self.pots: list[pb.PotAwarded] = []
        self.room.start(ScriptedDeck(deck))
        self.hand: Hand | None = self.room.table.hand

    def play(self) -> None:
        """The hand to its end. Raises Unlisted, Diverged."""
        self._follow()
        while (asked := prompt(self.room.table)) is not None:
            self.hand = self.room.table.hand
            assert self.hand is not None
            if asked.offer.max_discards:
                held = list(self.hand.down[self.hand.asked])
                count = self.random.choice((0, 0, 1, 1, 2, 3, len(held)))
                cards = render(self.random.sample(held, min(count, asked.offer.max_discards)))
                self.room.act(asked.seat, playing.DISCARD, cards=cards)
            else:
                self._act(asked)
            self._follow()
        self._compare_end()

    def _stack(self) -> int:
        """Deep, or a few bets, or now and then less than a blind."""
        chance = self.random.random()
        least, most = (1, LOW) if chance < 0.06 else (LOW, 8 * LOW) if chance < 0.4 else (8 * LOW, 60 * LOW)
        return self.random.randint(least, most)

    def _act(self, asked: Prompt) -> None:
        """Compare the prompt, then act at random within what both allow."""
        hand, state, offer = self.hand, self.state, asked.offer
        assert hand is not None
        self.report.prompts += 1
        if state.actor_index != hand.asked:
            self._open_there_too(hand, f"seat {asked.seat} is asked, there {state.actor_index}")
        bring_in = playing.BRING_IN in offer.actions
        call = state.effective_bring_in_amount if bring_in else state.checking_or_calling_amount
        if call != offer.call:
            self._differ(self._short_post(), f"call {offer.call}, there {call}")
        least = state.min_completion_betting_or_raising_to_amount or 0
        most = state.max_completion_betting_or_raising_to_amount or 0
        bounds = (offer.min_raise_to, offer.max_raise_to)
        if bounds != (least, most):
            why = self._why_other_bounds(bounds, most)
            if not why:
                raise Unlisted(f"raise to {bounds}, there {(least, most)}")
            self.report.differences[why] += 1
            bounds = (0, 0)
        self._choose(asked, *bounds)

    def _choose(self, asked: Prompt, least: int, most: int) -> None:
        chance = self.random.random()
        offer = asked.offer
        raises = [kind for kind in (playing.BET, playing.RAISE, playing.COMPLETE) if kind in offer.actions]
        if most and chance < 0.35:
            amount = self.random.choice(
                (least, most, self.random.randint(least, most), self.random.randint(least, most))
            )
            self.room.act(asked.seat, raises[0], offer.raise_sizes[0] if offer.raise_sizes else amount)
        elif playing.BRING_IN in offer.actions:
            self.room.act(asked.seat, playing.BRING_IN)
        elif playing.CHECK in offer.actions:
            self.room.act(asked.seat, playing.CHECK)
        elif chance > 0.85:
            self.room.act(asked.seat, playing.FOLD)
        else:
            self.room.act(asked.seat, playing.CALL)

    def _follow(self) -> None:
        """Play our new events there."""
        for event in self.room.log[self.seen :]:
            self.seen += 1
            name = event.WhichOneof("payload")
            if name is not None:
                self._play(name, event)

    def _play(self, name: str, event: pb.TableEvent) -> None:
        state = self.state
        match name:
            case "cards_dealt":
                state.deal_hole(event.cards_dealt.down + event.cards_dealt.up, self._at(event.cards_dealt.seat))
            case "board_dealt":
                if self.game.stud and not state.can_deal_board():
                    self._differ("D7", "a community card, there none")
                state.deal_board(event.board_dealt.cards)
                while self.game.stud and state.actor_index is not None:
                    self.report.differences["D7"] += 1
                    state.check_or_call()
            case "cards_discarded":
                state.stand_pat_or_discard(event.cards_discarded.cards)
            case "cards_drawn":
                at = self._at(event.cards_drawn.seat)
                self.drawn[at] = self.drawn.get(at, "") + event.cards_drawn.cards
            case "checked" | "called":
                state.check_or_call()
            case "folded":
                state.fold()
            case "bring_in_posted":
                state.post_bring_in()
            case "bet_made" | "raised":
                made = event.bet_made if name == "bet_made" else event.raised
                state.complete_bet_or_raise_to(made.to)
                size = made.to if name == "bet_made" else event.raised.raise_by
                # The sizes of this round: what is a full bet on the flop is half of one on the turn.
                sizes = self.hand.sizes if self.hand is not None and self.game.sizes else ()
                self.odd_all_in = self.odd_all_in or (made.all_in and size not in sizes)
                self.full_bet = self.full_bet or size >= LOW
            case "round_ended":
                self.odd_all_in = self.full_bet = False
                while state.actor_index is not None and not state.checking_or_calling_amount:
                    self.report.differences["B16"] += 1
                    state.check_or_call()
            case "pot_awarded":
                self.pots.append(event.pot_awarded)
        while state.showdown_index is not None:
            state.show_or_muck_hole_cards(True)
        if self.drawn and state.stand_patter_or_discarder_index is None:
            for at, cards in self.drawn.items():
                state.deal_hole(cards, at)
            self.drawn = {}

    def _at(self, seat: int) -> int:
        """Position of a seat; our seats are numbered from 1 at the left of the button."""
        return seat - 1

    def _short_post(self) -> str:
        """The rule, if the big blind or the bring-in of this round could not be posted in full."""
        hand = self.hand
        assert hand is not None
        if hand.street:
            return ""
        if self.game.stud:
            short = any(status == ALL_IN and 0 < hand.bet[at] < BRING_IN for at, status in enumerate(hand.status))
            return "G9" if short else ""
        return "B9" if self.stacks[hand.index[hand.big_blind]] - self.ante < LOW else ""

    def _open_there_too(self, hand: Hand, what: str) -> None:
        """G9, G10: let the round begin there with who opens by PokerKit's own measure of those able to act."""
        state = self.state
        able = [at for at, status in enumerate(hand.status) if status == ACTIVE]
        spoken = any(faced >= 0 for faced in hand.faced)
        if not self.game.stud or spoken or ALL_IN not in hand.status:
            self._differ(self._short_post(), what)
        if self.game.opener(state, able) != hand.asked or set(able) != set(state.actor_indices):
            raise Unlisted(what)
        self.report.differences["G10" if hand.street else "G9"] += 1
        state.actor_indices.rotate(-state.actor_indices.index(hand.asked))
        state.opener_index = hand.asked

    def _why_other_bounds(self, ours: tuple[int, int], theirs: int) -> str:
        hand = self.hand
        assert hand is not None
        others = [at for at, status in enumerate(hand.status) if status == ACTIVE and at != hand.asked]
        if ours[1] and not theirs and all(hand.bet[at] + hand.stack[at] <= hand.current for at in others):
            return "B16"
        if self.game.stud and hand.bring_in and hand.stack[hand.asked] <= BRING_IN:
            return "G9"
        if self.odd_all_in and self.game.sizes:
            return "B8"
        if self.odd_all_in and not self.full_bet and ours == (0, 0) and hand.faced[hand.asked] >= 0:
            return "B8"
        return self._short_post()

    def _differ(self, why: str, what: str) -> None:
        if why:
            self.report.differences[why] += 1
            raise Diverged(why)
        raise Unlisted(what)

    def _compare_end(self) -> None:
        """Pots and final stacks. PokerKit's pots are read before it kills beaten hands and joins what they leave."""
        state = self.state
        by_rule: list[int] = []
        if sum(state.statuses) > 1:
            ours = [(pot.amount, tuple(map(self._at, pot.eligible))) for pot in self.pots if len(pot.eligible) > 1]
            theirs = [(pot.amount, pot.player_indices) for pot in state.pots if len(pot.player_indices) > 1]
            if ours != theirs:
                raise Unlisted(f"pots {ours}, there {theirs}")
            by_rule = self._split_by_rule()
        while state.can_kill_hand():
            state.kill_hand()
        while state.can_push_chips():
            state.push_chips()
        while state.can_pull_chips():
            state.pull_chips()
        if state.status:
            raise Unlisted("our hand is over, there it goes on")
        stacks = [self.room.table.stack(at + 1) for at in range(len(self.stacks))]
        if stacks != list(state.stacks):
            parts = [{share.part for share in pot.shares} for pot in self.pots if len(pot.eligible) > 1]
            halved = [pb.POT_PART_LOW in part for part in parts]
            why = "H5" if any(halved) and not all(halved) else "B13"
            if stacks == by_rule:
                self.report.finished += 1
            self._differ(why if stacks == by_rule else "", f"stacks {stacks}, there {state.stacks}, by rule {by_rule}")
        self.report.finished += 1

    def _split_by_rule(self) -> list[int]:
        """PokerKit's pots and hands, split pot by pot as B13 and H5 say: the stacks that this makes."""
        state = self.state
        stacks = list(state.stacks)
        hands = [dict(enumerate(state.get_up_hands(0, kind))) for kind in state.hand_type_indices]
        for pot in state.pots:
            rest, winners = pot.amount, [found for made in hands if (found := _best(made, pot.player_indices))]
            for left, best in zip(range(len(winners), 0, -1), winners, strict=True):
                part = -(-rest // left)
                rest -= part
                each, odd = divmod(part, len(best))
                for number, at in enumerate(best):
                    stacks[at] += each + (number < odd)
        return stacks


def _best(hands: dict[int, PokerKitHand | None], eligible: Sequence[int]) -> list[int]:
    """Who of the eligible has the best hand of a kind; nobody, if nobody has one."""
    made = {at: hand for at in eligible if (hand := hands[at]) is not None}
    best = max(made.values(), default=None)
    return [at for at, hand in made.items() if hand == best]


@contextmanager
def _quietly() -> Iterator[None]:
    """PokerKit warns about cards from a deck that is not its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(hands: int, seed: int = 1, games: tuple[str, ...] = ()) -> Report:
    """Play hands, the games in turn. Raises Unlisted with the game and the seed that shows it again."""
    report = Report()
    chosen = [game for game in GAMES if not games or game.name in games]
    with _quietly():
        for number in range(hands):
            game = chosen[number % len(chosen)]
            report.hands += 1
            follower = Follower(game, seed + number, report)
            try:
                follower.play()
            except Diverged:
                continue
            except (AssertionError, ValueError) as error:
                raise Unlisted(f"{game.name}, seed {seed + number}: {error}") from error
    return report


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Random hands against PokerKit.")
    parser.add_argument("--hands", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--game", action="append", default=[], choices=[game.name for game in GAMES])
    given = parser.parse_args()
    begun = time.monotonic()
    try:
        report = run(given.hands, given.seed, tuple(given.game))
    except Unlisted as error:
        print(f"unlisted difference: {error}", file=sys.stderr)  # noqa: T201 - a command's output
        return 1
    for why, count in sorted(report.differences.items()):
        print(f"{why:4} {count:6}  {DIFFERENCES[why]}")  # noqa: T201
    print(  # noqa: T201
        f"oracle: hands={report.hands} prompts={report.prompts} compared_to_the_end={report.finished} "
        f"seconds={time.monotonic() - begun:.1f} unlisted=0"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
