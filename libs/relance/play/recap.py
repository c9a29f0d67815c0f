"""What the last hand came to, for as long as the next one has not begun: the view itself forgets it at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf.message import Message

from relance.api.events.v1 import events_pb2 as pb

_PARTS = {pb.POT_PART_HIGH: " for high", pb.POT_PART_LOW: " for low", pb.POT_PART_AGREED: " by agreement"}


@dataclass(slots=True)
class Shown:
    """A hand that was shown, and what it makes."""

    cards: str
    high: str
    low: str


@dataclass(slots=True)
class Recap:
    """A hand followed by its events. `over`: it was paid or voided and the next has not begun."""

    hand: int = 0
    over: bool = False
    board: str = ""
    pot: int = 0
    rake: int = 0
    void: bool = False
    shown: dict[int, Shown] = field(default_factory=dict)
    won: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[str]] = field(default_factory=dict)
    net: dict[int, int] = field(default_factory=dict)

    def follow(self, event: Message, hand: int) -> None:
        """Move on by one event of hand `hand`."""
        match event:
            case pb.HandStarted():
                self.__init__(hand)  # type: ignore[misc]
            case pb.BoardDealt(cards=cards):
                self.board += cards
            case pb.HandShown(seat=seat, cards=cards, high=high, low=low):
                self.shown[seat] = Shown(cards, high, low)
            case pb.PotAwarded(shares=shares):
                for share in shares:
                    self._award(share)
            case pb.HandEnded(results=results, pot=pot, rake=rake):
                self.over, self.pot, self.rake = True, pot, rake
                self.net = {result.seat: result.net for result in results}
            case pb.HandVoided():
                self.over = self.void = True
            case _:
                pass

    def _award(self, share: pb.PotShare) -> None:
        self.won[share.seat] = self.won.get(share.seat, 0) + share.amount
        part = _PARTS.get(share.part, "")
        told = self.parts.setdefault(share.seat, [])
        if part and part not in told:
            told.append(part)

    def made(self, seat: int) -> str:
        """What the hand of a seat was, in words; empty: not shown."""
        shown = self.shown.get(seat)
        if shown is None:
            return ""
        return "; ".join(part for part in (shown.high, shown.low) if part)
