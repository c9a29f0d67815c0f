"""Bots: players on the client library, for rooms that have nobody else yet."""

from relance.room.bots.blotter import Blotter
from relance.room.bots.fleet import BotFleet, BotStats, FleetStats
from relance.room.bots.misbehaviour import MISBEHAVIOURS
from relance.room.bots.player import PACES, Pace

__all__ = ["MISBEHAVIOURS", "PACES", "Blotter", "BotFleet", "BotStats", "FleetStats", "Pace"]
