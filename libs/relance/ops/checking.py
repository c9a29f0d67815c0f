"""`relance check-hands`: hands from elsewhere, in PHH, played again by our rules and compared.

A hand's cards, stacks, antes and blinds come from the file, and its actions are decided by the rules as those of a
table with the same stakes. What the rules refuse, and every stack or pot that comes out otherwise, is told.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2 as tb
from relance.ops.errors import NoAnswer
from relance.ops.export.phh import STANDARD
from relance.ops.output import Out, Progress
from relance.ops.words import counted
from relance.poker import Context, Prompt, Rejected, Table, apply, decide, initial, prompt
from relance.poker import commands as cmd
from relance.poker.cards import FULL_DECK, parse
from relance.poker.deck import CardSource
from relance.poker.games import GAMES, Forced

_GAMES: Final = {code: found for found, code in STANDARD.items()}
_RAISES: Final = (tb.ACTION_KIND_BET, tb.ACTION_KIND_RAISE, tb.ACTION_KIND_COMPLETE)


class Refusal(Exception):
    """The rules do not take an action where the file has it."""


class Unreadable(Exception):
    """The hand cannot be played here: its variant is unknown, or it says things that no table can do."""


@dataclass(slots=True)
class Checked:
    """One hand. `state`: same, differs, refused or unknown; `lines` explain. Stacks by player, in the file's order."""

    file: str
    hand: str
    state: str = "same"
    lines: list[str] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)
    pots: list[int] = field(default_factory=list)


class _FileCards(CardSource):
    """Cards in the order in which the file deals them; a card that it does not tell is any that is left."""

    def __init__(self, known: Sequence[int]) -> None:
        self._known = known
        self._cards: dict[int, int] = {}

    def begin(self, deck: Sequence[int], *, commit: bool) -> bytes:
        """See CardSource."""
        rest = [card for card in deck if card not in self._known]
        told = iter(self._known)
        self._cards = dict(enumerate([*told, *rest][: len(deck)]))
        return b""

    def card(self, position: int) -> int:
        """See CardSource."""
        return self._cards[position]

    def salt(self, position: int) -> bytes:
        """See CardSource."""
        return b""

    def restock(self, first: int, cards: Sequence[int], undealt: Sequence[int]) -> bytes:
        """See CardSource."""
        for place, card in enumerate([*cards, *(self._cards[at] for at in undealt)], first):
            self._cards[place] = card
        return b""


def hands_in(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The hands of a file, each with its number in it. Raises NoAnswer for a file that is no PHH."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoAnswer(f"{file} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise NoAnswer(f"{file} is no PHH: {error}") from error
    if "variant" in found:
        yield str(found.get("hand", 1)), found
        return
    for number, hand in found.items():
        if not isinstance(hand, dict) or "variant" not in hand:
            raise NoAnswer(f"{file} is no PHH: {number} has no variant")
        yield number, hand


def check(file: str, number: str, hand: dict[str, Any]) -> Checked:
    """Play one hand again and compare it."""
    result = Checked(file, number)
    try:
        table = _play(hand, result)
    except Unreadable as error:
        result.state, result.lines = "unknown", [str(error)]
        return result
    except (Rejected, Refusal) as error:
        result.state, result.lines = "refused", [f"our rules refuse it: {error}", *_its_own(hand)]
        return result
    except (KeyError, TypeError, ValueError, IndexError) as error:
        result.state, result.lines = "unknown", [f"the hand cannot be read: {type(error).__name__} {error}"]
        return result
    _compare(hand, table, result)
    return result


def _play(hand: dict[str, Any], result: Checked) -> Table:
    """The table after the hand."""
    variant = hand["variant"]
    if "_void" in hand:
        raise Unreadable(f"the hand is void ({hand['_void']}): every chip went back, nothing is to be compared")
    if variant not in _GAMES:
        raise Unreadable(f"variant {variant!r} is not known here; {', '.join(sorted(_GAMES))} are")
    game, limit = _GAMES[variant]
    table = initial("check")
    _do(table, cmd.OpenTable(_config(hand, game, limit)), None)
    stacks = hand["starting_stacks"]
    for seat, stack in enumerate(stacks, 1):
        _do(table, cmd.TakeSeat(f"p{seat}", seat, stack), None)
        for transfer in list(table.transfers):
            _do(table, cmd.TransferAnswered(transfer, settled=True), None)
    _before(table, hand)
    cards = _FileCards(_order(hand, game))
    _do(table, cmd.StartHand(), cards, result)
    for action in hand["actions"]:
        _action(table, action.split("#")[0].split(), cards, result)
    while (asked := prompt(table)) is not None:  # what the file leaves out: checks, and mucking what is beaten
        _do(table, _passive(asked), cards, result)
    if table.hand is not None:
        raise Unreadable("the hand does not end with its last action")
    return table


def _before(table: Table, hand: dict[str, Any]) -> None:
    """What the table must have been like: the button is the last player's, and who posts owes a post (S4, S5)."""
    count = len(hand["starting_stacks"])
    table.button = count - 1 or count
    ante, blinds = min(hand["antes"]), hand.get("blinds_or_straddles", [])
    dead = [int(each) - ante for each in hand["antes"]]
    if any(each < 0 for each in blinds) or any(dead):
        table.last_dealt = count
    for seat in table.seats.values():
        seat.entry = bool(blinds) and blinds[seat.number - 1] < 0
        seat.missed_small = dead[seat.number - 1] > 0


def _config(hand: dict[str, Any], game: str, limit: game_pb2.Limit.ValueType) -> game_pb2.TableConfig:
    count = len(hand["starting_stacks"])
    antes = [int(ante) for ante in hand["antes"]]
    stakes = game_pb2.Stakes(ante=min(antes))
    if GAMES[game].forced is Forced.BRING_IN:
        stakes.bring_in, stakes.low_limit, stakes.high_limit = hand["bring_in"], hand["small_bet"], hand["big_bet"]
        blinds: list[int] = []
    else:
        blinds = [int(blind) for blind in hand["blinds_or_straddles"]]
        due = [blind for blind in blinds if blind > 0]
        posts = [blind for blind in blinds if blind < 0]
        if due != sorted(due) or blinds[: len(due)] != due or any(post != -due[-1] for post in posts):
            raise Unreadable("posts or straddles that are not the blinds from the left of the button")
        stakes.blinds.extend(due)
        if limit == game_pb2.LIMIT_FIXED:
            stakes.low_limit, stakes.high_limit = hand["small_bet"], hand["big_bet"]
    dead = {ante - min(antes) for ante in antes} - {0}
    if dead and (count == 2 or dead != {stakes.blinds[0] if len(stakes.blinds) > 1 else 0}):
        raise Unreadable("players with different antes: our tables have one ante for all")
    if count == 2 and any(blind < 0 for blind in blinds):
        raise Unreadable("a post between two players")
    return game_pb2.TableConfig(
        game=game,
        limit=limit,
        seats=max(count, 2),
        stakes=stakes,
        min_buy_in=1,
        currency=game_pb2.CURRENCY_EUR,
        rules=game_pb2.TableRules(fourth_street_high="pair" if "G11" in hand.get("_rules", ()) else ""),
    )


def _order(hand: dict[str, Any], game: str) -> list[int]:
    """The deck's order: cards come one at a time round the table (D4), then as the file deals on."""
    runs: list[list[int]] = []
    dealt: dict[str, list[int]] = {}
    known: set[int] = set()

    def flush() -> None:
        width = max((len(cards) for cards in dealt.values()), default=0)
        runs.extend([[each[n] for each in dealt.values() if n < len(each)] for n in range(width)])
        dealt.clear()

    drawing = any(street.draw >= 0 for street in GAMES[game].streets)
    drawn = False
    for action in hand["actions"]:
        words = action.split("#")[0].split()
        if words[:2] == ["d", "dh"]:
            cards = _cards(words[3], known)
            if words[2] in dealt or (drawing and drawn):
                flush()
            dealt[words[2]] = cards
            if drawing and drawn:
                flush()
        else:
            flush()
            if words[:2] == ["d", "db"]:
                runs.append(_cards(words[2], known))
            elif words[1] == "sd":
                drawn = True
    flush()
    rest = iter([card for card in FULL_DECK if card not in known])
    return [next(rest) if card < 0 else card for run in runs for card in run]


def _cards(text: str, known: set[int]) -> list[int]:
    found = []
    for at in range(0, len(text), 2):
        name = text[at : at + 2]
        card = -1 if "?" in name else parse(name)[0]
        if card >= 0:
            known.add(card)
        found.append(card)
    return found


def _action(table: Table, words: list[str], cards: CardSource, result: Checked) -> None:
    """One action of the file. Dealing happens by itself; showing and mucking are the rules'."""
    if not words or words[0] == "d" or words[1] == "sm":
        return
    player = words[0]
    asked = prompt(table)
    if asked is None or asked.player != player:
        who = f"{asked.player} is asked" if asked is not None else "nobody is asked"
        raise Refusal(f"{' '.join(words)}: {who}")
    offer = asked.offer
    if words[1] == "f":
        command = cmd.Act(player, 0, tb.ACTION_KIND_FOLD)
    elif words[1] == "pb":
        command = cmd.Act(player, 0, tb.ACTION_KIND_BRING_IN)
    elif words[1] == "sd":
        command = cmd.Act(player, 0, tb.ACTION_KIND_DISCARD, cards=words[2] if len(words) > 2 else "")
    elif words[1] == "cc":
        command = cmd.Act(player, 0, tb.ACTION_KIND_CALL if offer.call else tb.ACTION_KIND_CHECK)
    elif words[1] == "cbr":
        kind = next((kind for kind in _RAISES if kind in offer.actions), tb.ACTION_KIND_RAISE)
        command = cmd.Act(player, 0, kind, int(words[2]))
    else:
        raise Unreadable(f"action {' '.join(words)!r} is unknown")
    _do(table, command, cards, result)


def _passive(asked: Prompt) -> cmd.Act:
    for kind in (tb.ACTION_KIND_CHECK, tb.ACTION_KIND_MUCK, tb.ACTION_KIND_DISCARD):
        if kind in asked.offer.actions:
            return cmd.Act(asked.player, 0, kind)
    raise Refusal(f"after the last action {asked.player} is asked: {asked.offer.names()}")


def _do(table: Table, command: cmd.Command, cards: CardSource | None, result: Checked | None = None) -> None:
    for event in decide(table, command, Context(at=1, cards=cards)):
        apply(table, event)
        if result is not None and event.HasField("pot_awarded"):
            result.pots.append(event.pot_awarded.amount)


def _compare(hand: dict[str, Any], table: Table, result: Checked) -> None:
    """Final stacks and pots. Rake that the file tells was not taken here: who won pays it, and nobody else."""
    count = len(hand["starting_stacks"])
    result.stacks = [table.seats[seat].stack for seat in range(1, count + 1)]
    if "finishing_stacks" not in hand:
        result.lines.append("the file tells no final stacks; played to the end without a refusal")
        return
    result.expected = list(hand["finishing_stacks"])
    pots = hand.get("_pots", [])
    amounts = [pot["amount"] for pot in pots]
    if pots and result.pots != amounts:
        result.state = "differs"
        result.lines.append(f"pots {result.pots}, in the file {amounts}")
    rake = sum(pot["rake"] for pot in pots)
    winners = {share["player"] - 1 for pot in pots for share in pot["shares"] if pot["rake"]}
    more = [ours - theirs for ours, theirs in zip(result.stacks, result.expected, strict=True)]
    if sum(more) == rake and all(chips == 0 or (chips > 0 and at in winners) for at, chips in enumerate(more)):
        return
    result.state = "differs"
    names = hand.get("players", [f"p{n}" for n in range(1, count + 1)])
    for name, ours, theirs in zip(names, result.stacks, result.expected, strict=True):
        if ours != theirs:
            result.lines.append(f"{name} ends with {ours} here, {theirs} in the file")
    if rake:
        result.lines.append(f"the file took {rake} of rake, this check takes none")
    result.lines += _its_own(hand)


def _its_own(hand: dict[str, Any]) -> list[str]:
    rules = hand.get("_rules")
    return [f"the file says that it was played by rules of its own: {', '.join(rules)}"] if rules else []


def check_files(files: Sequence[Path], out: Out) -> bool:
    """Check all hands of the files and print what differs; whether none does. Raises NoAnswer."""
    results: list[Checked] = []
    hands = [(file, number, hand) for file in files for number, hand in hands_in(file)]
    progress = Progress("checking hands", len(hands))
    try:
        for file, number, hand in hands:
            results.append(check(str(file), number, hand))
            progress.advance()
    finally:
        progress.close()
    bad = [result for result in results if result.state != "same"]
    if out.json:
        out.document([asdict(result) for result in results])
        return not bad
    for result in bad:
        out.line(f"{result.file} hand {result.hand}: {result.state}", "bold red")
        for line in result.lines:
            out.line(f"  {line}")
    states = {state: sum(result.state == state for result in results) for state in ("differs", "refused", "unknown")}
    said = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    played = counted(len(results), "hand")
    out.line(f"check-hands: {played}, {len(results) - len(bad)} the same{', ' + said if said else ''}")
    return not bad
