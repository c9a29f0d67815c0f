"""The games by example: deal, draws, stud, 32-card draw, closed poker, dealing faults (sections 2, 3, 9, 10)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.poker import playing
from tests.poker.playing import (
    ACCEPT_SPLIT,
    BET,
    BRING_IN,
    CALL,
    CHECK,
    COMPLETE,
    DISCARD,
    FIXED,
    FOLD,
    OFFER_SPLIT,
    RAISE,
    REFUSE_SPLIT,
    room,
)

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2
from relance.poker import Rejected, prompt
from relance.poker import commands as cmd
from relance.poker.cards import NAMES, parse
from relance.poker.deck import ScriptedDeck
from relance.poker.games import GAMES, Street

STUD = game_pb2.Stakes(ante=25, bring_in=50, low_limit=500, high_limit=1000)


def down(made: playing.Room) -> dict[int, str]:
    """Down cards of the running hand by seat."""
    hand = made.table.hand
    assert hand is not None
    return {seat: "".join(NAMES[card] for card in hand.down[at]) for seat, at in hand.index.items()}


def test_G1_to_G8_rows_say_what_is_dealt() -> None:
    """G1 G2 G3 G4 G5 G6 G7 G8: cards, rounds and draws of every game."""

    def shape(street: Street) -> tuple[int, int, int, int]:
        return street.down, street.up, street.board, street.draw

    board = [(0, 0, 3, -1), (0, 0, 1, -1), (0, 0, 1, -1)]
    seven = [(2, 1, 0, -1), *[(0, 1, 0, -1)] * 3, (1, 0, 0, -1)]
    five = [(1, 1, 0, -1), *[(0, 1, 0, -1)] * 3]
    expected = {
        "holdem": [(2, 0, 0, -1), *board],
        "omaha": [(4, 0, 0, -1), *board],
        "omaha8": [(4, 0, 0, -1), *board],
        "soko": five,
        "stud5": five,
        "stud7": seven,
        "stud8": seven,
        "draw5": [(5, 0, 0, -1), (0, 0, 0, 5)],
        "td27": [(5, 0, 0, -1), *[(0, 0, 0, 5)] * 3],
        "draw32": [(5, 0, 0, -1), (0, 0, 0, 4)],
        "closed": [(5, 0, 0, -1), (0, 0, 0, 5)],
    }
    assert {game: [shape(street) for street in GAMES[game].streets] for game in expected} == expected


def test_D4_deal_is_clockwise_from_the_left_of_the_button_one_card_at_a_time() -> None:
    made = room([1000] * 3, button=2)
    made.start("2c3c4c2d3d4d")
    assert down(made) == {3: "2c2d", 1: "3c3d", 2: "4c4d"}


def test_D5_a_card_is_burnt_before_flop_turn_and_river() -> None:
    made = room([1000] * 2, rules=game_pb2.TableRules(burn_cards=True))
    made.start("AsKsAdKd 2h 3h4h5h 6h 7h 8h 9h")
    made.passive()
    assert [event.position for event in made.of("card_burnt")] == [4, 8, 10]
    assert [event.cards for event in made.of("board_dealt")] == ["3h4h5h", "7h", "9h"]


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [
        ("table", {2: 32, 3: 32, 4: 32, 5: 36, 6: 40, 7: 44, 8: 48}),
        ("talon", {2: 32, 3: 32, 4: 32, 5: 40, 6: 44, 7: 48, 8: 52}),
    ],
)
def test_D2_closed_poker_deck_by_number_of_players(policy: str, sizes: dict[int, int]) -> None:
    for players, size in sizes.items():
        rules = game_pb2.TableRules(deck_policy=policy)
        made = room([1000] * players, "closed", stakes=game_pb2.Stakes(ante=10), rules=rules)
        made.start()
        assert made.of("hand_started")[-1].deck_size == size


def test_D2_deck_is_counted_after_antes() -> None:
    """D2, S7: who does not post cannot stay, and the deck is that for those who did."""
    made = room([1000] * 5, "closed", stakes=game_pb2.Stakes(ante=10))
    made.do(cmd.SetPreferences("p3", auto_post=False))
    made.start()
    assert (made.asked().seat, made.asked().kind) == (3, table_pb2.PROMPT_KIND_POST)
    made.act(3, FOLD)
    shuffled = made.of("deck_reshuffled")[-1]
    assert (shuffled.count, shuffled.reason) == (32, "PLAYERS")
    assert {event.seat for event in made.of("cards_dealt")} == {1, 2, 4, 5}
    assert all(card >= 20 for event in made.of("cards_dealt") for card in parse(event.down))
    made.passive()
    assert 3 not in made.table.seats


def test_S7_a_hand_that_too_few_post_for_is_void() -> None:
    made = room([1000] * 2, "closed", stakes=game_pb2.Stakes(ante=10))
    made.do(cmd.SetPreferences("p2", auto_post=False))
    made.start()
    made.do(cmd.Timeout(made.asked().turn))
    assert made.of("hand_voided")[-1].reason == pb.VOID_REASON_NOT_ENOUGH_PLAYERS
    assert made.stacks() == {1: 1000}


def test_D6_stub_is_dealt_to_its_last_card_then_the_others_discards() -> None:
    """D6: nobody gets their own discard back; the cards of others come again."""
    made = room([5000] * 5, "draw32", button=1)
    hands = ["7c8c9cTcJc", "7d8d9dTdJd", "7h8h9hThJh", "7s8s9sTsJs", "QcQdQhQsKc"]
    order = [parse(hand) for hand in hands]
    made.cards = ScriptedDeck([order[at][n] for n in range(5) for at in range(5)], [parse("7c8c9cTc")])
    made.do(cmd.StartHand())
    for seat, kind in ((4, CALL), (5, CALL), (1, CALL), (2, CALL), (3, CHECK)):
        made.act(seat, kind)
    made.act(2, DISCARD, cards="7c8c9cTc")
    made.act(3, DISCARD, cards="7d8d9dTd")
    drawn = made.of("cards_drawn")
    assert [(event.seat, event.count) for event in drawn] == [(2, 4), (3, 3), (3, 1)]
    assert drawn[-1].cards == "7c"
    assert made.of("deck_reshuffled")[0].count == 4


def test_D7_one_community_card_when_the_stub_cannot_give_everyone_a_seventh() -> None:
    """D7, STUD-04: only if the cards left are fewer than the live players; without betting."""
    for folded, community in ((0, True), (4, False)):
        made = room([5000] * 8, "stud7", FIXED, stakes=STUD, button=8)
        made.start()
        for _ in range(3):
            street(made)
        hand = made.table.hand
        assert hand is not None
        for _ in range(folded):
            made.act(made.asked().seat, FOLD)
        street(made)
        assert bool(made.of("board_dealt")) == community
        assert (made.table.hand is None) == community


def street(made: playing.Room) -> None:
    """Check or call round the table until the street is over."""
    hand = made.table.hand
    assert hand is not None
    number = hand.street
    while made.table.hand is not None and made.table.hand.street == number:
        offered = made.asked().offer.actions
        made.act(made.asked().seat, next(kind for kind in (CHECK, CALL, BRING_IN) if kind in offered))


def test_D8_draws_go_clockwise_and_all_in_players_draw_too() -> None:
    made = room([5000, 100, 5000], "draw5", FIXED, button=1)
    made.start()
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CHECK)
    seats = []
    while made.asked().kind == table_pb2.PROMPT_KIND_DRAW:
        seats.append(made.asked().seat)
        made.act(seats[-1], DISCARD)
    assert seats == [2, 3, 1]
    assert made.asked().seat == 3


def test_D8_only_cards_held_may_be_discarded_and_no_more_than_the_game_allows() -> None:
    made = room([5000] * 2, "draw32", button=1)
    made.start("AsKsAdKdAhKhAcKc7c7d")
    made.act(1, CALL)
    made.act(2, CHECK)
    for cards in ("KsKd", "AsAdAhAc7c", "AsAs", "xx"):
        with pytest.raises(Rejected, match="INVALID_CARDS"):
            made.act(2, DISCARD, cards=cards)
    made.act(2, DISCARD, cards="AsAdAhAc")


def test_G9_lowest_card_brings_in_or_completes() -> None:
    made = room([5000] * 3, "stud7", FIXED, stakes=STUD, button=3)
    made.start("AsKsQs AdKdQd 4c4d9h")
    asked = made.asked()
    assert asked.seat == 1
    assert asked.offer.actions == (BRING_IN, COMPLETE)
    made.act(1, COMPLETE, 500)
    assert made.asked().offer.raise_sizes == (1000,)


def test_G9_round_ends_when_the_bring_in_is_called_round() -> None:
    made = room([5000] * 3, "stud7", FIXED, stakes=STUD, button=3)
    made.start("AsKsQs AdKdQd 4c4d9h")
    made.act(1, BRING_IN)
    made.act(2, CALL)
    made.act(3, CALL)
    hand = made.table.hand
    assert hand is not None
    assert hand.street == 1


def test_G9_a_player_all_in_for_the_ante_does_not_bring_in_and_a_short_bring_in_is_faced_in_full() -> None:
    made = room([25, 60, 5000, 5000], "stud7", FIXED, stakes=STUD, button=4)
    made.start("AsKsQsJs AdKdQdJd 2c3d9hTh")
    assert made.asked().seat == 2
    made.act(2, BRING_IN)
    assert made.of("bring_in_posted")[-1].amount == 35
    assert made.asked().offer.call == 50


def test_G10_highest_showing_hand_opens_later_streets() -> None:
    made = room([5000] * 3, "stud5", FIXED, stakes=STUD, button=3)
    made.start("AsKsQs 2c9d9h 3c9cAc")
    made.act(1, BRING_IN)
    made.act(2, CALL)
    made.act(3, CALL)
    assert made.asked().seat == 2, "a pair of nines beats ace-nine"


@pytest.mark.parametrize(("choice", "sizes"), [("pair", (500, 1000)), ("never", (500,)), ("always", (500, 1000))])
def test_G11_open_pair_on_fourth_street(choice: str, sizes: tuple[int, ...]) -> None:
    rules = game_pb2.TableRules(fourth_street_high=choice)
    made = room([9000] * 3, "stud7", FIXED, stakes=STUD, rules=rules, button=3)
    made.start("AsKsQs AdKdQd 2c9h8h 3d9sTh")
    made.act(1, BRING_IN)
    made.act(2, CALL)
    made.act(3, CALL)
    assert made.asked().offer.raise_sizes == sizes
    if len(sizes) > 1:
        made.act(2, BET, 500)
        assert made.asked().offer.raise_sizes == (1000, 1500)
        made.act(3, RAISE, 1500)
        assert made.asked().offer.raise_sizes == (2500,)


def test_G12_a_missed_draw_clock_stands_pat_and_bars_bets_for_one_round() -> None:
    """G12, DRAW-02: check, call and fold remain."""
    rules = game_pb2.TableRules(stand_pat_penalty=True)
    made = room([5000] * 3, "draw32", rules=rules, button=1)
    made.start()
    made.act(1, CALL)
    made.act(2, CALL)
    made.act(3, CHECK)
    made.do(cmd.Timeout(made.asked().turn))
    made.act(3, DISCARD, cards=down(made)[3][:4])
    made.act(1, DISCARD, cards=down(made)[1][:2])
    assert [(event.seat, event.count) for event in made.of("cards_discarded")] == [(2, 0), (3, 2), (1, 1)]
    made.act(1, BET, 200)
    offer = made.asked().offer
    assert (made.asked().seat, offer.call, offer.min_raise_to) == (2, 200, 0)
    with pytest.raises(Rejected, match="RAISE_NOT_ALLOWED"):
        made.act(2, RAISE, 400)
    made.act(2, CALL)
    offer = made.asked().offer
    assert (offer.call, offer.min_raise_to, offer.max_raise_to) == (200, 400, 4900)
    made.act(3, CALL)
    assert made.of("pot_awarded")[-1].amount == 900


def test_G13_closed_poker_has_no_check() -> None:
    made = room([1000] * 3, "closed", stakes=game_pb2.Stakes(ante=10))
    made.start()
    assert made.asked().seat == 2
    assert CHECK not in made.asked().offer.actions
    with pytest.raises(Rejected, match="ACTION_NOT_OFFERED"):
        made.act(2, CHECK)
    made.act(2, FOLD)
    made.act(3, FOLD)
    assert made.stacks() == {1: 1020, 2: 990, 3: 990}


@pytest.mark.parametrize("allowed", [False, True])
def test_G13_checks_after_the_exchange_are_a_setting(allowed: bool) -> None:
    rules = game_pb2.TableRules(check_after_exchange=allowed)
    made = room([1000] * 2, "closed", stakes=game_pb2.Stakes(ante=10), rules=rules)
    made.start()
    made.act(2, BET, 50)
    made.act(1, CALL)
    made.act(2, DISCARD)
    made.act(1, DISCARD)
    assert (CHECK in made.asked().offer.actions) == allowed


def test_DRAW_03_order_after_the_draw_and_at_the_showdown() -> None:
    """G5, G6, G7, G14: 32-card draw starts left of the big blind, the others left of the button."""
    expected: dict[str, Any] = {"draw32": [4, 1, 2, 3], "draw5": [2, 3, 4, 1], "td27": [2, 3, 4, 1]}
    for game, order in expected.items():
        made = room([5000] * 4, game, playing.NO_LIMIT, button=1)
        made.start()
        for seat, kind in ((4, CALL), (1, CALL), (2, CALL), (3, CHECK)):
            made.act(seat, kind)
        for _ in range(4):
            made.act(made.asked().seat, DISCARD)
        seats = []
        for _ in range(4):
            seats.append(made.asked().seat)
            made.act(seats[-1], CHECK)
        assert seats == order
        made.passive()
        assert made.of("hand_shown")[0].seat == {"draw32": 4, "draw5": 2, "td27": 2}[game]


# Split offers (P1-P3).


def split_room(stacks: list[int], rule: str = "ends") -> playing.Room:
    """Three players after the draw of 32-card draw; seat 1 (button) acts first there."""
    made = room(stacks, "draw32", rules=game_pb2.TableRules(split_after_action=rule), button=1)
    made.start("AsKsQs AdKdQd AhKhQh JsJdJh TsTdTh")
    made.act(1, CALL)
    made.act(2, CALL)
    if stacks[2] > 100:
        made.act(3, CHECK)
    for _ in range(3):
        made.act(made.asked().seat, DISCARD)
    return made


def test_P2_everyone_accepts_and_hands_stay_hidden() -> None:
    made = split_room([5000] * 3)
    made.act(1, OFFER_SPLIT)
    made.act(2, ACCEPT_SPLIT)
    made.act(3, ACCEPT_SPLIT)
    shares = made.of("pot_awarded")[-1].shares
    assert [(share.seat, share.amount, share.part) for share in shares] == [
        (seat, 100, pb.POT_PART_AGREED) for seat in (2, 3, 1)
    ]
    assert not made.of("hand_shown")


def test_P1_a_bet_refuses_and_the_offer_counts_as_a_check() -> None:
    """P1, P2: play goes on from the refuser."""
    made = split_room([5000] * 3)
    made.act(1, OFFER_SPLIT)
    made.act(2, BET, 200)
    assert [(event.seat, event.accepted) for event in made.of("split_answered")] == [(2, False)]
    assert made.asked().seat == 3
    made.act(3, FOLD)
    assert made.asked().seat == 1
    assert made.asked().offer.call == 200
    assert OFFER_SPLIT not in made.asked().offer.actions


@pytest.mark.parametrize(("rule", "again"), [("ends", False), ("stays", True)])
def test_P1_split_after_action(rule: str, again: bool) -> None:
    made = split_room([5000] * 3, rule)
    made.act(1, OFFER_SPLIT)
    made.act(2, CHECK)
    assert made.asked().seat == 3
    assert (OFFER_SPLIT in made.asked().offer.actions) == again


def test_P1_a_fold_only_drops_the_claims_of_who_folds() -> None:
    made = split_room([5000] * 3)
    made.act(1, OFFER_SPLIT)
    made.act(2, FOLD)
    made.act(3, ACCEPT_SPLIT)
    assert [(share.seat, share.amount) for share in made.of("pot_awarded")[-1].shares] == [(3, 150), (1, 150)]


def test_P3_a_refusal_concerns_only_the_pots_with_a_claim() -> None:
    """P3: the side pot is split, betting ends, the main pot goes to the showdown."""
    made = split_room([5000, 5000, 60])
    made.act(1, OFFER_SPLIT)
    made.act(2, ACCEPT_SPLIT)
    assert made.asked().offer.actions == (ACCEPT_SPLIT, REFUSE_SPLIT)
    made.act(3, REFUSE_SPLIT)
    main, side = made.of("pot_awarded")
    assert (side.amount, [(share.seat, share.amount) for share in side.shares]) == (80, [(2, 40), (1, 40)])
    assert all(share.part == pb.POT_PART_AGREED for share in side.shares)
    assert main.amount == 180
    assert all(share.part == pb.POT_PART_WHOLE for share in main.shares)
    assert made.of("hand_shown")


def test_P1_silence_of_an_all_in_player_refuses() -> None:
    made = split_room([5000, 5000, 60])
    made.act(1, OFFER_SPLIT)
    made.act(2, ACCEPT_SPLIT)
    made.do(cmd.Timeout(made.asked().turn))
    assert [event.accepted for event in made.of("split_answered")] == [True, False]


# Dealing faults (F1-F7).


def salon(**rules: Any) -> playing.Room:
    """Three players of a live-dealt table before the flop: seat 1 is asked."""
    made = room([5000] * 3, rules=game_pb2.TableRules(burn_cards=True, showdown="all", **rules), button=1)
    made.cards = ScriptedDeck(parse("2c3c4c2d3d4d 5c 6c7c8c 9c Tc Jc Qc"), [parse("AhKhQhJhTh")])
    made.do(cmd.StartHand())
    return made


def fault(made: playing.Room, kind: str, seat: int = 0, *, keep: bool = False) -> None:
    """Report a fault."""
    made.do(cmd.ReportDealingFault(pb.DealingFault.Value(f"DEALING_FAULT_{kind}"), seat, "floor", keep))


def around(made: playing.Room) -> None:
    """Check or call to the end of the round."""
    street(made)


@pytest.mark.parametrize("kind", ["FIRST_CARD_EXPOSED", "CARDS_EXPOSED", "EXTRA_CARDS"])
def test_F1_F5_F7_a_misdeal_gives_everything_back_and_keeps_the_button(kind: str) -> None:
    made = salon()
    fault(made, kind)
    assert made.of("hand_voided")[-1].reason == pb.VOID_REASON_MISDEAL
    assert made.stacks() == {1: 5000, 2: 5000, 3: 5000}
    made.start()
    first, second = made.of("hand_started")
    assert (first.button, first.big_blind) == (second.button, second.big_blind)


def test_F1_an_exposed_card_is_replaced_and_is_the_first_burn_card() -> None:
    made = salon()
    fault(made, "CARD_EXPOSED", 3)
    assert made.of("dealing_fault_ruled")[-1].exposed == "3d"
    assert down(made)[3] == "3c5c"
    around(made)
    assert not made.of("card_burnt")
    assert made.of("board_dealt")[-1].cards == "6c7c8c"


def test_F1_the_owner_may_keep_the_card_under_owner_chooses() -> None:
    made = salon(exposed_card="owner_chooses")
    fault(made, "CARD_EXPOSED", 3, keep=True)
    assert down(made)[3] == "3c3d"


def test_F2_a_flop_with_too_many_cards_is_dealt_again_without_another_burn() -> None:
    made = salon()
    around(made)
    fault(made, "FLOP_TOO_MANY")
    assert made.of("deck_reshuffled")[-1].reason == "FLOP"
    assert len(made.of("card_burnt")) == 1
    assert made.of("board_dealt")[-1].cards == "AhKhQh"


def test_F3_an_early_flop_waits_for_the_betting_and_is_dealt_again() -> None:
    made = salon()
    made.act(1, CALL)
    fault(made, "FLOP_EARLY")
    assert made.of("dealing_fault_ruled")[-1].exposed == "6c7c8c"
    assert made.asked().seat == 2
    around(made)
    assert made.of("board_dealt")[-1].cards == "AhKhQh"
    assert len(made.of("card_burnt")) == 1


@pytest.mark.parametrize("choice", ["finish", "stop"])
def test_F4_an_early_turn_is_set_aside_and_comes_back_for_the_river(choice: str) -> None:
    made = salon(early_turn_betting=choice)
    around(made)
    fault(made, "TURN_EARLY")
    assert made.of("dealing_fault_ruled")[-1].exposed == "Tc"
    if choice == "finish":
        around(made)
    assert made.of("board_dealt")[-1].cards == "Qc", "burn, then what would have been the river"
    around(made)
    shuffled = made.of("deck_reshuffled")[-1]
    assert (shuffled.reason, shuffled.count) == ("TURN", 52 - 6 - 5 - 2 + 1 - 1)
    assert made.of("board_dealt")[-1].cards == "Ah"
    assert len(made.of("card_burnt")) == 3


def test_F4_an_early_river_is_shuffled_in() -> None:
    made = salon()
    around(made)
    around(made)
    fault(made, "RIVER_EARLY")
    around(made)
    assert made.of("deck_reshuffled")[-1].reason == "RIVER"
    assert made.of("board_dealt")[-1].cards == "Ah"
    assert len(made.of("card_burnt")) == 3


def test_F5_one_extra_card_is_the_first_burn_card() -> None:
    made = salon()
    fault(made, "EXTRA_CARD")
    around(made)
    assert [event.position for event in made.of("card_burnt")] == [6]
    assert made.of("board_dealt")[-1].cards == "6c7c8c"


def test_F1_faults_that_cannot_have_happened_are_refused() -> None:
    made = salon()
    with pytest.raises(Rejected, match="ACTION_NOT_OFFERED"):
        fault(made, "RIVER_EARLY")
    with pytest.raises(Rejected, match="FIELD_INVALID"):
        fault(made, "CARD_EXPOSED", 9)
    assert prompt(made.table) is not None
