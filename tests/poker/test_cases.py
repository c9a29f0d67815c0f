"""Hands and situations that real rooms got wrong, each a test with its id (tests/poker/cases.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.poker import playing
from tests.poker.playing import Room, room

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker import Rejected, prompt, public_bytes, redact
from relance.poker import commands as cmd
from relance.poker.cards import FULL_DECK, NAMES, parse
from relance.poker.rake import rake_for
from relance.poker.ranking import RANKINGS

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in map(json.loads, Path(__file__).with_name("cases.jsonl").read_text().splitlines())
}

LIMITS = {
    "no-limit": playing.NO_LIMIT,
    "pot-limit": playing.POT,
    "half-pot-limit": playing.HALF_POT,
    "fixed-limit": playing.FIXED,
    "spread-limit": playing.SPREAD,
}
EVENTS = {"leave", "disconnect_timeout", "draw_timeout"}
KINDS = {
    "fold": playing.FOLD,
    "check": playing.CHECK,
    "call": playing.CALL,
    "bet": playing.BET,
    "raise_to": playing.RAISE,
    "all_in": playing.ALL_IN,
    "bring_in": playing.BRING_IN,
    "complete": playing.COMPLETE,
    "discard": playing.DISCARD,
}


def _tier(players: tuple[int, int], cap: int, step: int, rate: int, small: int) -> game_pb2.RakeTier:
    tier = game_pb2.RakeTier(min_players=players[0], max_players=players[1], step=step, rake_per_step=rate, cap=cap)
    if small:
        tier.small_pot_below, tier.small_step, tier.small_rake = small, 20, 1
    return tier


def _schedule(step: int, rate: int, small: int, caps: dict[tuple[int, int], int]) -> game_pb2.RakeSchedule:
    tiers = [_tier(players, cap, step, rate, small) for players, cap in caps.items()]
    return game_pb2.RakeSchedule(id="boulevard", version=1, band="test", tiers=tiers)


RAKES = {
    "none": None,
    "boulevard_nl_pl": _schedule(100, 5, 400, {(2, 2): 75, (3, 4): 200, (5, 10): 300}),
    "boulevard_fixed_micro": _schedule(100, 5, 200, {(2, 3): 75, (4, 10): 100}),
    "boulevard_fixed_1_2": _schedule(500, 25, 200, {(2, 3): 75, (4, 10): 200}),
    "boulevard_fixed_2_4": _schedule(1000, 50, 0, {(2, 3): 75, (4, 10): 200}),
}
PLAYED = [
    name
    for name, case in CASES.items()
    if "actions" in case
    and all(
        {"act", "probe", "deal", "next_round", "deal_community_for_seventh"} & set(step) or step.get("event") in EVENTS
        for step in case["actions"]
    )
    and "limit" in case["setup"]
    and "state" not in case["setup"]
    and not any("rpc" in step for step in case["actions"])
]
ERRATA = {
    # Seat 2 is the big blind and has 1,000 in: 4,000 is 3,000 more, not the 3,500 that the small blind would owe.
    ("LIMIT-07b", 3500): 3000,
}


def _stakes(setup: dict[str, Any]) -> game_pb2.Stakes:
    given = setup["stakes"]
    stakes = game_pb2.Stakes(ante=given.get("ante", 0), bring_in=given.get("bring_in", 0))
    if "bb" in given:
        stakes.blinds.extend([given["sb"], given["bb"]])
    stakes.low_limit = given.get("small_bet", given.get("bb", 0))
    stakes.high_limit = given.get("big_bet", 0)
    stakes.spread_max.extend(given.get("spread_max", []))
    return stakes


def _deal_order(case: dict[str, Any], order: list[int]) -> list[int]:
    """The deck from the top: everyone's cards street by street, then the board, as the case writes them down."""
    holes = {seat["seat"]: parse(" ".join(seat.get("hole", []))) for seat in case["setup"]["seats"]}
    board: list[int] = []
    for step in case["actions"]:
        board += parse(" ".join(step.get("deal", step.get("deal_community_for_seventh", []))))
    used = {card for cards in holes.values() for card in cards} | set(board)
    spare = iter([card for card in FULL_DECK if card not in used])
    game = case["setup"]["game"]
    dealt = {"holdem": 2, "omaha": 4, "omaha8": 4, "draw5": 5, "td27": 5, "draw32": 5, "closed": 5}.get(game, 3)
    for cards in holes.values():
        cards.extend(next(spare) for _ in range(dealt - len(cards)))
    most = max(len(cards) for cards in holes.values())
    deck = [holes[seat][n] for n in range(dealt) for seat in order]
    for n in range(dealt, most):
        deck += [holes[seat][n] for seat in order if len(holes[seat]) > n]
    return deck + board


def _room(case: dict[str, Any]) -> Room:
    setup = case["setup"]
    stacks = {seat["seat"]: seat["stack"] for seat in setup["seats"]}
    made = room(
        stacks,
        setup["game"],
        LIMITS[setup["limit"]],
        button=setup["button"],
        rake=RAKES[setup.get("rake_profile", "none")],
        stakes=_stakes(setup),
        rules=game_pb2.TableRules(protections_per_24h=2, fourth_street_high="pair"),
    )
    posts = {post["seat"]: post for post in setup.get("posts", [])}
    if posts:
        made.table.last_dealt = len(stacks)
    for seat in made.table.seats.values():
        post = posts.get(seat.number, {"live": 0, "dead": 0})
        seat.entry, seat.missed_small = post["live"] > 0, post["dead"] > 0
    return made


def _start(made: Room, case: dict[str, Any]) -> None:
    seats = sorted(made.table.seats, key=lambda seat: (seat <= case["setup"]["button"], seat))
    made.start("".join(NAMES[card] for card in _deal_order(case, seats)))


def _probe(made: Room, step: dict[str, Any], name: str) -> None:
    asked = prompt(made.table)
    if step["probe"] == "no_actor":
        assert asked is None
        return
    assert asked is not None
    assert asked.seat == step["seat"]
    expect, offer = step["expect"], asked.offer
    assert (playing.FOLD in offer.actions) == expect["fold"]
    assert (playing.CHECK in offer.actions) == expect["check"]
    assert (offer.call or None) == ERRATA.get((name, expect["call"]), expect["call"])
    assert (offer.min_raise_to or None) == expect["min_raise_to"]
    assert (offer.max_raise_to or None) == expect["max_raise_to"]


def _step(made: Room, step: dict[str, Any], name: str = "") -> None:
    if "probe" in step:
        _probe(made, step, name)
        return
    if "next_round" in step:
        while (asked := prompt(made.table)) is not None and playing.DISCARD in asked.offer.actions:
            made.act(asked.seat, playing.DISCARD)
        return
    if "event" in step:
        _event(made, step)
    if "act" not in step:
        return
    kind, amount = _kind(made, step["act"]), step.get("amount", 0)
    cards = "".join(step.get("cards", []))
    if "expect_error" in step:
        before = made.table.version
        with pytest.raises(Rejected) as refused:
            made.act(step["seat"], kind, amount, cards)
        assert str(refused.value).split(":")[0] == step["expect_error"]
        assert made.table.version == before
    else:
        made.act(step["seat"], kind, amount, cards)


def _kind(made: Room, word: str) -> Any:
    """The action that a word stands for; a bet, raise or completion is whichever of them is offered."""
    asked = prompt(made.table)
    sized = (playing.BET, playing.RAISE, playing.COMPLETE)
    offered = [kind for kind in sized if asked is not None and kind in asked.offer.actions]
    return offered[0] if offered and KINDS[word] in sized else KINDS[word]


def _event(made: Room, step: dict[str, Any]) -> None:
    """Something that happens to a player instead of an action of theirs."""
    if step["event"] == "leave":
        made.do(cmd.LeaveSeat(f"p{step['seat']}"))
        return
    asked = made.asked()
    assert asked.seat == step["seat"]
    made.do(cmd.Timeout(asked.turn, connected=step["event"] == "draw_timeout"))


@pytest.mark.parametrize("name", PLAYED)
def test_case(name: str) -> None:
    """The hand of the case: refusals, bounds, pots, rake, uncalled chips and final stacks."""
    case = CASES[name]
    made = _room(case)
    _start(made, case)
    for step in case["actions"]:
        _step(made, step, name)
    _check(made, case["expected"])


def _check(made: Room, expected: dict[str, Any]) -> None:
    if "final_stacks" in expected:
        assert made.table.hand is None
        # Of those who left in the hand, too.
        played = {result.seat: result.stack for end in made.of("hand_ended") for result in end.results}
        assert {**made.stacks(), **played} == {int(seat): stack for seat, stack in expected["final_stacks"].items()}
    ends = made.of("hand_ended")
    if "rake" in expected:
        assert [end.rake for end in ends] == [expected["rake"]]
    pots = made.of("pot_awarded")
    if "pots" in expected:
        found = [{"amount": pot.amount, "eligible": list(pot.eligible)} for pot in pots]
        assert found == expected["pots"]
    if "rake_per_pot" in expected:
        assert [pot.rake for pot in pots] == expected["rake_per_pot"]
    if "uncalled_returned" in expected:
        returned = made.of("uncalled_returned")
        assert {str(back.seat): back.amount for back in returned} == expected["uncalled_returned"]
    for seat, net in expected.get("net", {}).items():
        results = {result.seat: result.net for result in ends[0].results}
        assert results[int(seat)] == net
    for part, won in expected.get("detail", {}).items():
        kind = {"high": pb.POT_PART_HIGH, "low": pb.POT_PART_LOW}[part]
        shares = {str(share.seat): share.amount for pot in pots for share in pot.shares if share.part == kind}
        assert shares == won
    if "winner_events" in expected:
        assert len(pots) == expected["winner_events"]
    if "community_card" in expected:
        boards = made.of("board_dealt")
        assert [board.cards for board in boards] == [expected["community_card"]]
    if "bets_counted_for_the_cap" in expected:
        assert made.table.hand is not None
        assert made.table.hand.bets == len(expected["bets_counted_for_the_cap"])
        assert made.table.hand.level == expected["bets_counted_for_the_cap"][-1]


def test_every_case_of_a_hand_is_played() -> None:
    """No case of a hand is left out by the way that the runner picks them."""
    others = set(CASES) - set(PLAYED)
    assert others == {
        *("BLIND-05", "BLIND-07", "POT-02", "POT-03", "RAKE-06", "TIE-01", "EVAL-02", "EVAL-06", "STUD-04"),
        *("DRAW-02", "DRAW-03", "PROTO-02", "PROTO-03", "PROTO-05", "PROTO-07", "PROTO-11"),
        *("PROTO-13", "PROTO-15", "PROTO-16"),
    }


def test_EVAL_01_vectors() -> None:
    """H4: exactly two of four hole cards."""
    words = {"TWOPAIR": "two pair", "FULL": "full house", "HIGH": "high"}
    for board, hole, category in CASES["EVAL-01"]["expected"]["vectors"]:
        assert words[category] in RANKINGS["omaha"].describe(parse(hole), parse(board))


def test_EVAL_02_best_low() -> None:
    """H4, H5: the best low of two hole and three board cards."""
    ranking = RANKINGS["omaha_eight"]
    scores: dict[tuple[int, ...], int] = {}
    for board, hole, low in CASES["EVAL-02"]["expected"]["vectors"]:
        score = ranking.best(parse(hole), parse(board))
        assert (score is None) == (low is None), (board, hole)
        if score is not None:
            assert scores.setdefault(tuple(low), score) == score
    assert sorted(scores, key=lambda low: scores[low], reverse=True) == sorted(scores)


def test_EVAL_04_ranking_from_best_to_worst() -> None:
    """H6, H2: 2-7 counts straights and flushes, the ace only high."""
    hands = CASES["EVAL-04"]["expected"]["ranking_best_to_worst"]
    scores = [RANKINGS["deuce_to_seven"].best(parse(hand), ()) for hand in hands]
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert len(set(scores)) == len(scores)


def test_EVAL_06_ranking_changes_with_the_deck() -> None:
    """H8, D2: flush, quads and full house in 32 cards and in more."""
    sizes = CASES["EVAL-06"]["expected"]["deck_size"]
    for players, a, b, better in CASES["EVAL-06"]["expected"]["vectors"]:
        ranking = RANKINGS[f"closed_{sizes[str(max(players, 2))]}"]
        first, second = ranking.best(parse(a), ()), ranking.best(parse(b), ())
        assert first is not None
        assert second is not None
        assert (first > second) == (better == "a"), (players, a, b)


def test_TIE_01_winners() -> None:
    """H1, H2, H3: kickers that do not play, the board that does."""
    ranking = RANKINGS["standard"]
    for board, holes, winners in CASES["TIE-01"]["expected"]["vectors"]:
        scores = [ranking.best(parse(hole), parse(board)) or 0 for hole in holes]
        assert [at for at, score in enumerate(scores) if score == max(scores)] == winners


def test_RAKE_06_boundary_values() -> None:
    """K4: whole steps only."""
    names = {
        "nlpl": "boulevard_nl_pl",
        "fl_micro": "boulevard_fixed_micro",
        "fl_1_2": "boulevard_fixed_1_2",
        "fl_2_4": "boulevard_fixed_2_4",
    }
    for kind, players, pot, rake in CASES["RAKE-06"]["expected"]["vectors"]:
        schedule = RAKES[names[kind]]
        assert schedule is not None
        assert rake_for(schedule, [pot], players)[0] == rake, (kind, players, pot)


def _big_blind(made: Room) -> dict[str, Any]:
    started = made.of("hand_started")[-1]
    number = started.button
    blinds = {blind.kind: blind for blind in made.of("blind_posted")[-2:]}
    result: dict[str, Any] = {"button": number, "small_blind": None}
    for key, kind in (("small_blind", pb.BLIND_KIND_SMALL), ("big_blind", pb.BLIND_KIND_BIG)):
        if kind in blinds:
            result[key] = {"seat": blinds[kind].seat, "posts": blinds[kind].amount}
    return result


def test_BLIND_05_three_players_to_two() -> None:
    """S2, S1: the button posts the small blind; nobody pays the big blind twice running."""
    expected = CASES["BLIND-05"]["expected"]
    made = room([4000, 1000, 4000], button=1)
    made.start("KdAsQc KhAhJc 2c7d9hTs3c")
    made.act(1, playing.FOLD)
    made.act(2, playing.ALL_IN)
    made.act(3, playing.CALL)
    assert made.table.seats[2].stack == 0
    made.start()
    found = _big_blind(made)
    assert found == {key: expected[key] for key in found}
    assert made.asked().seat == expected["first_to_act_preflop"]
    made.act(3, playing.CALL)
    made.act(1, playing.CHECK)
    assert made.asked().seat == expected["first_to_act_postflop"]


@pytest.mark.parametrize("rule", ["moving", "dead"])
def test_BLIND_07_big_blind_leaves(rule: str) -> None:
    """S2: who posts in the next hand, with the moving and with the dead button."""
    expected = CASES["BLIND-07"]["expected"]
    made = room([4000] * 4, button=1, rules=game_pb2.TableRules(button_rule=rule))
    made.start()
    made.passive()
    made.do(cmd.LeaveSeat("p3"))
    made.start()
    if rule == "dead":
        expected = expected["alternative_dead_button"]
    found = _big_blind(made)
    assert found["button"] == expected["button"]
    assert found["small_blind"] == expected["small_blind"]
    assert found["big_blind"] == expected["big_blind"]
    if rule == "moving":
        assert made.asked().seat == expected["first_to_act_preflop"]


@pytest.mark.parametrize("ending", ["i", "ii", "iii"])
def test_POT_02_side_pot_example(ending: str) -> None:
    """B12: A and B put 100, C is all-in for 50; the three endings."""
    case = CASES["POT-02"]
    deal = case["setup"]["deals"][ending]
    made = room([100, 100, 50], "closed", stakes=game_pb2.Stakes(ante=10), button=3)
    hands = [parse(deal[f"s{seat}"]) for seat in (1, 2, 3)]
    made.start("".join(NAMES[hands[at][n]] for n in range(5) for at in range(3)))
    for seat in (1, 2, 3):
        made.act(seat, playing.ALL_IN)
    made.passive()
    assert {seat: made.stacks().get(seat, 0) for seat in (1, 2, 3)} == {
        int(seat): stack for seat, stack in case["expected"][ending].items()
    }


def test_POT_03_uncovered_bet_returns_to_a_leaver() -> None:
    """B11, S6: 9,500 back to B, 1,020 to A, no showdown."""
    expected = CASES["POT-03"]["expected"]
    made = room([2000, 20000], "closed", stakes=game_pb2.Stakes(ante=10), button=2)
    made.start()
    made.act(1, playing.BET, 500)
    made.act(2, playing.RAISE, 10000)
    made.do(cmd.LeaveSeat("p2"))
    returned = made.of("uncalled_returned")[0]
    pot = made.of("pot_awarded")[0]
    assert (returned.seat, returned.amount) == (2, expected["returned_to_2"])
    assert pot.amount == expected["paid_to_1"]
    assert made.table.seats[1].stack == expected["final_stacks"]["1"]
    assert [transfer.amount for transfer in made.table.transfers.values()] == [expected["final_stacks"]["2"]]
    assert not made.of("hand_shown")


def test_PROTO_03_hostile_amounts() -> None:
    """Each refused amount leaves the hand unchanged; nothing is silently turned into an all-in."""
    case = CASES["PROTO-03"]
    made = room([2000] * 3, button=1)
    made.start()
    values = [step["amount"] for step in case["actions"]] + [float("nan"), float("inf"), 300.0, b"300"]
    errors = [step["expect_error"] for step in case["actions"]] + ["INVALID_AMOUNT"] * 4
    for amount, error in zip(values, errors, strict=True):
        with pytest.raises(Rejected) as refused:
            made.act(1, playing.RAISE, amount)
        assert str(refused.value).startswith(error), amount
    expected = case["expected"]
    assert made.stacks() == {int(seat): stack for seat, stack in expected["stacks"].items()}
    assert made.table.pot() == expected["pot"]
    assert made.asked().seat == expected["next_actor"]
    made.act(1, playing.RAISE, 200)
    assert made.stacks()[1] == expected["then"]["stack_1"]


def test_PROTO_08_disconnect_protection_is_on_record() -> None:
    """C2: artificial all-in for the part already in the pot; one protection is used (the rest is played above)."""
    case = CASES["PROTO-08"]
    made = _room(case)
    _start(made, case)
    for step in case["actions"]:
        _step(made, step)
    assert [event.seat for event in made.of("protection_used")] == [2]


def test_PROTO_10_bytes_hold_no_hole_card() -> None:
    """G14: a hand that ends by folds shows nothing; checked in the raw bytes of every viewer."""
    case = CASES["PROTO-10"]
    made = _room(case)
    _start(made, case)
    for step in case["actions"]:
        _step(made, step)
    public = b"".join(public_bytes(event) for event in made.log)
    streams = {seat: b"".join(redact(event, seat).SerializeToString() for event in made.log) for seat in (1, 2)}
    for card in (b"As", b"Ah", b"Qd", b"Qh"):
        assert card not in public
    assert b"AsAh" in streams[1]
    assert b"QdQh" in streams[2]
    assert not any(card in streams[2] for card in (b"As", b"Ah"))
    assert not any(card in streams[1] for card in (b"Qd", b"Qh"))
    assert not made.of("hand_shown")
