"""The catalogue as it follows from the tables' events (lobby.game_table, lobby.played), and what else does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relance.api.common.v1 import game_pb2
from relance.api.events.v1.events_pb2 import TableEvent
from relance.lobby import protections, seats
from relance.lobby.kinds import kind_of, targets_of
from relance.lobby.protections import Use
from relance.lobby.seats import SeatChange
from relance.runtime.database import Connection, Pool

MINUTE_US = 60_000_000

_LOAD = """
SELECT version, config, seated, held, closed, paused, last_hand, created_at, empty_since FROM lobby.game_table
WHERE id = $1 FOR UPDATE
"""
_INSERT = """
INSERT INTO lobby.game_table (id, version, config, display_name, house, game, betting, currency, big_blind, turbo,
    micro, seats, seated, held, closed, last_hand, created_at, low_limit, ante, min_buy_in, max_buy_in, private, paused,
    kind, targets, empty_since)
VALUES ($1, 0, '', '', '', '', 0, 0, 0, false, false, 0, '{}', '{}', false, 0, 0, 0, 0, 0, 0, false, false, '', '{}', 0)
ON CONFLICT DO NOTHING
"""
_SAVE = """
UPDATE lobby.game_table SET version = $2, config = $3, display_name = $4, house = $5, game = $6, betting = $7,
    currency = $8, big_blind = $9, turbo = $10, micro = $11, seats = $12, seated = $13, held = $14, closed = $15,
    last_hand = $16, created_at = $17, low_limit = $18, ante = $19, min_buy_in = $20, max_buy_in = $21, private = $22,
    paused = $23, kind = $24, targets = $25, empty_since = $26
WHERE id = $1
"""
_COUNT = """
INSERT INTO lobby.played AS p ("table", minute, hands, pots, flops, flop_players) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT ("table", minute) DO UPDATE SET hands = p.hands + excluded.hands, pots = p.pots + excluded.pots,
    flops = p.flops + excluded.flops, flop_players = p.flop_players + excluded.flop_players
"""
_CONFIRM = "SELECT FROM lobby.followed, lobby.game_table LIMIT 0"
_CLEAN = "DELETE FROM lobby.played WHERE minute < $1"


class Gap(Exception):
    """Events do not follow on what is there."""


@dataclass(slots=True)
class Played:
    """Hands that ended in one minute."""

    hands: int = 0
    pots: int = 0
    flops: int = 0
    flop_players: int = 0


@dataclass(slots=True)
class Row:
    """What the catalogue knows of one table."""

    table: str
    version: int = 0
    config: game_pb2.TableConfig = field(default_factory=game_pb2.TableConfig)
    seated: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    closed: bool = False
    paused: bool = False
    last_hand: int = 0
    created_at: int = 0
    empty_since: int = 0
    """Since when nobody has had a seat, microseconds since 1970 UTC; 0: somebody has one."""
    changes: list[SeatChange] = field(default_factory=list)
    """What became of seats; only what is new, as the following."""
    played: dict[int, Played] = field(default_factory=dict)
    """By minute since 1970 UTC."""
    uses: list[Use] = field(default_factory=list)
    voided: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def apply(self, event: TableEvent) -> None:
        """Take in the next event."""
        if event.version != self.version + 1:
            raise Gap(f"{self.table}: event {event.version} does not follow on {self.version}")
        self.version = event.version
        step = _STEPS.get(event.WhichOneof("payload") or "")
        if step is not None:
            step(self, event)

    def change(self, seat: int, player: str = "", *, held: bool = False, at: int) -> None:
        """A seat is a player's, held for one, or (no player) free."""
        self.held.discard(seat)
        self.seated.discard(seat)
        if player:
            (self.held if held else self.seated).add(seat)
        self.changes.append(SeatChange(seat, player, held, at))
        if self.held or self.seated:
            self.empty_since = 0
        elif not self.empty_since:
            self.empty_since = at


def _opened(row: Row, event: TableEvent) -> None:
    row.config, row.created_at, row.empty_since = event.table_opened.config, event.time_us, event.time_us


def _changed(row: Row, event: TableEvent) -> None:
    row.config = event.settings_changed.config


def _closed(row: Row, _event: TableEvent) -> None:
    row.closed = True


def _paused(row: Row, _event: TableEvent) -> None:
    row.paused = True


def _resumed(row: Row, _event: TableEvent) -> None:
    row.paused = False


def _held(row: Row, event: TableEvent) -> None:
    row.change(event.seat_held.seat, event.seat_held.player, held=True, at=event.time_us)


def _reserved(row: Row, event: TableEvent) -> None:
    row.change(event.seat_reserved.seat, event.seat_reserved.player, held=True, at=event.time_us)


def _released(row: Row, event: TableEvent) -> None:
    row.change(event.seat_released.seat, at=event.time_us)


def _sat(row: Row, event: TableEvent) -> None:
    row.change(event.player_sat.seat, event.player_sat.player, at=event.time_us)


def _left(row: Row, event: TableEvent) -> None:
    row.change(event.player_left.seat, at=event.time_us)


def _started(row: Row, event: TableEvent) -> None:
    row.last_hand = event.hand


def _protected(row: Row, event: TableEvent) -> None:
    used = event.protection_used
    row.uses.append(Use(event.hand, used.seat, used.player, event.time_us))


def _voided(row: Row, event: TableEvent) -> None:
    row.voided.append(event.hand)


def _ended(row: Row, event: TableEvent) -> None:
    row.ended.append(event.hand)
    ended = event.hand_ended
    played = row.played.setdefault(event.time_us // MINUTE_US, Played())
    played.hands += 1
    played.pots += ended.pot
    if ended.players_flop:
        played.flops += 1
        played.flop_players += ended.players_flop


_STEPS: dict[str, Callable[[Row, TableEvent], None]] = {
    "table_opened": _opened,
    "settings_changed": _changed,
    "table_closed": _closed,
    "table_paused": _paused,
    "table_resumed": _resumed,
    "seat_held": _held,
    "seat_reserved": _reserved,
    "seat_released": _released,
    "player_sat": _sat,
    "player_left": _left,
    "hand_started": _started,
    "protection_used": _protected,
    "hand_ended": _ended,
    "hand_voided": _voided,
}

TYPES = frozenset(_STEPS)
"""Payloads that change something here."""


async def apply(connection: Connection, events: Sequence[TableEvent]) -> None:
    """Take in events of one table that follow on what is there. Raises Gap: the transaction must not stand then."""
    row = await _load(connection, events[0].table)
    for event in events:
        row.apply(event)
    await _save(connection, row)
    await protections.settle(connection, row.table, row.uses, row.voided, row.ended)
    await seats.settle(connection, row.table, row.changes, closed=row.closed)


async def confirm(pool: Pool) -> None:
    """Raises asyncpg's UndefinedTableError where the schema is missing."""
    await pool.execute(_CONFIRM)


async def clean(pool: Pool, now_us: int) -> None:
    """Forget hands that no statistic asks for any more."""
    await pool.execute(_CLEAN, now_us // MINUTE_US - 120)


async def _load(connection: Connection, table: str) -> Row:
    await connection.execute(_INSERT, table)
    found = await connection.fetchrow(_LOAD, table)
    assert found is not None  # inserted above, never deleted
    return Row(
        table=table,
        version=found["version"],
        config=game_pb2.TableConfig.FromString(found["config"]),
        seated=set(found["seated"]),
        held=set(found["held"]),
        closed=found["closed"],
        paused=found["paused"],
        last_hand=found["last_hand"],
        created_at=found["created_at"],
        empty_since=found["empty_since"],
    )


async def _save(connection: Connection, row: Row) -> None:
    config = row.config
    blinds = config.stakes.blinds
    await connection.execute(
        _SAVE, row.table, row.version, config.SerializeToString(deterministic=True), config.display_name, config.house,
        config.game, config.limit, config.currency, blinds[-1] if blinds else config.stakes.low_limit, config.turbo,
        config.micro, config.seats, sorted(row.seated), sorted(row.held), row.closed, row.last_hand, row.created_at,
        config.stakes.low_limit, config.stakes.ante, config.min_buy_in, config.max_buy_in, config.private, row.paused,
        kind_of(config), targets_of(row.table, config), row.empty_since,
    )  # fmt: skip
    await connection.executemany(
        _COUNT,
        [(row.table, minute, p.hands, p.pots, p.flops, p.flop_players) for minute, p in sorted(row.played.items())],
    )
