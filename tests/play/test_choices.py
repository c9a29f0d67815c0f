"""Keys in, an answer out: bounds, sizes, marks, questions before what cannot be taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.play.scenes import asked, playing

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2 as pb
from relance.play.answering import Answer, Answering
from relance.play.choices import choices, shortcuts_text, sizes
from relance.play.glyphs import figure, parse_money

EUR, CREDIT = game_pb2.CURRENCY_EUR, game_pb2.CURRENCY_CREDIT
FOLD, CHECK, CALL, RAISE = pb.ACTION_KIND_FOLD, pb.ACTION_KIND_CHECK, pb.ACTION_KIND_CALL, pb.ACTION_KIND_RAISE


def facing_a_bet() -> pb.TableView:
    """10.00 in the pot, 4.00 to call, raises from 8.00 to 100.01."""
    view = playing(3)
    view.pot = 1_000
    actions = FOLD, CALL, RAISE, pb.ACTION_KIND_ALL_IN
    return asked(view, 1, *actions, call=400, min_raise_to=800, max_raise_to=10_001)


def answering(view: pb.TableView) -> Answering:
    doing = Answering()
    assert doing.see(view)
    return doing


def test_choices_say_what_they_cost() -> None:
    labels = [f"{choice.key} {choice.label}" for choice in choices(facing_a_bet().prompt, EUR)]
    assert labels == ["f fold", "c call 4.00", "r raise to 8.00 – 100.01", "a all-in"]


def test_B6_the_pot_is_counted_after_calling() -> None:
    found = sizes(facing_a_bet().prompt, facing_a_bet())
    assert (found.least, found.half_pot, found.pot, found.most) == (800, 1_100, 1_800, 10_001)
    assert shortcuts_text(found, EUR) == "m min 8.00  h half pot 11.00  p pot 18.00  x all-in 100.01"


def test_a_call_is_sent_at_once_for_the_turn_that_asked() -> None:
    doing = answering(facing_a_bet())
    assert doing.press("c") == (True, Answer(9, CALL))
    assert doing.press("c") == (False, None), "sent: nothing more until the room has answered"
    doing.refused()
    assert doing.press("f") == (True, Answer(9, FOLD))


def test_a_raise_is_entered_and_kept_within_its_bounds() -> None:
    doing = answering(facing_a_bet())
    assert doing.press("r") == (True, None)
    for typed, said in (
        ("7.99", "8.00 to 100.01"),
        ("100.02", "8.00 to 100.01"),
        ("eight", "no amount"),
        ("", "nothing"),
    ):
        with pytest.raises(ValueError, match=said):
            doing.entered(typed)
    assert doing.entered("12,5") == Answer(9, RAISE, 1_250)


def test_G11_only_the_sizes_of_fixed_limit_may_be_bet() -> None:
    view = asked(
        playing(3), 1, CHECK, pb.ACTION_KIND_BET, min_raise_to=500, max_raise_to=1_000, raise_sizes=[500, 1_000]
    )
    doing = answering(view)
    assert [choice.label for choice in doing.choices] == ["check", "bet 5.00 or 10.00"]
    doing.press("b")
    with pytest.raises(ValueError, match=r"only 5\.00 or 10\.00 is legal"):
        doing.entered("7")
    assert doing.sizes is not None
    assert [doing.sizes.moved(500, by) for by in (-1, 1, 2)] == [500, 1_000, 1_000]
    assert doing.entered("10") == Answer(9, pb.ACTION_KIND_BET, 1_000)


def test_B3_the_one_size_of_fixed_limit_needs_no_amount() -> None:
    doing = answering(asked(playing(3), 1, FOLD, CALL, RAISE, call=200, min_raise_to=400, max_raise_to=400))
    assert doing.press("r") == (True, Answer(9, RAISE, 400))


def test_B16_a_fold_that_nobody_needs_is_asked_about() -> None:
    doing = answering(asked(playing(3), 1, FOLD, CHECK))
    assert doing.press("f") == (True, None)
    assert doing.confirm is not None
    assert doing.press("x") == (True, None)
    assert doing.confirm is None
    doing.press("f")
    assert doing.press("f") == (True, Answer(9, FOLD))


def test_all_in_is_asked_about_with_the_amount() -> None:
    doing = answering(facing_a_bet())
    doing.press("a")
    assert doing.confirm is not None
    assert doing.confirm.confirm == "All-in, to 100.01 €?"
    assert doing.back()
    assert not doing.back()
    doing.press("a")
    assert doing.press("enter") == (True, Answer(9, pb.ACTION_KIND_ALL_IN))


def test_D8_cards_are_marked_and_unmarked_until_they_are_sent() -> None:
    view = asked(playing(3, cards=5, own="AsKdQhJcTs"), 1, pb.ACTION_KIND_DISCARD, max_discards=2)
    doing = answering(view)
    assert [doing.press(key)[0] for key in ("1", "3", "5", "9")] == [True, True, False, False]
    assert doing.press("1") == (True, None)
    assert doing.press("enter") == (True, Answer(9, pb.ACTION_KIND_DISCARD, cards="Qh"))


def test_D8_no_mark_stands_pat() -> None:
    view = asked(playing(3, cards=5, own="AsKdQhJcTs"), 1, pb.ACTION_KIND_DISCARD, max_discards=5)
    assert answering(view).press("enter") == (True, Answer(9, pb.ACTION_KIND_DISCARD))


@pytest.mark.parametrize(
    ("kind", "actions", "keys"),
    [
        (pb.PROMPT_KIND_SPLIT, (pb.ACTION_KIND_ACCEPT_SPLIT, pb.ACTION_KIND_REFUSE_SPLIT), "yn"),
        (pb.PROMPT_KIND_SHOW, (pb.ACTION_KIND_SHOW, pb.ACTION_KIND_MUCK), "sm"),
        (pb.PROMPT_KIND_POST, (pb.ACTION_KIND_POST, FOLD), "fp"),
        (pb.PROMPT_KIND_BET, (pb.ACTION_KIND_BRING_IN, pb.ACTION_KIND_COMPLETE), "ir"),
        (pb.PROMPT_KIND_BET, (FOLD, CHECK, pb.ACTION_KIND_BET, pb.ACTION_KIND_OFFER_SPLIT), "fcro"),
    ],
)
def test_every_kind_of_prompt_has_its_keys(
    kind: pb.PromptKind.ValueType, actions: tuple[pb.ActionKind.ValueType, ...], keys: str
) -> None:
    view = asked(playing(3), 1, *actions, min_raise_to=200, max_raise_to=10_000)
    view.prompt.kind = kind
    assert "".join(choice.key for choice in answering(view).choices) == keys


def test_every_action_of_the_contract_can_be_given() -> None:
    actions = [kind for kind in pb.ActionKind.values() if kind != pb.ACTION_KIND_UNSPECIFIED]
    view = asked(playing(3), 1, *actions, call=100, min_raise_to=200, max_raise_to=300)
    kinds = {choice.kind for choice in choices(view.prompt, EUR)} | {pb.ACTION_KIND_DISCARD}
    assert kinds == set(actions)


def test_what_was_begun_ends_with_the_turn() -> None:
    view = facing_a_bet()
    doing = answering(view)
    doing.press("r")
    view.prompt.turn += 1
    assert doing.see(view)
    assert doing.entry is None
    doing.press("a")
    view.ClearField("prompt")
    assert not doing.see(view)
    assert (doing.turn, doing.confirm, doing.choices) == (0, None, ())


@given(st.integers(0, 10**15), st.sampled_from([EUR, CREDIT]))
def test_an_amount_is_read_as_it_is_written(amount: int, currency: game_pb2.Currency.ValueType) -> None:
    assert parse_money(figure(amount, currency).replace(",", ""), currency) == amount


@pytest.mark.parametrize("text", ["", ".", "-1", "1e3", "1.234", "²", "1 2", "0x10", "1.2.3", "٣"])
def test_what_is_no_amount_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="no amount"):
        parse_money(text, EUR)


def test_credits_have_no_parts() -> None:
    with pytest.raises(ValueError, match="120 would be one"):
        parse_money("1.5", CREDIT)
