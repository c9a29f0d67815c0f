"""Which command led to events: what `decide` must have been given to write them.

The first event of a decision tells the command, those that follow what came with it: whether the clock's player was
connected, whether the table was being drained, which rake was adopted. What no event tells at all (a clock that ran
out and changed nothing, a command that was refused) wrote nothing either, so nothing in the log is left unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from relance.api.events.v1 import events_pb2 as pb
from relance.api.table.v1 import table_pb2 as tb
from relance.poker import Context, Request, Table
from relance.poker import commands as cmd
from relance.poker.deck import CardSource

Events = Sequence[pb.TableEvent]


def commands_of(table: Table, events: Events) -> list[cmd.Command]:
    """The commands that may have led to `events` at this table, likeliest first; none: no command begins like that."""
    kind = events[0].WhichOneof("payload") or ""
    reader = _READERS.get(kind)
    return reader(table, getattr(events[0], kind), events) if reader is not None else []


def context_of(events: Events, cards: CardSource | None) -> Context:
    """What came with the command."""
    first = events[0]
    request = Request(first.request_id, first.request_hash, first.request_player) if first.request_id else None
    rake = None
    draining = False
    for event in events:
        if event.HasField("table_drained"):
            draining = True
        elif event.HasField("hand_started") and event.hand_started.HasField("new_rake"):
            rake = event.hand_started.new_rake
    return Context(at=first.time_us, cards=cards, request=request, draining=draining, rake=rake)


def _act(kind: tb.ActionKind.ValueType, *, amount: str = "", cards: bool = False) -> _Reader:
    def read(table: Table, payload: Any, events: Events) -> list[cmd.Command]:
        player = _player(table, payload.seat)
        return [cmd.Act(player, 0, kind, getattr(payload, amount) if amount else 0, payload.cards if cards else "")]

    return read


def _player(table: Table, seat: int) -> str:
    hand = table.hand
    if hand is not None and seat in hand.index:
        return hand.players[hand.index[seat]]
    return table.seats[seat].player if seat in table.seats else ""


def _folded(table: Table, payload: pb.Folded, events: Events) -> list[cmd.Command]:
    """F6: at showdown the cards are thrown away by mucking them."""
    thrown = payload.reason == pb.FOLD_REASON_THROWN_AWAY
    kind = tb.ACTION_KIND_MUCK if thrown else tb.ACTION_KIND_FOLD
    return [cmd.Act(_player(table, payload.seat), 0, kind)]


def _timed_out(table: Table, payload: pb.TimedOut, events: Events) -> list[cmd.Command]:
    """Connected and protected or not: the events that follow tell."""
    turn = table.hand.turn if table.hand is not None else 0
    connected = protected = True
    for event in events:
        if event.HasField("protection_used"):
            connected = False
        elif event.HasField("folded") and event.folded.reason == pb.FOLD_REASON_DISCONNECTED:
            connected = protected = False
        elif event.HasField("player_sat_out") and event.player_sat_out.reason == pb.SIT_OUT_REASON_DISCONNECTED:
            connected = False
    return [cmd.Timeout(turn, connected, protected)]


def _sat_out(table: Table, payload: pb.PlayerSatOut, events: Events) -> list[cmd.Command]:
    """Asked for, or by who wanted to sit out at the next big blind when the next hand was to start."""
    return [cmd.SitOut(payload.player), cmd.StartHand()]


def _split_answered(table: Table, payload: pb.SplitAnswered, events: Events) -> list[cmd.Command]:
    """P1: a refusal may be the answer itself, or come with a normal action, which stands in the next event."""
    player = _player(table, payload.seat)
    if payload.accepted:
        return [cmd.Act(player, 0, tb.ACTION_KIND_ACCEPT_SPLIT)]
    found: list[cmd.Command] = [cmd.Act(player, 0, tb.ACTION_KIND_REFUSE_SPLIT)]
    if len(events) > 1:
        kind = events[1].WhichOneof("payload") or ""
        if kind in {"checked", "called", "bet_made", "raised"}:
            found = [*_READERS[kind](table, getattr(events[1], kind), events[1:]), *found]
    return found


def _hand_voided(table: Table, payload: pb.HandVoided, events: Events) -> list[cmd.Command]:
    if payload.reason == pb.VOID_REASON_DRAIN:
        return [cmd.Drain(void=True)]
    number = table.hand.number if table.hand is not None else 0
    return [cmd.VoidHand(payload.operator, payload.note, number)]


def _fault(table: Table, payload: pb.DealingFaultRuled, events: Events) -> list[cmd.Command]:
    keep = payload.procedure == "KEEP"
    return [cmd.ReportDealingFault(payload.fault, payload.seat, payload.operator, keep)]


def _burnt(table: Table, payload: pb.CardBurnt, events: Events) -> list[cmd.Command]:
    """F3, F4: the card before those that were exposed too early."""
    if len(events) > 1 and events[1].HasField("dealing_fault_ruled"):
        return _fault(table, events[1].dealing_fault_ruled, events[1:])
    return []


def _opened(table: Table, payload: pb.TableOpened, events: Events) -> list[cmd.Command]:
    return [cmd.OpenTable(payload.config, payload.rake if payload.HasField("rake") else None, payload.opened_by)]


def _changed(table: Table, payload: pb.SettingsChanged, events: Events) -> list[cmd.Command]:
    rake = payload.rake if payload.HasField("rake") else None
    return [cmd.ChangeSettings(payload.operator, payload.config, rake, payload.reason)]


def _preferences(table: Table, e: pb.SeatPreferencesChanged, events: Events) -> list[cmd.Command]:
    wait, next_blind = e.wait_for_big_blind, e.sit_out_next_big_blind
    return [cmd.SetPreferences(e.player, e.auto_post, e.auto_muck, wait, next_blind, e.auto_top_up)]


def _requested(table: Table, payload: pb.TransferRequested, events: Events) -> list[cmd.Command]:
    return [cmd.AddChips(payload.player, payload.amount)]


def _take_seat(e: pb.SeatReserved) -> cmd.Command:
    return cmd.TakeSeat(e.player, e.seat, e.amount, e.wait_for_big_blind, ask_to_post=e.ask_to_post)


def _released(table: Table, e: pb.SeatReleased, events: Events) -> list[cmd.Command]:
    """A hold or reservation that was over or given up; or the hold of a player who took another seat."""
    reserved = next((each.seat_reserved for each in events[1:] if each.HasField("seat_reserved")), None)
    if reserved is not None and reserved.player == e.player:
        return [_take_seat(reserved)]
    if e.reason != "EXPIRED":
        return [cmd.LeaveSeat(e.player)]
    return [cmd.ExpireSeats(), cmd.ReleaseSeat(e.player)]


def _gone(table: Table, e: pb.PlayerLeft | pb.LeaveRequested, events: Events) -> list[cmd.Command]:
    """S6: several who were away for too long may go at once."""
    after_hand = isinstance(e, pb.LeaveRequested) and e.after_hand
    found: list[cmd.Command] = [cmd.LeaveSeat(e.player, e.reason, after_hand)]
    return [*found, cmd.ExpireSeats()] if e.reason == pb.LEAVE_REASON_DISCONNECTED else found


def _stays(table: Table, e: pb.LeaveWithdrawn, events: Events) -> list[cmd.Command]:
    """Sits in, too, where that follows."""
    sat_in = events[1].player_sat_in if len(events) > 1 and events[1].HasField("player_sat_in") else None
    return [cmd.SitIn(e.player, table.seats[e.seat].wait if sat_in is None else sat_in.wait_for_big_blind)]


def _late(table: Table, e: pb.TimeBankUsed, events: Events) -> list[cmd.Command]:
    """The action that follows came after the decision time."""
    name = events[1].WhichOneof("payload") or ""
    acts = _READERS[name](table, getattr(events[1], name), events[1:])
    return [cmd.ActLate(each, e.used_ms) for each in acts if isinstance(each, cmd.Act)]


def _one(make: Callable[[Any], cmd.Command]) -> _Reader:
    return lambda table, payload, events: [make(payload)]


# Each reader takes its own payload message; the dispatch by name is what makes that type-safe.
_Reader = Callable[[Table, Any, Events], list[cmd.Command]]

_READERS: Final[dict[str, _Reader]] = {
    "table_opened": _opened,
    "settings_changed": _changed,
    "owner_started": _one(lambda e: cmd.TakeOver(e.fence, e.process, e.reason)),
    "table_drained": _one(lambda e: cmd.Drain()),
    "table_closed": _one(lambda e: cmd.CloseTable(e.operator, e.reason)),
    "ruling_recorded": _one(lambda e: cmd.RecordRuling(e.operator, e.about_hand, e.text)),
    "player_warned": _one(lambda e: cmd.WarnPlayer(e.player, e.operator, e.reason)),
    "player_banned": _one(lambda e: cmd.BanPlayer(e.player, e.operator, e.reason, e.until_us)),
    "table_paused": _one(lambda e: cmd.PauseTable(e.operator, e.reason)),
    "table_resumed": _one(lambda e: cmd.ResumeTable(e.operator)),
    "player_muted": _one(lambda e: cmd.MutePlayer(e.player, e.operator, e.reason, e.until_us)),
    "player_unmuted": _one(lambda e: cmd.UnmutePlayer(e.player, e.operator)),
    "seat_held": _one(lambda e: cmd.HoldSeat(e.player, e.expire_time_us, e.held_by)),
    "notice_seen": _one(lambda e: cmd.AckNotices(e.player)),
    "time_bank_used": _late,
    "seat_reserved": _one(_take_seat),
    "seat_released": _released,
    "chips_added": _one(lambda e: cmd.StartHand()),
    "hand_started": _one(lambda e: cmd.StartHand()),
    "player_sat_out": _sat_out,
    "player_sat_in": _one(lambda e: cmd.SitIn(e.player, e.wait_for_big_blind)),
    "player_left": _gone,
    "leave_requested": _gone,
    "leave_withdrawn": _stays,
    "connection_lost": _one(lambda e: cmd.ConnectionLost(e.player)),
    "connection_restored": _one(lambda e: cmd.ConnectionRestored(e.player)),
    "seat_preferences_changed": _preferences,
    "transfer_requested": _requested,
    "transfer_settled": _one(lambda e: cmd.TransferAnswered(e.transfer, settled=True)),
    "transfer_refused": _one(lambda e: cmd.TransferAnswered(e.transfer, settled=False, refusal=e.reason)),
    "ante_posted": _act(tb.ACTION_KIND_POST),
    "bring_in_posted": _act(tb.ACTION_KIND_BRING_IN),
    "checked": _act(tb.ACTION_KIND_CHECK),
    "called": _act(tb.ACTION_KIND_CALL),
    "bet_made": _act(tb.ACTION_KIND_BET, amount="to"),
    "raised": _act(tb.ACTION_KIND_RAISE, amount="to"),
    "folded": _folded,
    "timed_out": _timed_out,
    "cards_discarded": _act(tb.ACTION_KIND_DISCARD, cards=True),
    "split_offered": _act(tb.ACTION_KIND_OFFER_SPLIT),
    "split_answered": _split_answered,
    "hand_shown": _act(tb.ACTION_KIND_SHOW),
    "hand_mucked": _act(tb.ACTION_KIND_MUCK),
    "hand_voided": _hand_voided,
    "dealing_fault_ruled": _fault,
    "card_burnt": _burnt,
}
"""How to read the command from each event that a decision may begin with."""
