"""The table drawn: seats around the middle, the viewer at the bottom, from the view and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from relance.api.table.v1 import table_pb2 as pb
from relance.play.glyphs import SYMBOLS, Align, Glyphs, cards_text, figure, fit, money, short
from relance.play.recap import Recap

SEAT_LINES = 4
# Least and most lines of the middle.
MIDDLE_LINES = (5, 9)
SIDE_WIDTH = 20
_ASKS = {
    pb.PROMPT_KIND_DRAW: "draws",
    pb.PROMPT_KIND_SPLIT: "answers the split offer",
    pb.PROMPT_KIND_POST: "posts or not",
    pb.PROMPT_KIND_SHOW: "shows or mucks",
}


class Seconds(NamedTuple):
    """A clock: what is left of the decision time, what it began with, and what the time bank adds."""

    left: float
    whole: float
    bank: float = 0.0


@dataclass(frozen=True, slots=True)
class Scene:
    """All that the drawing depends on. `seconds`: None where no clock runs."""

    view: pb.TableView
    names: Mapping[str, str]
    recap: Recap
    seconds: Seconds | None = None
    glyphs: Glyphs = SYMBOLS

    def name(self, player: str, width: int = 16) -> str:
        """A player's name in at most `width` cells."""
        return short(self.names.get(player, player), width, self.glyphs)

    @property
    def asked(self) -> int:
        """Seat that is asked; 0: none."""
        return self.view.prompt.seat if self.view.HasField("prompt") else 0

    def money(self, amount: int) -> str:
        """An amount of this table."""
        return money(amount, self.view.config.currency, self.glyphs)


def draw_table(scene: Scene, width: int, height: int) -> Text:
    """The table in exactly `height` lines of exactly `width` cells; 80 by 13 is enough for ten seats."""
    top, left, right, bottom = _places(scene.view)
    blank = Text(" " * width)
    middle_lines = min(max(height - 2 * SEAT_LINES, MIDDLE_LINES[0]), MIDDLE_LINES[1])
    spare = max(height - 2 * SEAT_LINES - middle_lines, 0)
    margin = min(spare // 2, 2)
    outside = (spare - 2 * margin) // 2
    lines = [blank] * outside + _row(scene, top, width) + [blank] * margin
    lines += _middle(scene, left, right, width, middle_lines)
    lines += [blank] * margin + _row(scene, bottom, width)
    return Text("\n").join((lines + [blank] * (height - len(lines)))[:height])


def _places(view: pb.TableView) -> tuple[list[int], int, int, list[int]]:
    """Seats of the top row, the left, the right (0: none), the bottom row; clockwise on the screen as at the table."""
    count = len(view.seats)
    sides = count >= 4
    rest = count - 2 * sides
    below = max(rest // 2, 1)
    above = rest - below
    start = view.your_seat or 1
    order = [(start - 1 + step) % count + 1 for step in range(count)]
    own = below // 2
    taken = iter(order)
    bottom = [0] * below
    for place in range(own, -1, -1):
        bottom[place] = next(taken, 0)
    left = next(taken) if sides else 0
    top = [next(taken) for _ in range(above)]
    right = next(taken) if sides else 0
    for place in range(below - 1, own, -1):
        bottom[place] = next(taken)
    return top, left, right, bottom


def _row(scene: Scene, seats: list[int], width: int) -> list[Text]:
    if not seats:
        return [Text(" " * width)] * SEAT_LINES
    cell = width // len(seats)
    wide = min(cell, 28)
    drawn = [[fit(line, cell, "center") for line in _seat(scene, seat, wide, "left")] for seat in seats]
    return [fit(Text("").join(parts), width, "center") for parts in zip(*drawn, strict=True)]


def _middle(scene: Scene, left: int, right: int, width: int, height: int) -> list[Text]:
    side = min(SIDE_WIDTH + max(width - 80, 0) // 4, 28)
    inside = width - 2 * side if left or right else min(width, 60)
    nothing = [Text(" " * side)] * SEAT_LINES
    at_left = _seat(scene, left, side, "left") if left else nothing
    at_right = _seat(scene, right, side, "left") if right else nothing
    above = (height - SEAT_LINES) // 2
    felt = _felt(scene, inside, height)
    lines = []
    for line in range(height):
        place = line - above
        seats = 0 <= place < SEAT_LINES
        parts = [
            at_left[place] if seats else Text(" " * side),
            felt[line],
            at_right[place] if seats else Text(" " * side),
        ]
        lines.append(fit(Text("").join(parts), width) if left or right else fit(felt[line], width, "center"))
    return lines


def _felt(scene: Scene, width: int, height: int) -> list[Text]:
    """The box in the middle: board, pots, whose turn."""
    glyphs, inner = scene.glyphs, width - 4
    rows = [_board(scene), *([_pots(scene, inner)] if scene.view.hand else [])]
    turn = _turn(scene, inner, height - 2 - len(rows))
    if height - 2 - len(rows) < len(turn):
        turn = [Text("  ").join(turn)]
    rows = [*rows, *turn][: height - 2]
    above = (height - 2 - len(rows)) // 2
    rows = [Text("")] * above + rows
    rows += [Text("")] * (height - 2 - len(rows))
    corner, across, down = glyphs.corners, glyphs.across * (width - 2), glyphs.down
    return [
        Text(corner[0] + across + corner[1], "dim"),
        *(
            Text.assemble((f"{down} ", "dim"), fit(row, inner, "center", glyphs.ellipsis), (f" {down}", "dim"))
            for row in rows
        ),
        Text(corner[2] + across + corner[3], "dim"),
    ]


def _board(scene: Scene) -> Text:
    board = scene.view.board or (scene.recap.board if scene.recap.over and not scene.view.hand else "")
    return cards_text(board, scene.glyphs, gap="  ")


def _pots(scene: Scene, width: int) -> Text:
    view = scene.view
    text = f"Pot {scene.money(view.pot)}"
    if len(view.pots) > 1:
        currency = view.config.currency
        parts = " + ".join(figure(pot.amount, currency) for pot in view.pots)
        bets = view.pot - sum(pot.amount for pot in view.pots)
        whole = f"{text} = {parts}{' + bets' if bets > 0 else ''}"
        text = whole if cell_len(whole) <= width else f"{text} in {len(view.pots)} pots"
    return Text(text, "bold")


def _turn(scene: Scene, width: int, lines: int) -> list[Text]:
    """Whose turn and clock; between hands, who won, in as many lines as there are, and that nothing goes on."""
    view = scene.view
    if view.closed:
        return [Text("The table is closed", "bold")]
    if scene.asked:
        return [_who_is_asked(scene, width), *_clock(scene, width)]
    paused = [Text("Paused by the floor", "bold")] if view.paused and not view.hand else []
    if scene.recap.over and not view.hand:
        return [*_winners(scene, width, lines - len(paused)), *paused]
    if paused:
        return paused
    return [Text("" if view.hand else "Waiting for the next hand", "dim")]


def _who_is_asked(scene: Scene, width: int) -> Text:
    prompt, seats = scene.view.prompt, scene.view.seats
    doing = _ASKS.get(prompt.kind, "")
    if scene.asked == scene.view.your_seat:
        return Text(f"{scene.glyphs.turn} Your turn{': ' + _yours(prompt.kind) if doing else ''}", "bold reverse")
    name = scene.name(seats[scene.asked - 1].player, max(width - 26, 8))
    return Text(f"{scene.glyphs.turn} {name} {doing or 'to act'}", "bold")


def _yours(kind: pb.PromptKind.ValueType) -> str:
    return {
        pb.PROMPT_KIND_DRAW: "draw",
        pb.PROMPT_KIND_SPLIT: "split?",
        pb.PROMPT_KIND_POST: "post?",
        pb.PROMPT_KIND_SHOW: "show?",
    }.get(kind, "")


def _clock(scene: Scene, width: int) -> list[Text]:
    if scene.seconds is None:
        return []
    return [clock_text(scene.seconds, min(width - 6, 20), scene.glyphs)]


def clock_text(seconds: Seconds, width: int, glyphs: Glyphs) -> Text:
    """A clock: whole seconds left, and a bar that shrinks; then the time bank."""
    left, whole, bank = seconds
    banked = left <= 0 < bank
    low = left < 5
    more = f"+{bank:.0f} bank" if bank and not banked else ""
    wide = max(width - cell_len(more) - 1, 5) if more else width
    full = min(max(round(wide * left / whole), 0), wide) if whole > 0 else 0
    return Text.assemble(
        (f"{bank:3.0f} s of the time bank" if banked else f"{left:3.0f} s ", "bold red" if low else ""),
        ("" if banked else glyphs.full * full, "red" if low else "green"),
        ("" if banked else glyphs.empty * (wide - full), "dim"),
        (f" {more}" if more else "", "dim"),
    )


def _winners(scene: Scene, width: int, lines: int) -> list[Text]:
    """Who won what with what; where one line is too short for one winner, two."""
    recap, seats = scene.recap, scene.view.seats
    if recap.void:
        return [Text("Hand void: all chips went back", "bold")]
    told = []
    for seat, amount in sorted(recap.won.items(), key=lambda item: -item[1])[:2]:
        player = seats[seat - 1].player
        name = "You" if seat == scene.view.your_seat else scene.name(player, 12) if player else f"Seat {seat}"
        verb = "win" if name == "You" else "wins"
        parts = "+".join(part.strip() for part in recap.parts.get(seat, []))
        told.append((f"{name} {verb} {scene.money(amount)}{' ' + parts if parts else ''}", recap.made(seat)))
    if len(told) == 1 and lines >= 2 and cell_len(": ".join(told[0])) > width:
        return [Text(part, "bold") for part in told[0]]
    return [Text(": ".join(filter(None, parts)), "bold") for parts in told]


def _seat(scene: Scene, number: int, width: int, align: Align) -> list[Text]:
    """One seat: name, chips and state, cards, bet."""
    glyphs = scene.glyphs
    seat = scene.view.seats[number - 1]
    if not seat.player:
        return [
            fit(text, width, align)
            for text in (Text(f"  seat {number}", "dim"), Text("  free", "dim"), Text(""), Text(""))
        ]
    asked, mine = number == scene.asked, number == scene.view.your_seat
    marks = (glyphs.turn if asked else " ") + (glyphs.button if number == scene.view.button else " ")
    name = scene.name(seat.player, width - 8 if mine else width - 4)
    style = "bold reverse" if asked else "bold" if mine else "dim" if seat.folded else ""
    title = Text.assemble((marks, "bold"), " ", (f"{name}{' (you)' if mine else ''}", style))
    state = _state(seat)
    stack = "" if seat.reserved else figure(seat.stack, scene.view.config.currency)
    held = f" +{figure(seat.chips_held, scene.view.config.currency)}" if seat.chips_held else ""
    chips = Text.assemble("   ", (stack + held, "dim" if seat.folded else ""), (f" {state}" if state else "", "italic"))
    return [
        fit(line, width, align, glyphs.ellipsis)
        for line in (title, chips, _cards(scene, seat, width), _bet(scene, seat))
    ]


def _state(seat: pb.SeatView) -> str:
    """What a seat does besides playing, in a word."""
    if seat.reserved:
        return "reserved"
    if not seat.connected:
        return "lost"
    if seat.in_hand and seat.folded:
        return "folded"
    if seat.in_hand and seat.all_in:
        return "ALL-IN"
    if seat.leaving:
        return "leaving"
    if seat.sitting_out:
        return "sits out"
    if seat.waiting_for_big_blind:
        return "waits for BB"
    return ""


def _cards(scene: Scene, seat: pb.SeatView, width: int) -> Text:
    """Cards as far as they are seen: those down (or their backs), then those up."""
    glyphs = scene.glyphs
    recap = scene.recap.shown.get(seat.seat) if scene.recap.over and not scene.view.hand else None
    if recap is not None:
        return _spaced(recap.cards, "", "", width, glyphs)
    if not seat.in_hand or (seat.folded and not seat.down):
        return Text("")
    backs = glyphs.back * max(seat.down_count - len(seat.down) // 2, 0)
    text = _spaced(seat.down, backs, seat.up, width, glyphs)
    if seat.folded:
        text.stylize("dim strike")
    return text


def _spaced(down: str, backs: str, up: str, width: int, glyphs: Glyphs) -> Text:
    for gap in (" ", ""):
        parts = [
            part for part in (cards_text(down, glyphs, gap=gap), Text(backs), cards_text(up, glyphs, gap=gap)) if part
        ]
        text = Text("   ") + Text(" ").join(parts)
        if cell_len(text.plain) <= width:
            break
    return text


def _bet(scene: Scene, seat: pb.SeatView) -> Text:
    won = scene.recap.won.get(seat.seat) if scene.recap.over and not scene.view.hand else None
    currency = scene.view.config.currency
    if won:
        return Text(f"   wins {figure(won, currency)}", "bold")
    return Text(f"   bet {figure(seat.bet, currency)}") if seat.bet else Text("")
