"""What a player is doing about the prompt: choosing, sure of it, entering an amount, marking cards, waiting."""

from __future__ import annotations

from dataclasses import dataclass

from relance.api.table.v1 import table_pb2 as pb
from relance.play.choices import Choice, Marks, Sizes, choices, sizes
from relance.play.glyphs import SYMBOLS, Glyphs


@dataclass(frozen=True, slots=True)
class Answer:
    """An action to send, for the turn that it answers."""

    turn: int
    kind: pb.ActionKind.ValueType
    amount: int = 0
    cards: str = ""


class Answering:
    """Keys in, an answer out. A new turn begins anew; the end of a turn ends whatever was being done."""

    def __init__(self, glyphs: Glyphs = SYMBOLS) -> None:
        self._glyphs = glyphs
        self._currency = 0
        self.turn = 0
        self.choices: tuple[Choice, ...] = ()
        self.marks: Marks | None = None
        self.confirm: Choice | None = None
        self.entry: Choice | None = None
        self.sizes: Sizes | None = None
        self.sent = False

    def see(self, view: pb.TableView) -> bool:
        """Take note of the table; whether a new turn of the player began."""
        mine = view.HasField("prompt") and view.your_seat > 0 and view.prompt.seat == view.your_seat
        turn = view.prompt.turn if mine else 0
        if turn == self.turn:
            return False
        self.turn, self.sent, self._currency = turn, False, view.config.currency
        self.confirm = self.entry = self.sizes = self.marks = None
        self.choices = choices(view.prompt, self._currency, self._glyphs) if mine else ()
        if mine and pb.ACTION_KIND_DISCARD in view.prompt.actions:
            self.marks = Marks(view.seats[view.your_seat - 1].down, view.prompt.max_discards)
        if mine and view.prompt.max_raise_to:
            self.sizes = sizes(view.prompt, view)
        return mine

    def press(self, key: str) -> tuple[bool, Answer | None]:
        """A key: whether it meant something, and the answer that it completed."""
        if not self.turn or self.sent:
            return False, None
        if self.marks is not None:
            return self._mark(key)
        if self.confirm is not None:
            return self._sure(key, self.confirm)
        choice = next((choice for choice in self.choices if choice.key == key or (choice.sized and key == "b")), None)
        if choice is None:
            return False, None
        if choice.sized:
            self.entry = choice
            return True, None
        if choice.confirm:
            self.confirm = choice
            return True, None
        return True, self._done(Answer(self.turn, choice.kind, choice.amount))

    def entered(self, text: str) -> Answer:
        """The amount typed. Raises ValueError with what would be accepted."""
        assert self.entry is not None
        assert self.sizes is not None
        total = self.sizes.read(text, self._currency)
        kind = self.entry.kind
        self.entry = None
        return self._done(Answer(self.turn, kind, total))

    def back(self) -> bool:
        """Take back what was begun; False: nothing was."""
        begun = (
            self.confirm is not None or self.entry is not None or (self.marks is not None and bool(self.marks.places))
        )
        self.confirm = self.entry = None
        if self.marks is not None:
            self.marks.places.clear()
        return begun

    def refused(self) -> None:
        """The answer was refused and changed nothing: the turn stands."""
        self.sent = False

    def _done(self, answer: Answer) -> Answer:
        self.sent = True
        return answer

    def _sure(self, key: str, choice: Choice) -> tuple[bool, Answer | None]:
        self.confirm = None
        if key in {choice.key, "enter"}:
            return True, self._done(Answer(self.turn, choice.kind, choice.amount))
        return True, None

    def _mark(self, key: str) -> tuple[bool, Answer | None]:
        assert self.marks is not None
        if key.isdigit() and key != "0":
            return self.marks.toggle(int(key) - 1), None
        if key == "enter":
            return True, self._done(Answer(self.turn, pb.ACTION_KIND_DISCARD, cards=self.marks.marked))
        return False, None
