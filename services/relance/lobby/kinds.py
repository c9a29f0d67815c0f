"""Kinds of tables: exactly alike for templates, alike enough for a player who waits."""

from __future__ import annotations

import hashlib

from relance.api.common.v1 import game_pb2
from relance.api.lobby.v1 import waiting_pb2

HEADS_UP = 2


def kind_of(config: game_pb2.TableConfig) -> str:
    """A digest of all that is the same at tables of one kind: the configuration without its name."""
    same = game_pb2.TableConfig()
    same.CopyFrom(config)
    same.ClearField("display_name")
    return hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:32]


def target_of(kind: waiting_pb2.TableKind) -> str:
    """The text by which a place for any table of a kind is found."""
    return (
        f"{kind.house} {kind.game} {kind.limit} {kind.currency} {kind.low_limit}"
        f" {'turbo' if kind.turbo else 'usual'} {kind.seats}"
    )


def targets_of(table: str, config: game_pb2.TableConfig) -> list[str]:
    """What a player may wait for who is served by this table. A private one serves only who waits for itself."""
    targets = [f"tables/{table}"]
    if not config.private:
        kind = waiting_pb2.TableKind(
            house=config.house, game=config.game, limit=config.limit, currency=config.currency,
            low_limit=config.stakes.low_limit, seats=config.seats, turbo=config.turbo,
        )  # fmt: skip
        targets.append(target_of(kind))
        if config.seats != HEADS_UP:
            kind.seats = 0
            targets.append(target_of(kind))
    return targets
