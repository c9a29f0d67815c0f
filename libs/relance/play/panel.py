"""What stands above and below the table: the head line, the player's own cards and choices, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from relance.api.table.v1 import table_pb2 as pb
from relance.play.catalogue import title
from relance.play.choices import Choice, Marks, Sizes
from relance.play.drawing import Seconds
from relance.play.glyphs import (
    LIMITS,
    Glyphs,
    card_text,
    cards_text,
    figure,
    fit,
    game_title,
    money,
    stakes_text,
    unit,
)

WATCHING = (("s", "sit down"), ("1-9", "that seat"), ("w", "wait"), ("h", "hands"))
SEATED = (("z", "sit out"), ("t", "top up"), ("l", "leave"), ("/", "talk"), ("e", "prefs"), ("h", "hands"))
AWAY = (("z", "sit in"), *SEATED[1:])
# Joining a table takes so long without a word.
_PATIENT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Panel:
    """What the panel below the table shows.

    choices: to the prompt. marks: of a draw. confirm: a question that waits. entering: an amount is being typed.
    sent: the answer is on its way. message: the last thing to say. sizes, total: of the bet that is being entered.
    player: who looks.
    """

    view: pb.TableView
    glyphs: Glyphs
    choices: Sequence[Choice] = ()
    marks: Marks | None = None
    confirm: str = ""
    entering: bool = False
    sent: bool = False
    message: str = ""
    sizes: Sizes | None = None
    total: int = 0
    player: str = ""


class Clock:
    """Seconds left for the prompt, by this machine's clock."""

    def __init__(self) -> None:
        self._key = (0, 0)
        self._ends = 0.0
        self._whole = 0.0
        self._bank = 0.0

    def see(self, view: pb.TableView, now: float) -> None:
        """Take note of the view's prompt at `now`, seconds of a monotonic clock."""
        key = (view.prompt.turn, view.prompt.deadline_us) if view.HasField("prompt") else (0, 0)
        if key == self._key:
            return
        self._bank = view.prompt.time_bank_ms / 1000
        if key[0] != self._key[0]:
            self._whole = view.prompt.remaining_ms / 1000 - self._bank
        self._key = key
        self._ends = now + view.prompt.remaining_ms / 1000

    def seconds(self, now: float) -> Seconds | None:
        """What is left; None: no clock runs."""
        if not self._key[0]:
            return None
        left = max(self._ends - now, 0.0)
        return Seconds(max(left - self._bank, 0.0), self._whole, min(left, self._bank))


class Absence:
    """How long the table has not answered. It begins with joining, at `now` of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._joined = False

    def see(self, connected: bool, now: float, message: str) -> str:
        """Take note of the connection; the message from now on: once that the table is back, where nothing is newer."""
        if not connected:
            if not self._since:
                self._since, message = now, ""
            return message
        away, self._since = now - self._since if self._since else 0.0, 0.0
        back = self._joined and away > 0
        self._joined = True
        return f"The table is back after {away:.0f} s." if back and not message else message

    def text(self, now: float) -> str:
        """What is said while it lasts."""
        waited = now - self._since
        if not self._joined and waited < _PATIENT_SECONDS:
            return "Joining the table …"
        return f"The table does not answer; trying again … {waited:.0f} s"


def head_text(view: pb.TableView, glyphs: Glyphs, width: int, *, connected: bool) -> Text:
    """Which table, and whether the connection stands."""
    config = view.config
    dot = f" {glyphs.dot} "
    hand = f"hand {view.hand or view.last_hand}" if view.last_hand else "no hand yet"
    name = title(config, glyphs)
    game = f"{game_title(config.game)} {LIMITS.get(config.limit, '')} {stakes_text(config)} "
    game += unit(config.currency, glyphs)
    parts = [name, *([] if name == game else [game]), hand]
    state = f"{glyphs.on} connected" if connected else f"{glyphs.off} RECONNECTING"
    left = fit(Text(dot.join(parts), "bold"), width - cell_len(state) - 1, ellipsis=glyphs.ellipsis)
    return Text.assemble(left, " ", (state, "green" if connected else "bold red reverse"))


def panel_text(panel: Panel, width: int) -> Text:
    """Own cards; what to do; what happened: three lines. While an amount is typed, its line is another's: two."""
    glyphs = panel.glyphs
    said = Text(panel.message, "bold")
    if panel.entering and not panel.message:
        said = _slider(panel, width)
    rows = (_own(panel), said) if panel.entering else (_own(panel), _doing(panel), said)
    return Text("\n").join(fit(row, width, ellipsis=glyphs.ellipsis) for row in rows)


def _slider(panel: Panel, width: int) -> Text:
    """Where the amount stands between its bounds, and how it is moved."""
    sizes, glyphs, currency = panel.sizes, panel.glyphs, panel.view.config.currency
    if sizes is None:
        return Text("")
    keys = "  up/down  enter: send  esc: back"
    least, most = figure(sizes.least, currency), figure(sizes.most, currency)
    wide = min(max(width - len(keys) - len(least) - len(most) - 4, 5), 40)
    span = sizes.most - sizes.least
    full = round(wide * (min(max(panel.total, sizes.least), sizes.most) - sizes.least) / span) if span else wide
    bar = Text.assemble((glyphs.full * full, "green"), (glyphs.empty * (wide - full), "dim"))
    return Text.assemble(f"{least} ", bar, f" {most}", (keys, "dim"))


def keys_text(view: pb.TableView, width: int, glyphs: Glyphs) -> Text:
    """The keys that always work."""
    if not view.your_seat:
        keys: Sequence[tuple[str, str]] = WATCHING
    else:
        keys = AWAY if view.seats[view.your_seat - 1].sitting_out else SEATED
    guests = (("g", "guests"),) if view.config.private else ()
    keys = (*keys, *guests, ("?", "keys"), ("esc", "lobby"))
    text = Text("  ").join(Text.assemble((f"{key}", "bold"), f" {label}") for key, label in keys)
    return fit(text, width, ellipsis=glyphs.ellipsis)


def _own(panel: Panel) -> Text:
    view, glyphs = panel.view, panel.glyphs
    if not view.your_seat:
        return Text(f"You are watching; {_free_seats(view, panel.player)}.")
    me = view.seats[view.your_seat - 1]
    stack = money(me.stack, view.config.currency, glyphs)
    if me.reserved:
        return Text("Your buy-in is on its way …")
    if panel.marks is not None:
        return Text.assemble("Your cards  ", _marked(panel.marks, glyphs))
    cards = Text.assemble(
        "Your cards  ", cards_text(me.down, glyphs), "   " if me.up else "", cards_text(me.up, glyphs)
    )
    held = f" (+{money(me.chips_held, view.config.currency, glyphs)} next hand)" if me.chips_held else ""
    bank = f" {glyphs.dot} time bank {me.time_bank_ms / 1000:.0f} s" if view.config.timers.time_bank_ms else ""
    return Text.assemble(
        cards if me.in_hand and not me.folded else "No cards", f"   {glyphs.dot} {stack}{held}{bank}", _standing(me)
    )


def _free_seats(view: pb.TableView, player: str) -> str:
    """What somebody without a seat may do about it."""
    held = next((seat.seat for seat in view.seats if seat.reserved and seat.player == player), 0)
    free = sum(not seat.player for seat in view.seats)
    if held:
        return f"seat {held} is held for you: s sits down"
    return f"{free} of {len(view.seats)} seats are free: s sits down" if free else "no seat is free: w waits for one"


def _standing(me: pb.SeatView) -> str:
    if me.leaving:
        return "  you leave after this hand"
    if me.sitting_out:
        return "  you sit out: z sits in"
    if me.waiting_for_big_blind:
        return "  you wait for the big blind"
    return ""


def _marked(marks: Marks, glyphs: Glyphs) -> Text:
    """The cards numbered, the marked ones in brackets with a cross."""
    parts = []
    for place, card in enumerate(marks.cards):
        marked = place in marks.places
        parts.append(
            Text.assemble(
                (f"{place + 1}", "dim"), "[" if marked else " ", card_text(card, glyphs), "]x" if marked else "  "
            )
        )
    return Text(" ").join(parts)


def _doing(panel: Panel) -> Text:
    if panel.sent:
        return Text("Sent …", "dim")
    if panel.confirm:
        return Text.assemble((panel.confirm, "bold reverse"), "  same key or enter: yes   esc: no")
    if panel.marks is not None:
        count = len(panel.marks.places)
        last = f"1-{len(panel.marks.cards)}"
        do = f"exchange {count}" if count else "stand pat"
        return Text.assemble((last, "bold"), " mark  ", ("enter", "bold"), f" {do}  (at most {panel.marks.most})")
    return Text("   ").join(Text.assemble((choice.key, "bold reverse"), f" {choice.label}") for choice in panel.choices)
