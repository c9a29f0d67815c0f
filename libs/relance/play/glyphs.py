"""Signs, cards, money and names as text of a known width. Nothing needs a colour to be understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from relance.api.common.v1 import game_pb2
from relance.client.names import CurrencyName

Align = Literal["left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of one kind of terminal, each one cell wide."""

    suits: dict[str, str]
    back: str
    button: str
    turn: str
    full: str
    empty: str
    on: str
    off: str
    corners: str
    across: str
    down: str
    ellipsis: str
    dash: str
    dot: str
    euro: str
    four_colours: bool = False


SYMBOLS: Final = Glyphs(
    {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}, "▒", "D", "►", "█", "░", "●", "○", "╭╮╰╯", "─", "│", "…", "–", "·", "€"
)
LETTERS: Final = Glyphs(
    {"c": "c", "d": "d", "h": "h", "s": "s"}, "#", "D", ">", "#", ".", "*", "o", "++++", "-", "|", "~", "-", "-", "EUR"
)
_TWO_COLOURS: Final = {"h": "red", "d": "red"}
_FOUR_COLOURS: Final = {"h": "red", "d": "blue", "c": "green"}

LIMITS: Final = {
    game_pb2.LIMIT_FIXED: "fixed limit",
    game_pb2.LIMIT_SPREAD: "spread limit",
    game_pb2.LIMIT_POT: "pot limit",
    game_pb2.LIMIT_HALF_POT: "half-pot limit",
    game_pb2.LIMIT_NO_LIMIT: "no limit",
}
#: As players write them.
LIMIT_LETTERS: Final = {
    game_pb2.LIMIT_FIXED: "FL",
    game_pb2.LIMIT_SPREAD: "SL",
    game_pb2.LIMIT_POT: "PL",
    game_pb2.LIMIT_HALF_POT: "HP",
    game_pb2.LIMIT_NO_LIMIT: "NL",
}
GAMES: Final = {
    "holdem": "Hold'em",
    "omaha": "Omaha",
    "omaha8": "Omaha Hi/Lo 8",
    "soko": "Soko",
    "stud5": "5-card stud",
    "stud7": "7-card stud",
    "stud8": "7-card stud Hi/Lo 8",
    "draw5": "5-card draw",
    "td27": "2-7 triple draw",
    "draw32": "32-card draw",
    "closed": "Closed poker",
}


def glyphs_for(encoding: str, *, ascii_only: bool = False) -> Glyphs:
    """The signs that a terminal of this encoding can show."""
    if ascii_only:
        return LETTERS
    try:
        "".join((*SYMBOLS.suits.values(), SYMBOLS.button, SYMBOLS.turn, SYMBOLS.full)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return SYMBOLS


def game_title(game: str) -> str:
    """A game's name for people; the id of a game newer than this client, readable."""
    return GAMES.get(game, game.replace("_", " ").capitalize())


def split_cards(cards: str) -> list[str]:
    """ "AsTd" as ["As", "Td"]."""
    return [cards[at : at + 2] for at in range(0, len(cards), 2)]


def card_text(card: str, glyphs: Glyphs, *, bold: bool = True) -> Text:
    """One card, two cells: rank and suit. "??": a back."""
    suit = card[1:2]
    sign = glyphs.suits.get(suit)
    if sign is None:
        return Text(glyphs.back * 2)
    colour = (_FOUR_COLOURS if glyphs.four_colours else _TWO_COLOURS).get(suit, "")
    return Text(card[0] + sign, f"{'bold ' if bold else ''}{colour}".strip())


def cards_text(cards: str, glyphs: Glyphs, *, gap: str = " ", bold: bool = True) -> Text:
    """Cards side by side."""
    return Text(gap).join([card_text(card, glyphs, bold=bold) for card in split_cards(cards)])


def money(amount: int, currency: int, glyphs: Glyphs = SYMBOLS) -> str:
    """Minor units for people: "1,234.50 €", "1,234 V$"."""
    if currency == game_pb2.CURRENCY_CREDIT:
        return f"{amount:,} {unit(currency)}"
    return f"{figure(amount, currency)} {unit(currency, glyphs)}"


def signed(amount: int, currency: int, glyphs: Glyphs = SYMBOLS) -> str:
    """A result for people: "+12.50 €", "-3.00 €"."""
    return f"{'+' if amount > 0 else ''}{money(amount, currency, glyphs)}"


def unit(currency: int, glyphs: Glyphs = SYMBOLS) -> str:
    """What amounts of a currency end with."""
    return "V$" if currency == game_pb2.CURRENCY_CREDIT else glyphs.euro


def currency_name(currency: int) -> CurrencyName:
    """The client library's word for a currency."""
    return "credit" if currency == game_pb2.CURRENCY_CREDIT else "eur"


def figure(amount: int, currency: int) -> str:
    """Minor units for people, without the unit: "1,234.50", "1,234"."""
    if currency == game_pb2.CURRENCY_CREDIT:
        return f"{amount:,}"
    sign, cents = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{cents // 100:,}.{cents % 100:02d}"


def parse_money(text: str, currency: int) -> int:
    """What people type as minor units: "12", "12.5", "12,50"; for credits whole numbers. Raises ValueError."""
    whole, point, part = text.strip().replace(",", ".").partition(".")
    decimals = 0 if currency == game_pb2.CURRENCY_CREDIT else 2
    if not (whole or part) or not (whole + part).isascii() or not (whole + part).isdigit() or len(part) > decimals:
        example = "120" if decimals == 0 else "12.50"
        raise ValueError(f"{text.strip() or 'nothing'} is no amount; {example} would be one")
    if point and not part:
        raise ValueError(f"{text.strip()} is no amount")
    return int(whole or "0") * (100 if decimals else 1) + int(part.ljust(decimals, "0") or "0")


def stakes_text(config: game_pb2.TableConfig) -> str:
    """What a table is played for, short: "0.50/1.00", "2.00/4.00 ante 0.25"."""
    stakes, currency = config.stakes, config.currency
    parts = []
    if config.limit == game_pb2.LIMIT_FIXED and stakes.low_limit and stakes.high_limit:
        parts.append(f"{figure(stakes.low_limit, currency)}/{figure(stakes.high_limit, currency)}")
    elif stakes.blinds:
        parts.append("/".join(figure(blind, currency) for blind in stakes.blinds))
    elif stakes.low_limit:
        parts.append(figure(stakes.low_limit, currency))
    if stakes.ante:
        parts.append(f"ante {figure(stakes.ante, currency)}")
    return " ".join(parts)


def clean(text: str) -> str:
    """A text of others, without what could move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def fit(text: Text, width: int, align: Align = "left", ellipsis: str = "…") -> Text:
    """The text at exactly `width` cells: cut with an ellipsis, or padded."""
    missing = width - cell_len(text.plain)
    if missing < 0:
        cut = text.copy()
        cut.truncate(max(width - 1, 0), overflow="crop")
        cut.append(ellipsis if width > 0 else "")
        cut.pad_right(width - cell_len(cut.plain))
        return cut
    left = {"left": 0, "center": missing // 2, "right": missing}[align]
    padded = text.copy()
    padded.pad_left(left)
    padded.pad_right(missing - left)
    return padded


def short(name: str, width: int, glyphs: Glyphs) -> str:
    """A name in at most `width` cells."""
    name = clean(name)
    return name if cell_len(name) <= width else set_cell_size(name, width - 1).rstrip() + glyphs.ellipsis
