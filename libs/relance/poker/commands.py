"""What a table can be asked to do. Plain data; times, cards and connections come with the `Context`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from relance.api.common.v1 import game_pb2
from relance.api.events.v1 import events_pb2
from relance.api.table.v1 import table_pb2


@dataclass(frozen=True, slots=True)
class OpenTable:
    """Open a table: the first command of a stream."""

    config: game_pb2.TableConfig
    rake: game_pb2.RakeSchedule | None = None
    opened_by: str = ""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Become the owner (C3). `reason`: OPENED, HANDOVER or CRASH; a drained table is always a handover."""

    fence: int
    process: str
    reason: events_pb2.OwnerReason.ValueType


@dataclass(frozen=True, slots=True)
class Drain:
    """Give the table up in order. With `void` a running hand is voided; without, it is let end (nothing is decided)."""

    void: bool = False


@dataclass(frozen=True, slots=True)
class CloseTable:
    """No more hands; everyone is cashed out after the running one."""

    operator: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Another configuration or rake schedule from the next hand on."""

    operator: str
    config: game_pb2.TableConfig
    rake: game_pb2.RakeSchedule | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PauseTable:
    """No new hands until resumed."""

    operator: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResumeTable:
    """Hands may start again."""

    operator: str


@dataclass(frozen=True, slots=True)
class RecordRuling:
    """A ruling of the management (C4)."""

    operator: str
    hand: int
    text: str


@dataclass(frozen=True, slots=True)
class WarnPlayer:
    """A warning of the management."""

    player: str
    operator: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BanPlayer:
    """A ban from this table; a seated player leaves. `until`: microseconds, 0 = for good."""

    player: str
    operator: str = ""
    reason: str = ""
    until: int = 0


@dataclass(frozen=True, slots=True)
class TakeSeat:
    """Buy in to a seat (B1, S4, S7, S8, S9). `seat` 0: the one held for the player, or any free one. `amount`: chips.

    invited: to a private table. ask_to_post: antes do not post by themselves (S7).
    """

    player: str
    seat: int
    amount: int
    wait_for_big_blind: bool = False
    invited: bool = True
    ask_to_post: bool = False


@dataclass(frozen=True, slots=True)
class AddChips:
    """Buy more chips; they join the stack at the next hand (B1)."""

    player: str
    amount: int


@dataclass(frozen=True, slots=True)
class SitOut:
    """Sit out from the next hand on (S6), or when the big blind comes."""

    player: str
    at_next_big_blind: bool = False


@dataclass(frozen=True, slots=True)
class SitIn:
    """Sit in again (S5); who has asked to leave after the hand stays."""

    player: str
    wait_for_big_blind: bool = False


@dataclass(frozen=True, slots=True)
class LeaveSeat:
    """Leave the table; in a hand the cards are folded at once (S6), or played to its end with `after_hand`."""

    player: str
    reason: events_pb2.LeaveReason.ValueType = events_pb2.LEAVE_REASON_REQUESTED
    after_hand: bool = False


@dataclass(frozen=True, slots=True)
class HoldSeat:
    """Hold a free seat for a player, or for longer the one that is held. `until`: microseconds; `by`: who asked."""

    player: str
    until: int
    by: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseSeat:
    """Give up the seat that is held for a player, if one is."""

    player: str


@dataclass(frozen=True, slots=True)
class ExpireSeats:
    """What time does to seats: reservations and holds that are over, players who were away for too long (S6)."""


@dataclass(frozen=True, slots=True)
class AckNotices:
    """The player has seen what became of their chips."""

    player: str


@dataclass(frozen=True, slots=True)
class MutePlayer:
    """Nothing more of a player in the chat. `until`: microseconds, 0 = for good."""

    player: str
    operator: str
    reason: str = ""
    until: int = 0


@dataclass(frozen=True, slots=True)
class UnmutePlayer:
    """The player may chat again."""

    player: str
    operator: str


@dataclass(frozen=True, slots=True)
class SetPreferences:
    """How a seat plays by itself. Whole: what is not given is off."""

    player: str
    auto_post: bool = True
    auto_muck: bool = True
    wait_for_big_blind: bool = False
    sit_out_next_big_blind: bool = False
    auto_top_up: int = 0


@dataclass(frozen=True, slots=True)
class TransferAnswered:
    """The wallet's final answer. `refusal`: ErrorInfo reason when not settled."""

    transfer: str
    settled: bool
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class StartHand:
    """Start the next hand; the context brings the cards and, if it changed, the rake schedule."""


class Act(NamedTuple):
    """An action in a hand. `turn`: of the prompt answered, 0 = whatever is asked now; `amount`: total for the round."""

    player: str
    turn: int
    kind: table_pb2.ActionKind.ValueType
    amount: int = 0
    cards: str = ""


@dataclass(frozen=True, slots=True)
class ActLate:
    """An action that came after the decision time, `used_ms` milliseconds into the player's time bank."""

    act: Act
    used_ms: int


@dataclass(frozen=True, slots=True)
class Timeout:
    """The clock of a prompt ran out (C1, C2, G12)."""

    turn: int
    connected: bool = True
    protection_left: bool = True


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The player's stream is gone."""

    player: str


@dataclass(frozen=True, slots=True)
class ConnectionRestored:
    """The player's stream is back."""

    player: str


@dataclass(frozen=True, slots=True)
class VoidHand:
    """Void the running hand (C4). `hand`: its number."""

    operator: str
    note: str
    hand: int


@dataclass(frozen=True, slots=True)
class ReportDealingFault:
    """A dealing fault of the live-dealt house (F1-F5). `keep`: the owner of an exposed card wants to keep it."""

    fault: events_pb2.DealingFault.ValueType
    seat: int = 0
    operator: str = ""
    keep: bool = False


Command = (
    OpenTable
    | TakeOver
    | Drain
    | CloseTable
    | ChangeSettings
    | PauseTable
    | ResumeTable
    | RecordRuling
    | WarnPlayer
    | BanPlayer
    | TakeSeat
    | AddChips
    | SitOut
    | SitIn
    | LeaveSeat
    | HoldSeat
    | ReleaseSeat
    | ExpireSeats
    | AckNotices
    | MutePlayer
    | UnmutePlayer
    | SetPreferences
    | TransferAnswered
    | StartHand
    | Act
    | ActLate
    | Timeout
    | ConnectionLost
    | ConnectionRestored
    | VoidHand
    | ReportDealingFault
)
