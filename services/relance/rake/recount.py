"""Every hand's rake, recomputed from what everybody could see of the hand.

Nothing of the table's own state is used: chips put in are added up, pots compared with them, whether the hand came far
enough is read off the cards dealt (K1), and the schedule in force is the one in the log (K7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2 as pb
from relance.poker.games import GAMES
from relance.poker.rake import rake_for


class Gap(Exception):
    """Events that do not make sense without others that are missing."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a player put into the pots of a hand, uncalled chips returned, and their part of its rake."""

    player: str
    contributed: int
    rake: int


@dataclass(frozen=True, slots=True)
class Paid:
    """A hand that was paid. `mismatch`: how what the table took differs from what is right; empty: it does not."""

    table: str
    hand: int
    ended_at: int
    currency: int
    house: str
    game: str
    betting: int
    schedule: str
    players: int
    pot: int
    rake: int
    expected: int
    mismatch: str
    shares: tuple[Share, ...]
    """By player: what each put in, and bore of the rake."""


@dataclass(slots=True)
class Running:
    """The running hand as seen so far. Amounts in minor units."""

    number: int
    players: int
    label: str
    """The schedule in force as the hand's first event names it."""
    rake: str
    """That schedule, serialised, hexadecimal: later changes are for later hands (K7)."""
    unpublished: str = ""
    """What is wrong with that schedule itself; empty: it is what was published."""
    seats: dict[str, str] = field(default_factory=dict)
    """Player of each seat that was dealt in."""
    stakes: dict[str, int] = field(default_factory=dict)
    """What each seat has in the pots."""
    put: int = 0
    returned: int = 0
    reached: bool = False
    """Whether the flop, the third or fourth card or the draw came (K1)."""
    cards: dict[str, int] = field(default_factory=dict)
    """Cards dealt to each seat."""
    pots: list[int] = field(default_factory=list)
    borne: list[int] = field(default_factory=list)
    taken: int = 0
    by_pot: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Seen:
    """A table as its events show it: what it plays, its rake schedule, the running hand."""

    table: str
    config: str = ""
    """Serialised TableConfig, hexadecimal."""
    rake: str = ""
    """Serialised RakeSchedule in force, hexadecimal."""
    unpublished: str = ""
    """What is wrong with that schedule itself."""
    hand: Running | None = None

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def load(cls, dumped: dict[str, Any]) -> Seen:
        """From JSON."""
        hand = dumped["hand"]
        return cls(**{**dumped, "hand": None if hand is None else Running(**hand)})

    def take(self, event: pb.TableEvent) -> Paid | None:
        """Take the next event in; the hand, when it ends with this one. Raises Gap."""
        name = event.WhichOneof("payload") or ""
        if name == "hand_ended":
            return self._ended(event)
        step = _STEPS.get(name)
        if step is not None:
            step(self, getattr(event, name), event)
        return None

    def running(self, event: pb.TableEvent) -> Running:
        """The hand that `event` belongs to. Raises Gap."""
        if self.hand is None or self.hand.number != event.hand:
            raise Gap(f"{self.table}@{event.version}: hand {event.hand} goes on, but its start was not seen")
        return self.hand

    def _ended(self, event: pb.TableEvent) -> Paid:
        hand, ended = self.running(event), event.hand_ended
        config = game_pb2.TableConfig.FromString(bytes.fromhex(self.config))
        rake = game_pb2.RakeSchedule.FromString(bytes.fromhex(hand.rake))
        self.hand = None
        expected, by_pot = 0, [0] * len(hand.pots)
        if hand.reached and config.currency == game_pb2.CURRENCY_EUR:
            expected, by_pot = rake_for(rake, hand.pots, hand.players)
        return Paid(
            table=self.table,
            hand=event.hand,
            ended_at=event.time_us,
            currency=config.currency,
            house=config.house,
            game=config.game,
            betting=config.limit,
            schedule=ended.rake_schedule,
            players=hand.players,
            pot=ended.pot,
            rake=ended.rake,
            expected=expected,
            mismatch="; ".join(_faults(hand, ended, rake, expected, by_pot)),
            shares=shares(hand, ended.rake),
        )


def label(rake: game_pb2.RakeSchedule) -> str:
    """A schedule as HandStarted names it."""
    return f"{rake.id}/{rake.band}@{rake.version}" if rake.tiers else ""


def new_schedule(event: pb.TableEvent) -> game_pb2.RakeSchedule | None:
    """The schedule that an event puts in force."""
    match event.WhichOneof("payload"):
        case "table_opened":
            return event.table_opened.rake
        case "settings_changed" if event.settings_changed.HasField("rake"):
            return event.settings_changed.rake
        case "hand_started" if event.hand_started.HasField("new_rake"):
            return event.hand_started.new_rake
    return None


def shares(hand: Running, rake: int) -> tuple[Share, ...]:
    """Each player's part of the rake by what they put in: whole units, the last ones to the largest fractions."""
    pot = sum(hand.stakes.values())
    parts = {seat: divmod(rake * stake, pot) if pot else (0, 0) for seat, stake in hand.stakes.items()}
    left = rake - sum(whole for whole, _ in parts.values()) if pot else 0
    more = set(sorted(parts, key=lambda seat: (-parts[seat][1], int(seat)))[:left])
    return tuple(
        Share(hand.seats[seat], hand.stakes[seat], whole + (seat in more)) for seat, (whole, _) in parts.items()
    )


def _faults(
    hand: Running, ended: pb.HandEnded, rake: game_pb2.RakeSchedule, expected: int, by_pot: list[int]
) -> list[str]:
    """What is wrong with the hand, a clause each."""
    in_force = label(rake)
    faults = [hand.unpublished] if hand.unpublished else []
    if (hand.label, ended.rake_schedule) != (in_force, in_force):
        faults.append(
            f"schedule {ended.rake_schedule!r} at the end, {hand.label!r} at the start, {in_force!r} in force"
        )
    if sum(hand.pots) != hand.put - hand.returned:
        faults.append(f"{hand.put} chips put in and {hand.returned} returned, pots of {sum(hand.pots)}")
    theirs = {str(result.seat): result.contributed for result in ended.results if result.contributed}
    if theirs != {seat: stake for seat, stake in hand.stakes.items() if stake}:
        faults.append(f"players put in {hand.stakes}, the hand says {theirs}")
    if ended.pot != sum(hand.pots):
        faults.append(f"pots of {sum(hand.pots)}, the hand ended with {ended.pot}")
    for what, amount in (("the hand", ended.rake), ("RakeTaken", hand.taken), ("the pots", sum(hand.borne))):
        if amount != expected:
            faults.append(f"{what} bore a rake of {amount}, the schedule gives {expected}")
    if expected and (hand.by_pot != by_pot or hand.borne != by_pot):
        faults.append(f"the pots bore {hand.borne}, announced {hand.by_pot}, the schedule gives {by_pot}")
    return faults


def _opened(seen: Seen, opened: pb.TableOpened, event: pb.TableEvent) -> None:
    seen.config, seen.rake = opened.config.SerializeToString().hex(), opened.rake.SerializeToString().hex()


def _changed(seen: Seen, changed: pb.SettingsChanged, event: pb.TableEvent) -> None:
    seen.config = changed.config.SerializeToString().hex()
    if changed.HasField("rake"):
        seen.rake = changed.rake.SerializeToString().hex()


def _started(seen: Seen, started: pb.HandStarted, event: pb.TableEvent) -> None:
    if not seen.config:
        raise Gap(f"{seen.table}@{event.version}: a hand starts, but the table was not seen to open")
    if started.HasField("new_rake"):
        seen.rake = started.new_rake.SerializeToString().hex()
    seen.hand = Running(
        event.hand, len(started.players), started.rake_schedule, seen.rake, seen.unpublished,
        seats={str(player.seat): player.player for player in started.players},
    )  # fmt: skip


def _put(seen: Seen, put: Any, event: pb.TableEvent) -> None:
    hand, seat = seen.running(event), str(put.seat)
    hand.put += put.amount
    hand.stakes[seat] = hand.stakes.get(seat, 0) + put.amount


def _returned(seen: Seen, returned: pb.UncalledReturned, event: pb.TableEvent) -> None:
    hand, seat = seen.running(event), str(returned.seat)
    hand.returned += returned.amount
    hand.stakes[seat] = hand.stakes.get(seat, 0) - returned.amount


def _cards(seen: Seen, dealt: pb.CardsDealt, event: pb.TableEvent) -> None:
    """K1: in stud the cards of the second street; every game's first street is the deal."""
    hand, seat = seen.running(event), str(dealt.seat)
    hand.cards[seat] = hand.cards.get(seat, 0) + dealt.down_count + len(dealt.up) // 2
    first = GAMES[game_pb2.TableConfig.FromString(bytes.fromhex(seen.config)).game].streets[0]
    hand.reached = hand.reached or hand.cards[seat] > first.down + first.up


def _second_street(seen: Seen, payload: object, event: pb.TableEvent) -> None:
    """K1: a board or an exchange."""
    seen.running(event).reached = True


def _round_over(seen: Seen, ended: pb.RoundEnded, event: pb.TableEvent) -> None:
    """K1: after the first round of a draw game comes the draw, whether anybody changes a card or not."""
    streets = GAMES[game_pb2.TableConfig.FromString(bytes.fromhex(seen.config)).game].streets
    if streets[1].draw >= 0:
        seen.running(event).reached = True


def _rake_taken(seen: Seen, taken: pb.RakeTaken, event: pb.TableEvent) -> None:
    hand = seen.running(event)
    hand.taken, hand.by_pot = taken.amount, list(taken.by_pot)


def _awarded(seen: Seen, awarded: pb.PotAwarded, event: pb.TableEvent) -> None:
    hand = seen.running(event)
    hand.pots.append(awarded.amount)
    hand.borne.append(awarded.rake)


def _voided(seen: Seen, voided: pb.HandVoided, event: pb.TableEvent) -> None:
    seen.hand = None


# Each step takes its own payload message; the dispatch by name is what makes that type-safe.
_STEPS: Final[dict[str, Callable[[Seen, Any, pb.TableEvent], None]]] = {
    "table_opened": _opened,
    "settings_changed": _changed,
    "hand_started": _started,
    "ante_posted": _put,
    "blind_posted": _put,
    "bring_in_posted": _put,
    "called": _put,
    "bet_made": _put,
    "raised": _put,
    "uncalled_returned": _returned,
    "cards_dealt": _cards,
    "board_dealt": _second_street,
    "cards_discarded": _second_street,
    "round_ended": _round_over,
    "rake_taken": _rake_taken,
    "pot_awarded": _awarded,
    "hand_voided": _voided,
}
